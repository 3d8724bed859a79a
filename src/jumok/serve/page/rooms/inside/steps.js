// Step by step: one row of one head, or one token of a recurrent layer, with the paper's equation and its numbers.

import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { fixed, t } from "../../words.js";
import { asked, shown } from "./data.js";
import { Equation } from "./equations.js";
import { Pending } from "./pending.js";
import { Save } from "../../save.js";
import { cutTo, paint, Picture, roomIn, widthOf } from "../../scene.js";

export function Steps({ run, text, parts }) {
  const names = Object.keys(parts.steps);
  const part = names.includes(state.part) ? state.part : names[0];
  const [layers, heads] = parts.steps[part];
  const limit = (value, most) => Math.min(Math.max(Number(value ?? 0) || 0, 0), most - 1);
  const [layer, head] = [limit(state.layer, layers), limit(state.head, heads)];
  const cells = part.endsWith("cells");
  const row = Math.max(Number(state.row ?? 0) || 0, 0);
  const found = asked(run, "steps", { example: text, part, layer, head, row: cells ? 0 : row });
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
    h("p", { class: "lead" }, t(`inside.lead.steps.${kind}`)),
    h(
      "div",
      { class: "line controls" },
      h(
        "label",
        { class: "line small" },
        t("inside.part"),
        h(
          "select",
          { value: part, onChange: (event) => go({ part: event.target.value, layer: null, head: null, row: null }) },
          names.map((name) => h("option", { key: name, value: name }, t(`inside.part.${name}`))),
        ),
      ),
      choose("layer", t("inside.layer"), layers, layer),
      choose("head", t(cells ? "inside.direction" : "inside.head"), heads, head),
    ),
    found.problem &&
      state.row &&
      h("button", { type: "button", onClick: () => go({ row: null }) }, t("inside.first_row")),
    found.value ? h(cells ? Cell : Head, { run, part, row, found: found.value }) : h(Pending, { found }),
  ];
}

const SEEN = 4; // dimensions of a vector in a table

const vector = ({ first, norm }, seen = first.length) => {
  const numbers = first.slice(0, seen).map((x) => fixed(x).padStart(6));
  return [
    h("span", { class: "mono vector" }, `[${numbers.join(" ")} …]`),
    h("span", { class: "small muted vector" }, ` ‖·‖ ${fixed(norm)}`),
  ];
};

function Rows({ side, row, read }) {
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
          onClick: () => go({ row: String(i) }),
        },
        shown(token),
      ),
    ),
    read,
  );
}

function Head({ run, part, row, found }) {
  const columns = found.sides[found.columns];
  const rows =
    found.sides[
      part === "cross" || part === "decoder" || (part === "additive" && found.sides.target) ? "target" : "source"
    ];
  const additive = part === "additive";
  const order = columns.tokens.map((token, j) => [token, j]);
  const allowed = (j) => additive || found.allowed[j];
  const table = () => [
    ["token", "score", ...(additive ? [] : ["scaled"]), "weight"],
    ...order.map(([token, j]) => [token, found.scores[j], ...(additive ? [] : [found.scaled[j]]), found.weights[j]]),
  ];
  return h(
    "section",
    { class: "panel stack" },
    h(
      "div",
      { class: "line spread" },
      h("h2", {}, t(`inside.part.${part}`)),
      h(Save, { name: `${run.name} ${part} ${row}`, scene: () => weightScene(order, found), rows: table }),
    ),
    (!additive || found.sides.target) && h(Rows, { side: rows, row }),
    h(Equation, { name: additive ? "additive" : "attention" }),
    h(
      "dl",
      { class: "numbers" },
      additive
        ? [h("dt", {}, "s"), h("dd", {}, vector(found.s)), h("dt", {}, "W s"), h("dd", {}, vector(found.ws))]
        : [h("dt", {}, "q"), h("dd", {}, vector(found.q))],
    ),
    h(
      "div",
      { class: "scroll", tabindex: "0" },
      h(
        "table",
        { class: "numbers" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {}, t("inside.token")),
            h("th", { class: "number" }, additive ? "e" : "q·k"),
            !additive && h("th", { class: "number" }, `÷ √${found.width}`),
            h("th", { class: "number weight" }, "softmax"),
            h("th", {}, additive ? "U h" : "k"),
            h("th", {}, additive ? "h" : "v"),
          ),
        ),
        h(
          "tbody",
          {},
          order.map(([token, j]) =>
            h(
              "tr",
              { key: j, class: allowed(j) ? "" : "masked" },
              h("th", { scope: "row" }, shown(token)),
              h("td", { class: "number" }, fixed(found.scores[j])),
              !additive && h("td", { class: "number" }, allowed(j) ? fixed(found.scaled[j]) : t("inside.masked")),
              h("td", { class: "number weight" }, h(Weight, { value: found.weights[j] })),
              h("td", {}, vector((additive ? found.uh : found.k)[j], SEEN)),
              h("td", {}, vector((additive ? found.h : found.v)[j], SEEN)),
            ),
          ),
        ),
      ),
    ),
    h(
      "dl",
      { class: "numbers" },
      h("dt", {}, additive ? "c" : "Σ softmax·v"),
      h("dd", {}, vector(found.context)),
    ),
  );
}

/** A weight as a number beside a bar. */
function Weight({ value }) {
  const bar = h("span", { class: "track", "aria-hidden": "true" }, h("span", { style: { width: `${100 * value}%` } }));
  return [h("strong", {}, fixed(value, 3)), bar];
}

function weightScene(order, found) {
  return {
    width: 420,
    height: order.length * 22 + 16,
    shapes: order.flatMap(([token, j]) => [
      { kind: "text", x: 120, y: 8 + (j + 0.5) * 22, text: shown(token), size: 13, anchor: "end", fill: paint("ink") },
      { kind: "rect", x: 128, y: 11 + j * 22, w: 220 * found.weights[j], h: 16, fill: paint("heat") },
      {
        kind: "text",
        x: 412,
        y: 8 + (j + 0.5) * 22,
        text: fixed(found.weights[j], 3),
        size: 12,
        anchor: "end",
        fill: paint("muted"),
      },
    ]),
  };
}

/** The gates over time as a map, and one token's numbers. */
function Cell({ run, part, row, found }) {
  const side = found.sides[found.columns];
  const labels = found.order.map((i) => shown(side.tokens[i] ?? "▸"));
  const names = Object.keys(found.means);
  const size = Math.max(Math.min(Math.floor((Math.min(roomIn(), 700) - 32) / labels.length), 34), 12);
  const top = Math.max(...labels.map((label) => widthOf(cutTo(label, 90, 12), 12))) + 12;
  const most = Math.max(...names.flatMap((name) => found.means[name]), 1e-9);
  const at = Math.min(row, labels.length - 1);
  const scene = {
    width: 26 + labels.length * size + 2,
    height: top + names.length * size + 2,
    shapes: [
      {
        kind: "cells",
        x: 26,
        y: top,
        rows: names.length,
        columns: labels.length,
        size,
        values: Float32Array.from(
          names.flatMap((name) => found.means[name]),
          (x) => (x / most) ** 2,
        ),
      },
      ...names.map((name, i) => ({
        kind: "text",
        x: 18,
        y: top + (i + 0.5) * size,
        text: name,
        size: 14,
        anchor: "end",
        fill: paint("ink"),
      })),
      ...labels.map((label, i) => ({
        kind: "text",
        x: 26 + (i + 0.5) * size,
        y: top - 6,
        text: cutTo(label, 90, 12),
        size: 12,
        turn: -90,
        fill: paint(i === at ? "accent" : "muted"),
        bold: i === at,
      })),
      { kind: "rect", x: 26 + at * size, y: top, w: size, h: names.length * size, stroke: paint("accent") },
    ],
  };
  const rows = () => [["", ...labels], ...names.map((name) => [name, ...found.means[name]])];
  return h(
    "section",
    { class: "panel stack" },
    h(
      "div",
      { class: "line spread" },
      h("h2", {}, t(`inside.part.${part}`)),
      h(Save, { name: `${run.name} ${part}`, scene: () => scene, rows }),
    ),
    h(Rows, { side: { tokens: found.order.map((i) => side.tokens[i] ?? "▸") }, row: at }),
    h(Equation, { name: found.cell }),
    h("p", { class: "small muted" }, t(`inside.gates.${found.cell}`), " ", t("inside.gates")),
    h("div", { class: "scroll" }, h(Picture, { key: "gates", scene, label: t("inside.gates") })),
    h(
      "dl",
      { class: "numbers" },
      names.map((name) => [h("dt", { key: `${name}t` }, name), h("dd", { key: name }, vector(found.parts[name][at]))]),
    ),
  );
}
