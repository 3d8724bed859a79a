// Positions: what is added to a word's vector to say where it stands.

import { h } from "../../view.js";
import { t } from "../../words.js";
import { packed } from "./data.js";
import { Lead } from "./lead.js";
import { Pending } from "./pending.js";
import { Save } from "../../save.js";
import { paint, Picture, roomIn, widthOf } from "../../scene.js";

export function Positions({ run }) {
  const found = packed(run, "positions", undefined);
  if (!found.value) return h(Pending, { found });
  const { head, body } = found.value;
  const [rows, columns] = head.size;
  const left = 8 + widthOf(String(rows - 1), 12);
  const size = Math.max(1, Math.min(6, Math.floor((4 * (roomIn() - left)) / columns) / 4));
  const values = Float32Array.from(body, (value) => (value - 128) / 127);
  const scene = {
    width: columns * size + left,
    height: rows * size + 40,
    shapes: [
      { kind: "cells", x: left, y: 8, rows, columns, size, values, signed: true },
      { kind: "text", x: left - 8, y: 14, text: "0", size: 12, anchor: "end", fill: paint("muted") },
      {
        kind: "text",
        x: left - 8,
        y: rows * size + 2,
        text: String(rows - 1),
        size: 12,
        anchor: "end",
        fill: paint("muted"),
      },
      {
        kind: "text",
        x: left,
        y: rows * size + 24,
        text: t("inside.positions.axes", { n: columns }),
        size: 12,
        fill: paint("muted"),
      },
    ],
  };
  const table = () =>
    Array.from({ length: rows }, (_, r) => [
      r,
      ...Array.from(body.subarray(r * columns, (r + 1) * columns), (value) =>
        Number((((value - 128) / 127) * head.peak).toFixed(4)),
      ),
    ]);
  return [
    h(Lead, {
      says: t("inside.lead.positions"),
      more: [t("inside.read.positions"), t(`inside.positions.${head.kind}`)],
    }),
    h(
      "section",
      { class: "panel stack tight" },
      h(
        "div",
        { class: "line spread" },
        h("h2", {}, t("inside.tab.positions")),
        h(Save, { name: `${run.name} positions`, scene: () => scene, rows: table }),
      ),
      h(
        "div",
        { class: "scroll" },
        h(Picture, { key: "positions", scene, label: t("inside.positions.picture", { n: rows, m: columns }) }),
      ),
      h(
        "p",
        { class: "small muted legend" },
        h("span", { class: "against" }, t("inside.positions.below")),
        h("span", { class: "for" }, t("inside.positions.above")),
      ),
    ),
  ];
}
