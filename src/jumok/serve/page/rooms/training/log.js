// What is known of a training: its events, read on as they are written, each step told once.

import { connection, get } from "../../api.js";
import { redraw } from "../../store.js";

const POINTS = 4000; // of a history that is read at once
const LOOK = 1000; // ms between looks while it runs and somebody watches
const logs = new Map();

/** The log of a run of the list of runs; it is read on as long as the room calls this for it. */
export function follow(run) {
  if (!logs.has(run.name)) logs.set(run.name, fresh(run.name));
  const log = logs.get(run.name);
  const is_news =
    log.next === null || log.status === "running" || run.status !== log.status || run.changed !== log.changed;
  if (is_news && !log.timer && !log.looking && performance.now() - log.looked >= LOOK) look(log, run.changed);
  return log;
}

function fresh(name) {
  return {
    name,
    next: null,
    events: [],
    facts: told([]),
    status: "",
    usable: false,
    planned: null,
    recipe: {},
    findings: [],
    marks: [],
    examined: "",
    seen: false,
    problem: null,
    changed: null,
    looking: false,
    looked: -LOOK,
    timer: 0,
  };
}

addEventListener("visibilitychange", () => redraw()); // the room is drawn, and follows again
addEventListener("jumok:back", () => {
  for (const log of logs.values()) log.problem = null;
});

async function look(log, changed) {
  const path = `/api/runs/${encodeURIComponent(log.name)}`;
  log.looking = true;
  let more = false;
  try {
    const first = log.next === null;
    const found = await get(`${path}/events?${first ? `points=${POINTS}` : `from=${log.next}`}`);
    if (first || found.restarted || !log.recipe.train) log.recipe = (await get(`${path}/recipe`)).recipe;
    take(log, found);
    more = found.more;
    log.changed = changed;
    log.problem = null;
    await examine(log, path);
  } catch (problem) {
    if (log.problem?.what !== problem.what) redraw();
    log.problem = problem;
  }
  log.looking = false;
  log.looked = performance.now();
  if (log.status !== "running" && !more) return;
  log.timer = setTimeout(
    () => {
      log.timer = 0;
      if (!document.hidden && !connection.lost && document.querySelector(".room.training")) look(log, changed);
    },
    more ? 0 : LOOK,
  );
}

function take(log, found) {
  const before = [log.next, log.status, log.usable].join();
  if (found.restarted || log.next === null) log.events = [];
  log.events = once([...log.events, ...found.events]);
  if (found.events.length || found.restarted) log.facts = told(log.events);
  if (log.status === "running" && found.status === "finished") log.seen = true; // somebody saw it finish
  Object.assign(log, { next: found.next, status: found.status, usable: found.usable, planned: found.steps });
  if (before !== [log.next, log.status, log.usable].join()) redraw();
}

/** Without what a resumed run told again: the later event counts. */
export function once(events) {
  let kept = [];
  for (const event of events) {
    if (event.event === "resumed")
      kept = kept.filter(
        (one) => one.event === "resumed" || ((one.step ?? 0) <= event.step && one.event !== "finished"),
      );
    kept.push(event);
  }
  return kept;
}

/** The doctor looks at the curve again when there is something new to be said of it. */
async function examine(log, path) {
  const news = `${log.status} ${log.facts.evaluated.length} ${log.facts.resumed.length} ${log.facts.last?.step >= 50}`;
  if (news === log.examined) return;
  log.examined = news;
  const found = await get(`${path}/findings`);
  Object.assign(log, { findings: found.findings, marks: found.marks });
  redraw();
}

/** The events by what they tell. */
function told(events) {
  const of = (name) => events.filter((one) => one.event === name && Number.isFinite(one.step));
  const steps = of("step");
  const column = (value) => steps.map((one) => [one.step, value(one)]);
  return {
    steps,
    last: steps.at(-1) ?? null,
    loss: column((one) => one.loss),
    rate: column((one) => one.learning_rate),
    speed: column((one) => (one.seconds > 0 ? one.tokens / one.seconds : null)),
    evaluated: of("evaluated"),
    sampled: of("sampled"),
    saved: of("saved"),
    resumed: of("resumed"),
    diverged: of("diverged").at(-1) ?? null,
    finished: of("finished").at(-1) ?? null,
  };
}

/** What the last steps tell: tokens per second, the mean loss, and how long the steps that are left take; null if nobody
 *  knows. */
export function pace({ facts, planned }) {
  const recent = facts.steps.slice(-50);
  const sum = (name, steps) => steps.reduce((total, one) => total + (one[name] ?? 0), 0);
  const seconds = sum("seconds", recent);
  const lost = recent.slice(-20).filter((one) => Number.isFinite(one.loss));
  return {
    speed: seconds ? sum("tokens", recent) / seconds : null,
    loss: lost.length ? sum("loss", lost) / lost.length : null,
    left: seconds && planned ? Math.max(planned - facts.last.step, 0) * (seconds / recent.length) : null,
  };
}
