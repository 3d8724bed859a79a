// A run whose two languages are one answers instead of translating: a conversation.

import { redraw } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";
import { predict } from "./desk.js";
import { Copy, Remarks, keep, kept } from "./text.js";

const talks = new Map();

export function Chat({ run }) {
  if (!talks.has(run.name)) talks.set(run.name, { lines: [], waiting: null, problem: null, drawn: 0 });
  const talk = talks.get(run.name);
  const text = kept("text");
  const send = (event) => {
    event.preventDefault();
    if (text.trim() && !talk.waiting) say(run, talk, text.trim());
  };
  return [
    h(
      "div",
      { class: "panel stack tight talk", role: "log", "aria-live": "polite", lang: run.target },
      !talk.lines.length && h("p", { class: "muted" }, t("use.chat.empty")),
      talk.lines.map((line, i) =>
        h(
          "p",
          { key: i, class: `bubble ${line.mine ? "mine" : ""}`, dir: "auto" },
          h("span", { class: "visually-hidden" }, t(line.mine ? "use.chat.you" : "use.chat.model")),
          line.text,
        ),
      ),
      talk.waiting && h("p", { class: "bubble muted" }, "…"),
    ),
    h(Remarks, { desk: talk, output: talk.output }),
    h(
      "form",
      { class: "line say", onSubmit: send },
      h("input", {
        "data-box": "text",
        "aria-label": t("use.chat.say"),
        lang: run.source,
        autocomplete: "off",
        placeholder: t("use.chat.say"),
        value: text,
        onInput: (event) => keep("text", event.target.value),
      }),
      h("button", { class: "main" }, t("use.chat.send")),
      talk.lines.length > 0 && h("button", { type: "button", onClick: () => another(run, talk) }, t("use.chat.again")),
      h(Copy, { text: talk.lines.map((line) => line.text).join("\n") }),
    ),
  ];
}

async function reply(run, talk, text, options) {
  Object.assign(talk, { waiting: true, problem: null, output: null });
  redraw();
  try {
    const [output] = await predict(run, [text], options);
    talk.output = output;
    return output.error ? null : output.text;
  } catch (problem) {
    talk.problem = problem;
    return null;
  } finally {
    talk.waiting = null;
    redraw();
  }
}

async function say(run, talk, text) {
  const said = await reply(run, talk, text, {});
  if (said === null) return; // what was typed stays in the box
  talk.lines.push({ mine: true, text }, { mine: false, text: said });
  keep("text", "");
}

async function another(run, talk) {
  const asked = talk.lines.findLast((line) => line.mine);
  talk.drawn += 1;
  const said = await reply(run, talk, asked.text, { method: "sample", n_best: 1, top_p: 0.9, seed: 1 + talk.drawn });
  if (said !== null) talk.lines[talk.lines.length - 1] = { mine: false, text: said };
  redraw();
}
