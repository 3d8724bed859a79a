// Questions to the model while somebody types: the newest one counts, what it supersedes is aborted.

import { Problem, post } from "../../api.js";
import { redraw } from "../../store.js";

const FAST = 300; // ms: a model this fast is asked at every key stroke
const BUSY = 1000; // ms to wait when the server is busy
const desks = new Map();

/** What was asked under this name, and its answer. */
export function desk(name) {
  if (!desks.has(name))
    desks.set(name, {
      name,
      asked: null,
      answer: null,
      problem: null,
      waiting: null,
      took: 0,
      timer: 0,
      control: null,
    });
  return desks.get(name);
}

/** Ask if this is not what was asked last; the view is drawn anew when the answer is there. */
export function want(name, question, ask) {
  const here = desk(name);
  const key = JSON.stringify(question);
  if (here.asked === key) return here;
  here.asked = key;
  stop(here);
  if (question === null) return Object.assign(here, { answer: null, problem: null, waiting: null });
  here.waiting = "model";
  here.timer = setTimeout(() => run(here, key, ask), here.took < FAST ? 1 : FAST);
  return here;
}

function stop(here) {
  clearTimeout(here.timer);
  here.control?.abort();
  here.control = null;
}

async function run(here, key, ask) {
  here.control = new AbortController();
  const began = performance.now();
  try {
    const answer = await ask(here.control.signal);
    if (here.asked !== key) return;
    Object.assign(here, { answer, problem: null, waiting: null, took: performance.now() - began });
  } catch (problem) {
    if (problem.name === "AbortError" || here.asked !== key) return;
    if (problem instanceof Problem && problem.status === 429) {
      here.waiting = "busy";
      here.timer = setTimeout(() => run(here, key, ask), BUSY);
    } else {
      Object.assign(here, { problem, waiting: null });
    }
  }
  redraw();
}

addEventListener("jumok:back", () => {
  for (const here of desks.values()) if (here.problem?.code === "page.lost") here.asked = null; // the view asks again
  redraw();
});

/** Outputs of the run for examples. */
export const predict = async (run, examples, options = {}, signal) =>
  (await post(`/api/runs/${encodeURIComponent(run.name)}/predict`, { examples, options }, { signal })).outputs;
