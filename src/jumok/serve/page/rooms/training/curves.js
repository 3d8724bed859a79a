// The curves of one run, or of several laid over each other.

import { isShare, metricName } from "../results/data.js";
import { Chart } from "../../chart.js";
import { Fold, isPhone } from "../../fold.js";
import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";

const COLOURS = ["series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "muted", "ink"];
export const MOST = COLOURS.length;
/** Of the nth run. */
export const colourOf = (n) => COLOURS[n % MOST];

export function Curves({ logs }) {
  const range = rangeOf(logs);
  const width = smoothing(logs[0]);
  const how = width ? t("training.smoothed", { n: width }) : "";
  const chart = (name, series, more = {}) => ({
    title: t(`training.chart.${name}`),
    about: how,
    table: t("training.table", { name: t(`training.chart.${name}`) }),
    range,
    series,
    ...more,
  });
  const smooth = { smooth: width, smoothing: how };
  const name = logs.map((log) => log.name).join(" ");
  const score = scoreOf(logs);
  const marks = [...resumed(logs[0]), ...chosen(logs[0])];
  const found = findings(logs[0]);
  const loss = h(Chart, {
    key: "loss",
    name,
    chart: chart("loss", losses(logs, smooth), { log: state.log === "1", marks: [...marks, ...found] }),
    controls: h(LossControls, { width }),
  });
  const others = () => [
    score &&
      h(Chart, {
        key: "score",
        name,
        chart: chart("score", scores(logs, score), {
          most: isShare(score) ? 100 : Infinity,
          marks: chosen(logs[0]),
          about: t("training.not_smoothed"),
        }),
        controls: h(ScoreMenu, { logs, score }),
      }),
    h(Chart, {
      key: "rate",
      name,
      chart: chart(
        "rate",
        each(logs, t("training.chart.rate"), (facts) => facts.rate),
        { zero: true, about: "" },
      ),
    }),
    h(Chart, {
      key: "speed",
      name,
      chart: chart(
        "speed",
        each(logs, t("training.chart.speed"), (facts) => facts.speed, smooth),
        { zero: true, marks: resumed(logs[0]) },
      ),
    }),
  ];
  const folded = () => h("div", { class: "stack" }, others());
  const summary = t("training.charts");
  return h(
    "div",
    { class: "charts" },
    loss,
    isPhone() ? h(Fold, { name: "charts", kind: "panel section", summary, content: folded }) : others(),
  );
}

/** The first and the last step of all of them. */
function rangeOf(logs) {
  const ends = logs
    .flatMap((log) => [log.facts.steps[0]?.step, log.facts.last?.step, log.facts.evaluated.at(-1)?.step])
    .filter(Number.isFinite);
  return ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
}

/** Steps to smooth over: chosen, or a round number that does not change while the run goes on. */
function smoothing(log) {
  if (state.smooth !== undefined && /^\d{1,5}$/.test(state.smooth)) return Number(state.smooth);
  const planned = log.planned ?? 2000;
  return [...widths()].reverse().find((width) => width && width <= planned / 40) ?? 0;
}
const widths = () => [0, 10, 20, 50, 100, 200, 500, 1000];

function LossControls({ width }) {
  return h(
    "div",
    { class: "line no-print" },
    h(
      "label",
      { class: "check small" },
      h("input", {
        type: "checkbox",
        checked: state.log === "1",
        onChange: (event) => go({ log: event.target.checked ? "1" : null }, { replace: true }),
      }),
      t("training.log"),
    ),
    h(
      "label",
      { class: "small line" },
      h("span", { class: "visually-hidden" }, t("training.smoothing")),
      h(
        "select",
        {
          class: "slim",
          value: String(width),
          onChange: (event) => go({ smooth: event.target.value }, { replace: true }),
        },
        [...new Set([...widths(), width])]
          .sort((a, b) => a - b)
          .map((n) =>
            h("option", { key: n, value: String(n) }, n ? t("training.smooth", { n }) : t("training.smooth.off")),
          ),
      ),
    ),
  );
}

const label = (logs, log, what) => (logs.length === 1 ? what : `${log.name} · ${what}`);

/** One series of every run. */
function each(logs, what, points, more = {}) {
  return logs.map((log, n) => ({
    name: logs.length === 1 ? what : log.name,
    colour: colourOf(n),
    points: points(log.facts),
    ...more,
  }));
}

function losses(logs, smooth) {
  return logs.flatMap((log, n) => {
    const dev = log.facts.evaluated.map((one) => [one.step, devLoss(one.scores)]).filter(([, value]) => value !== null);
    return [
      { name: label(logs, log, t("training.series.train")), colour: colourOf(n), points: log.facts.loss, ...smooth },
      ...(dev.length
        ? [
            {
              name: label(logs, log, t("training.series.dev")),
              colour: logs.length === 1 ? colourOf(1) : colourOf(n),
              points: dev,
              dash: true,
              dots: true,
            },
          ]
        : []),
    ];
  });
}

/** In nats, as the training loss is. */
function devLoss(scores) {
  if (Number.isFinite(scores.masked_loss)) return scores.masked_loss;
  const found = ["perplexity", "backward_perplexity"].map((name) => scores[name]).filter(Number.isFinite);
  return found.length ? found.reduce((sum, value) => sum + Math.log(value), 0) / found.length : null;
}

/** The score that is shown: chosen, or the one that decides which checkpoint is the best. */
function scoreOf(logs) {
  const names = scoreNames(logs);
  return [state.score, logs[0].recipe.train?.metric].find((name) => names.includes(name)) ?? names[0];
}
const scoreNames = (logs) => [
  ...new Set(logs.flatMap((log) => log.facts.evaluated.flatMap((one) => Object.keys(one.scores)))),
];

function ScoreMenu({ logs, score }) {
  return h(
    "label",
    { class: "small line no-print" },
    h("span", { class: "visually-hidden" }, t("training.score")),
    h(
      "select",
      { class: "slim", value: score, onChange: (event) => go({ score: event.target.value }, { replace: true }) },
      scoreNames(logs).map((name) => h("option", { key: name, value: name }, metricName(name))),
    ),
  );
}

function scores(logs, name) {
  return logs.map((log, n) => ({
    name: label(logs, log, metricName(name)),
    colour: colourOf(n),
    points: log.facts.evaluated.filter((one) => name in one.scores).map((one) => [one.step, one.scores[name]]),
    dots: true,
    chosen: best(log),
  }));
}

/** The step of the best evaluation. */
export const best = (log) => log.facts.evaluated.findLast((one) => one.best)?.step;

/** The checkpoints that the model is made of, or would be if it ended now. */
function chosen(log) {
  const { final, keep_last: kept = 5, save_every: every } = log.recipe.train ?? {};
  const mark = (step, name) => ({ step, sign: "◆", name, colour: "accent", tall: true });
  if (log.status !== "finished") return best(log) === undefined ? [] : [mark(best(log), t("training.mark.best"))];
  const saved = log.facts.saved.map((one) => one.step);
  if (final === "best" && best(log) !== undefined) return [mark(best(log), t("training.mark.chosen"))];
  if (final === "average") {
    const planned = saved
      .filter((step) => (every >= 1 ? step % every === 0 || step === saved.at(-1) : true))
      .slice(-kept);
    return planned.map((step) => ({ ...mark(step, t("training.mark.averaged", { n: planned.length })), tall: false }));
  }
  return saved.length ? [mark(saved.at(-1), t("training.mark.chosen"))] : [];
}

const resumed = (log) =>
  log.facts.resumed.map(({ step }) => ({
    step,
    sign: "↻",
    name: t("training.mark.resumed"),
    colour: "muted",
    tall: true,
  }));

const findings = (log) =>
  log.marks.map(({ step, code }) => ({
    step,
    sign: "▾",
    name: t(`training.finding.${code}`),
    colour: "warn",
    tall: code === "curve.overfitting",
  }));
