// A computation as numbered steps: what happens in one sentence, its equation, and its numbers.

import { Fold } from "../../fold.js";
import { h } from "../../view.js";
import { fixed, t } from "../../words.js";
import { shown } from "./data.js";

const FOCUSABLE = { tabindex: "0", role: "group" }; // an equation scrolls where letters are larger than the page
const SEEN = 3; // numbers of a folded vector

/** `steps`: { key, says, formula, content }, in order. */
export function Sequence({ steps }) {
  return h(
    "ol",
    { class: "sequence" },
    steps.map(({ key, says, formula, content }, i) =>
      h(
        "li",
        { key, class: "step" },
        h("span", { class: "nth", "aria-hidden": "true" }, i + 1),
        h("p", { class: "says" }, says),
        formula && h("div", { ...FOCUSABLE, class: "formula", "aria-label": t("inside.equation") }, formula),
        h("div", { class: "worked stack tight" }, content),
      ),
    ),
  );
}

/** A text with tokens in the places of their {names}: functions, since nothing can stand in two places. */
export function said(key, tokens) {
  return t(key)
    .split(/(\{\w+\})/)
    .map((part) => tokens[part.slice(1, -1)]?.() ?? part);
}

/** The token that the numbers are computed for, the same in every step. */
export const Here = (token) => h("strong", { class: "token here" }, shown(token));
export const There = (token) => h("strong", { class: "token there" }, shown(token));

const join = (numbers) => numbers.map((x) => fixed(x).padStart(6)).join(" ");

/** A vector: its first numbers and how many there are; opened, all of them. `whole` asks for those. */
export function Vector({ name, of, whole }) {
  const all = () => {
    const full = whole();
    return full.value
      ? [
          h("p", { class: "mono all" }, full.value.first.map((x) => h("span", {}, fixed(x)))),
          h("p", { class: "small muted" }, t("inside.length", { name }), " ", fixed(full.value.norm)),
        ]
      : h("p", { class: "muted small", role: "status" }, full.problem?.what ?? t("inside.computing"));
  };
  const summary = [
    h("i", { class: "name" }, name),
    " = ",
    h("span", { class: "mono" }, `[${join(of.first.slice(0, SEEN)).trim()} …]`),
    " ",
    h("span", { class: "small muted number" }, t("inside.numbers", { n: of.size })),
  ];
  return h(Fold, { name: `vector ${name}`, kind: "vector", summary, content: all });
}
