// Questions answered from a text, and endings chosen for a beginning.

import { h } from "../../view.js";
import { t } from "../../words.js";
import { Bars } from "./bars.js";
import { predict, want } from "./desk.js";
import { Files } from "./files.js";
import { Marked } from "./spans.js";
import { Answer, Box, Copy, Remarks, Sides, kept, percent } from "./text.js";

export function Ask({ run }) {
  const [question, context] = [kept("question"), kept("text")];
  const ready = question.trim() && context.trim();
  const example = { question, context };
  const found = want(
    `answer ${run.name}`,
    ready ? example : null,
    async (signal) => (await predict(run, [example], { n_best: 5 }, signal))[0],
  );
  const output = ready ? found.answer : null;
  const best = output?.answers?.[0];
  return [
    h(
      Sides,
      {},
      h(
        "div",
        { class: "stack tight" },
        h(Box, { name: "question", label: t("use.answer.question"), placeholder: t("use.answer.ask"), rows: "2" }),
        h(Box, { name: "text", label: t("use.answer.context"), placeholder: t("use.answer.paste") }),
      ),
      h(
        Answer,
        { found },
        !output && h("p", { class: "muted" }, t("use.answer.empty")),
        best && h("p", { class: "answer", dir: "auto" }, best.text || t("use.answer.none")),
        best?.text && !found.waiting && h(Marked, { text: context, spans: [best], label: () => "" }),
        output?.answers?.length > 1 && h(Others, { answers: output.answers }),
        h(Remarks, { desk: found, output }),
        output &&
          h(
            "div",
            { class: "line" },
            h(Copy, { text: output.text ?? "" }),
            h(Copy, { text: JSON.stringify(output), label: t("use.copy_json") }),
          ),
      ),
    ),
    h(Files, { run, options: {} }),
  ];
}

/** The best answers and how sure the model is of each. */
function Others({ answers }) {
  return h(
    "table",
    { class: "found" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, t("use.answer.best")),
        h("th", { scope: "col", class: "number" }, t("use.spans.sure")),
      ),
    ),
    h(
      "tbody",
      {},
      answers.map((one, i) =>
        h(
          "tr",
          { key: i },
          h("td", { dir: "auto" }, one.text || t("use.answer.none")),
          h("td", { class: "number" }, percent(one.score)),
        ),
      ),
    ),
  );
}

export function Choose({ run }) {
  const context = kept("text");
  const endings = kept("endings")
    .split("\n")
    .filter((line) => line.trim());
  const ready = context.trim() && endings.length > 1;
  const example = { context, endings };
  const found = want(
    `choose ${run.name}`,
    ready ? example : null,
    async (signal) => (await predict(run, [example], {}, signal))[0],
  );
  const output = ready ? found.answer : null;
  return [
    h(
      Sides,
      {},
      h(
        "div",
        { class: "stack tight" },
        h(Box, { name: "text", label: t("use.choose.context"), placeholder: t("use.choose.begin"), rows: "2" }),
        h(Box, { name: "endings", label: t("use.choose.endings"), placeholder: t("use.choose.placeholder") }),
      ),
      h(
        Answer,
        { found },
        !output && h("p", { class: "muted" }, t("use.choose.empty")),
        output?.probabilities &&
          !found.waiting &&
          h(Bars, {
            rows: endings.map((ending, i) => [ending, output.probabilities[i] ?? 0]),
            chosen: (ending) => ending === output.text,
          }),
        h(Remarks, { desk: found, output }),
        output && h("div", { class: "line" }, h(Copy, { text: JSON.stringify(output), label: t("use.copy_json") })),
      ),
    ),
    h(Files, { run, options: {} }),
  ];
}
