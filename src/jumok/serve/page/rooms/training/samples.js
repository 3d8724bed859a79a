// What the model answered to the same sentences, evaluation after evaluation.

import { point } from "../../chart.js";
import { Fold, isPhone } from "../../fold.js";
import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";

const FEW = 2; // samples that a phone shows at first
const MOST_WORDS = 200; // of a text in which changes are looked for

export function Samples({ run, log }) {
  const all = log.facts.sampled.filter((one) => Array.isArray(one.samples));
  if (!all.length) return h(Waiting, { log });
  const found = state.at === undefined ? -1 : all.findLastIndex((one) => one.step <= Number(state.at));
  const n = found < 0 ? all.length - 1 : found;
  const [now, earlier] = [all[n], all[n - 1]];
  const right = now.samples.filter((one) => one.gold && one.output === one.gold).length;
  const seen = isPhone() ? FEW : now.samples.length;
  const rest = now.samples.length - seen;
  const list = (from, to) =>
    h(
      "ol",
      { class: "plain", start: from + 1 },
      now.samples
        .slice(from, to)
        .map((one, i) => h(Sample, { key: String(i), run, one, before: earlier?.samples[from + i]?.output })),
    );
  const marks =
    now.samples.some((one, i) => one.output && one.output !== (earlier?.samples[i]?.output ?? one.output)) &&
    h(
      "p",
      { class: "small muted" },
      h("mark", { class: "changed" }, t("training.samples.changed")),
      " ",
      t("training.samples.since", { step: earlier.step }),
    );
  return h(
    "section",
    { class: "panel samples stack tight", "aria-labelledby": "samples-title" },
    h(
      "div",
      { class: "line spread" },
      h("h2", { id: "samples-title" }, t("training.samples")),
      now.samples.some((one) => one.gold) &&
        h("span", { class: "small muted number" }, t("training.samples.right", { right, n: now.samples.length })),
    ),
    h(Slider, { all, n }),
    list(0, seen),
    rest > 0 &&
      h(Fold, {
        name: "samples",
        kind: "small",
        summary: t("training.samples.rest", { n: rest }),
        content: () => [list(seen), marks],
      }),
    rest <= 0 && marks,
  );
}

/** Runs of earlier versions have no samples, and a run that has just begun none yet. */
function Waiting({ log }) {
  return (
    log.status === "running" &&
    log.facts.last &&
    !log.facts.evaluated.length &&
    h("section", { class: "panel samples" }, h("p", { class: "muted" }, t("training.samples.soon")))
  );
}

function Slider({ all, n }) {
  const show = (to) => {
    go({ at: to >= all.length - 1 ? null : String(all[to].step) }, { replace: true });
    point(to >= all.length - 1 ? null : all[to].step);
  };
  const where = t("training.samples.step", { step: all[n].step });
  return h(
    "div",
    { class: "slider line" },
    h(
      "button",
      {
        type: "button",
        class: "quiet no-print",
        "aria-label": t("training.samples.earlier"),
        disabled: n === 0,
        onClick: () => show(n - 1),
      },
      "←",
    ),
    h("input", {
      type: "range",
      min: "0",
      max: String(all.length - 1),
      step: "1",
      value: String(n),
      disabled: all.length === 1,
      "aria-label": t("training.samples.slider"),
      "aria-valuetext": where,
      onInput: (event) => show(Number(event.target.value)),
    }),
    h(
      "button",
      {
        type: "button",
        class: "quiet no-print",
        "aria-label": t("training.samples.later"),
        disabled: n === all.length - 1,
        onClick: () => show(n + 1),
      },
      "→",
    ),
    h("output", { class: "number small" }, where),
  );
}

function Sample({ run, one, before }) {
  const right = one.gold && one.output === one.gold;
  return h(
    "li",
    { class: right ? "sample right" : "sample" },
    h("p", { class: "asked", lang: run.source ?? run.language ?? "", dir: "auto" }, String(one.source)),
    h(
      "div",
      { class: "answered" },
      h(
        "p",
        { class: "said", lang: run.target ?? run.language ?? "", dir: "auto" },
        one.output ? marked(String(one.output), before) : h("span", { class: "muted" }, t("training.samples.nothing")),
        right && h("span", { class: "tick", role: "img", "aria-label": t("training.samples.same") }, " ✓"),
      ),
      one.gold &&
        !right &&
        h(
          "p",
          { class: "small muted", dir: "auto" },
          t("training.samples.gold"),
          " ",
          h("span", { lang: run.target ?? run.language ?? "" }, String(one.gold)),
        ),
    ),
  );
}

/** The words of a text; those that the text before did not have there are marked. */
function marked(text, before) {
  if (typeof before !== "string") return text;
  const [words, old] = [text.split(/\s+/), before.split(/\s+/)];
  if (Math.max(words.length, old.length) > MOST_WORDS) return text;
  const kept = common(old, words);
  return words.flatMap((word, i) => [i ? " " : "", kept.has(i) ? word : h("mark", { class: "changed" }, word)]);
}

/** Indices of the words of `b` in a longest common subsequence with `a`. */
export function common(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  }
  const found = new Set();
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      found.add(j++);
      i++;
    } else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return found;
}
