// The scores to take along: a file for a spreadsheet, or a table for a paper or an issue.

import { h } from "../../view.js";
import { t } from "../../words.js";
import { csv, save } from "../../save.js";
import { Copy } from "../use/text.js";

const HEAD = ["run", "split", "metric", "value", "low", "high", "n", "signature"];

export function Export({ run, results }) {
  const rows = rowsOf(run, results);
  const file = `${run.name.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80)}-scores.csv`;
  return h(
    "div",
    { class: "line exports no-print", role: "group", "aria-label": t("shell.export") },
    h(Copy, { text: tsv([HEAD, ...rows]), label: t("results.copy_tsv") }),
    h(Copy, { text: markdown(rows), label: t("results.copy_markdown") }),
    h(
      "button",
      {
        class: "quiet",
        type: "button",
        onClick: () => save(file, new Blob(["\ufeff", csv([HEAD, ...rows])], { type: "text/csv" })),
      },
      "CSV",
    ),
  );
}

/** A row for each score of each split; the names are those of scores.json. */
function rowsOf(run, results) {
  return Object.entries(results.splits).flatMap(([split, result]) => [
    ...[...Object.values(result.scores), ...(result.bleu_by_source_words ?? [])].map((score) => [
      run.name,
      split,
      score.name,
      score.value,
      score.low,
      score.high,
      score.n,
      score.signature,
    ]),
    ...Object.entries(result.baselines ?? {}).flatMap(([name, values]) =>
      Object.entries(values).map(([metric, value]) => [
        run.name,
        split,
        metric,
        value,
        "",
        "",
        result.sentences,
        `baseline ${name}`,
      ]),
    ),
  ]);
}

const tsv = (rows) =>
  rows.map((row) => `${row.map((cell) => String(cell).replace(/[\t\r\n]/g, " ")).join("\t")}\n`).join("");

function markdown(rows) {
  const cell = (value) => String(value).replaceAll("|", "\\|").replace(/\s+/g, " ");
  const lines = rows.map(
    ([run, split, metric, value, low, high, n]) =>
      `| ${[run, split, metric].map(cell).join(" | ")} | ${Number(value).toFixed(2)} | ${low === "" ? "" : `${low.toFixed(2)} – ${high.toFixed(2)}`} | ${n} |`,
  );
  return ["| run | split | metric | score | 95% interval | n |", "|---|---|---|--:|--:|--:|", ...lines, ""].join("\n");
}
