// Texts, their places, and what is said about outputs: shared by all parts of the room.

import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { fixed, t } from "../../words.js";

const IN_ADDRESS = 2000; // characters: longer texts stay in this tab

/** The text of a box: from the address, or from this tab if it is long. */
export const kept = (name) => state[name] ?? sessionStorage.getItem(`jumok.use.${state.run ?? ""}.${name}`) ?? "";

export function keep(name, text) {
  const long = text.length > IN_ADDRESS;
  const key = `jumok.use.${state.run ?? ""}.${name}`;
  try {
    if (long) sessionStorage.setItem(key, text);
    else sessionStorage.removeItem(key);
    go({ [name]: long ? null : text }, { replace: true });
  } catch {
    go({ [name]: text }, { replace: true }); // the tab's storage is full
  }
}

/** The part of a text between two places in code points, as the server counts. */
export function places(text) {
  const starts = [];
  let at = 0;
  for (const character of text) {
    starts.push(at);
    at += character.length;
  }
  starts.push(at);
  return {
    unit: (point) => starts[Math.min(Math.max(point, 0), starts.length - 1)],
    point: (unit) => starts.findIndex((start) => start >= unit),
  };
}

/** A probability, always with one decimal, so that those below each other are aligned. */
export function percent(p) {
  if (p > 0 && p < 0.001) return `<${fixed(0.1, 1)}%`;
  if (p < 1 && p > 0.999) return `>${fixed(99.9, 1)}%`;
  return `${fixed(100 * p, 1)}%`;
}

/** What is asked beside its answer; on a narrow page above it. */
export const Sides = ({ children }) => h("div", { class: "columns sides" }, children);

/** Where the answer appears, with a label as the boxes have one. */
export function Answer({ found, label = t("use.result"), kind = "", lang, children }) {
  return h(
    "section",
    { class: "answered" },
    h("span", { class: "label" }, label),
    h(
      "div",
      {
        class: `panel stack tight ${kind} ${found?.waiting ? "waiting" : ""}`,
        lang,
        dir: lang && "auto",
        "aria-live": "polite",
        "aria-busy": Boolean(found?.waiting),
      },
      children,
    ),
  );
}

/** A box to type in. */
export function Box({ name, label, lang, large, rows, placeholder, value = kept(name), onText = keep }) {
  return h(
    "label",
    { class: "field", key: `box ${name}` },
    h("span", {}, label),
    h("textarea", {
      class: large ? "large" : "",
      "data-box": name,
      lang,
      dir: "auto",
      rows,
      spellcheck: "false",
      placeholder,
      value,
      onInput: (event) => onText(name, event.target.value),
    }),
    value.length > IN_ADDRESS && h("span", { class: "small muted" }, t("use.long_text")),
  );
}

/** Texts to begin with, as long as the box is empty; the run's own unless others are given. */
export function Examples({ run, show, texts = run.examples ?? [], take = (one) => keep("text", one) }) {
  if (!show || !texts.length) return null;
  return h(
    "div",
    { class: "line examples", key: "examples" },
    h("span", { class: "small muted" }, t("use.try")),
    texts.map((one) => h("button", { type: "button", class: "chip", key: one, onClick: () => take(one) }, one)),
  );
}

export function Copy({ text, label = t("shell.copy") }) {
  const copy = async (event) => {
    const button = event.currentTarget;
    await navigator.clipboard.writeText(text.toWellFormed()).catch(() => copyOldWay(text));
    button.textContent = t("shell.copied");
    setTimeout(() => (button.textContent = label), 1200);
  };
  return h("button", {
    class: "quiet",
    key: `copy ${label}`,
    onClick: copy,
    disabled: !text,
    setup: (el) => written(el, label),
    label,
  });
}

function written(element, label) {
  element.textContent = label;
  return { update: (props) => (element.textContent = props.label) };
}

/** Without the clipboard's permission: through a selection. */
function copyOldWay(text) {
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

/** What is to be said about an output, or why there is none. */
export function Remarks({ desk, output }) {
  const failure = output?.error;
  return h(
    "div",
    { class: "stack tight", "aria-live": "polite", key: "remarks" },
    desk?.waiting === "busy" && h("p", { class: "note" }, t("shell.busy")),
    desk?.problem && h("p", { class: "note error", role: "alert", lang: spoken(desk.problem) }, told(desk.problem)),
    failure && h("p", { class: "note warn", lang: "en" }, told(failure)),
    (output?.notes ?? []).map((note) => h("p", { class: "note", key: note.code, lang: "en" }, note.text)),
  );
}

/** The server speaks English. */
const spoken = ({ code }) => (code === "page.lost" ? null : "en");

function told({ code, what, hint }) {
  if (code === "page.lost") return t("shell.lost");
  return [what, hint].filter(Boolean).join(" — ");
}
