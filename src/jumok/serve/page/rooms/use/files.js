// A whole file: read in the browser, sent in batches that let people who type go first, given back as a file.

import { redraw } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";
import { predict } from "./desk.js";

const BATCH = 64; // examples of a request: more than the server takes for somebody who types
const BYTES = 700_000; // of a request
const NOT_LINES = /\.(csv|docx?|epub|html?|json|mo|od[pst]|pdf|pot?|pptx?|rtf|srt|tmx|vtt|xhtml|xlf|xliff|xlsx?|xml|ya?ml|zip|gz)$/i;
const work = { run: null, name: "", total: 0, outputs: [], running: false, problem: null, control: null };

export function Files({ run, options }) {
  const mine = work.run === run.name;
  return h(
    "details",
    { class: "files no-print", key: "files", open: mine },
    h("summary", {}, t("use.files.title")),
    h(
      "div",
      { class: "stack tight" },
      h("p", { class: "small muted" }, t("use.files.about")),
      h(
        "div",
        { class: "line" },
        h(
          "label",
          { class: "field" },
          h("span", {}, t("use.files.choose")),
          h("input", {
            type: "file",
            accept: ".txt,.tsv,.jsonl,text/plain",
            onChange: (event) => start(run, options, event.target),
          }),
        ),
        mine && work.running && h("button", { onClick: cancel }, t("use.files.cancel")),
        mine &&
          !work.running &&
          work.outputs.length > 0 && [
            h("button", { class: "main", onClick: () => save("txt") }, t("use.files.text")),
            h("button", { onClick: () => save("jsonl") }, t("use.files.json")),
          ],
      ),
      mine && h("progress", { max: work.total, value: work.outputs.length, "aria-label": t("use.files.progress") }),
      mine &&
        h(
          "p",
          { class: "small muted", role: "status" },
          t("use.files.count", {
            n: work.total,
            done: work.outputs.length,
            failed: work.outputs.filter((o) => o.error).length,
          }),
        ),
      mine && work.problem && h("p", { class: "note error", role: "alert" }, work.problem),
    ),
  );
}

async function start(run, options, input) {
  const file = input.files[0];
  if (!file) return;
  const kind = NOT_LINES.exec(file.name)?.[1];
  if (kind) {
    cancel();
    const command = `jumok predict ${run.name} ${file.name} --out FILE.${kind}`;
    Object.assign(work, { run: run.name, total: 0, outputs: [], problem: t("use.files.kind", { kind, command }) });
    redraw();
    return;
  }
  const lines = (await file.text()).replace(/^\ufeff/, "").split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  cancel();
  const control = new AbortController();
  Object.assign(work, {
    run: run.name,
    name: file.name,
    total: lines.length,
    outputs: [],
    running: true,
    problem: null,
    control,
  });
  redraw();
  const examples = lines.map((line) => read(line, file.name));
  try {
    for (const some of batches(examples)) {
      const outputs = await patient(() => predict(run, some, options, control.signal), control.signal);
      if (work.control !== control) return;
      work.outputs.push(...outputs);
      redraw();
    }
  } catch (problem) {
    if (problem.name !== "AbortError" && work.control === control)
      work.problem = [problem.what ?? String(problem), problem.hint].filter(Boolean).join(" — ");
  }
  if (work.control === control) work.running = false;
  redraw();
}

function read(line, name) {
  if (!name.endsWith(".jsonl")) return line;
  try {
    return JSON.parse(line);
  } catch {
    return line;
  }
}

function* batches(examples) {
  let some = [];
  let size = 0;
  for (const example of examples) {
    const bytes = 3 * JSON.stringify(example).length;
    if (some.length && (some.length >= BATCH || size + bytes > BYTES)) {
      yield some;
      [some, size] = [[], 0];
    }
    some.push(example);
    size += bytes;
  }
  if (some.length) yield some;
}

/** Try again as long as the server is busy. */
async function patient(ask, signal) {
  for (;;) {
    try {
      return await ask();
    } catch (problem) {
      if (problem.status !== 429) throw problem;
      await new Promise((resolve) => setTimeout(resolve, 1500));
      signal.throwIfAborted();
    }
  }
}

function cancel() {
  work.control?.abort();
  work.running = false;
  redraw();
}

function save(kind) {
  const lines = work.outputs.map((output) =>
    kind === "jsonl" ? JSON.stringify(output) : (output.text ?? "").replaceAll("\n", " "),
  );
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/plain" }));
  link.download = `${work.name.replace(/\.[^.]*$/, "")}.${work.run}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
