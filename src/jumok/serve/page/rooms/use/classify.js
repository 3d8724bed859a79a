// Classification: probabilities as bars, and the words that decided: those whose absence changes the answer most.

import { h } from "../../view.js";
import { number, t } from "../../words.js";
import { Bars } from "./bars.js";
import { predict, want } from "./desk.js";
import { Files } from "./files.js";
import { Answer, Box, Copy, Examples, Remarks, Sides, kept } from "./text.js";

const WORDS = 120; // left out one by one; longer texts are not looked at word by word

export function Classify({ run }) {
  const [text, pair] = [kept("text"), kept("pair")];
  const ready = text.trim() && (!run.pair || pair.trim());
  const example = run.pair ? { text, pair } : { text };
  const found = want(
    `classify ${run.name}`,
    ready ? example : null,
    async (signal) => (await predict(run, [example], {}, signal))[0],
  );
  const output = ready ? found.answer : null;
  return [
    h(
      Sides,
      {},
      h(
        "div",
        { class: "stack tight" },
        h(Box, {
          name: "text",
          label: t(run.pair ? "use.classify.first" : "use.text"),
          large: !run.pair,
          placeholder: t("use.classify.placeholder"),
        }),
        run.pair ? h(Box, { name: "pair", label: t("use.classify.second") }) : h(Examples, { run, show: !text }),
      ),
      h(
        Answer,
        { found },
        !output && !found.problem && h("p", { class: "muted" }, t("use.classify.empty")),
        output && !output.error && h(Said, { run, output }),
        output && !output.error && h(Deciding, { run, example, output }),
        h(Remarks, { desk: found, output }),
        output && h("div", { class: "line" }, h(Copy, { text: JSON.stringify(output), label: t("use.copy_json") })),
      ),
    ),
    h(Files, { run, options: {} }),
  ];
}

function Said({ run, output }) {
  if (run.predicts === "number") return h("p", { class: "answer" }, number(output.value, 2));
  const said = new Set(run.predicts === "labels" ? output.text.split(run.separator) : [output.text]);
  const rows = Object.entries(output.probabilities).sort((a, b) => b[1] - a[1]);
  return [
    h("p", { class: "answer", dir: "auto" }, [...said].filter(Boolean).join(" · ") || t("use.classify.no_label")),
    h(Bars, { rows, chosen: (label) => said.has(label) }),
  ];
}

/** Each word left out in turn: how much the answer loses without it. */
function Deciding({ run, example, output }) {
  const words = ["text", "pair"].flatMap((side) =>
    [...(example[side] ?? "").matchAll(/\S+/g)].map((match) => ({ side, word: match[0], at: match.index })),
  );
  if (words.length < 2 || (run.predicts === "labels" && !output.text)) return null;
  if (words.length > WORDS) return h("p", { class: "small muted" }, t("use.classify.too_many_words", { n: WORDS }));
  const without = words.map(({ side, word, at }) => ({
    ...example,
    [side]: (example[side].slice(0, at) + example[side].slice(at + word.length)).replace(/\s+/g, " "),
  }));
  const found = want(`deciding ${run.name}`, example, (signal) => predict(run, without, {}, signal));
  if (!found.answer || found.waiting) return h("p", { class: "small muted" }, t("use.thinking"));
  const value = (one) =>
    run.predicts === "number"
      ? one.value
      : run.predicts === "labels"
        ? output.text.split(run.separator).reduce((sum, label) => sum + (one.probabilities[label] ?? 0), 0)
        : one.probabilities[output.text];
  const whole = value(output);
  const effects = found.answer.map((one) => (one.error ? 0 : whole - value(one)));
  const most = Math.max(...effects.map(Math.abs), 1e-9);
  return h(
    "div",
    { class: "stack tight apart" },
    h("h3", {}, t("use.classify.deciding")),
    ["text", "pair"].map(
      (side) =>
        example[side] &&
        h(
          "p",
          { class: "deciding as-is", dir: "auto", key: side },
          words.map(({ word, side: of }, i) => of === side && [h(Weighed, { key: i, word, effect: effects[i], most }), " "]),
        ),
    ),
    h("p", { class: "small muted" }, t("use.classify.deciding_key")),
  );
}

function Weighed({ word, effect, most }) {
  const share = Math.round((100 * Math.abs(effect)) / most);
  const kind = share < 10 ? "" : effect > 0 ? "for" : "against";
  return h("span", { class: kind, style: { "--share": `${share}%` }, title: number(effect, 3) }, word);
}
