// One head, large: as a matrix or as lines, by token or word. The pointer and the arrow keys choose a cell.

import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { number, t } from "../../words.js";
import { Save } from "../../save.js";
import { Picture, roomIn } from "../../scene.js";
import { packed } from "./data.js";
import { arranged, layout, linesScene, matrixScene } from "./matrix.js";
import { Pending } from "./pending.js";

export const gridWidth = (map) => (map.heads + 2) * 46 + 60; // of the thumbnails, and the space between
const LINES = 48; // tokens up to which lines can be told apart

/** `rough` is the head as its thumbnail has it: shown until its weights are here, which are fetched once it is locked. */
export function Large({ run, text, sides: known, map, seen, name, isLocked, rough }) {
  const whole = map.size[0] === map.thumbnail[0] && map.size[1] === map.thumbnail[1];
  let full = whole ? rough : null;
  if (!whole && isLocked) {
    const found = packed(run, "attention/head", { example: text, map: map.name, layer: seen.layer, head: seen.head });
    if (found.problem) return h(Pending, { found });
    if (found.value) full = { values: found.value.body, ...found.value.head };
  }
  const how = { grain: state.grain ?? "pieces", special: state.special === "hidden" };
  const threshold = Number(state.threshold ?? 0);
  const sides = full ? [known[map.rows], known[map.columns]] : [];
  const shownAs = full ? arranged(full, ...sides, how) : roughly(rough);
  const beside = map.layers * map.heads > 1 && roomIn() > 640 ? gridWidth(map) : 0;
  const room = Math.max(Math.min(roomIn() - beside, 760), 240);
  const [row, column] = [Number(state.row ?? -1), Number(state.column ?? -1)];
  const lines = state.view === "lines" && Math.max(shownAs.rows.labels.length, shownAs.columns.labels.length) <= LINES;
  const scene = (lines ? linesScene : matrixScene)(shownAs, { room, row, column, threshold });
  return h(
    "section",
    { class: "panel stack tight large-head", "aria-label": t("inside.large") },
    h(
      "div",
      { class: "line spread" },
      h("h2", {}, t("inside.cell", { layer: seen.layer + 1, head: name })),
      h(Save, {
        name: `${run.name} ${map.name} ${seen.layer + 1} ${name}`,
        scene: () => scene,
        rows: () => table(shownAs),
      }),
    ),
    h(Controls, { shownAs, how, threshold, lines }),
    h(
      "div",
      { class: "scroll" },
      h(Picture, {
        key: "large",
        scene,
        label: t("inside.picture", { n: shownAs.rows.labels.length, m: shownAs.columns.labels.length }),
        tabindex: "0",
        class: "matrix",
        ...(lines ? {} : pointed(shownAs, room)),
      }),
    ),
    (!lines || row >= 0) && h(Said, { shownAs, row, column }),
  );
}

const roughly = ({ values, size, peak }) => ({
  rows: { labels: Array(size[0]).fill(""), groups: [] },
  columns: { labels: Array(size[1]).fill(""), groups: [] },
  values: Float32Array.from(values, (value) => (value / 255) * peak),
  taken: 0,
});

/** The pointer and the arrow keys choose a row and a column. */
function pointed(shownAs, room) {
  const at = layout(shownAs, room);
  const [n, m] = [shownAs.rows.labels.length, shownAs.columns.labels.length];
  const place = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const scale = box.width / event.currentTarget.offsetWidth || 1;
    const column = Math.floor((event.clientX - box.left) / scale - at.left) / at.size;
    const row = ((event.clientY - box.top) / scale - at.top) / at.size;
    return row >= 0 && row < n && column >= 0 && column < m
      ? { row: Math.floor(row), column: Math.floor(column) }
      : null;
  };
  return {
    onClick: (event) => {
      const chosen = place(event);
      if (chosen) go(chosen);
    },
    onKeydown: (event) => {
      const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (!by) return;
      event.preventDefault();
      const limit = (value, most) => Math.min(Math.max(value, 0), most - 1);
      go(
        { row: limit(Number(state.row ?? -1) + by[0], n), column: limit(Number(state.column ?? -1) + by[1], m) },
        { replace: true },
      );
    },
  };
}

function Controls({ shownAs, how, threshold, lines }) {
  const few = Math.max(shownAs.rows.labels.length, shownAs.columns.labels.length) <= LINES;
  const pick = (key, value, standard) => () =>
    go({ [key]: value === standard ? null : value, row: null, column: null });
  const choice = (key, values, current) =>
    h(
      "div",
      { class: "line segmented", role: "radiogroup", "aria-label": t(`inside.${key}`) },
      values.map((value) =>
        h(
          "button",
          {
            key: value,
            type: "button",
            role: "radio",
            "aria-checked": String(value === current),
            onClick: pick(key, value, values[0]),
          },
          t(`inside.${key}.${value}`),
        ),
      ),
    );
  return h(
    "div",
    { class: "line controls" },
    choice("grain", ["pieces", "words"], how.grain),
    few && choice("view", ["matrix", "lines"], lines ? "lines" : "matrix"),
    h(
      "label",
      { class: "check small" },
      h("input", {
        type: "checkbox",
        checked: how.special,
        onChange: (event) => go({ special: event.target.checked ? "hidden" : null, row: null, column: null }),
      }),
      t("inside.hide_special"),
    ),
    how.special &&
      h(
        "span",
        { class: "small muted", role: "status" },
        t("inside.taken", { share: `${number(100 * shownAs.taken, 0)}%` }),
      ),
    h(
      "label",
      { class: "line small threshold" },
      h("span", {}, t("inside.threshold")),
      h("input", {
        type: "range",
        min: "0",
        max: "0.5",
        step: "0.01",
        value: String(threshold),
        onInput: (event) => go({ threshold: Number(event.target.value) || null }, { replace: true }),
      }),
      h("output", { class: "number" }, number(threshold)),
    ),
  );
}

/** What the chosen cell says, and the chosen row as a table: what a reader of the screen gets of the picture. */
function Said({ shownAs, row, column }) {
  const { rows, columns, values } = shownAs;
  const m = columns.labels.length;
  if (!(row >= 0 && row < rows.labels.length))
    return h("p", { class: "small muted", "aria-live": "polite" }, t("inside.choose_cell"));
  const cell =
    column >= 0 &&
    column < m &&
    t("inside.says", {
      row: rows.labels[row] || "·",
      column: columns.labels[column],
      weight: number(values[row * m + column], 3),
    });
  const order = [...Array(m).keys()].sort((a, b) => values[row * m + b] - values[row * m + a]);
  return [
    h("p", { "aria-live": "polite" }, cell),
    h(
      "details",
      {},
      h("summary", {}, t("inside.row_table", { row: rows.labels[row] || "·" })),
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", {}, t("inside.token")), h("th", { class: "number" }, t("inside.weight")))),
        h(
          "tbody",
          {},
          order.map((i) =>
            h(
              "tr",
              { key: i },
              h("td", {}, columns.labels[i]),
              h("td", { class: "number" }, number(values[row * m + i], 3)),
            ),
          ),
        ),
      ),
    ),
  ];
}

function table({ rows, columns, values }) {
  const m = columns.labels.length;
  return [
    ["", ...columns.labels],
    ...rows.labels.map((label, r) => [
      label,
      ...Array.from(values.subarray(r * m, (r + 1) * m), (value) => Number(value.toFixed(5))),
    ]),
  ];
}
