// Training: watch a run learn, or see how it learned.

import { isPhone } from "../fold.js";
import { h } from "../view.js";
import { t } from "../words.js";
import { Compare, others } from "./training/compare.js";
import { Curves } from "./training/curves.js";
import { Findings } from "./training/findings.js";
import { follow } from "./training/log.js";
import { Samples } from "./training/samples.js";
import { Status } from "./training/status.js";

const style = document.createElement("link");
Object.assign(style, { rel: "stylesheet", href: new URL("training/training.css", import.meta.url) });
document.head.append(style);

function view(run, known) {
  const chosen = others(run, known);
  const [log, ...rest] = [run, ...chosen].map(follow);
  const heading = h("h1", { class: "as-is" }, run.name);
  if (log.next === null) {
    const problem =
      log.problem && h("p", { class: "note error", role: "alert" }, log.problem.what || log.problem.message);
    return [heading, problem ?? h("p", { class: "muted", role: "status" }, t("shell.loading"))];
  }
  const about = run.description && h("p", { class: "muted about" }, run.description);
  return [
    h("div", { class: "stack tight" }, heading, !isPhone() && about),
    h(Status, { run, log }),
    h(Samples, { run, log }),
    log.facts.last && h(Curves, { logs: [log, ...rest.filter((one) => one.next !== null)] }),
    log.facts.last && h(Findings, { findings: log.findings }),
    log.facts.last && h(Compare, { run, known, chosen }),
    isPhone() && about,
  ];
}

/** A run that the link names and that is not there yet: `jumok demo` opens the page before it has read its data. */
export function waiting(name) {
  return h(
    "div",
    { class: "room training" },
    h("h1", { class: "as-is" }, name),
    h(
      "p",
      { class: "state preparing", role: "status" },
      h("span", { class: "lamp", "aria-hidden": "true" }),
      t("training.waiting", { run: name }),
    ),
  );
}

export const room = {
  name: "training",
  title: "training.title",
  fits: () => true,
  view: (run, state, known) => view(run, known),
  waiting,
};
