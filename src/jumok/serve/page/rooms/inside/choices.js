// Choices: what the decoder chose from at every step, and the tree of its beam.

import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { fixed, number, t } from "../../words.js";
import { asked, shown } from "./data.js";
import { Pending } from "./pending.js";
import { Save } from "../../save.js";
import { paint } from "../../scene.js";

const COLUMN = 96;
const LINE = 26;

export function Choices({ run, text }) {
  const prefix = (state.prefix ?? "").split(".").filter(Boolean).map(Number);
  const beam = Math.min(Math.max(Number(state.beam ?? 4) || 4, 1), 8);
  const found = asked(run, "choices", { example: text, prefix, beam, k: 6 });
  if (!found.value) return h(Pending, { found });
  const { outputs, steps, tree } = found.value;
  const given = steps.filter((step) => step.forced).length - prefix.length; // a language model's text is no choice
  const from = (ids) => go({ prefix: ids.join(".") || null });
  return [
    h(
      "div",
      { class: "line" },
      h("p", { class: "result", "aria-live": "polite", dir: "auto" }, outputs[0].text),
      prefix.length > 0 &&
        h("button", { type: "button", class: "quiet", onClick: () => from([]) }, t("inside.from_start")),
    ),
    h(
      "section",
      { class: "stack tight", "aria-label": t("inside.steps") },
      h("h2", {}, t("inside.steps")),
      h("p", { class: "small muted" }, t("inside.steps_hint")),
      h(StepList, { steps, given, from }),
    ),
    h(Tree, { run, tree, outputs, beam, given, from }),
  ];
}

function StepList({ steps, given, from }) {
  const before = (at) => steps.slice(given, at).map((step) => step.id);
  return h(
    "ol",
    { class: "steps" },
    steps.map((step, at) =>
      at < given
        ? null
        : h(
            "li",
            { key: at, class: "panel" },
            h(
              "p",
              { class: "line spread" },
              h("strong", {}, shown(step.token)),
              h("span", { class: "number" }, fixed(step.probability, 3)),
            ),
            h(
              "ul",
              {},
              step.top.map((one) =>
                h(
                  "li",
                  { key: one.id },
                  h(
                    "button",
                    {
                      type: "button",
                      class: one.id === step.id ? "bar chosen" : "bar",
                      "aria-label": t("inside.go_on", { token: shown(one.token), share: fixed(one.probability, 3) }),
                      onClick: () => from([...before(at), one.id]),
                    },
                    h("span", { class: "fill", style: { width: `${100 * one.probability}%` } }),
                    h("span", { class: "name" }, told(one, step.top)),
                    h("span", { class: "number" }, fixed(one.probability, 3)),
                  ),
                ),
              ),
            ),
          ),
    ),
  );
}

/** A candidate as text: with the mark that it begins a word where another one reads the same. */
function told(one, others) {
  const twin = others.some((other) => other !== one && shown(other.token) === shown(one.token));
  return (twin && /^[▁Ġ]/.test(one.token) ? "␣" : "") + shown(one.token);
}

/** Places of the nodes: steps to the right, leaves below each other. */
function placed(tree, given) {
  const children = new Map();
  tree.forEach((node, i) => children.set(node.parent, [...(children.get(node.parent) ?? []), i]));
  const places = [];
  let line = 0;
  const walk = (i, depth) => {
    const below = (children.get(i) ?? []).filter((child) => tree[child].fate !== "pruned" || state.pruned === "shown");
    const first = line;
    for (const child of below) walk(child, depth + 1);
    if (!below.length) line++;
    if (i >= 0 && depth > given) places.push({ i, x: depth - 1 - given, y: first });
  };
  walk(-1, 0);
  return { places, lines: line, steps: Math.max(...places.map((place) => place.x), 0) + 1 };
}

function Tree({ run, tree, outputs, beam, given, from }) {
  const { places, lines, steps } = placed(tree, given);
  const at = new Map(places.map((place) => [place.i, place]));
  const path = (i) => (i < 0 ? [] : [...path(tree[i].parent), tree[i].id]);
  const best = [...outputs[0].ids].join(".");
  const onBest = (i) =>
    `${best}.`.startsWith(`${path(i).join(".")}.`) ||
    (tree[i].fate === "finished" && path(tree[i].parent).join(".") === best);
  const scene = () => ({
    width: steps * COLUMN + 16,
    height: lines * LINE + 16,
    shapes: places.flatMap(({ i, x, y }) => {
      const node = tree[i];
      const parent = at.get(node.parent);
      const fill = onBest(i) ? paint("accent") : paint(node.fate === "pruned" ? "muted" : "ink");
      const label = {
        kind: "text",
        x: x * COLUMN + 12,
        y: (y + 0.5) * LINE,
        text: shown(node.token),
        size: 13,
        fill,
        bold: onBest(i),
      };
      return parent
        ? [
            {
              kind: "line",
              curved: true,
              x1: parent.x * COLUMN + 64,
              y1: (parent.y + 0.5) * LINE,
              x2: x * COLUMN + 8,
              y2: (y + 0.5) * LINE,
              stroke: fill,
              opacity: 0.6,
            },
            label,
          ]
        : [label];
    }),
  });
  const rows = () => [
    ["node", "token", "parent", "log_prob", "fate"],
    ...tree.map((node, i) => [i, node.token, node.parent, node.log_prob, node.fate]),
  ];
  return h(
    "section",
    { class: "panel stack tight", "aria-label": t("inside.tree") },
    h(
      "div",
      { class: "line spread" },
      h("h2", {}, t("inside.tree")),
      h(Save, { name: `${run.name} beam`, scene, rows }),
    ),
    h(
      "div",
      { class: "line controls" },
      h(
        "label",
        { class: "line small" },
        t("inside.beam"),
        h(
          "select",
          { value: String(beam), onChange: (event) => go({ beam: event.target.value }) },
          [1, 2, 4, 8].map((n) => h("option", { key: n, value: String(n) }, n)),
        ),
      ),
      h(
        "label",
        { class: "check" },
        h("input", {
          type: "checkbox",
          checked: state.pruned === "shown",
          onChange: (event) => go({ pruned: event.target.checked ? "shown" : null }),
        }),
        t("inside.show_pruned"),
      ),
    ),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": t("inside.tree") },
      h(
        "svg",
        { class: "tree", width: steps * COLUMN + 16, height: lines * LINE + 16 },
        places.map(({ i, x, y }) => {
          const parent = at.get(tree[i].parent);
          const [x1, x2] = [parent ? parent.x * COLUMN + 70 : 0, x * COLUMN + 6];
          const bend = (x2 - x1) / 2;
          const [y1, y2] = [parent ? (parent.y + 0.5) * LINE : 0, (y + 0.5) * LINE];
          return (
            parent &&
            h("path", {
              key: `p${i}`,
              class: onBest(i) ? "best" : tree[i].fate,
              d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
            })
          );
        }),
        places.map(({ i, x, y }) =>
          h(
            "g",
            {
              key: i,
              class: `node ${onBest(i) ? "best" : tree[i].fate}`,
              role: "button",
              tabindex: "0",
              "aria-label": t("inside.branch", {
                token: shown(tree[i].token),
                fate: t(`inside.fate.${tree[i].fate}`),
                value: number(tree[i].log_prob, 2),
              }),
              onClick: () => from(path(i).slice(given)),
              onKeydown: (event) => event.key === "Enter" && from(path(i).slice(given)),
            },
            h("rect", { x: x * COLUMN + 4, y: y * LINE + 1, width: COLUMN - 26, height: LINE - 2, rx: 5 }),
            h("text", { x: x * COLUMN + 10, y: (y + 0.5) * LINE }, shown(tree[i].token).slice(0, 9)),
          ),
        ),
      ),
    ),
    h("p", { class: "small muted" }, t("inside.tree_hint")),
  );
}
