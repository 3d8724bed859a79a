// Results: how good a run is, how sure that is, where it errs, and whether another run is better.

import { go } from "../store.js";
import { h } from "../view.js";
import { languageName, number, t } from "../words.js";
import { Against, Choose } from "./results/compare.js";
import { Confusion } from "./results/confusion.js";
import { resultsOf, splitsOf } from "./results/data.js";
import { Export } from "./results/export.js";
import { Lengths } from "./results/lengths.js";
import { Reliability } from "./results/reliability.js";
import { ByLabel, Headline, Scores, Signatures } from "./results/scores.js";

const style = document.createElement("link");
Object.assign(style, { rel: "stylesheet", href: new URL("results/results.css", import.meta.url) });
document.head.append(style);

function view(run, state) {
  const found = resultsOf(run);
  if (found.problem)
    return [
      h("h1", {}, t("results.title")),
      h("p", { class: "note error", role: "alert" }, found.problem.what, " ", found.problem.hint),
    ];
  if (!found.value)
    return [h("h1", {}, t("results.title")), h("p", { class: "muted", role: "status" }, t("shell.loading"))];
  const splits = splitsOf(found.value);
  if (!splits.length) return [h("h1", {}, t("results.title")), h(None, { run })];
  const split = splits.includes(state.split) ? state.split : splits[0];
  const result = found.value.splits[split];
  const metric = result.scores[found.value.metric] ? found.value.metric : Object.keys(result.scores)[0];
  const shared = { run, results: found.value, split, result, metric };
  return [
    h(
      "div",
      { class: "line spread head" },
      h(
        "div",
        { class: "about-run" },
        h("h1", {}, t("results.title")),
        h(About, { run, results: found.value }),
      ),
      h(Export, shared),
    ),
    h("div", { class: "line spread choosing no-print" }, h(Splits, { splits, split }), h(Choose, shared)),
    metric && h(Headline, shared),
    h(Remarks, shared),
    h(Against, shared),
    h(Scores, shared),
    h(ByLabel, shared),
    h("div", { class: "pictures" }, h(Lengths, shared), h(Confusion, shared), h(Reliability, shared)),
    h(Signatures, shared),
  ];
}

/** The model in a sentence; a kind or task that the page has no words for keeps those of the model card. */
function About({ run, results }) {
  const { kind, parameters } = results.model ?? {};
  const chats = run.source && run.source === run.target;
  const task = chats ? "chat" : run.predicts === "number" ? "number" : run.task;
  const [model, does] = [`results.model.${kind}`, `results.does.${task}`];
  if (!parameters || t(model) === model || t(does) === does)
    return results.card && h("p", { class: "muted small", lang: "en" }, results.card);
  const languages = { source: languageName(run.source ?? "und"), target: languageName(run.target ?? "und") };
  const n = number(parameters, 0);
  return h("p", { class: "muted small" }, t("results.about", { model: t(model), n, does: t(does, languages) }));
}

function Splits({ splits, split }) {
  return h(
    "div",
    { class: "line splits", role: "group", "aria-label": t("results.data") },
    splits.map((name) =>
      h(
        "button",
        { key: name, type: "button", "aria-pressed": String(name === split), onClick: () => go({ split: name }) },
        splitName(name),
      ),
    ),
  );
}

const NAMED = ["test", "dev", "old_domain"];
const splitName = (name) => (NAMED.includes(name) ? t(`results.split.${name}`) : name);

/** What a reader has to know before believing a number. */
function Remarks({ results, result, metric }) {
  const parts = (result.parts ?? []).length;
  const { low, high } = result.scores[metric] ?? {};
  const told = [
    results.edited && t("results.edited"),
    result.data && result.data.as_trained === false && t("results.other_data"),
    parts > 1 && t("results.parts", { n: parts }),
    result.sentences < 100 && t("results.few", { n: result.sentences }),
    metric && low === high && t("results.no_width"),
    ...(result.notes ?? []),
  ].filter(Boolean);
  return told.length > 0 && h("div", { class: "notes" }, told.map((text) => h("p", { key: text, class: "note" }, text)));
}

/** A run without scores: what to do to get some. */
function None({ run }) {
  if (run.status === "running") return h("p", { class: "empty", role: "status" }, t("results.none.running"));
  const imported = run.usable && run.status === "finished";
  return h(
    "div",
    { class: "empty stack tight" },
    h("p", {}, imported ? t("results.none.imported") : t("results.none.unfinished")),
    h(
      "p",
      {},
      h("code", {}, imported ? `jumok evaluate ${run.name} --data test=FILE` : `jumok train RECIPE --out ${run.name}`),
    ),
  );
}

export const room = { name: "results", title: "results.title", fits: () => true, view };
