// What was taken for what: rows are the right labels, columns what the model said, shaded by their share of the row.

import { h } from "../../view.js";
import { t } from "../../words.js";
import { count, percent } from "./data.js";

const MOST_LETTERS = 40; // of all names, for which there is room side by side

export function Confusion({ result, run }) {
  const found = result.confusion;
  if (!found?.counts?.length) return null;
  const { labels, counts } = found;
  const entities = run.task === "tagging";
  const name = (label, side) => (entities && label === "O" ? t(`results.no_entity.${side}`) : label);
  const sums = counts.map((row) => row.reduce((a, b) => a + b, 0));
  return h(
    "figure",
    {
      class: `panel picture confusion ${labels.join("").length > MOST_LETTERS ? "upright" : ""} ${labels.length > 6 ? "wide" : labels.length < 4 ? "roomy" : ""}`,
    },
    h("h2", {}, t("results.confusion")),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": t("results.confusion") },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, t("results.right_label"))),
            labels.map((label) =>
              h("th", { key: label, scope: "col", class: "predicted" }, h("span", {}, name(label, "predicted"))),
            ),
            h("th", { scope: "col", class: "number" }, "n"),
          ),
        ),
        h(
          "tbody",
          {},
          counts.map((row, i) =>
            h(
              "tr",
              { key: labels[i] },
              h("th", { scope: "row", title: labels[i] }, name(labels[i], "gold")),
              row.map((n, j) =>
                h(Cell, {
                  key: labels[j],
                  n,
                  sum: sums[i],
                  right: i === j,
                  void: entities && labels[i] === "O" && i === j,
                }),
              ),
              h("td", { class: "number muted" }, count(sums[i])),
            ),
          ),
        ),
      ),
    ),
    h(
      "figcaption",
      { class: "muted small" },
      t(entities ? "results.confusion_of_entities" : "results.confusion_about"),
    ),
  );
}

function Cell({ n, sum, right, void: empty }) {
  if (empty) return h("td", { class: "cell muted" }, "–");
  const share = sum ? n / sum : 0;
  return h(
    "td",
    { class: `cell ${right ? "right" : ""} ${n ? "" : "zero"}`, style: { "--share": `${(100 * share).toFixed(1)}%` } },
    h("span", {}, count(n)),
    n > 0 && h("small", {}, percent(share)),
  );
}
