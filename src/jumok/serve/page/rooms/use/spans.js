// Entities and relations, drawn on the text and in a table.

import { get, post } from "../../api.js";
import { go, redraw, state } from "../../store.js";
import { h } from "../../view.js";
import { t } from "../../words.js";
import { predict, want } from "./desk.js";
import { Files } from "./files.js";
import { Answer, Box, Copy, Examples, Remarks, Sides, kept, percent, places } from "./text.js";

/** A text split at the borders of all spans; each segment says what it belongs to in words, not in colour alone. */
export function Marked({ text, spans, label = (span) => span.label }) {
  const at = places(text);
  const cuts = [
    ...new Set([0, text.length, ...spans.flatMap((span) => [at.unit(span.start), at.unit(span.end)])]),
  ].sort((a, b) => a - b);
  return h(
    "p",
    { class: "marked as-is", dir: "auto" },
    cuts.slice(0, -1).map((start, i) => {
      const of = spans.filter((span) => at.unit(span.start) <= start && at.unit(span.end) > start);
      const part = text.slice(start, cuts[i + 1]);
      if (!of.length) return part;
      const names = of
        .filter((span) => at.unit(span.end) === cuts[i + 1])
        .map(label)
        .filter(Boolean);
      return h(
        "mark",
        { key: start, title: of.map(label).join(", ") },
        part,
        names.length > 0 && h("sub", {}, names.join(" ")),
      );
    }),
  );
}

export function Tag({ run }) {
  const text = kept("text");
  const found = want(
    `tag ${run.name}`,
    text.trim() ? text : null,
    async (signal) => (await predict(run, [text], {}, signal))[0],
  );
  const output = text.trim() ? found.answer : null;
  const rows = output?.error ? [] : (output?.entities ?? []);
  return [
    h(
      Sides,
      {},
      h(
        "div",
        { class: "stack tight" },
        h(Box, { name: "text", label: t("use.text"), large: true, placeholder: t("use.spans.placeholder") }),
        h(Examples, { run, show: !text }),
      ),
      h(
        Answer,
        { found },
        !output && h("p", { class: "muted" }, t("use.spans.empty")),
        output && !output.error && !found.waiting && h(Marked, { text, spans: rows }),
        output && !output.error && !rows.length && h("p", { class: "muted" }, t("use.spans.none")),
        rows.length > 0 &&
          h(Table, {
            head: ["use.spans.entity", "use.spans.type", "use.spans.place", "use.spans.sure"],
            rows: rows.map((s) => [s.text, s.label, `${s.start}–${s.end}`, percent(s.score)]),
          }),
        h(Remarks, { desk: found, output }),
        output &&
          h(
            "div",
            { class: "line" },
            h(Copy, { text: JSON.stringify(output), label: t("use.copy_json") }),
            h(Copy, {
              text: rows.map((s) => [s.start, s.end, s.label, s.text, s.score].join("\t")).join("\n"),
              label: t("use.copy_tsv"),
            }),
          ),
      ),
    ),
    h(Files, { run, options: {} }),
  ];
}

function Table({ head, rows }) {
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "found" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((key, i) => h("th", { key, scope: "col", class: i > 1 ? "number" : "" }, t(key))),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row, r) =>
          h(
            "tr",
            { key: r },
            row.map((cell, i) => h("td", { key: i, dir: "auto", class: i > 1 ? "number" : "" }, cell)),
          ),
        ),
      ),
    ),
  );
}

const taggers = { known: null };

async function findTaggers() {
  taggers.known = [];
  for (const run of (await get("/api/runs")).runs) {
    const name = run.name ?? run; // a list that does not tell the task: the run itself does
    const task = run.task ?? (await get(`/api/runs/${encodeURIComponent(name)}`).catch(() => ({}))).task;
    if (task === "tagging" && run.usable !== false) taggers.known.push(name);
  }
  redraw();
}

export function Relate({ run }) {
  if (!taggers.known) findTaggers().catch(() => {});
  const text = kept("text");
  const [head, tail] = [read(state.useHead, text), read(state.useTail, text)];
  const tagger = state.useTagger;
  const example = tagger ? text.trim() && { text, taggers: [tagger] } : head && tail && { text, head, tail };
  const found = want(`relate ${run.name}`, example || null, async (signal) =>
    tagger
      ? (await post(`/api/runs/${encodeURIComponent(run.name)}/relations`, example, { signal })).outputs[0]
      : (await predict(run, [example], {}, signal))[0],
  );
  const output = example ? found.answer : null;
  const marks =
    output?.entities ??
    [head && { ...head, label: t("use.relate.head") }, tail && { ...tail, label: t("use.relate.tail") }].filter(
      Boolean,
    );
  const relations = output?.relations ?? [];
  return [
    h(
      Sides,
      {},
      h(
        "div",
        { class: "stack tight" },
        h(Box, { name: "text", label: t("use.text"), large: true, placeholder: t("use.relate.placeholder") }),
        taggers.known?.length > 0 &&
          h(
            "label",
            { class: "line small" },
            h("span", { class: "label" }, t("use.relate.find")),
            h(
              "select",
              { value: tagger ?? "", onChange: (event) => go({ useTagger: event.target.value }) },
              h("option", { value: "" }, t("use.relate.by_hand")),
              taggers.known.map((name) => h("option", { key: name, value: name }, t("use.relate.by_run", { run: name }))),
            ),
          ),
        !tagger && [
          h("p", { class: "small muted" }, t("use.relate.how")),
          h(
            "div",
            { class: "picks" },
            h(Pick, { run, text, name: "useHead", label: t("use.relate.set_head"), chosen: head }),
            h(Pick, { run, text, name: "useTail", label: t("use.relate.set_tail"), chosen: tail }),
          ),
        ],
      ),
      h(
        Answer,
        { found },
        text ? !found.waiting && h(Marked, { text, spans: marks }) : h("p", { class: "muted" }, t("use.relate.empty")),
        h(
          "ul",
          { class: "plain relations" },
          relations.map((r, i) => h(Relation, { key: i, r })),
        ),
        output && !output.error && !relations.length && h("p", { class: "muted" }, t("use.relate.none")),
        h(Remarks, { desk: found, output }),
        output &&
          h(
            "div",
            { class: "line" },
            h(Copy, { text: JSON.stringify(output), label: t("use.copy_json") }),
            h(Copy, {
              text: relations.map((r) => [r.head.text, r.label, r.tail.text, r.probability].join("\t")).join("\n"),
              label: t("use.copy_tsv"),
            }),
          ),
      ),
    ),
    h(Files, { run, options: {} }),
  ];
}

/** A label such as employs(e2,e1) says that the second entity is the one that does it. */
function Relation({ r }) {
  const [, label, backwards] = /^(.*?)(?:\(e1,e2\)|(\(e2,e1\)))?$/s.exec(r.label);
  const [from, to] = backwards ? [r.tail, r.head] : [r.head, r.tail];
  return h(
    "li",
    { dir: "auto", title: r.label },
    h("strong", {}, from.text),
    h("span", { class: "label" }, `— ${label} →`),
    h("strong", {}, to.text),
    h("span", { class: "muted number" }, percent(r.probability)),
  );
}

/** "3-7-PERSON" of the address as an entity. */
function read(value, text) {
  const [, start, end, type] = /^(\d+)-(\d+)-(.*)$/.exec(value ?? "") ?? [];
  return start !== undefined && Number(end) > Number(start) && Number(end) <= [...text].length
    ? { start: Number(start), end: Number(end), ...(type ? { type } : {}) }
    : null;
}

/** A button that makes the selection an entity, what it is, and its type. */
function Pick({ run, text, name, label, chosen }) {
  const pick = () => {
    const box = document.querySelector('[data-box="text"]');
    const at = places(box.value);
    if (box.selectionEnd > box.selectionStart)
      go({ [name]: `${at.point(box.selectionStart)}-${at.point(box.selectionEnd)}-${chosen?.type ?? ""}` });
  };
  return h(
    "p",
    { class: "line" },
    h("button", { onMousedown: (event) => event.preventDefault(), onClick: pick }, label),
    chosen && h("strong", { dir: "auto" }, [...text].slice(chosen.start, chosen.end).join("")),
    chosen &&
      run.types?.length > 0 &&
      h(
        "select",
        {
          "aria-label": t("use.spans.type"),
          value: chosen.type ?? "",
          onChange: (event) => go({ [name]: `${chosen.start}-${chosen.end}-${event.target.value}` }),
        },
        h("option", { value: "" }, t("use.relate.no_type")),
        run.types.map((type) => h("option", { key: type, value: type }, type)),
      ),
  );
}
