// What the doctor says of the curve, in the reader's language. A code that the page has no words for keeps the server's.

import { Fold, isPhone } from "../../fold.js";
import { h } from "../../view.js";
import { fixed, number, t } from "../../words.js";
import { metricName } from "../results/data.js";

export function Findings({ findings }) {
  if (!findings.length) return null;
  const title = h("h2", { id: "findings-title" }, t("training.findings"));
  const list = () =>
    h(
      "ul",
      { class: "plain stack tight" },
      findings.map((one) => h(Found, { key: one.code, one })),
    );
  return h(
    "section",
    { class: "panel stack tight findings", "aria-labelledby": "findings-title" },
    isPhone()
      ? h(Fold, { name: "findings", kind: "section", summary: [title, " ", counted(findings)], content: list })
      : [title, list()],
  );
}

/** How many there are of each severity, as its name and a number. */
function counted(findings) {
  const of = (severity) => findings.filter((one) => one.severity === severity).length;
  return ["error", "warning", "note"]
    .filter(of)
    .map((severity) =>
      h(
        "span",
        { class: `is-${severity}` },
        h("span", { class: "severity" }, t(`training.severity.${severity}`), ` ${of(severity)} `),
      ),
    );
}

function Found({ one }) {
  const told = SAYS[one.code]?.(one.facts ?? {});
  const title = t(`training.finding.${one.code}`);
  return h(
    "li",
    { class: `is-${one.severity}` },
    h(
      "strong",
      {},
      h("span", { class: "severity" }, t(`training.severity.${one.severity}`)),
      " ",
      title.startsWith("training.") ? h("code", {}, one.code) : title,
    ),
    h("p", told ? {} : { lang: "en" }, told ?? one.message),
    one.facts?.spikes
      ? h(Fold, {
          name: "spikes",
          kind: "small",
          summary: t("training.spikes"),
          content: () => h(Spikes, { spikes: one.facts.spikes }),
        })
      : one.examples.length > 0 &&
          h(
            "ul",
            { class: "plain small muted mono", lang: "en" },
            one.examples.map((text) => h("li", {}, text)),
          ),
  );
}

const name = (facts) => t(facts.name === "masked loss" ? "training.loss.masked" : "training.loss.plain");
const two = (facts, ...keys) => Object.fromEntries(keys.map((key) => [key, fixed(facts[key])]));
const say = (code, values) => t(`training.says.${code}`, values);

const SAYS = {
  "curve.not_finite": () => say("curve.not_finite"),
  "curve.summary": (facts) => {
    if (!facts.last) return t("training.says.not_begun");
    const { dev = {}, last, steps, window } = facts;
    const counts = { last, steps, window, read: number(facts.read, 0), speed: number(facts.speed, 0) };
    const scores = Object.entries(dev).filter(([key]) => key !== "next_sentence_majority");
    const listed = scores.map(([key, value]) => `${metricName(key)} ${fixed(value)}`).join(", ");
    const begun = say("curve.summary", { name: name(facts), ...counts, ...two(facts, "first", "end") });
    return scores.length ? `${begun} ${t("training.says.on_dev", { scores: listed })}` : begun;
  },
  "curve.next_sentence": (facts) => say("curve.next_sentence", { loss: fixed(facts.loss, 3) }),
  "curve.diverging": (facts) =>
    say("curve.diverging", { name: name(facts), since: facts.since, ...two(facts, "best", "end") }),
  "curve.overfitting": (facts) =>
    say("curve.overfitting", { ...facts, ...two(facts, "best", "end", "then", "now") }),
  "curve.spikes": (facts) => say("curve.spikes", { name: name(facts), n: facts.n, steps: facts.steps }),
  "curve.slow": (facts) => say("curve.slow", { now: number(facts.now, 0), usual: number(facts.usual, 0) }),
};

/** The first spikes, in columns. */
function Spikes({ spikes }) {
  const columns = ["step", "loss", "usual", "norm"];
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "spikes small", "aria-label": t("training.spikes") },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((key) => h("th", { key, scope: "col", class: "number" }, t(`training.spike.${key}`))),
        ),
      ),
      h(
        "tbody",
        {},
        spikes.map((one) =>
          h(
            "tr",
            { key: one.step },
            columns.map((key) =>
              h("td", { key, class: "number" }, key === "step" ? number(one.step) : fixed(one[key])),
            ),
          ),
        ),
      ),
    ),
  );
}
