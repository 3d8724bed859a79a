// Whether the model is as often right as it says: accuracy by confidence, and how many predictions there are of each.

import { h } from "../../view.js";
import { number, t } from "../../words.js";
import { count, percent } from "./data.js";

const SIZE = 240;
const LEFT = 40;
const TOP = 10;
const STRIP = 34; // height of the counts below

export function Reliability({ result }) {
  const bins = result.reliability ?? [];
  if (!bins.length) {
    return result.calibration_error === undefined
      ? null
      : h("figure", { class: "panel picture" }, h("h2", {}, t("results.reliability")), h(Errors, { result }));
  }
  const least = Math.min(0.5, ...bins.map((bin) => Math.min(bin.above, Math.floor(bin.accuracy * 10) / 10)));
  const x = (value) => LEFT + ((value - least) / (1 - least)) * SIZE;
  const y = (value) => TOP + SIZE - ((value - least) / (1 - least)) * SIZE;
  const most = Math.max(...bins.map((bin) => bin.n));
  const base = TOP + SIZE + STRIP + 8;
  const ticks = [least, (1 + least) / 2, 1];
  const said = (bin) =>
    t("results.bin", { from: percent(bin.above), to: percent(bin.up_to), accuracy: percent(bin.accuracy), n: bin.n });
  return h(
    "figure",
    { class: "panel picture" },
    h("h2", {}, t("results.reliability")),
    h(Errors, { result }),
    h(
      "svg",
      {
        class: "square",
        viewBox: `0 0 ${LEFT + SIZE + 12} ${base + 38}`,
        role: "img",
        "aria-label": bins.map(said).join("; "),
      },
      ticks.map((value) => [
        h("line", {
          key: `h ${value}`,
          class: value === least ? "axis" : "grid",
          x1: LEFT,
          x2: LEFT + SIZE,
          y1: y(value),
          y2: y(value),
        }),
        h("text", { key: `y ${value}`, class: "tick end", x: LEFT - 6, y: y(value) + 4 }, percent(value)),
        h("text", { key: `x ${value}`, class: "tick middle", x: x(value), y: base + 16 }, percent(value)),
      ]),
      h("line", { class: "ideal", x1: x(least), y1: y(least), x2: x(1), y2: y(1) }),
      bins.map((bin) =>
        h(
          "g",
          { key: bin.above, class: "first" },
          h("line", {
            class: "gap",
            x1: x(bin.confidence),
            x2: x(bin.confidence),
            y1: y(bin.confidence),
            y2: y(bin.accuracy),
          }),
          h("circle", { cx: x(bin.confidence), cy: y(bin.accuracy), r: 3 + 5 * Math.sqrt(bin.n / most) }),
        ),
      ),
      bins.map((bin) =>
        h("rect", {
          key: `n ${bin.above}`,
          class: "count",
          x: x(Math.max(bin.above, least)) + 1,
          width: Math.max(x(bin.up_to) - x(Math.max(bin.above, least)) - 2, 1),
          y: base - Math.max((STRIP * bin.n) / most, 1),
          height: Math.max((STRIP * bin.n) / most, 1),
        }),
      ),
      h("text", { class: "tick middle", x: LEFT + SIZE / 2, y: base + 34 }, t("results.confidence")),
    ),
    h("figcaption", { class: "muted small" }, t("results.reliability_about")),
    h(
      "details",
      {},
      h("summary", {}, t("results.as_table")),
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            [t("results.confidence"), t("results.mean"), t("results.accuracy"), "n"].map((text, i) =>
              h("th", { key: text, scope: "col", class: i ? "number" : "" }, text),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          bins.map((bin) =>
            h(
              "tr",
              { key: bin.above },
              h("th", { scope: "row" }, `${percent(bin.above)} – ${percent(bin.up_to)}`),
              h("td", { class: "number" }, percent(bin.confidence, 1)),
              h("td", { class: "number" }, percent(bin.accuracy, 1)),
              h("td", { class: "number" }, count(bin.n)),
            ),
          ),
        ),
      ),
    ),
  );
}

function Errors({ result }) {
  const before = result.calibration_error_before;
  return h(
    "p",
    { class: "small" },
    t("results.calibration", { error: number(result.calibration_error, 1) }),
    before !== undefined && [" ", t("results.calibration_before", { error: number(before, 1) })],
  );
}
