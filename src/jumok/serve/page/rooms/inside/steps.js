// Step by step: one row of one head, or one token of a recurrent layer, with the paper's equations and their numbers.

import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";
import { Cell } from "./cells.js";
import { asked, shown } from "./data.js";
import { Head } from "./head.js";
import { Lead } from "./lead.js";
import { Pending } from "./pending.js";

const FIRST = { layer: null, head: null, row: null, column: null }; // of a part

export function Steps({ run, text, parts }) {
  const names = Object.keys(parts.steps);
  const part = names.includes(state.part) ? state.part : names[0];
  const [layers, heads] = parts.steps[part];
  const limit = (value, most) => Math.min(Math.max(Number(value ?? 0) || 0, 0), most - 1);
  const [layer, head] = [limit(state.layer, layers), limit(state.head, heads)];
  const cells = part.endsWith("cells");
  const row = Math.max(Number(state.row ?? 0) || 0, 0);
  const body = { example: text, part, layer, head, row: cells ? 0 : row };
  const found = asked(run, "steps", body);
  // One of the vectors, with all of its numbers.
  const whole = (pick) => () => {
    const full = asked(run, "steps", { ...body, full: true });
    return { problem: full.problem, value: full.value && pick(full.value) };
  };
  const choose = (key, label, n, value) =>
    n > 1 &&
    h(
      "label",
      { class: "line small" },
      label,
      h(
        "select",
        { value: String(value), onChange: (event) => go({ [key]: event.target.value }) },
        [...Array(n).keys()].map((i) => h("option", { key: i, value: String(i) }, i + 1)),
      ),
    );
  const kind = cells ? "cells" : part === "additive" ? "additive" : "attention";
  return [
    h(Lead, { says: t(`inside.lead.steps.${kind}`), more: [t(`inside.read.steps.${kind}`), t("inside.read.vector")] }),
    h(
      "div",
      { class: "line controls" },
      h(
        "label",
        { class: "line small" },
        t("inside.part"),
        h(
          "select",
          { value: part, onChange: (event) => go({ ...FIRST, part: event.target.value }) },
          names.map((name) => h("option", { key: name, value: name }, t(`inside.part.${name}`))),
        ),
      ),
      choose("layer", t("inside.layer"), layers, layer),
      choose("head", t(cells ? "inside.direction" : "inside.head"), heads, head),
    ),
    found.problem &&
      state.row &&
      h("button", { type: "button", onClick: () => go({ row: null, column: null }) }, t("inside.first_row")),
    found.value
      ? h(cells ? Cell : Head, { run, part, row, found: found.value, whole, tokens: Tokens })
      : h(Pending, { found }),
  ];
}

/** The tokens to choose from. */
function Tokens({ side, row }) {
  return h(
    "div",
    { class: "line tokens", role: "group", "aria-label": t("inside.row") },
    h("span", { class: "label" }, t("inside.row")),
    side.tokens.map((token, i) =>
      h(
        "button",
        {
          key: i,
          type: "button",
          class: "chip",
          "aria-pressed": String(i === row),
          onClick: () => go({ row: String(i), column: null }),
        },
        shown(token),
      ),
    ),
  );
}
