// Inside: look into a model while it reads a text.

import { go, redraw, state } from "../store.js";
import { h } from "../view.js";
import { t } from "../words.js";
import { Attention } from "./inside/attention.js";
import { Attribution } from "./inside/attribution.js";
import { Choices } from "./inside/choices.js";
import { partsOf } from "./inside/data.js";
import { Pending } from "./inside/pending.js";
import { Positions } from "./inside/positions.js";
import { Steps } from "./inside/steps.js";
import { Examples } from "./use/text.js";

const TABS = { attention: Attention, choices: Choices, attribution: Attribution, steps: Steps, positions: Positions };
const TASKS = ["translation", "language_model", "classification", "tagging", "pretraining"];
let draft = null; // what is typed and not yet looked into

const style = document.createElement("link");
Object.assign(style, { rel: "stylesheet", href: new URL("inside/inside.css", import.meta.url) });
document.head.append(style);
addEventListener("resize", () => redraw());

function view(run) {
  const found = partsOf(run);
  if (!found.value) return [h("h1", {}, t("inside.heading")), h(Pending, { found })];
  const parts = found.value;
  const tabs = Object.keys(TABS).filter((name) =>
    name === "steps" ? Object.keys(parts.steps).length > 0 : parts[name],
  );
  const tab = tabs.includes(state.tab) ? state.tab : tabs[0];
  return [
    h("h1", {}, t("inside.heading")),
    h(Text, { run }),
    h(Tabs, { tabs, tab }),
    h(
      "div",
      {
        key: tab,
        class: "stack",
        role: "tabpanel",
        id: "inside-panel",
        "aria-labelledby": `inside-${tab}`,
        tabindex: "-1",
      },
      content(run, parts, tab),
    ),
  ];
}

function content(run, parts, tab) {
  const text = (state.text ?? "").trim();
  if (!text && tab !== "positions")
    return [
      h("p", { class: "muted" }, t("inside.about")),
      h(Examples, { run, show: !run.pair, take: (one) => go({ text: one }) }),
    ];
  return h(TABS[tab], { run, text, parts });
}

function Text({ run }) {
  const look = (event) => {
    event.preventDefault();
    const text = draft ?? state.text ?? "";
    draft = null;
    go({ text, row: null, column: null, step: null, prefix: null });
  };
  const keys = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) look(event);
  };
  return h(
    "form",
    { class: "line look", onSubmit: look },
    h("label", { class: "visually-hidden", for: "inside-text" }, t("inside.text")),
    h("textarea", {
      id: "inside-text",
      rows: "2",
      lang: run.source ?? "",
      dir: "auto",
      maxlength: "20000",
      placeholder: t("inside.placeholder"),
      value: draft ?? state.text ?? "",
      onInput: (event) => (draft = event.target.value),
      onKeydown: keys,
    }),
    h("button", { class: "main" }, t("inside.look")),
  );
}

/** Scroll the row of tabs, and nothing else: the browser would go on with Tab from what is scrolled into view. */
function reveal(tab) {
  if (!tab) return;
  const row = tab.parentElement;
  const [left, right] = [tab.offsetLeft - row.offsetLeft, tab.offsetLeft - row.offsetLeft + tab.offsetWidth];
  if (left < row.scrollLeft) row.scrollLeft = left;
  else if (right > row.scrollLeft + row.clientWidth) row.scrollLeft = right - row.clientWidth;
}

let reached = ""; // the tab that was scrolled to, where they are wider than the page

function Tabs({ tabs, tab }) {
  if (reached !== tab) {
    reached = tab;
    setTimeout(() => reveal(document.getElementById(`inside-${tab}`)));
  }
  const move = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    go({ tab: next });
    queueMicrotask(() => document.getElementById(`inside-${next}`)?.focus());
  };
  return h(
    "div",
    { class: "tabs", role: "tablist", "aria-label": t("inside.title"), onKeydown: move },
    tabs.map((name) =>
      h(
        "button",
        {
          key: name,
          type: "button",
          role: "tab",
          id: `inside-${name}`,
          "aria-selected": String(name === tab),
          "aria-controls": "inside-panel",
          tabindex: name === tab ? "0" : "-1",
          onClick: () => go({ tab: name }),
        },
        t(`inside.tab.${name}`),
      ),
    ),
  );
}

export const room = {
  name: "inside",
  title: "inside.title",
  fits: (run) => run.usable !== false && (!run.task || TASKS.includes(run.task)),
  view: (run) => view(run),
};
