// Attention: every layer and head small, one of them large. Hover looks, a click locks.

import { go, redraw, state } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";
import { colour } from "../../scene.js";
import { packed } from "./data.js";
import { Large } from "./large.js";
import { Lead } from "./lead.js";
import { Pending } from "./pending.js";

const LEADS = { cross: "cross", pool: "pool" }; // what a map shows; the others look at their own text
let looking = null; // the head under the pointer

export function Attention({ run, text }) {
  const found = packed(run, "attention", { example: text });
  if (!found.value) return h(Pending, { found });
  const { head, body } = found.value;
  const map =
    head.maps.find((one) => one.name === state.map) ?? head.maps.find((one) => one.name === "cross") ?? head.maps[0];
  const locked = lockedOf(map);
  const seen = looking?.map === map.name ? looking : locked;
  return [
    h(Lead, {
      says: t(`inside.lead.${LEADS[map.name] ?? "self"}`),
      more: [t(`inside.read.${LEADS[map.name] ?? "self"}`), t("inside.not_a_cause")],
    }),
    head.maps.length > 1 && h(Maps, { maps: head.maps, map }),
    h(
      "div",
      { class: "heads" },
      map.layers * map.heads > 1 && h(Grid, { map, body, locked }),
      h(Large, {
        run,
        text,
        sides: head.sides,
        map,
        seen,
        name: named(seen.head),
        isLocked: seen !== looking,
        rough: rough(map, body, seen),
      }),
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
        {
          key: one.name,
          type: "button",
          role: "radio",
          "aria-checked": String(one === map),
          onClick: () => go({ map: one.name, layer: null, head: null, row: null, column: null }),
        },
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

/** A head as its thumbnail has it. */
const rough = (map, body, { layer, head }) => ({
  values: thumbnail(map, body, layer, head),
  size: map.thumbnail,
  peak: map.peaks[layer][numberOf(map, head)],
});

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
    h("p", { class: "small muted" }, t("inside.grid_hint")),
    h(
      "table",
      { class: "grid", role: "grid", "aria-label": t("inside.grid"), onKeydown: move, onMouseleave: () => look(null) },
      h(
        "thead",
        {},
        h(
          "tr",
          { role: "row" },
          h(
            "th",
            { role: "columnheader", scope: "col" },
            h("span", { class: "visually-hidden" }, t("inside.layer_head")),
          ),
          heads.map((head) => h("th", { key: head, role: "columnheader", scope: "col" }, name(head))),
        ),
      ),
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
                  h("canvas", {
                    "aria-hidden": "true",
                    data: { map, values: thumbnail(map, body, layer, head), theme: state.theme },
                    setup: small,
                  }),
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
    if (
      drawn?.values.buffer === values.buffer &&
      drawn.values.byteOffset === values.byteOffset &&
      drawn.theme === theme
    )
      return;
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
