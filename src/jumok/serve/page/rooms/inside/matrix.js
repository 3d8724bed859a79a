// One head: its weights by token or word, as a matrix or as lines.

import { units } from "./data.js";
import { paint } from "../../scene.js";

const LABEL = 12;
const LONGEST = 14; // characters of a label

/** The values of a head as shown: rows and columns merged into words, special tokens left out. */
export function arranged({ values, size, peak }, rowSide, columnSide, how) {
  const [rows, columns] = [units(rowSide, how), units(columnSide, how)];
  const width = size[1];
  const found = new Float32Array(rows.groups.length * columns.groups.length);
  let taken = 0;
  rows.groups.forEach((tokens, r) => {
    for (const row of tokens) {
      columns.groups.forEach((group, c) => {
        for (const column of group)
          found[r * columns.groups.length + c] += ((values[row * width + column] / 255) * peak) / tokens.length;
      });
      for (const column of columns.hidden) taken += ((values[row * width + column] / 255) * peak) / tokens.length;
    }
  });
  return { rows, columns, values: found, taken: taken / (rows.groups.length || 1) };
}

const cut = (label) => ([...label].length > LONGEST ? `${[...label].slice(0, LONGEST - 1).join("")}…` : label);

/** Where the cells are: the larger the fewer. */
export function layout({ rows, columns }, room) {
  const most = Math.max(columns.labels.length, 1);
  const margin = Math.min(7 * Math.max(...rows.labels.map((label) => cut(label).length + 1), 1) + 12, room * 0.3);
  const size = Math.max(Math.min(Math.floor((room - margin - 8) / most), 40), 1);
  const named = size >= 9;
  const top = named ? 7 * Math.max(...columns.labels.map((label) => cut(label).length), 1) + 14 : 8;
  return { size, left: named ? margin : 8, top, named };
}

/** The matrix as a scene; `row` and `column` are marked. */
export function matrixScene(shownAs, { room, row, column, threshold }) {
  const { rows, columns, values } = shownAs;
  const at = layout(shownAs, room);
  const most = values.reduce((a, b) => Math.max(a, b), 0) || 1;
  const [ink, muted, accent] = [paint("ink"), paint("muted"), paint("accent")];
  const [n, m] = [rows.labels.length, columns.labels.length];
  const cells = Float32Array.from(values, (value) => (value < threshold ? 0 : value / most));
  const shapes = [{ kind: "cells", x: at.left, y: at.top, rows: n, columns: m, size: at.size, values: cells }];
  shapes.push({
    kind: "rect",
    x: at.left - 0.5,
    y: at.top - 0.5,
    w: m * at.size + 1,
    h: n * at.size + 1,
    stroke: paint("line"),
  });
  if (at.named) {
    rows.labels.forEach((label, i) =>
      shapes.push({
        kind: "text",
        x: at.left - 6,
        y: at.top + (i + 0.5) * at.size,
        text: cut(label),
        size: LABEL,
        anchor: "end",
        fill: i === row ? accent : ink,
        bold: i === row,
      }),
    );
    columns.labels.forEach((label, i) =>
      shapes.push({
        kind: "text",
        x: at.left + (i + 0.5) * at.size,
        y: at.top - 6,
        text: cut(label),
        size: LABEL,
        turn: -90,
        fill: i === column ? accent : muted,
        bold: i === column,
      }),
    );
  }
  if (row >= 0 && row < n)
    shapes.push({ kind: "rect", x: at.left, y: at.top + row * at.size, w: m * at.size, h: at.size, stroke: accent });
  if (column >= 0 && column < m)
    shapes.push({ kind: "rect", x: at.left + column * at.size, y: at.top, w: at.size, h: n * at.size, stroke: accent });
  return { width: at.left + m * at.size + 8, height: at.top + n * at.size + 8, shapes };
}

/** Rows on the left, columns on the right, a line for each weight over the threshold; only those of `row` if there is one. */
export function linesScene(shownAs, { room, row, threshold }) {
  const { rows, columns, values } = shownAs;
  const step = 24;
  const width = Math.min(room, 560);
  const [left, right] = [width * 0.34, width * 0.66];
  const [ink, heat, accent] = [paint("ink"), paint("heat"), paint("accent")];
  const [n, m] = [rows.labels.length, columns.labels.length];
  const y = (i) => 16 + i * step;
  const shapes = [];
  values.forEach((value, i) => {
    const [r, c] = [Math.floor(i / m), i % m];
    if (value < Math.max(threshold, 0.02) || (row >= 0 && r !== row)) return;
    shapes.push({
      kind: "line",
      curved: true,
      x1: left + 6,
      y1: y(r),
      x2: right - 6,
      y2: y(c),
      stroke: heat,
      thick: 1 + 5 * value,
      opacity: 0.15 + 0.85 * Math.min(value, 1),
    });
  });
  rows.labels.forEach((label, i) =>
    shapes.push({
      kind: "text",
      x: left,
      y: y(i),
      text: cut(label),
      size: 14,
      anchor: "end",
      fill: i === row ? accent : ink,
      bold: i === row,
    }),
  );
  columns.labels.forEach((label, i) =>
    shapes.push({ kind: "text", x: right, y: y(i), text: cut(label), size: 14, fill: ink }),
  );
  return { width, height: 32 + (Math.max(n, m) - 1) * step, shapes };
}
