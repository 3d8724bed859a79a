// One row of one attention head, as steps: the query, the scores, the weights, the sum.

import { Fold } from "../../fold.js";
import { Save } from "../../save.js";
import { paint } from "../../scene.js";
import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { fixed, t } from "../../words.js";
import { shown } from "./data.js";
import { Formula, Source } from "./equations.js";
import { Here, said, Sequence, There, Vector } from "./sequence.js";

const MOST = 12; // weights that are shown at once
const TERMS = 3; // of the sum

export function Head({ run, part, row, found, whole, tokens: Tokens }) {
  const paper = part === "additive" ? "additive" : "attention";
  const columns = found.sides[found.columns].tokens.map((token, j) => [token, j]);
  const hasTarget = part === "cross" || part === "decoder" || (paper === "additive" && found.sides.target);
  const rows = found.sides[hasTarget ? "target" : "source"];
  const chooses = paper === "attention" || found.sides.target;
  const allowed = (j) => paper === "additive" || found.allowed[j];
  const at = chosenOf(found, allowed);
  const here = () => Here(rows.tokens[Math.min(row, rows.tokens.length - 1)]);
  const there = () => There(columns[at][0]);
  const own = rows === found.sides[found.columns] ? row : -1; // the column of the token itself
  const props = { found, columns, at, allowed, whole, here, there, own };
  const steps = paper === "additive" ? additive(props, chooses) : scaled(props);
  const table = () => [
    ["token", "score", ...(found.scaled ? ["scaled"] : []), "weight"],
    ...columns.map(([token, j]) => [
      token,
      found.scores[j],
      ...(found.scaled ? [found.scaled[j]] : []),
      found.weights[j],
    ]),
  ];
  return h(
    "section",
    { class: "panel stack" },
    h(
      "div",
      { class: "line spread" },
      h("h2", {}, t(`inside.part.${part}`)),
      h(Save, { name: `${run.name} ${part} ${row}`, scene: () => weightScene(columns, found), rows: table }),
    ),
    chooses && h(Tokens, { side: rows, row }),
    h(Sequence, { steps }),
    h(Source, { paper }),
  );
}

/** The column that is worked out: chosen, or the one with the largest weight. */
function chosenOf(found, allowed) {
  const asked = Number(state.column ?? NaN);
  if (Number.isInteger(asked) && asked in found.weights && allowed(asked)) return asked;
  return found.weights.indexOf(Math.max(...found.weights));
}

/** Scaled dot-product attention. */
function scaled(props) {
  const { found, at, whole, here, there } = props;
  const say = (n) => said(`inside.says.attention.${n}`, { row: here, column: there });
  return [
    { key: "q", says: say(1), content: h(Vector, { name: "q", of: found.q, whole: whole((full) => full.q) }) },
    {
      key: "score",
      says: say(2),
      formula: h(Formula, { paper: "attention", name: "score" }),
      content: [
        h(Vector, { name: "k", of: found.k[at], whole: whole((full) => full.k[at]) }),
        h(
          "p",
          { class: "result-line" },
          h("i", {}, "e"),
          ` = ${fixed(found.scores[at])} ÷ √${found.width} = `,
          h("b", {}, fixed(found.scaled[at])),
        ),
        h(Scores, { ...props, heads: ["q·k", `÷ √${found.width}`], values: [found.scores, found.scaled] }),
      ],
    },
    ...ending(props, "attention", "v", say),
  ];
}

/** Additive attention. `isDecoder`: it asks for one token of the output after another. */
function additive(props, isDecoder) {
  const { found, at, whole, here, there } = props;
  const say = (n) => said(`inside.says.additive.${n}`, { row: here, column: there });
  return [
    {
      key: "s",
      says: say(isDecoder ? 1 : "alone_1"),
      content: h(Vector, { name: "s", of: found.s, whole: whole((full) => full.s) }),
    },
    {
      key: "score",
      says: say(2),
      formula: h(Formula, { paper: "additive", name: "score" }),
      content: [
        h(Vector, { name: "W s", of: found.ws, whole: whole((full) => full.ws) }),
        h(Vector, { name: "U h", of: found.uh[at], whole: whole((full) => full.uh[at]) }),
        h("p", { class: "result-line" }, h("i", {}, "e"), " = ", h("b", {}, fixed(found.scores[at]))),
        h(Scores, { ...props, heads: ["e"], values: [found.scores] }),
      ],
    },
    ...ending(props, "additive", "h", (n) => say(isDecoder ? n : `alone_${n}`)),
  ];
}

/** Weights and their sum, which both kinds end with. */
function ending(props, paper, value, say) {
  const { found, columns, at, own, whole } = props;
  const ranked = [...columns].sort((a, b) => found.weights[b[1]] - found.weights[a[1]]);
  const largest = ranked.slice(0, TERMS).filter(([, j]) => found.weights[j] >= 0.0005);
  const named = ([token, j]) => (j === at ? There(token) : j === own ? Here(token) : shown(token));
  const term = (one) => [fixed(found.weights[one[1]], 3), " · ", h("i", {}, value), "(", named(one), ")"];
  return [
    {
      key: "weight",
      says: say(3),
      formula: h(Formula, { paper, name: "weight" }),
      content: h(Weights, props),
    },
    {
      key: "sum",
      says: say(4),
      formula: h(Formula, { paper, name: "context" }),
      content: [
        h(
          "p",
          { class: "result-line" },
          largest.map((one, i) => [i > 0 && " + ", h("span", { class: "term" }, term(one))]),
          columns.length > largest.length && " + …",
        ),
        h(Vector, { name: "c", of: found.context, whole: whole((full) => full.context) }),
      ],
    },
  ];
}

function Scores({ columns, at, own, allowed, heads, values }) {
  const content = () =>
    h(
      "table",
      { class: "numbers" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, t("inside.token")),
          heads.map((name) => h("th", { class: "number", scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        columns.map(([token, j]) =>
          h(
            "tr",
            { key: j, class: j === at ? "chosen" : allowed(j) ? "" : "masked" },
            h("th", { scope: "row" }, j === own ? Here(token) : shown(token)),
            values.map((list, n) =>
              h("td", { class: "number" }, n && !allowed(j) ? t("inside.masked") : fixed(list[j])),
            ),
          ),
        ),
      ),
    );
  return h(Fold, { name: "scores", kind: "small", summary: t("inside.scores", { n: columns.length }), content });
}

/** The largest weights as bars in reading order, the others folded. A bar chooses the token that is compared. */
function Weights(props) {
  const { found, columns } = props;
  const ranked = [...columns].sort((a, b) => found.weights[b[1]] - found.weights[a[1]]);
  const most = new Set(columns.length > MOST ? ranked.slice(0, MOST - 2).map(([, j]) => j) : columns.map(([, j]) => j));
  const [seen, rest] = [true, false].map((is) => columns.filter(([, j]) => most.has(j) === is));
  const content = () => h(Bars, { ...props, some: rest });
  return [
    h(Bars, { ...props, some: seen }),
    rest.length > 0 &&
      h(Fold, { name: "weights", kind: "small", summary: t("inside.rest", { n: rest.length }), content }),
  ];
}

function Bars({ found, some, at, own, allowed }) {
  return h(
    "ul",
    { class: "weights" },
    some.map(([token, j]) =>
      h(
        "li",
        { key: j },
        h(
          "button",
          {
            type: "button",
            class: "weight",
            "aria-pressed": String(j === at),
            disabled: !allowed(j),
            onClick: () => go({ column: String(j) }, { replace: true }),
          },
          h("span", { class: "name" }, j === own ? Here(token) : shown(token)),
          h(
            "span",
            { class: "track", "aria-hidden": "true" },
            h("span", { style: { width: `${100 * found.weights[j]}%` } }),
          ),
          h("span", { class: "number" }, allowed(j) ? fixed(found.weights[j], 3) : t("inside.masked")),
        ),
      ),
    ),
  );
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

