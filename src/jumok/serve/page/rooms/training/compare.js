// Other runs laid over this one, and where their recipes differ.

import { get } from "../../api.js";
import { Fold, isPhone } from "../../fold.js";
import { go, redraw, state } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";
import { colourOf, MOST } from "./curves.js";

const kept = new Map(); // differences by the names of the runs

/** The names of the other runs in the URL, as far as there are such runs. */
export function others(run, known) {
  const names = (state.with ?? "").split(",").map(decoded);
  return known.filter((one) => one.name !== run.name && names.includes(one.name)).slice(0, MOST - 1);
}

function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return "";
  }
}

export function Compare({ run, known, chosen }) {
  const rest = known.filter((one) => one.name !== run.name);
  if (!rest.length) return null;
  const names = chosen.map((one) => one.name);
  const pick = (name, on) => {
    const next = on ? [...names, name] : names.filter((one) => one !== name);
    go({ with: next.map(encodeURIComponent).join(",") });
  };
  const [same, strange] = [true, false].map((alike) => rest.filter((one) => (one.task === run.task) === alike));
  const boxes = (some) => h(Boxes, { some, names, pick });
  const title = h("h2", { id: "compare-title" }, t("training.compare"));
  const content = () => [
    same.length > 0 && boxes(same),
    strange.length > 0 &&
      h(
        "details",
        { open: strange.some((one) => names.includes(one.name)) || !same.length },
        h("summary", {}, t("training.compare.others", { n: strange.length })),
        boxes(strange),
      ),
    names.length > 0 && h(Differences, { names: [run.name, ...names] }),
  ];
  return h(
    "section",
    { class: "panel stack tight compare", "aria-labelledby": "compare-title" },
    isPhone()
      ? h(Fold, { name: "compare", kind: "section", open: names.length > 0, summary: title, content })
      : [title, content()],
  );
}

function Boxes({ some, names, pick }) {
  return h(
    "div",
    { class: "line others", role: "group", "aria-labelledby": "compare-title" },
    some.map((one) => {
      const n = names.indexOf(one.name);
      return h(
        "label",
        { key: one.name, class: "check" },
        h("input", {
          type: "checkbox",
          checked: n >= 0,
          disabled: n < 0 && names.length >= MOST - 1,
          onChange: (event) => pick(one.name, event.target.checked),
        }),
        h("span", {}, one.name),
        n >= 0 && h("span", { class: "key", style: { "--colour": `var(--${colourOf(n + 1)})` } }),
      );
    }),
  );
}

function Differences({ names }) {
  const found = differences(names);
  if (found.problem) return h("p", { class: "note error", role: "alert" }, found.problem.what || found.problem.message);
  if (!found.value) return h("p", { class: "muted", role: "status" }, t("shell.loading"));
  if (!found.value.length) return h("p", { class: "muted" }, t("training.same_recipes"));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": t("training.differences") },
    h(
      "table",
      {},
      h("caption", { class: "label" }, t("training.differences")),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, t("training.setting")),
          names.map((name, n) =>
            h(
              "th",
              { key: name, scope: "col" },
              h("span", { class: "key", style: { "--colour": `var(--${colourOf(n)})` } }),
              name,
            ),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        found.value.map(({ key, values }) =>
          h(
            "tr",
            { key },
            h("th", { scope: "row" }, h("code", {}, key)),
            values.map((value) => h("td", {}, shown(value))),
          ),
        ),
      ),
    ),
  );
}

/** What all of them set, before what only some have. */
const sorted = (found) => [
  ...found.filter(({ values }) => !values.includes(null)),
  ...found.filter(({ values }) => values.includes(null)),
];
const shown = (value) =>
  value === null || value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);

function differences(names) {
  const query = names.map((name) => `run=${encodeURIComponent(name)}`).join("&");
  if (!kept.has(query)) {
    const found = { value: null, problem: null };
    kept.set(query, found);
    get(`/api/recipes?${query}`)
      .then(
        (answer) => (found.value = sorted(answer.differences)),
        (problem) => (found.problem = problem),
      )
      .finally(redraw);
  }
  return kept.get(query);
}
