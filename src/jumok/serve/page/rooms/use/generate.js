// Text that goes on: streamed as it is written.

import { stream } from "../../api.js";
import { go, redraw, state } from "../../store.js";
import { h } from "../../view.js";
import { number, t } from "../../words.js";
import { predict } from "./desk.js";
import { Files } from "./files.js";
import { Answer, Box, Copy, Examples, Remarks, Sides, kept } from "./text.js";

const made = { run: null, prompt: "", text: "", problem: null, control: null, output: null };

export function Generate({ run }) {
  const prompt = kept("text");
  const temperature = Number(state.useTemperature ?? 0.8);
  const tokens = Number(state.useTokens ?? 60);
  const mine = made.run === run.name;
  const range = (name, label, value, min, max, step) =>
    h(
      "label",
      { class: "field", key: name },
      h("span", { class: "line spread" }, label, h("output", { class: "number" }, number(value))),
      h("input", {
        type: "range",
        min,
        max,
        step,
        value,
        onInput: (event) => go({ [name]: event.target.value }, { replace: true }),
      }),
    );
  return [
    h(
      Sides,
      {},
      h(
        "div",
        { class: "stack tight" },
        h(Box, { name: "text", label: t("use.generate.prompt"), large: true, placeholder: t("use.generate.placeholder") }),
        h(Examples, { run, show: !prompt }),
        h(
          "div",
          { class: "columns ranges" },
          range("useTemperature", t("use.generate.temperature"), temperature, 0, 2, 0.1),
          range("useTokens", t("use.generate.tokens"), tokens, 5, 300, 5),
        ),
        h(
          "div",
          { class: "line" },
          h("button", { class: "main", onClick: () => write(run, prompt, temperature, tokens) }, t("use.generate.write")),
          mine && made.control && h("button", { onClick: () => made.control.abort() }, t("use.generate.stop")),
        ),
      ),
      h(
        Answer,
        { found: { waiting: mine && made.control }, kind: "writing" },
        !mine || !(made.text || made.control)
          ? h("p", { class: "muted" }, t("use.generate.empty"))
          : h("p", { class: "written as-is", dir: "auto" }, h("span", { class: "muted" }, made.prompt), made.text),
        mine && h(Remarks, { desk: made, output: made.output }),
        mine && made.text && h("div", { class: "line" }, h(Copy, { text: made.prompt + made.text })),
      ),
    ),
    h(Files, { run, options: {} }),
  ];
}

async function write(run, prompt, temperature, tokens) {
  made.control?.abort();
  const control = new AbortController();
  Object.assign(made, { run: run.name, prompt, text: "", problem: null, output: null, control });
  redraw();
  const seed = Math.floor(Math.random() * 2 ** 31);
  try {
    await streamed(run, prompt, temperature, tokens, seed, control).catch((problem) => {
      if (problem.status !== 404) throw problem; // without that route: all at once
      return whole(run, prompt, temperature, tokens, seed, control);
    });
  } catch (problem) {
    if (problem.name !== "AbortError" && made.control === control) made.problem = problem;
  }
  if (made.control === control) made.control = null;
  redraw();
}

async function streamed(run, prompt, temperature, max_tokens, seed, control) {
  const answer = await stream(
    "/v1/completions",
    { model: run.name, prompt, temperature, max_tokens, seed, stream: true },
    { signal: control.signal },
  );
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done || made.control !== control) return;
    waiting += value;
    const events = waiting.split("\n\n");
    waiting = events.pop();
    for (const event of events) take(event.replace(/^data: ?/, ""));
    redraw();
  }
}

function take(data) {
  if (data === "[DONE]" || !data.startsWith("{")) return;
  const said = JSON.parse(data);
  if (said.error) made.problem = { code: said.error.code, what: said.error.message ?? said.error.what };
  made.text += said.choices?.[0]?.text ?? "";
}

async function whole(run, text, temperature, max_extra, seed, control) {
  const options =
    temperature > 0
      ? { method: "sample", temperature, seed, max_extra, n_best: 1 }
      : { method: "greedy", max_extra, n_best: 1 };
  const [output] = await predict(run, [{ text }], options, control.signal);
  Object.assign(made, {
    output,
    text: output.error ? "" : output.text.startsWith(text) ? output.text.slice(text.length) : output.text,
  });
}
