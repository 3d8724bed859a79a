// The beam as a tree: a column for each step and a line for each hypothesis, the best one first; on a narrow page turned, a
// row for each step. What the search still tried after the winner had ended is left out unless all of it is asked for.

import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { number, t } from "../../words.js";
import { shown } from "./data.js";
import { Save } from "../../save.js";
import { cutTo, paint, roomIn } from "../../scene.js";

const STEP = 96; // from one step to the next
const LANE = 34; // from one hypothesis to the next
const GAP = 18; // between two boxes of a hypothesis
const SIZE = 13; // of letters
const TURNED = { step: 52, box: 36, narrow: 58, wide: 84, size: 11 }; // of a narrow page; lines are as wide as there is room

/** Steps and lines of the nodes that are shown: a hypothesis stays on its line as long as it is free. */
export function placed(tree, given, isBest) {
  const depth = [];
  tree.forEach((node, i) => (depth[i] = node.parent < 0 ? 0 : depth[node.parent] + 1)); // parents come first
  const end = isWhole() ? Infinity : Math.max(...depth.filter((_, i) => isBest(i)), given);
  const seen = tree.map((node, i) => i).filter((i) => depth[i] >= given && depth[i] <= end && isShown(tree[i]));
  const lanes = new Map();
  const steps = Math.max(...seen.map((i) => depth[i] - given), 0) + 1;
  const rank = (i) => (isBest(i) ? 0 : tree[i].fate === "pruned" ? 2 : 1);
  for (let step = 0; step < steps; step++) {
    const here = seen.filter((i) => depth[i] - given === step);
    here.sort((a, b) => rank(a) - rank(b) || tree[b].log_prob - tree[a].log_prob);
    const taken = new Set();
    const kept = here.filter((i) => rank(i) < 2);
    const take = (i, lane) => {
      taken.add(lane);
      lanes.set(i, lane);
    };
    const free = (from) => {
      let lane = from;
      while (taken.has(lane)) lane++;
      return lane;
    };
    if (kept.length && isBest(kept[0])) take(kept.shift(), 0);
    taken.add(0); // the first line is the best output's alone
    for (const i of kept) {
      const lane = lanes.get(tree[i].parent);
      if (lane > 0 && !taken.has(lane)) take(i, lane);
    }
    for (const i of kept) if (!lanes.has(i)) take(i, free(1));
    for (const i of here) if (!lanes.has(i)) take(i, free(Math.max(...taken) + 1));
  }
  return {
    nodes: seen.map((i) => ({ i, step: depth[i] - given, lane: lanes.get(i) })),
    steps,
    lanes: Math.max(...lanes.values(), 0) + 1,
  };
}

const isWhole = () => state.pruned === "shown";
const isShown = (node) => node.fate !== "pruned" || isWhole();

/** Where the boxes are, and the lines between them. */
function drawn(tree, found, turned) {
  const at = new Map();
  const lane = Math.min(Math.max(roomIn() / found.lanes, TURNED.narrow), TURNED.wide);
  const [width, height] = turned ? [lane - 6, TURNED.box] : [STEP - GAP, LANE - 8];
  for (const node of found.nodes)
    at.set(node.i, turned ? [node.lane * lane, node.step * TURNED.step] : [node.step * STEP, node.lane * LANE]);
  const links = found.nodes
    .filter(({ i }) => at.has(tree[i].parent))
    .map(({ i }) => {
      const [[x1, y1], [x2, y2]] = [at.get(tree[i].parent), at.get(i)];
      return turned
        ? { i, from: [x1 + width / 2, y1 + height], to: [x2 + width / 2, y2] }
        : { i, from: [x1 + width, y1 + height / 2], to: [x2, y2 + height / 2] };
    });
  const [steps, lanes] = [found.steps, found.lanes];
  const size = turned
    ? [lanes * lane - 8, (steps - 1) * TURNED.step + height]
    : [(steps - 1) * STEP + width, (lanes - 1) * LANE + height];
  return { at, links, box: [width, height], size: [size[0] + 2, size[1] + 2], letter: turned ? TURNED.size : SIZE };
}

export function Tree({ run, tree, outputs, beam, given, from }) {
  const path = (i) => (i < 0 ? [] : [...path(tree[i].parent), tree[i].id]);
  const best = [...outputs[0].ids].join(".");
  const isBest = (i) =>
    tree[i].fate !== "pruned" &&
    (`${best}.`.startsWith(`${path(i).join(".")}.`) ||
      (tree[i].fate === "finished" && path(tree[i].parent).join(".") === best));
  const found = placed(tree, given, isBest);
  const turned = roomIn() < 560;
  const picture = drawn(tree, found, turned);
  const kind = (i) => (isBest(i) ? "best" : tree[i].fate);
  const rows = () => [
    ["node", "token", "parent", "log_prob", "fate"],
    ...tree.map((node, i) => [i, node.token, node.parent, node.log_prob, node.fate]),
  ];
  const pick = (event, i) => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    from(path(i).slice(given));
  };
  const [width, height] = picture.box;
  return h(
    "section",
    { class: "panel stack tight", "aria-label": t("inside.tree") },
    h(
      "div",
      { class: "line spread" },
      h("h2", {}, t("inside.tree")),
      h(Save, { name: `${run.name} beam`, scene: () => sceneOf(tree, found, picture, kind), rows }),
    ),
    h(Controls, { beam }),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": t("inside.tree") },
      h(
        "svg",
        { class: "tree", width: picture.size[0], height: picture.size[1], viewBox: `-1 -1 ${picture.size.join(" ")}` },
        picture.links.map(({ i, from: [x1, y1], to: [x2, y2] }) => {
          const [bx, by] = turned ? [0, (y2 - y1) / 2] : [(x2 - x1) / 2, 0];
          const d = `M${x1} ${y1}C${x1 + bx} ${y1 + by} ${x2 - bx} ${y2 - by} ${x2} ${y2}`;
          return h("path", { key: `p${i}`, class: kind(i), d });
        }),
        found.nodes.map(({ i }) => {
          const [x, y] = picture.at.get(i);
          return h(
            "g",
            {
              key: i,
              class: `node ${kind(i)}`,
              role: "button",
              tabindex: "0",
              "aria-label": t("inside.branch", {
                token: shown(tree[i].token),
                fate: t(`inside.fate.${tree[i].fate}`),
                value: number(tree[i].log_prob, 2),
              }),
              onClick: (event) => pick(event, i),
              onKeydown: (event) => pick(event, i),
            },
            h("rect", { x, y, width, height, rx: 5 }),
            h(
              "text",
              { x: x + (turned ? 4 : 6), y: y + height / 2, "font-size": picture.letter },
              cutTo(shown(tree[i].token), width - (turned ? 6 : 11) - (isBest(i) ? 5 : 0), picture.letter), // bold is wider
            ),
          );
        }),
      ),
    ),
  );
}

function Controls({ beam }) {
  return h(
    "div",
    { class: "line controls" },
    h(
      "label",
      { class: "line small" },
      t("inside.beam"),
      h(
        "select",
        { value: String(beam), onChange: (event) => go({ beam: event.target.value }) },
        [...new Set([1, 2, 4, 8, beam])]
          .sort((a, b) => a - b)
          .map((n) => h("option", { key: n, value: String(n) }, n)),
      ),
    ),
    h(
      "label",
      { class: "check small" },
      h("input", {
        type: "checkbox",
        checked: isWhole(),
        onChange: (event) => go({ pruned: event.target.checked ? "shown" : null }),
      }),
      t("inside.show_all"),
    ),
  );
}

/** The tree as shapes, to be saved. */
function sceneOf(tree, found, { at, links, box, size, letter }, kind) {
  const ink = (i) => paint({ best: "accent", pruned: "muted" }[kind(i)] ?? "ink");
  return {
    width: size[0] + 16,
    height: size[1] + 16,
    shapes: [
      ...links.map(({ i, from, to }) => ({
        kind: "line",
        x1: from[0] + 8,
        y1: from[1] + 8,
        x2: to[0] + 8,
        y2: to[1] + 8,
        stroke: ink(i),
        opacity: 0.6,
      })),
      ...found.nodes.flatMap(({ i }) => {
        const [x, y] = at.get(i).map((one) => one + 8);
        const text = cutTo(shown(tree[i].token), box[0] - 16, letter);
        return [
          { kind: "rect", x, y, w: box[0], h: box[1], fill: paint("surface"), stroke: ink(i) },
          { kind: "text", x: x + 6, y: y + box[1] / 2, text, size: letter, fill: ink(i), bold: kind(i) === "best" },
        ];
      }),
    ],
  };
}
