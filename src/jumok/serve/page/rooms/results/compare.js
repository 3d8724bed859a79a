// Another run of the same task beside this one, and the paired test that says whether the difference is more than chance.

import { get, stream } from "../../api.js";
import { go, redraw, state } from "../../store.js";
import { h } from "../../view.js";
import { duration, number, t } from "../../words.js";
import { count, interval, isOfLabel, isShare, lessIsBetter, metricName, resultsOf, written } from "./data.js";
import { Range, scaleOf } from "./scores.js";

const FRESH = 15_000; // ms for which the list of runs is good
const SURE = 0.05;
const tests = new Map(); // by both runs and the split
let runs = [];
let looked = 0;

/** The other run, if one is chosen. */
const chosen = (run) => runs.find((one) => one.name === state.against && one.name !== run.name);

/** The other run's results of a split. */
export const other = (run, split) => {
  const found = chosen(run);
  return found && resultsOf(found).value?.splits[split];
};

function look() {
  if (Date.now() - looked < FRESH) return;
  looked = Date.now();
  get("/api/runs")
    .then((found) => (runs = found.runs))
    .then(redraw, () => {});
}

/** Which run to compare with. */
export function Choose({ run }) {
  look();
  const alike = runs.filter(
    (one) => one.name !== run.name && one.task === run.task && one.source === run.source && one.target === run.target,
  );
  if (!alike.length) return null;
  return h(
    "label",
    { class: "line" },
    h("span", { class: "label" }, t("results.compare_with")),
    h(
      "select",
      { value: chosen(run)?.name ?? "", onChange: (event) => go({ against: event.target.value }) },
      h("option", { value: "" }, t("results.nothing")),
      alike.map((one) => h("option", { key: one.name, value: one.name }, one.name)),
    ),
  );
}

export function Against({ run, result, split, metric }) {
  const against = chosen(run);
  if (!against) return null;
  const found = resultsOf(against);
  const theirs = found.value?.splits[split];
  const test = tests.get(keyOf(run, against, split));
  return h(
    "section",
    { class: "panel stack tight against", "aria-live": "polite" },
    h("h2", {}, t("results.comparison")),
    h(
      "p",
      { class: "line small" },
      h("span", { class: "key first" }, run.name),
      h("span", { class: "key second" }, against.name),
    ),
    found.problem && h("p", { class: "note error" }, found.problem.what),
    found.value && !theirs && h("p", { class: "note" }, t("results.not_scored")),
    theirs &&
      result.data?.sha256 &&
      theirs.data?.sha256 &&
      result.data.sha256 !== theirs.data.sha256 &&
      h("p", { class: "note warn" }, t("results.differing_data")),
    test?.comparisons &&
      h(Verdict, { found: test.comparisons.find((one) => one.metric === metric) ?? test.comparisons[0], run, against }),
    theirs && h(Both, { run, against, result, theirs, metric, test }),
    h(Test, { run, against, split, test, n: result.sentences }),
  );
}

function Both({ run, against, result, theirs, metric, test }) {
  const names = Object.keys(result.scores).filter((name) => theirs.scores[name]);
  const rows = [metric, ...names.filter((name) => name !== metric)];
  const scale = scaleOf(rows.flatMap((name) => [result, theirs].map((one) => [name, one.scores[name]])));
  const tested = new Map((test?.comparisons ?? []).map((one) => [one.metric, one]));
  return h(
    "table",
    { class: "both" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, t("results.metric")),
        [run, against].map((one, i) =>
          h(
            "th",
            { key: one.name, scope: "col", class: "number" },
            h("span", { class: `key ${i ? "second" : "first"}` }, h("span", { class: "visually-hidden" }, one.name)),
          ),
        ),
        h("th", { scope: "col", class: "pair" }, t("results.intervals", scale)),
        h("th", { scope: "col", class: "number" }, t("results.difference")),
      ),
    ),
    h(
      "tbody",
      {},
      rows
        .filter((name) => names.includes(name))
        .map((name) => {
          const [a, b] = [result.scores[name], theirs.scores[name]];
          const found = tested.get(name);
          return h(
            "tr",
            { key: name, class: name === metric ? "chosen" : "" },
            h(
              "th",
              { scope: "row" },
              isOfLabel(name) ? `F1 ${metricName(name)}` : metricName(name),
              h("span", { class: "small muted overlap" }, t(overlap(a, b) ? "results.overlap" : "results.apart")),
            ),
            h("td", { class: "number score" }, written(a.value, name)),
            h("td", { class: "number" }, written(b.value, name)),
            h(
              "td",
              { class: "pair" },
              isShare(name)
                ? [h(Range, { score: a, scale }), h(Range, { score: b, scale, kind: "second" })]
                : `${interval(a, name)} · ${interval(b, name)}`,
            ),
            h(
              "td",
              { class: "number" },
              found
                ? [
                    h("strong", {}, written(found.difference, name, { sign: true })),
                    h("span", { class: "small muted" }, interval(found, name, { sign: true })),
                    h("span", { class: "small muted" }, chance(found)),
                  ]
                : h("span", { class: "muted" }, written(a.value - b.value, name, { sign: true })),
            ),
          );
        }),
    ),
  );
}

const overlap = (a, b) => a.low <= b.high && b.low <= a.high;
const chance = ({ p_value: p }) => (p < 0.0015 ? `p\u00a0<\u00a0${number(0.002, 3)}` : `p\u00a0=\u00a0${number(p, 3)}`);

/** The answer in one sentence, about the metric that chose the model. */
function Verdict({ found, run, against }) {
  const better = found.difference > 0 !== lessIsBetter(found.metric);
  const values = {
    metric: metricName(found.metric),
    difference: written(Math.abs(found.difference), found.metric),
    interval: interval(found, found.metric, { sign: true }),
    p: chance(found),
  };
  if (found.p_value > SURE) return h("p", { class: "verdict" }, t("results.verdict.none", values));
  return h(
    "p",
    { class: "verdict" },
    t("results.verdict.better", { ...values, better: (better ? run : against).name }),
  );
}

function Test({ run, against, split, test, n }) {
  if (!["dev", "test"].includes(split)) return null;
  const start = () => compare(run, against, split);
  if (test?.comparisons) {
    const how = test.comparisons[0].test;
    return h(
      "p",
      { class: "small muted" },
      t("results.tested", { n: test.comparisons[0].n }),
      " ",
      h("span", { lang: "en" }, how),
    );
  }
  if (test?.controller) {
    const done = test.done - (test.first?.done ?? 0);
    const left = done > 0 && ((Date.now() - test.first.at) / done) * (test.total - test.done);
    return h(
      "div",
      { class: "line under-way" },
      h("progress", { max: test.total || 1, value: test.done, "aria-label": t("results.progress") }),
      h(
        "span",
        { class: "small muted number" },
        t("results.done", { done: count(test.done), total: count(test.total) }),
        left > 2000 && ` · ${t("results.left", { time: duration(left / 1000) })}`,
      ),
      h("button", { type: "button", onClick: () => test.controller.abort() }, t("results.cancel")),
    );
  }
  return h(
    "div",
    { class: "stack tight" },
    test?.problem &&
      h(
        "div",
        { class: "note warn", role: "alert" },
        h("p", {}, test.problem.what),
        test.problem.hint && h("p", { class: "small" }, t("results.instead"), " ", h("code", {}, test.problem.hint)),
      ),
    h(
      "div",
      { class: "line no-print" },
      h(
        "button",
        { type: "button", class: test?.problem ? "" : "main", onClick: start },
        t(test?.problem ? "results.again" : "results.run_test"),
      ),
      h("span", { class: "small muted about" }, t("results.test_about", { n })),
    ),
  );
}

const keyOf = (run, against, split) => [run.name, run.changed, against.name, against.changed, split].join("\n");

/** Ask for the paired test, and tell of its progress until it is there, fails or is cancelled. */
async function compare(run, against, split) {
  const key = keyOf(run, against, split);
  const test = { done: 0, total: 0, first: null, controller: new AbortController() };
  tests.set(key, test);
  redraw();
  try {
    const answer = await stream(
      `/api/runs/${encodeURIComponent(run.name)}/compare`,
      { with: against.name, split },
      { signal: test.controller.signal },
    );
    for await (const told of lines(answer)) {
      if (told.error) throw told.error;
      Object.assign(test, told);
      if (test.done) test.first ??= { at: Date.now(), done: test.done }; // models load before: that says nothing of the pace
      redraw();
    }
    if (!test.comparisons) throw { what: t("shell.lost"), hint: "" };
  } catch (problem) {
    if (problem.name === "AbortError") tests.delete(key);
    else test.problem = problem;
  }
  test.controller = null;
  redraw();
}

/** The JSON objects of an answer that comes line by line. */
async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const whole = (rest + part.value).split("\n");
    rest = whole.pop();
    for (const line of whole) if (line) yield JSON.parse(line);
  }
}
