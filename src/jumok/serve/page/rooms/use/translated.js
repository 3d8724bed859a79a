// A translated line: its words, other words at a click, and which word comes from which.

import { post } from "../../api.js";
import { redraw, state } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";
import { want } from "./desk.js";
import { Copy, percent, places } from "./text.js";

const UNSURE = [0.2, 0.4, 0.6]; // below these: three grades
const here = { hover: null, open: null, chosen: new Map() };

const keyOf = (run, { source, output }) => `${run.name}\n${source}\n${output.text}`;

/** What is shown for a sentence: its translation, or the one that was chosen instead. */
export const current = (run, piece) => here.chosen.get(keyOf(run, piece)) ?? piece.output;

const grade = (p) => UNSURE.findIndex((limit) => p < limit) + 1;
export const isUnsure = (output) => output.words?.some((word) => grade(word.probability));

/** A line of sentences. What belongs to one of them is below the line: always if it is `alone`, or once a word of it is
 *  clicked. */
export function Translated({ run, line, place, alone }) {
  const id = (i) => `${place}.${i}`;
  const opened = line.findIndex((piece, i) => here.open?.id === id(i) && here.open.source === piece.source);
  const told = opened >= 0 ? opened : alone ? 0 : -1;
  return h(
    "div",
    { class: "translated" },
    h(
      "p",
      { class: "words" },
      line.map((piece, i) => [i > 0 && " ", h(Sentence, { key: i, run, piece, id: id(i) })]),
    ),
    told >= 0 && h(Details, { run, piece: line[told], id: id(told), open: opened >= 0 }),
  );
}

function Sentence({ run, piece, id }) {
  const output = current(run, piece);
  if (output.error) return h("span", { class: "muted", title: output.error.what }, "—");
  const at = places(output.text);
  const lit = linked(output, id);
  return h(
    "span",
    {},
    (output.words ?? []).map((word, i) => [
      i > 0 && output.text.slice(at.unit(output.words[i - 1].end), at.unit(word.start)),
      h(Word, {
        key: i,
        piece,
        output,
        word,
        i,
        id,
        lit: lit.target.has(i),
        prefix: output.text.slice(0, at.unit(word.start)),
      }),
    ]),
  );
}

/** The words under the pointer, and those on the other side that they belong to. */
function linked(output, id) {
  const hover = here.hover?.id === id ? here.hover : here.open?.id === id ? here.open : null;
  const found = { source: new Set(), target: new Set() };
  if (!hover) return found;
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

function Word({ piece, output, word, i, id, lit, prefix }) {
  const unsure = grade(word.probability);
  const open = here.open?.id === id && here.open.i === i;
  const one = { id, side: "target", i };
  return h(
    "button",
    {
      class: `word ${lit ? "lit" : ""} ${unsure ? `unsure-${unsure}` : ""}`,
      title: unsure ? t("use.translate.unsure", { p: percent(word.probability) }) : t("use.translate.click"),
      "aria-expanded": String(open),
      onKeydown: (event) => event.key === "Escape" && open && close(),
      onMouseenter: look(one),
      onMouseleave: look(null),
      onFocus: look(one),
      onBlur: look(null),
      onClick: () => {
        here.open = open ? null : { ...one, source: piece.source, prefix, text: output.text };
        redraw();
      },
    },
    word.text,
  );
}

/** Close the words that are open, and give the focus back to the word. */
function close() {
  const word = document.querySelector('.use button.word[aria-expanded="true"]');
  here.open = null;
  redraw();
  word?.focus();
}

/** The source of a sentence, other words if one is clicked, and other translations. */
function Details({ run, piece, id, open }) {
  const output = current(run, piece);
  if (output.error) return null;
  const { output: original } = piece;
  const others = [original, ...(original.alternatives ?? [])].filter((other) => other.text !== output.text);
  return h(
    "div",
    { class: `details ${open ? "open" : ""}`, onKeydown: (event) => event.key === "Escape" && close() },
    open && h(Others, { run, piece }),
    run.attends && output.alignment && h(Source, { run, source: piece.source, id, lit: linked(output, id).source }),
    others.length > 0 &&
      h(
        "details",
        { class: "small" },
        h("summary", { lang: state.lang }, t("use.translate.alternatives", { n: others.length })),
        h(
          "ol",
          {},
          others.map((other, i) =>
            h("li", { key: i, dir: "auto" }, other.text, " ", h("span", { lang: state.lang }, h(Copy, { text: other.text }))),
          ),
        ),
      ),
  );
}

function Source({ run, source, id, lit }) {
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
          onMouseenter: look({ id, side: "source", i }),
          onMouseleave: look(null),
        },
        word,
      ),
    ]),
  );
}

/** Other words at the place that was clicked; each brings its own rest. */
function Others({ run, piece }) {
  const { source, prefix, i } = here.open;
  const found = want(`others ${run.name}`, [source, prefix], (signal) =>
    post(`/api/runs/${encodeURIComponent(run.name)}/alternatives`, { source, prefix, n: 7 }, { signal }),
  );
  const choose = (output) => () => {
    here.chosen.set(keyOf(run, piece), output);
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
        h("span", { class: "muted number", lang: state.lang }, percent(output.words[i]?.probability ?? 0)),
      ),
    ),
    h("button", { class: "quiet", lang: state.lang, onClick: close }, t("use.close")),
  );
}
