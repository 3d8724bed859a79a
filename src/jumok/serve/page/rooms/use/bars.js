import { h } from "../../view.js";
import { percent } from "./text.js";

/** Probabilities as bars with their numbers; `chosen` says which ones the model decided for. */
export function Bars({ rows, chosen = () => false }) {
  return h(
    "table",
    { class: "bars" },
    h(
      "tbody",
      {},
      rows.map(([label, p]) =>
        h(
          "tr",
          { key: label, class: chosen(label) ? "chosen" : "" },
          h("th", { scope: "row", dir: "auto" }, chosen(label) ? `✓ ${label}` : label),
          h(
            "td",
            { class: "bar" },
            h("span", { style: { width: `${Math.max(100 * p, 0.5)}%` }, "aria-hidden": "true" }),
          ),
          h("td", { class: "number" }, percent(p)),
        ),
      ),
    ),
  );
}
