// Use a run: what fits its task.

import { h } from "../view.js";
import { t } from "../words.js";
import { Ask, Choose } from "./use/answer.js";
import { Chat } from "./use/chat.js";
import { Classify } from "./use/classify.js";
import { Encode } from "./use/fill.js";
import { Generate } from "./use/generate.js";
import { Relate, Tag } from "./use/spans.js";
import { Translate } from "./use/translate.js";

const PARTS = {
  translation: (run) => (run.source && run.source === run.target ? Chat : Translate),
  classification: () => Classify,
  tagging: () => Tag,
  relation: () => Relate,
  answering: () => Ask,
  choice: () => Choose,
  language_model: () => Generate,
  pretraining: () => Encode,
  embedding: () => Encode,
};

const style = document.createElement("link");
Object.assign(style, { rel: "stylesheet", href: new URL("use/use.css", import.meta.url) });
document.head.append(style);

function view(run) {
  const part = PARTS[run.task]?.(run);
  if (!part) return h("p", { class: "empty" }, t("use.unknown", { task: run.task ?? "" }));
  const name = part === Chat ? "chat" : run.predicts === "number" ? "number" : run.task;
  return [
    h(
      "div",
      { class: "stack tight" },
      h("h1", {}, t(`use.heading.${name}`)),
      run.description && h("p", { class: "muted", lang: "" }, run.description),
    ),
    h(part, { run }),
  ];
}

export const room = { name: "use", title: "use.title", fits: (run) => run.usable !== false, view: (run) => view(run) };
