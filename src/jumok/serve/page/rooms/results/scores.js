// Scores with their intervals: the one that counts, the table of all, and how each was computed.

import { h } from "../../view.js";
import { t } from "../../words.js";
import { Copy } from "../use/text.js";
import {
  baselineName,
  count,
  interval,
  isOfLabel,
  isShare,
  lessIsBetter,
  metricMeans,
  metricName,
  written,
} from "./data.js";

/** The metric that chose the model, large, and what it means. */
export function Headline({ result, metric, results }) {
  const score = result.scores[metric];
  const chose = metric === results.metric;
  return h(
    "section",
    { class: "headline" },
    h("p", { class: "value number" }, written(score.value, metric)),
    h(
      "div",
      {},
      h("h2", {}, metricName(metric), isShare(metric) && h("span", { class: "muted of" }, t("results.of_100"))),
      h(
        "p",
        { class: "small" },
        t("results.interval_of", {
          interval: interval(score, metric),
          n: score.deviation === undefined ? t("results.examples", { n: score.n }) : score.signature,
        }),
      ),
      h(
        "p",
        { class: "muted means" },
        metricMeans(metric),
        " ",
        lessIsBetter(metric) && t("results.less"),
        " ",
        chose && t("results.chose"),
      ),
    ),
  );
}

/** All metrics over the whole split, the chosen one first, with baselines below each. */
export function Scores({ result, metric }) {
  const names = Object.keys(result.scores).filter((name) => !isOfLabel(name));
  const rows = [metric, ...names.filter((name) => name !== metric)];
  return h(Table, { result, metric, names: rows, title: t("results.all"), about: true });
}

export function ByLabel({ result, metric }) {
  const names = Object.keys(result.scores).filter(isOfLabel);
  return (
    names.length > 0 && h(Table, { result, metric, names, title: t("results.by_label"), first: t("results.label") })
  );
}

function Table({ result, metric, names, title, first = t("results.metric"), about = false }) {
  const scale = scaleOf(
    names.flatMap((name) =>
      [result.scores[name], ...others(result, name).map((other) => other.score)].map((score) => [name, score]),
    ),
  );
  return h(
    "section",
    { class: "stack tight" },
    h("h2", {}, title),
    h(
      "table",
      { class: "scores" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, first),
          h("th", { scope: "col", class: "number" }, t("results.score")),
          h("th", { scope: "col" }, h(Ends, { scale })),
          h("th", { scope: "col", class: "number n" }, t("results.n")),
        ),
      ),
      h(
        "tbody",
        {},
        names.flatMap((name) => [
          h(Row, { key: name, name, score: result.scores[name], scale, chosen: name === metric, about }),
          ...others(result, name).map((other) => h(Other, { ...other, key: `${name} ${other.label}`, name, scale })),
        ]),
      ),
    ),
    about && result.baselines && h("p", { class: "small muted" }, t("results.baselines")),
  );
}

const Ends = ({ scale }) =>
  h(
    "span",
    { class: "cells" },
    h("span", {}, t("results.interval")),
    h(
      "span",
      { class: "ends", "aria-hidden": "true" },
      [scale.from, (scale.from + scale.to) / 2, scale.to].map((value) => h("span", {}, String(value))),
    ),
  );

function Row({ name, score, scale, chosen, about }) {
  const means = about && !chosen && metricMeans(name);
  return h(
    "tr",
    { class: chosen ? "chosen" : "" },
    h("th", { scope: "row" }, metricName(name), means && h("span", { class: "small muted means" }, means)),
    h(
      "td",
      { class: "number score" },
      written(score.value, name),
      score.deviation !== undefined && h("span", { class: "muted" }, ` ± ${written(score.deviation, name)}`),
    ),
    h(
      "td",
      {},
      h(
        "span",
        { class: "cells" },
        h("span", { class: "interval" }, interval(score, name)),
        isShare(name) && h(Range, { score, scale }),
      ),
    ),
    h("td", { class: "number n muted" }, count(score.n)),
  );
}

/** What a score is to be seen beside: baselines, and the model before it was trained on. */
function others(result, name) {
  const before = result.before?.scores?.[name];
  const baselines = Object.entries(result.baselines ?? {}).filter(([, values]) => values[name] !== undefined);
  return [
    ...(before ? [{ label: t("results.before"), score: before }] : []),
    ...baselines.map(([label, values]) => ({ label: baselineName(label), score: { value: values[name] } })),
  ];
}

function Other({ label, name, score, scale }) {
  const known = score.low !== undefined;
  return h(
    "tr",
    { class: "other muted" },
    h("th", { scope: "row" }, label),
    h("td", { class: "number" }, written(score.value, name)),
    h(
      "td",
      {},
      h(
        "span",
        { class: "cells" },
        h("span", { class: "interval" }, known && interval(score, name)),
        isShare(name) && h(Range, { score: { low: score.value, high: score.value, ...score }, scale }),
      ),
    ),
    h("td", { class: "n" }),
  );
}

const STEP = 20;

/** The scale that all intervals of a table share: the part of 0 to 100 in which they are. */
export function scaleOf(scores) {
  const shares = scores.filter(([name]) => isShare(name)).map(([, score]) => score);
  const from = Math.floor(Math.min(...shares.map((score) => score.low ?? score.value), 80) / STEP) * STEP;
  const to = Math.ceil(Math.max(...shares.map((score) => score.high ?? score.value), from + STEP) / STEP) * STEP;
  return { from, to };
}

/** An interval and its value on a scale. */
export function Range({ score, scale, kind = "" }) {
  const at = (value) =>
    `${(100 * (Math.min(Math.max(value, scale.from), scale.to) - scale.from)) / (scale.to - scale.from)}%`;
  return h("span", {
    class: `range ${kind}`,
    "aria-hidden": "true",
    style: { "--low": at(score.low), "--high": at(score.high), "--at": at(score.value) },
  });
}

/** Signatures, each once, with the metrics it is of. */
export function Signatures({ result }) {
  const metrics = new Map();
  for (const [name, score] of Object.entries(result.scores))
    metrics.set(score.signature, [...(metrics.get(score.signature) ?? []), metricName(name)]);
  return h(
    "details",
    { class: "signatures" },
    h("summary", {}, t("results.how")),
    h(
      "dl",
      {},
      [...metrics].map(([signature, names]) => [
        h("dt", { key: `${signature} names` }, names.join(", ")),
        h(
          "dd",
          { key: signature, class: "line" },
          h("code", {}, signature),
          h(Copy, { text: signature, label: t("results.copy_signature") }),
        ),
      ]),
      result.data?.sha256 && [
        h("dt", { key: "data" }, t("results.sha256")),
        h(
          "dd",
          { key: "sha256", class: "line" },
          h("code", {}, result.data.sha256),
          h(Copy, { text: result.data.sha256, label: t("results.copy_signature") }),
        ),
      ],
    ),
  );
}
