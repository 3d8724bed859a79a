// One recurrent layer: its gates over all tokens as a picture, and one token's computation as steps.

import { Save } from "../../save.js";
import { cutTo, paint, Picture, roomIn, widthOf } from "../../scene.js";
import { h } from "../../view.js";
import { t } from "../../words.js";
import { shown } from "./data.js";
import { Formula, Source } from "./equations.js";
import { Here, said, Sequence, Vector } from "./sequence.js";

/** The gates over time as a map, and one token's numbers. */
export function Cell({ run, part, row, found, whole, tokens: Tokens }) {
  const side = found.sides[found.columns];
  const labels = found.order.map((i) => shown(side.tokens[i] ?? "▸"));
  const names = Object.keys(found.means);
  const size = Math.max(Math.min(Math.floor((Math.min(roomIn(), 700) - 32) / labels.length), 34), 12);
  const top = Math.max(...labels.map((label) => widthOf(cutTo(label, 90, 12), 12))) + 12;
  const most = Math.max(...names.flatMap((name) => found.means[name]), 1e-9);
  const at = Math.min(row, labels.length - 1);
  const here = () => Here(side.tokens[found.order[at]] ?? "▸");
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
    h(Tokens, { side: { tokens: found.order.map((i) => side.tokens[i] ?? "▸") }, row: at }),
    h("div", { class: "scroll" }, h(Picture, { key: "gates", scene, label: t("inside.gates") })),
    h(Sequence, { steps: names.map((name) => step(name, found, at, here, whole)) }),
    h(Source, { paper: found.cell }),
  );
}

const step = (name, found, at, here, whole) => ({
  key: name,
  says: said(`inside.says.${found.cell}.${name}`, { row: here }),
  formula: h(Formula, { paper: found.cell, name }),
  content: h(Vector, { name, of: found.parts[name][at], whole: whole((full) => full.parts[name][at]) }),
});
