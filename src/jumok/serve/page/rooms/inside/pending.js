// An answer that is not there yet, or never will be.

import { h } from "../../view.js";
import { t } from "../../words.js";
import { retry } from "./data.js";

export function Pending({ found }) {
  if (!found.problem) return h("p", { class: "muted", role: "status" }, t("inside.computing"));
  return h(
    "div",
    { class: "note error line", role: "alert" },
    h("span", { lang: "en" }, found.problem.what, " ", found.problem.hint),
    h("button", { type: "button", onClick: retry }, t("inside.again")),
  );
}
