// Results from the server, and how numbers and metrics are written.

import { get } from "../../api.js";
import { redraw, state } from "../../store.js";
import { number, t } from "../../words.js";

const kept = new Map();

/** The results of a run as {value, problem}, both null while they are under way; anew once the run has changed. */
export function resultsOf(run) {
  const key = `${run.name} ${run.changed}`;
  if (!kept.has(key)) {
    const found = { value: null, problem: null };
    for (const old of kept.keys()) if (old.startsWith(`${run.name} `)) kept.delete(old);
    kept.set(key, found);
    get(`/api/runs/${encodeURIComponent(run.name)}/results`)
      .then(
        (value) => (found.value = value),
        (problem) => (found.problem = problem),
      )
      .finally(redraw);
  }
  return kept.get(key);
}

const ORDER = ["test", "dev"];
export const splitsOf = (results) => {
  const names = Object.keys(results.splits);
  return [...ORDER.filter((name) => names.includes(name)), ...names.filter((name) => !ORDER.includes(name))];
};

/** Metrics that are no percentages; of all of them less is better. */
const UNBOUNDED = new Set([
  "perplexity",
  "word_perplexity",
  "backward_perplexity",
  "bits_per_byte",
  "mean_absolute_error",
  "masked_loss",
]);
export const isShare = (name) => !UNBOUNDED.has(name);
export const lessIsBetter = (name) => UNBOUNDED.has(name);

const LABELLED = /^f1_(.+)$/s;
const known = (key, otherwise) => (t(key) === key ? otherwise : t(key));

export function metricName(name) {
  const label = LABELLED.exec(name)?.[1];
  return label !== undefined ? label : known(`results.metric.${name}`, name.replaceAll("_", " "));
}
export const metricMeans = (name) => known(`results.means.${name}`, "");
export const baselineName = (name) => known(`results.baseline.${name}`, name.replaceAll("_", " "));
export const isOfLabel = (name) => LABELLED.test(name);

/** A score with as many decimals as its kind has, so that columns are aligned. */
export function written(value, name, { sign = false } = {}) {
  const digits = isShare(name) ? 1 : 2;
  const options = {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    signDisplay: sign ? "exceptZero" : "auto",
  };
  return new Intl.NumberFormat(state.lang, options).format(value).replace("-", "−");
}
export const interval = ({ low, high }, name, options) =>
  `${written(low, name, options)} – ${written(high, name, options)}`;
export const count = (n) => number(n, 0);
export const percent = (share, digits = 0) => `${number(100 * share, digits)}%`;

/** Lengths of a bucket: "≤ 10", "11–20", "51+". */
export function lengths(name) {
  const [, from, to] = /_(\d+)_(?:to_(\d+)|or_more)_words$/.exec(name) ?? [];
  return from === undefined ? name : to === undefined ? `${from}+` : from === "0" ? `≤ ${to}` : `${from}–${to}`;
}
