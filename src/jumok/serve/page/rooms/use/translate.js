// Translation: as you type, sentence by sentence.

import { post } from "../../api.js";
import { state } from "../../store.js";
import { h } from "../../view.js";
import { languageName, t } from "../../words.js";
import { predict, want } from "./desk.js";
import { Files } from "./files.js";
import { Translated, current, isUnsure } from "./translated.js";
import { Answer, Box, Copy, Examples, Remarks, Sides, kept } from "./text.js";

const LINES = 100; // of a box; more are a file
const SENTENCES = 200; // that are asked at once

export function Translate({ run }) {
  const text = kept("text");
  const lines = text.split("\n").slice(0, LINES);
  const asked = lines.filter((line) => line.trim());
  const found = want(`translate ${run.name}`, asked.length ? asked : null, (signal) => translate(run, asked, signal));
  const pieces = text ? (found.answer ?? []).flat() : [];
  return [
    h(
      Sides,
      {},
      h(
        "div",
        { class: "stack tight" },
        h(Box, {
          name: "text",
          label: languageName(run.source),
          lang: run.source,
          large: true,
          placeholder: t("use.translate.placeholder"),
        }),
        h(Examples, { run, show: !text }),
        (text.split("\n").length > LINES || found.answer?.cut) &&
          h("p", { class: "note warn" }, t("use.too_much", { lines: LINES, n: SENTENCES })),
      ),
      h(
        "div",
        { class: "stack tight" },
        h(
          Answer,
          { found, label: languageName(run.target), kind: "output as-is", lang: run.target },
          text
            ? (found.answer ?? []).map((line, i) =>
                h(Translated, { key: i, run, line, place: i, alone: pieces.length === 1 }),
              )
            : h("p", { class: "muted", lang: state.lang }, t("use.translate.empty")),
        ),
        h(Remarks, { desk: found, output: pieces.map((one) => one.output).find((one) => one.error || one.notes?.length) }),
        pieces.length > 0 &&
          h(
            "div",
            { class: "line" },
            h(Copy, { text: wholeText(run, lines, found.answer) }),
            h(
              "span",
              { class: "small muted" },
              t("use.translate.click_hint"),
              " ",
              pieces.some((one) => isUnsure(current(run, one))) && t("use.translate.unsure_key"),
            ),
          ),
      ),
    ),
    h(Files, { run, options: {} }),
  ];
}

/** For each line its sentences, each with its translation: models learn from sentences, and lose the rest of a paragraph. */
async function translate(run, lines, signal) {
  const { sentences } = await post("/api/sentences", { texts: lines }, { signal });
  const sources = lines.map((line, i) => (sentences[i].length ? sentences[i] : [line]));
  const all = sources.flat();
  const outputs = await predict(run, all.slice(0, SENTENCES), options(run), signal);
  let next = 0;
  const answer = sources
    .map((some) => some.map((source) => ({ source, output: outputs[next++] })).filter((one) => one.output))
    .filter((some) => some.length);
  return Object.assign(answer, { cut: all.length > SENTENCES });
}

function options(run) {
  const n = run.decode?.method === "beam" ? Math.min(run.decode.beam, 4) : 1;
  return { words: true, alignment: Boolean(run.attends), n_best: n };
}

/** The translations with the empty lines of the input. */
function wholeText(run, lines, answer) {
  let next = 0;
  return lines
    .map((line) => (line.trim() ? (answer[next++] ?? []).map((one) => current(run, one).text ?? "").join(" ") : ""))
    .join("\n")
    .trimEnd();
}
