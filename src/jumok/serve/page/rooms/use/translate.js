// Translation: as you type, other words at a click, and which word comes from which.

import { post } from "../../api.js";
import { redraw, state } from "../../store.js";
import { h } from "../../view.js";
import { languageName, t } from "../../words.js";
import { predict, want } from "./desk.js";
import { Files } from "./files.js";
import { Box, Copy, Examples, Remarks, kept, percent, places } from "./text.js";

const LINES = 100; // of a box; more are a file
const UNSURE = [0.2, 0.4, 0.6]; // below these: three grades
const here = { hover: null, open: null, chosen: new Map() };

export function Translate({ run }) {
  const text = kept("text");
  const lines = text.split("\n").slice(0, LINES);
  const asked = text.trim() ? lines.filter((line) => line.trim()) : [];
  const found = want(`translate ${run.name}`, asked.length ? asked : null, (signal) =>
    predict(run, asked, options(run), signal),
  );
  const outputs = (found.answer ?? []).map(
    (output, i) => here.chosen.get(`${run.name}\n${asked[i]}\n${output.text}`) ?? output,
  );
  const whole = wholeText(lines, outputs);
  return [
    h(
      "div",
      { class: "columns translate" },
      h(
        "section",
        { class: "stack tight" },
        h(Box, {
          name: "text",
          label: languageName(run.source),
          lang: run.source,
          large: true,
          placeholder: t("use.translate.placeholder"),
        }),
        h(Examples, { run, show: !text }),
        text.split("\n").length > LINES && h("p", { class: "note warn" }, t("use.too_many_lines", { n: LINES })),
      ),
      h(
        "section",
        { class: "stack tight" },
        h("span", { class: "label" }, languageName(run.target)),
        h(
          "div",
          {
            class: `panel output as-is ${found.waiting ? "waiting" : ""}`,
            lang: run.target,
            dir: "auto",
            "aria-live": "polite",
            "aria-busy": Boolean(found.waiting),
          },
          text
            ? outputs.map((output, i) =>
                h(Line, { key: i, run, source: asked[i], output, original: found.answer[i], line: i }),
              )
            : h("p", { class: "muted", lang: state.lang }, t("use.translate.empty")),
        ),
        h(
          "div",
          { class: "line" },
          h(Copy, { text: text ? whole : "" }),
          outputs.length > 0 &&
            h(
              "span",
              { class: "small muted" },
              t("use.translate.click_hint"),
              " ",
              outputs.some(unsureWords) && t("use.translate.unsure_key"),
            ),
        ),
        h(Remarks, { desk: found, output: outputs.find((output) => output.error || output.notes?.length) }),
      ),
    ),
    h(Files, { run, options: {} }),
  ];
}

const unsureWords = (output) => output.words?.some((word) => grade(word.probability));

function options(run) {
  const n = run.decode?.method === "beam" ? Math.min(run.decode.beam, 4) : 1;
  return { words: true, alignment: Boolean(run.attends), n_best: n };
}

/** The outputs with the empty lines of the input. */
function wholeText(lines, outputs) {
  let next = 0;
  return lines
    .map((line) => (line.trim() ? (outputs[next++]?.text ?? "") : ""))
    .join("\n")
    .trimEnd();
}

const grade = (p) => UNSURE.findIndex((limit) => p < limit) + 1;

function Line({ run, source, output, original, line }) {
  if (output.error) return h("p", { class: "muted" }, "—");
  const at = places(output.text);
  const lit = linked(output, line);
  const others = [original, ...(original.alternatives ?? [])].filter((other) => other.text !== output.text);
  return h(
    "div",
    { class: "translated" },
    h(
      "p",
      { class: "words" },
      (output.words ?? []).map((word, i) => [
        i > 0 && output.text.slice(at.unit(output.words[i - 1].end), at.unit(word.start)),
        h(Word, {
          key: i,
          run,
          source,
          output,
          word,
          i,
          line,
          lit: lit.target.has(i),
          prefix: output.text.slice(0, at.unit(word.start)),
        }),
      ]),
    ),
    run.attends && output.alignment && h(Source, { run, source, line, lit: lit.source }),
    here.open?.line === line && here.open.source === source && h(Others, { run, original }),
    others.length > 0 &&
      h(
        "details",
        { class: "small" },
        h("summary", { lang: state.lang }, t("use.translate.alternatives", { n: others.length })),
        h(
          "ol",
          {},
          others.map((other, i) => h("li", { key: i, dir: "auto" }, other.text, " ", h(Copy, { text: other.text }))),
        ),
      ),
  );
}

/** The words under the pointer, and those on the other side that they belong to. */
function linked(output, line) {
  const { hover } = here;
  const found = { source: new Set(), target: new Set() };
  if (hover?.line !== line) return found;
  found[hover.side].add(hover.i);
  for (const [s, w] of output.alignment?.words ?? []) {
    if (hover.side === "target" && w === hover.i) found.source.add(s);
    if (hover.side === "source" && s === hover.i) found.target.add(w);
  }
  return found;
}

const look = (hover) => () => {
  here.hover = hover;
  redraw();
};

function Word({ run, source, word, i, line, lit, prefix, output }) {
  const unsure = grade(word.probability);
  const open = here.open?.line === line && here.open.i === i;
  return h(
    "button",
    {
      class: `word ${lit ? "lit" : ""} ${unsure ? `unsure-${unsure}` : ""}`,
      title: unsure ? t("use.translate.unsure", { p: percent(word.probability) }) : t("use.translate.click"),
      "aria-expanded": String(open),
      onMouseenter: look({ line, side: "target", i }),
      onMouseleave: look(null),
      onFocus: look({ line, side: "target", i }),
      onBlur: look(null),
      onClick: () => {
        here.open = open ? null : { line, i, source, prefix, text: output.text };
        redraw();
      },
    },
    word.text,
  );
}

function Source({ run, source, line, lit }) {
  const words = source.trim().split(/\s+/);
  return h(
    "p",
    { class: "small muted source", lang: run.source, dir: "auto", "aria-hidden": "true" },
    h("span", { lang: state.lang }, t("use.translate.source")),
    " ",
    words.map((word, i) => [
      i > 0 && " ",
      h(
        "span",
        {
          key: i,
          class: lit.has(i) ? "lit" : "",
          onMouseenter: look({ line, side: "source", i }),
          onMouseleave: look(null),
        },
        word,
      ),
    ]),
  );
}

/** Other words at the place that was clicked; each brings its own rest. */
function Others({ run, original }) {
  const { source, prefix, i } = here.open;
  const found = want(`others ${run.name}`, [source, prefix], (signal) =>
    post(`/api/runs/${encodeURIComponent(run.name)}/alternatives`, { source, prefix, n: 7 }, { signal }),
  );
  const choose = (output) => () => {
    here.chosen.set(`${run.name}\n${source}\n${original.text}`, output);
    here.open = null;
    redraw();
  };
  if (found.waiting || !found.answer)
    return h("p", { class: "others small muted", role: "status", lang: state.lang }, found.problem?.what ?? t("use.thinking"));
  return h(
    "div",
    { class: "others line", role: "group", "aria-label": t("use.translate.others") },
    found.answer.outputs.map((output) =>
      h(
        "button",
        {
          class: "chip",
          key: output.text,
          title: output.text,
          onClick: choose(output),
          "aria-pressed": String(output.text === here.open.text),
        },
        output.words[i]?.text ?? "∅",
        h("span", { class: "muted number" }, ` ${percent(output.words[i]?.probability ?? 0)}`),
      ),
    ),
    h("button", { class: "quiet", lang: state.lang, onClick: () => ((here.open = null), redraw()) }, t("use.close")),
  );
}
