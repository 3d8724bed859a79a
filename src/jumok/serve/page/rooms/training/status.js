// How a training stands: running, stopped, died or finished; how far it is; and the button that stops it.

import { act } from "../../api.js";
import { Fold, isPhone } from "../../fold.js";
import { address, redraw } from "../../store.js";
import { h } from "../../view.js";
import { duration, number, t } from "../../words.js";
import { metricName } from "../results/data.js";
import { best } from "./curves.js";
import { pace } from "./log.js";

const OWN = { with: null, at: null, log: null, smooth: null, score: null }; // of this room in the URL
const stopping = new Map(); // run → "asked" | "sent" | a problem

/** The status, and what a reader should know of it. */
export function statusOf(log) {
  const { last, finished, diverged } = log.facts;
  if (log.status === "running") {
    if (finished && !["interrupted", "ended"].includes(finished.reason)) return "scoring";
    return last ? "running" : "preparing";
  }
  if (diverged && diverged.step >= (last?.step ?? 0)) return "diverged";
  return log.status;
}

export function Status({ run, log }) {
  const now = statusOf(log);
  const step = log.facts.last?.step ?? 0;
  const ready = now === "finished" && log.usable;
  if (log.status !== "running") stopping.delete(log.name);
  const shown = now === "died" || now === "stopped" ? { saved: log.facts.saved.at(-1)?.step ?? 0 } : {};
  return h(
    "section",
    { class: "stack tight", "aria-label": t("training.status") },
    h(
      "div",
      { class: "line spread" },
      h(
        "p",
        { class: `state ${now}`, role: "status" },
        h("span", { class: "lamp", "aria-hidden": "true" }),
        h("strong", {}, t(`training.status.${now}`)),
      ),
      now === "running" && h(Stop, { log }),
      ready && !log.seen && h(Links, { run }),
    ),
    h(
      "p",
      { class: "about" },
      log.status === "finished" && !log.facts.last
        ? t("training.about.imported")
        : t(`training.about.${now}`, { step, what: log.facts.diverged?.what ?? "", ...shown }),
    ),
    now === "running" &&
      h(Fold, {
        name: "how to read",
        kind: "small",
        summary: t("inside.how_to_read"),
        content: () => h("p", { class: "about" }, t("training.read.running")),
      }),
    ready &&
      log.seen &&
      h(
        "div",
        { class: "line spread ready note" },
        h("strong", { role: "status" }, t("training.ready")),
        h(Links, { run }),
      ),
    log.facts.last && [h(Progress, { log, step }), h(Figures, { log, now, step })],
    log.problem &&
      h(
        "p",
        { class: "note error", role: "alert" },
        t("shell.problem", { what: log.problem.what || log.problem.message }),
      ),
  );
}

function Progress({ log, step }) {
  if (!log.planned || log.status === "finished") return null;
  return h("progress", {
    max: String(log.planned),
    value: Math.min(step, log.planned),
    "aria-label": t("training.progress"),
  });
}

function Figures({ log, now, step }) {
  const { speed, left, loss } = pace(log);
  const metric = log.recipe.train?.metric;
  const evaluated = log.facts.evaluated.find((one) => one.step === best(log));
  const figures = [
    !(isPhone() && log.status === "finished") && [
      t("training.figure.step"),
      log.planned && log.status !== "finished" ? t("training.of", { step, n: log.planned }) : number(step),
    ],
    now === "running" && left !== null && [t("training.figure.left"), duration(left)],
    speed && !isPhone() && [t("training.figure.speed"), number(speed, 0)],
    loss !== null && [t("training.figure.loss"), loss < 0.001 ? `< ${number(0.001, 3)}` : number(loss, 3)],
    evaluated &&
      Number.isFinite(evaluated.scores[metric]) && [
        t("training.figure.best", { name: metricName(metric) }),
        number(evaluated.scores[metric], 2),
      ],
  ];
  return h(
    "dl",
    { class: "figures" },
    figures
      .filter(Boolean)
      .map(([name, value]) => h("div", { key: name }, h("dt", {}, name), h("dd", { class: "number" }, value))),
  );
}

/** Where to go with a model that is ready. */
function Links({ run }) {
  const to = (room) => address({ ...OWN, room, run: run.name });
  return h(
    "p",
    { class: "line no-print" },
    h("a", { class: "button main", href: to("use") }, t("training.try")),
    h("a", { class: "button", href: to("inside") }, t("training.inside")),
  );
}

function Stop({ log }) {
  const set = (value) => {
    if (value === null) stopping.delete(log.name);
    else stopping.set(log.name, value);
    redraw();
  };
  const stop = async () => {
    set("sent");
    try {
      await act(`/api/runs/${encodeURIComponent(log.name)}/stop`);
    } catch (problem) {
      set(log.status === "running" ? problem : null);
    }
  };
  const now = stopping.get(log.name);
  if (now === undefined)
    return h(
      "button",
      { key: "stop", type: "button", class: "stop no-print", onClick: () => set("asked") },
      t("training.stop"),
    );
  if (now === "sent") return h("p", { key: "sent", class: "small muted", role: "status" }, t("training.stopping"));
  return h(
    "div",
    {
      key: "sure",
      class: "line sure no-print",
      role: "group",
      "aria-label": t("training.stop"),
      onKeydown: (event) => event.key === "Escape" && set(null),
    },
    now === "asked"
      ? h("span", { class: "small" }, t("training.stop.sure"))
      : h("span", { class: "small", role: "alert" }, [now.what || now.message, now.hint].filter(Boolean).join(" — ")),
    h(
      "button",
      { type: "button", class: "danger", ref: (element) => queueMicrotask(() => element.focus()), onClick: stop },
      t("training.stop.yes"),
    ),
    h("button", { type: "button", onClick: () => set(null) }, t("training.stop.no")),
  );
}
