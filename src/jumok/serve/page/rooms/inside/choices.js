// Choices: what the decoder chose from at every step, and the tree of its beam.

import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";
import { percent } from "../use/text.js";
import { asked, shown } from "./data.js";
import { Lead } from "./lead.js";
import { Pending } from "./pending.js";
import { Tree } from "./tree.js";

export function Choices({ run, text }) {
  const prefix = (state.prefix ?? "").split(".").filter(Boolean).map(Number);
  const usual = run.decode?.method === "beam" ? run.decode.beam : 4;
  const beam = Math.min(Math.max(Number(state.beam ?? usual) || usual, 1), 8);
  const found = asked(run, "choices", { example: text, prefix, beam, k: 6 });
  if (!found.value) return h(Pending, { found });
  const { outputs, steps, tree } = found.value;
  const given = steps.filter((step) => step.forced).length - prefix.length; // a language model's text is no choice
  const from = (ids) => go({ prefix: ids.join(".") || null });
  return [
    h(Lead, { says: t("inside.lead.choices"), more: [t("inside.steps_hint"), t("inside.tree_hint")] }),
    h(
      "div",
      { class: "line" },
      h("p", { class: "result", "aria-live": "polite", dir: "auto" }, outputs[0].text),
      prefix.length > 0 &&
        h("button", { type: "button", class: "quiet", onClick: () => from([]) }, t("inside.from_start")),
    ),
    h(
      "section",
      { class: "stack tight", "aria-label": t("inside.steps") },
      h("h2", {}, t("inside.steps")),
      h(StepList, { steps, given, from }),
    ),
    h(Tree, { run, tree, outputs, beam, given, from }),
  ];
}

function StepList({ steps, given, from }) {
  const before = (at) => steps.slice(given, at).map((step) => step.id);
  return h(
    "ol",
    { class: "steps" },
    steps.map((step, at) =>
      at < given
        ? null
        : h(
            "li",
            { key: at, class: "panel" },
            h(
              "p",
              { class: "line spread" },
              h("strong", {}, shown(step.token)),
              h("span", { class: "number" }, percent(step.probability)),
            ),
            h(
              "ul",
              {},
              step.top.map((one) =>
                h(
                  "li",
                  { key: one.id },
                  h(
                    "button",
                    {
                      type: "button",
                      class: one.id === step.id ? "bar chosen" : "bar",
                      "aria-label": t("inside.go_on", { token: shown(one.token), share: percent(one.probability) }),
                      onClick: () => from([...before(at), one.id]),
                    },
                    h("span", { class: "fill", style: { width: `${100 * one.probability}%` } }),
                    h("span", { class: "name" }, told(one, step.top)),
                    h("span", { class: "number" }, percent(one.probability)),
                  ),
                ),
              ),
            ),
          ),
    ),
  );
}

/** A candidate as text: with the mark that it begins a word where another one reads the same. */
function told(one, others) {
  const twin = others.some((other) => other !== one && shown(other.token) === shown(one.token));
  return (twin && /^[▁Ġ]/.test(one.token) ? "␣" : "") + shown(one.token);
}
