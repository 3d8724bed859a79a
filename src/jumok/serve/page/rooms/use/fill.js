// A pre-trained encoder: fill masks, next sentence, how alike texts are.

import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { fixed, t } from "../../words.js";
import { Bars } from "./bars.js";
import { predict, want } from "./desk.js";
import { Files } from "./files.js";
import { Answer, Box, Copy, Remarks, Sides, keep, kept } from "./text.js";

export function Encode({ run }) {
  const ask = run.asks?.includes(state.useAsk) ? state.useAsk : (run.asks?.[0] ?? "embedding");
  return [
    h(
      "div",
      { class: "tabs", role: "tablist" },
      run.asks.map((one) =>
        h(
          "button",
          { key: one, role: "tab", "aria-selected": String(one === ask), onClick: () => go({ useAsk: one }) },
          t(`use.fill.${one}`),
        ),
      ),
    ),
    h("div", { key: ask, class: "stack" }, ask === "fill" ? Fill(run) : ask === "follows" ? Follows(run) : Alike(run)),
    h(Files, { run, options: { ask } }),
  ];
}

function Fill(run) {
  const text = kept("text");
  const ready = text.includes(run.mask);
  const found = want(
    `fill ${run.name}`,
    ready ? text : null,
    async (signal) => (await predict(run, [{ text }], { ask: "fill", top_k: 6 }, signal))[0],
  );
  const output = ready ? found.answer : null;
  return [
    h(
      Sides,
      {},
      h(
        "div",
        { class: "stack tight" },
        h(Box, {
          name: "text",
          label: t("use.text"),
          large: true,
          placeholder: t("use.fill.placeholder", { mask: run.mask }),
        }),
        h(
          "div",
          { class: "line" },
          h("button", { onClick: () => insert(run.mask) }, t("use.fill.insert", { mask: run.mask })),
        ),
      ),
      h(
        Answer,
        { found },
        !output && h("p", { class: "muted" }, t("use.fill.empty", { mask: run.mask })),
        output?.candidates && h("p", { class: "answer", dir: "auto" }, output.text),
        output?.candidates &&
          output.candidates.map((of, i) => [
            output.candidates.length > 1 &&
              h("h3", { key: `h${i}`, class: "apart" }, t("use.fill.nth", { mask: run.mask, n: i + 1 })),
            h(Bars, { key: i, rows: of.map((one) => [one.piece, one.score]), chosen: (piece) => piece === of[0].piece }),
          ]),
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
  ];
}

function insert(mask) {
  const box = document.querySelector('[data-box="text"]');
  box.setRangeText(mask, box.selectionStart, box.selectionEnd, "end");
  keep("text", box.value);
  box.focus();
}

function Follows(run) {
  const [text, pair] = [kept("text"), kept("pair")];
  const ready = text.trim() && pair.trim();
  const found = want(
    `follows ${run.name}`,
    ready ? [text, pair] : null,
    async (signal) => (await predict(run, [{ text, pair }], { ask: "follows" }, signal))[0],
  );
  const output = ready ? found.answer : null;
  return [
    h(
      Sides,
      {},
      h(
        "div",
        { class: "stack tight" },
        h(Box, { name: "text", label: t("use.fill.a") }),
        h(Box, { name: "pair", label: t("use.fill.b") }),
      ),
      h(
        Answer,
        { found },
        !output && h("p", { class: "muted" }, t("use.fill.follows_empty")),
        output &&
          !output.error &&
          h(Bars, {
            rows: [
              [t("use.fill.yes"), output.follows],
              [t("use.fill.no"), 1 - output.follows],
            ],
            chosen: (label) => (label === t("use.fill.yes")) === output.follows >= 0.5,
          }),
        h(Remarks, { desk: found, output }),
      ),
    ),
  ];
}

function Alike(run) {
  const lines = kept("text")
    .split("\n")
    .filter((line) => line.trim())
    .slice(0, 12);
  const found = want(`alike ${run.name}`, lines.length > 1 ? lines : null, (signal) =>
    predict(
      run,
      lines.map((text) => ({ text })),
      { ask: "embedding" },
      signal,
    ),
  );
  const vectors =
    lines.length > 1 && !found.waiting && found.answer?.every((one) => one.vector)
      ? found.answer.map((one) => one.vector)
      : null;
  return [
    h(
      Sides,
      {},
      h(Box, { name: "text", label: t("use.fill.lines"), large: true, placeholder: t("use.fill.lines_placeholder") }),
      h(
        Answer,
        { found },
        !vectors && h("p", { class: "muted" }, t("use.fill.alike_empty")),
        vectors && h(Matrix, { lines, vectors }),
        h(Remarks, { desk: found, output: found.answer?.find((one) => one.error) }),
        vectors &&
          h("div", { class: "line" }, h(Copy, { text: JSON.stringify(found.answer), label: t("use.copy_json") })),
      ),
    ),
  ];
}

/** How alike each two lines are; the columns have the numbers of the rows. */
function Matrix({ lines, vectors }) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": t("use.fill.embedding") },
    h(
      "table",
      { class: "alike" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td", {}),
          lines.map((line, j) => h("th", { key: j, scope: "col", class: "number", title: line }, j + 1)),
        ),
      ),
      h(
        "tbody",
        {},
        lines.map((line, i) =>
          h(
            "tr",
            { key: i },
            h("th", { scope: "row", dir: "auto", title: line }, h("span", { class: "number" }, i + 1), " ", line),
            vectors.map((v, j) =>
              h("td", { key: j, class: `number ${i === j ? "muted" : ""}` }, fixed(cosine(v, vectors[i]), 2)),
            ),
          ),
        ),
      ),
    ),
  );
}

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / (Math.sqrt(dot(a, a) * dot(b, b)) || 1);
}
