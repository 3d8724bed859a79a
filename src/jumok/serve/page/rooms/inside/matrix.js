// One head: its weights by token or word, as a matrix or as lines.

import { units } from "./data.js";
import { cutTo, paint, widthOf } from "../../scene.js";

const LABEL = 12;
const SMALLEST = 8; // of a cell whose row and column have names
const LONGEST = 96; // of a label, in pixels

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

const cut = (label, size = LABEL) => cutTo(label, LONGEST, size);
const widest = (labels, size) => Math.max(...labels.map((label) => widthOf(cut(label, size), size)), 1);

/** Where the cells are: the larger the fewer. */
export function layout({ rows, columns }, room) {
  const most = Math.max(columns.labels.length, 1);
  const fit = (left) => Math.max(Math.min(Math.floor((room - left - 2) / most), 46), 1);
  const left = Math.min(widest(rows.labels, LABEL) + 10, room * 0.3);
  const size = fit(left);
  if (size < SMALLEST) return { size: fit(2), left: 2, top: 2, letter: 0 };
  const letter = Math.min(LABEL, size);
  return { size, left, top: widest(columns.labels, letter) + 12, letter };
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
  if (at.letter) {
    rows.labels.forEach((label, i) =>
      shapes.push({
        kind: "text",
        x: at.left - 6,
        y: at.top + (i + 0.5) * at.size,
        text: cut(label, at.letter),
        size: at.letter,
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
        text: cut(label, at.letter),
        size: at.letter,
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
  return { width: at.left + m * at.size + 2, height: at.top + n * at.size + 2, shapes };
}

/** Rows on the left, columns on the right, a line for each weight over the threshold; only those of `row` if there is one. */
export function linesScene(shownAs, { room, row, threshold }) {
  const { rows, columns, values } = shownAs;
  const step = 24;
  const sides = [rows, columns].map((side) => Math.max(...side.labels.map((label) => widthOf(cut(label, 14), 14)), 1) + 4);
  const width = Math.min(room, 560);
  const [left, right] = [sides[0], width - sides[1]];
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
      text: cut(label, 14),
      size: 14,
      anchor: "end",
      fill: i === row ? accent : ink,
      bold: i === row,
    }),
  );
  columns.labels.forEach((label, i) =>
    shapes.push({ kind: "text", x: right, y: y(i), text: cut(label, 14), size: 14, fill: ink }),
  );
  return { width, height: 32 + (Math.max(n, m) - 1) * step, shapes };
}
