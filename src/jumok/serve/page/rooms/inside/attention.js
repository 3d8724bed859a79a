// Attention: every layer and head small, one of them large. Hover looks, a click locks.

import { go, redraw, state } from "../../store.js";
import { h } from "../../view.js";
import { number, t } from "../../words.js";
import { packed } from "./data.js";
import { arranged, layout, linesScene, matrixScene } from "./matrix.js";
import { Save } from "../../save.js";
import { colour, Picture } from "../../scene.js";
import { Pending } from "./pending.js";

const LINES = 48; // tokens up to which lines can be told apart
let looking = null; // the head under the pointer

export function Attention({ run, text }) {
  const found = packed(run, "attention", { example: text });
  if (!found.value) return h(Pending, { found });
  const { head, body } = found.value;
  const map = head.maps.find((one) => one.name === state.map) ?? head.maps.find((one) => one.name === "cross") ?? head.maps[0];
  const locked = lockedOf(map);
  const seen = looking?.map === map.name ? looking : locked;
  return [
    h("p", { class: "note" }, t("inside.not_a_cause")),
    head.maps.length > 1 && h(Maps, { maps: head.maps, map }),
    h(
      "div",
      { class: "heads" },
      map.layers * map.heads > 1 && h(Grid, { map, body, locked }),
      h(Large, { run, text, head, body, map, seen }),
    ),
  ];
}

function lockedOf(map) {
  const layer = Math.min(Number(state.layer ?? map.layers - 1) || 0, map.layers - 1);
  const asked = state.head ?? (map.heads > 1 ? "mean" : 0);
  const one = ["mean", "max"].includes(asked) ? asked : Math.min(Number(asked) || 0, map.heads - 1);
  return { map: map.name, layer, head: one };
}

function Maps({ maps, map }) {
  return h(
    "div",
    { class: "line", role: "radiogroup", "aria-label": t("inside.map") },
    maps.map((one) =>
      h(
        "button",
        { key: one.name, type: "button", role: "radio", "aria-checked": String(one === map), onClick: () => go({ map: one.name, layer: null, head: null, row: null, column: null }) },
        t(`inside.map.${one.name}`),
      ),
    ),
  );
}

const numberOf = (map, head) => (head === "mean" ? map.heads : head === "max" ? map.heads + 1 : head);

const named = (head) => (typeof head === "number" ? t("inside.head_number", { n: head + 1 }) : t(`inside.${head}_of`));

/** The bytes of a thumbnail. */
function thumbnail(map, body, layer, head) {
  const [rows, columns] = map.thumbnail;
  const at = map.offset + (layer * (map.heads + 2) + numberOf(map, head)) * rows * columns;
  return body.subarray(at, at + rows * columns);
}

function Grid({ map, body, locked }) {
  const heads = [...Array(map.heads).keys(), ...(map.heads > 1 ? ["mean", "max"] : [])];
  const move = (event) => {
    const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!by) return;
    event.preventDefault();
    const cells = [...event.currentTarget.querySelectorAll("button")];
    const at = cells.indexOf(document.activeElement);
    const [row, column] = [Math.floor(at / heads.length) + by[0], (at % heads.length) + by[1]];
    if (row < 0 || row >= map.layers || column < 0 || column >= heads.length) return;
    cells[row * heads.length + column].focus();
  };
  const name = (head) => (typeof head === "number" ? head + 1 : t(`inside.${head}`));
  return h(
    "div",
    { class: "grid-scroll scroll" },
    h(
      "table",
      { class: "grid", role: "grid", "aria-label": t("inside.grid"), onKeydown: move, onMouseleave: () => look(null) },
      h("thead", {}, h("tr", { role: "row" }, h("th", { role: "columnheader", scope: "col" }, h("span", { class: "visually-hidden" }, t("inside.layer_head"))), heads.map((head) => h("th", { key: head, role: "columnheader", scope: "col" }, name(head))))),
      h(
        "tbody",
        {},
        [...Array(map.layers).keys()].map((layer) =>
          h(
            "tr",
            { key: layer, role: "row" },
            h("th", { role: "rowheader", scope: "row" }, layer + 1),
            heads.map((head) => {
              const one = { map: map.name, layer, head };
              const here = layer === locked.layer && head === locked.head;
              return h(
                "td",
                { key: head, role: "gridcell", "aria-selected": String(here) },
                h(
                  "button",
                  {
                    type: "button",
                    class: here ? "thumb locked" : "thumb",
                    tabindex: here ? "0" : "-1",
                    "aria-label": t("inside.cell", { layer: layer + 1, head: named(head) }),
                    onMouseenter: () => look(one),
                    onFocus: () => look(one),
                    onBlur: () => look(null),
                    onClick: () => {
                      looking = null;
                      go({ layer, head });
                    },
                  },
                  h("canvas", { "aria-hidden": "true", data: { map, values: thumbnail(map, body, layer, head), theme: state.theme }, setup: small }),
                ),
              );
            }),
          ),
        ),
      ),
    ),
  );
}

function look(one) {
  looking = one;
  redraw();
}

/** A thumbnail draws itself, again only if its bytes or the colours change. */
function small(canvas, { data }) {
  let drawn = null;
  const draw = ({ map, values, theme }) => {
    if (drawn?.values.buffer === values.buffer && drawn.values.byteOffset === values.byteOffset && drawn.theme === theme) return;
    drawn = { values, theme };
    const [rows, columns] = map.thumbnail;
    canvas.width = columns;
    canvas.height = rows;
    const image = new ImageData(columns, rows);
    const [low, high] = [colour("surface"), colour("heat")];
    values.forEach((value, i) => {
      const share = Math.sqrt(value / 255);
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = low[c] + (high[c] - low[c]) * share;
      image.data[4 * i + 3] = 255;
    });
    canvas.getContext("2d").putImageData(image, 0, 0);
  };
  draw(data);
  return { update: (props) => draw(props.data) };
}

function Large({ run, text, head, body, map, seen }) {
  const whole = map.size[0] === map.thumbnail[0] && map.size[1] === map.thumbnail[1];
  const rough = { values: thumbnail(map, body, seen.layer, seen.head), size: map.thumbnail, peak: map.peaks[seen.layer][numberOf(map, seen.head)] };
  let full = whole ? rough : null;
  if (!whole && seen !== looking) {
    const found = packed(run, "attention/head", { example: text, map: map.name, layer: seen.layer, head: seen.head });
    if (found.problem) return h(Pending, { found });
    if (found.value) full = { values: found.value.body, ...found.value.head };
  }
  const how = { grain: state.grain ?? "pieces", special: state.special === "hidden" };
  const threshold = Number(state.threshold ?? 0);
  const sides = full ? [head.sides[map.rows], head.sides[map.columns]] : [];
  const shownAs = full ? arranged(full, ...sides, how) : roughly(rough);
  const room = Math.max(Math.min(document.getElementById("main")?.clientWidth - 80 || 640, 760), 260);
  const [row, column] = [Number(state.row ?? -1), Number(state.column ?? -1)];
  const lines = state.view === "lines" && Math.max(shownAs.rows.labels.length, shownAs.columns.labels.length) <= LINES;
  const scene = (lines ? linesScene : matrixScene)(shownAs, { room, row, column, threshold });
  const name = named(seen.head);
  return h(
    "section",
    { class: "panel stack tight large-head", "aria-label": t("inside.large") },
    h("div", { class: "line spread" }, h("h2", {}, t("inside.cell", { layer: seen.layer + 1, head: name })), h(Save, { name: `${run.name} ${map.name} ${seen.layer + 1} ${name}`, scene: () => scene, rows: () => table(shownAs) })),
    h(Controls, { shownAs, how, threshold, lines }),
    h("div", { class: "scroll" }, h(Picture, { key: "large", scene, label: t("inside.picture", { n: shownAs.rows.labels.length, m: shownAs.columns.labels.length }), tabindex: "0", class: "matrix", ...(lines ? {} : pointed(shownAs, room)) })),
    h(Said, { shownAs, row, column }),
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
    return row >= 0 && row < n && column >= 0 && column < m ? { row: Math.floor(row), column: Math.floor(column) } : null;
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
      go({ row: limit(Number(state.row ?? -1) + by[0], n), column: limit(Number(state.column ?? -1) + by[1], m) }, { replace: true });
    },
  };
}

function Controls({ shownAs, how, threshold, lines }) {
  const few = Math.max(shownAs.rows.labels.length, shownAs.columns.labels.length) <= LINES;
  const pick = (key, value, standard) => () => go({ [key]: value === standard ? null : value, row: null, column: null });
  const choice = (key, values, current) =>
    h(
      "div",
      { class: "line segmented", role: "radiogroup", "aria-label": t(`inside.${key}`) },
      values.map((value) => h("button", { key: value, type: "button", role: "radio", "aria-checked": String(value === current), onClick: pick(key, value, values[0]) }, t(`inside.${key}.${value}`))),
    );
  return h(
    "div",
    { class: "line controls" },
    choice("grain", ["pieces", "words"], how.grain),
    few && choice("view", ["matrix", "lines"], lines ? "lines" : "matrix"),
    h("label", { class: "check" }, h("input", { type: "checkbox", checked: how.special, onChange: (event) => go({ special: event.target.checked ? "hidden" : null, row: null, column: null }) }), t("inside.hide_special")),
    how.special && h("span", { class: "small muted", role: "status" }, t("inside.taken", { share: `${number(100 * shownAs.taken, 0)}%` })),
    h("label", { class: "line small threshold" }, h("span", {}, t("inside.threshold")), h("input", { type: "range", min: "0", max: "0.5", step: "0.01", value: String(threshold), onInput: (event) => go({ threshold: Number(event.target.value) || null }, { replace: true }) }), h("output", { class: "number" }, number(threshold))),
  );
}

/** What the chosen cell says, and the chosen row as a table: what a reader of the screen gets of the picture. */
function Said({ shownAs, row, column }) {
  const { rows, columns, values } = shownAs;
  const m = columns.labels.length;
  if (!(row >= 0 && row < rows.labels.length)) return h("p", { class: "small muted", "aria-live": "polite" }, t("inside.choose_cell"));
  const cell = column >= 0 && column < m && t("inside.says", { row: rows.labels[row] || "·", column: columns.labels[column], weight: number(values[row * m + column], 3) });
  const order = [...Array(m).keys()].sort((a, b) => values[row * m + b] - values[row * m + a]);
  return [
    h("p", { "aria-live": "polite" }, cell),
    h(
      "details",
      {},
      h("summary", {}, t("inside.row_table", { row: rows.labels[row] || "·" })),
      h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, t("inside.token")), h("th", { class: "number" }, t("inside.weight")))), h("tbody", {}, order.map((i) => h("tr", { key: i }, h("td", {}, columns.labels[i]), h("td", { class: "number" }, number(values[row * m + i], 3)))))),
    ),
  ];
}

function table({ rows, columns, values }) {
  const m = columns.labels.length;
  return [["", ...columns.labels], ...rows.labels.map((label, r) => [label, ...Array.from(values.subarray(r * m, (r + 1) * m), (value) => Number(value.toFixed(5)))])];
}
