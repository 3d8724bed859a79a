// BLEU by the length of the source: a point with its interval for each bucket of lengths.

import { h } from "../../view.js";
import { t } from "../../words.js";
import { other } from "./compare.js";
import { count, interval, lengths, written } from "./data.js";

const ALONE = 1000; // wide, if no other picture stands beside it
const BESIDE = 460;
const HIGH = 230;
const AROUND = { left: 34, right: 8, top: 10, bottom: 44 };

export function Lengths({ result, split, run }) {
  const own = result.bleu_by_source_words ?? [];
  if (own.length < 2) return null;
  const compared = other(run, split)?.bleu_by_source_words ?? [];
  const series = [own, compared].filter((one) => one.length);
  const most = niceCeil(Math.max(...series.flat().map((score) => score.high)));
  const phone = matchMedia("(max-width: 44rem)").matches;
  const WIDE = phone || result.confusion || result.reliability ? BESIDE : ALONE;
  const x = (i) => AROUND.left + ((i + 0.5) * (WIDE - AROUND.left - AROUND.right)) / own.length;
  const y = (value) => HIGH - AROUND.bottom - (value / most) * (HIGH - AROUND.top - AROUND.bottom);
  const ticks = [0, most / 2, most];
  return h(
    "figure",
    { class: "panel picture" },
    h("h2", {}, t("results.lengths")),
    h(
      "svg",
      {
        viewBox: `0 0 ${WIDE} ${HIGH}`,
        role: "img",
        "aria-label": own.map((score) => `${lengths(score.name)}: ${written(score.value, "bleu")}`).join(", "),
      },
      ticks.map((value) => [
        h("line", {
          key: `line ${value}`,
          class: value ? "grid" : "axis",
          x1: AROUND.left,
          x2: WIDE - AROUND.right,
          y1: y(value),
          y2: y(value),
        }),
        h("text", { key: `tick ${value}`, class: "tick end", x: AROUND.left - 6, y: y(value) + 4 }, String(value)),
      ]),
      series.map((scores, which) =>
        scores.map((score) => {
          const i = own.findIndex((one) => one.name === score.name);
          if (i < 0) return null;
          const at = x(i) + (series.length > 1 ? (which ? 9 : -9) : 0);
          return h(
            "g",
            { key: `${which} ${score.name}`, class: which ? "second" : "first" },
            h("line", { x1: at, x2: at, y1: y(score.low), y2: y(score.high) }),
            h("circle", { cx: at, cy: y(score.value), r: 4.5 }),
            series.length < 2 &&
              h("text", { class: "label", x: at + 9, y: y(score.value) + 4 }, written(score.value, "bleu")),
          );
        }),
      ),
      own.map((score, i) => [
        h(
          "text",
          { key: `words ${i}`, class: "tick middle", x: x(i), y: HIGH - AROUND.bottom + 17 },
          lengths(score.name),
        ),
        h(
          "text",
          { key: `n ${i}`, class: "tick middle faint", x: x(i), y: HIGH - AROUND.bottom + 34 },
          `n ${count(score.n)}`,
        ),
      ]),
    ),
    h("figcaption", { class: "muted small" }, t("results.lengths_about")),
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
            h("th", { scope: "col" }, t("results.words")),
            h("th", { scope: "col", class: "number" }, "BLEU"),
            h("th", { scope: "col" }, t("results.interval")),
            h("th", { scope: "col", class: "number" }, "n"),
          ),
        ),
        h(
          "tbody",
          {},
          own.map((score) =>
            h(
              "tr",
              { key: score.name },
              h("th", { scope: "row" }, lengths(score.name)),
              h("td", { class: "number" }, written(score.value, "bleu")),
              h("td", {}, interval(score, "bleu")),
              h("td", { class: "number" }, count(score.n)),
            ),
          ),
        ),
      ),
    ),
  );
}

const niceCeil = (value) => Math.min(100, [10, 20, 40, 60, 80, 100].find((edge) => edge >= value) ?? 100);
