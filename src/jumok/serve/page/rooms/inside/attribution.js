// Attribution: how much each word of the input counts for one output.

import { go, state } from "../../store.js";
import { h } from "../../view.js";
import { fixed, t } from "../../words.js";
import { asked, shown } from "./data.js";
import { Lead } from "./lead.js";
import { Pending } from "./pending.js";
import { Save } from "../../save.js";
import { percent } from "../use/text.js";
import { colour, cutTo, mixed, paint, Picture, roomIn, widthOf } from "../../scene.js";

const METHODS = ["occlusion", "gradient", "integrated"];

export function Attribution({ run, text }) {
  const method = METHODS.includes(state.method) ? state.method : "occlusion";
  const body = { example: text, method };
  if (state.step !== undefined && state.step !== "") body.step = Number(state.step);
  if (state.label) body.label = state.label;
  const found = asked(run, "attribution", body);
  return [
    h(Lead, {
      says: t("inside.lead.attribution"),
      more: [t(`inside.method.${method}.about`), t("inside.read.attribution")],
    }),
    h(
      "div",
      { class: "line", role: "radiogroup", "aria-label": t("inside.method") },
      METHODS.map((name) =>
        h(
          "button",
          {
            key: name,
            type: "button",
            role: "radio",
            "aria-checked": String(name === method),
            onClick: () => go({ method: name === METHODS[0] ? null : name }),
          },
          t(`inside.method.${name}`),
        ),
      ),
    ),
    found.value ? h(Shares, { run, found: found.value, method }) : h(Pending, { found }),
  ];
}

function Shares({ run, found, method }) {
  const [source, read] = [found.words.source, found.words.read];
  const most = Math.max(...source.map(Math.abs), ...(read ?? []).map(Math.abs), 1e-9);
  const words = found.sides.source.words;
  const before = found.sides.read?.words;
  const rows = () => [
    ["word", "share"],
    ...words.map((word, i) => [word, source[i]]),
    ...(read ?? []).map((value, i) => [before[i], value]),
  ];
  const scene = () =>
    barScene(
      [...words.map((word, i) => [word, source[i]]), ...(read ?? []).map((value, i) => [before[i], value])].filter(
        ([, value]) => value,
      ),
      most,
    );
  return [
    h(Outputs, { found, run }),
    h(
      "section",
      { class: "panel stack tight shares", "aria-label": t("inside.shares") },
      h(
        "div",
        { class: "line spread" },
        h("h2", {}, t("inside.shares")),
        h(Save, { name: `${run.name} ${method}`, scene, rows }),
      ),
      h(
        "p",
        { class: "shaded as-is", dir: "auto" },
        words.map((word, i) => h(Word, { key: i, word, value: source[i], most })),
      ),
      read?.some((value) => value) &&
        h(
          "p",
          { class: "shaded as-is", dir: "auto" },
          h("span", { class: "small muted" }, t("inside.written"), " "),
          before.map((word, i) => (read[i] ? h(Word, { key: i, word, value: read[i], most }) : null)),
        ),
      h("div", { class: "scroll" }, h(Picture, { key: method, scene: scene(), label: t("inside.shares") })),
      h(
        "p",
        { class: "small muted legend" },
        h("span", { class: "against" }, t("inside.against")),
        h("span", { class: "for" }, t("inside.for")),
      ),
      h(
        "p",
        { class: "small muted" },
        run.predicts !== "number" &&
          t("inside.probability", { share: percent(Math.exp(found.value)), value: fixed(found.value, 3) }),
        found.gap !== null &&
          found.gap !== undefined &&
          ` ${t("inside.gap", { gap: fixed(found.gap, 4), from: fixed(found.baseline, 3) })}`,
      ),
      h(
        "details",
        {},
        h("summary", {}, t("inside.as_table")),
        h(
          "table",
          {},
          h(
            "tbody",
            {},
            words.map((word, i) =>
              h("tr", { key: i }, h("td", {}, word), h("td", { class: "number" }, fixed(source[i], 3))),
            ),
          ),
        ),
      ),
    ),
  ];
}

function Word({ word, value, most }) {
  const share = Math.abs(value) / most;
  const back = mixed(colour("surface"), colour(value < 0 ? "against" : "for"), 0.45 * share);
  return [
    h(
      "span",
      {
        class: value < 0 && share > 0.05 ? "share minus" : "share",
        title: fixed(value, 3),
        style: { "background-color": `rgb(${back.map(Math.round).join(" ")})` },
      },
      word,
    ),
    " ",
  ];
}

/** Which output is explained: a label, or a written token. */
function Outputs({ found, run }) {
  const one = (key, label, current, act) =>
    h("button", { key, type: "button", class: "chip", "aria-pressed": String(current), onClick: act }, label);
  if (found.labels.length && run.task === "classification") {
    const chosen = state.label ?? found.output;
    return h(
      "div",
      { class: "line", role: "group", "aria-label": t("inside.explain") },
      h("span", { class: "label" }, t("inside.explain")),
      found.labels.map((label) => one(label, label, label === chosen, () => go({ label }))),
    );
  }
  const target = found.sides.target ?? (run.task === "language_model" ? found.sides.source : null);
  if (!target) return null;
  const shift = found.sides.target ? 0 : 1; // a language model starts with a token that it does not write
  const tokens = target.tokens.slice(shift);
  const chosen = state.step === undefined ? (shift ? tokens.length - 1 : 0) : Number(state.step);
  return h(
    "div",
    { class: "line tokens", role: "group", "aria-label": t("inside.explain") },
    h("span", { class: "label" }, t("inside.explain")),
    tokens.map((token, i) => one(i, shown(token), i === chosen, () => go({ step: String(i) }))),
  );
}

function barScene(items, most) {
  const line = 24;
  const width = Math.max(Math.min(roomIn(), 680), 240);
  const label = Math.min(14 + Math.max(...items.map(([word]) => widthOf(word, 13)), 1), width / 3);
  const room = width - label - 56; // between the words and the numbers
  const below = Math.max(...items.map(([, value]) => -value), 0) / most;
  const above = Math.max(...items.map(([, value]) => value), 0) / most;
  const unit = room / (below + above || 1);
  const zero = label + below * unit;
  return {
    width,
    height: items.length * line + 16,
    shapes: items.flatMap(([word, value], i) => [
      { kind: "text", x: 0, y: 8 + (i + 0.5) * line, text: cutTo(word, label - 8, 13), size: 13, fill: paint("ink") },
      {
        kind: "rect",
        x: zero + Math.min((unit * value) / most, 0),
        y: 12 + i * line,
        w: Math.abs((unit * value) / most),
        h: line - 8,
        fill: paint(value < 0 ? "against" : "for"),
      },
      {
        kind: "text",
        x: width,
        y: 8 + (i + 0.5) * line,
        text: fixed(value, 3),
        size: 12,
        anchor: "end",
        fill: paint("muted"),
      },
    ]),
  };
}
