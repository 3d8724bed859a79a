// What is on the screen as a file.

import { h } from "./view.js";
import { t } from "./words.js";
import { drawOn, svgOf } from "./scene.js";

/** Buttons that save a scene as SVG and PNG, and rows of values as CSV. */
export function Save({ name, scene, rows }) {
  const file = name.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80);
  const buttons = [
    ["SVG", () => save(`${file}.svg`, new Blob([svgOf(scene())], { type: "image/svg+xml" }))],
    ["PNG", () => png(scene(), (blob) => save(`${file}.png`, blob))],
    ["CSV", () => save(`${file}.csv`, new Blob(["\ufeff", csv(rows())], { type: "text/csv" }))],
  ];
  return h(
    "div",
    { class: "line save no-print", role: "group", "aria-label": t("shell.save") },
    buttons.map(([kind, act]) =>
      h(
        "button",
        { key: kind, class: "quiet", type: "button", "aria-label": t("shell.save_as", { kind }), onClick: act },
        kind,
      ),
    ),
  );
}

/** RFC 4180, with formulas of spreadsheets made harmless. */
export function csv(rows) {
  const cell = (value) => {
    const text = typeof value === "number" ? String(value) : String(value).replace(/^[=+\-@\t\r]/, "'$&");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function png(scene, then) {
  const canvas = document.createElement("canvas");
  drawOn(canvas, scene, 2);
  canvas.toBlob(then, "image/png");
}

export function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
