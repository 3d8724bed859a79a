// What is seen, in one sentence; how to read it, for those who ask.

import { Fold } from "../../fold.js";
import { h } from "../../view.js";
import { t } from "../../words.js";

export function Lead({ says, more }) {
  const content = () => more.map((text) => h("p", {}, text));
  return h(
    "div",
    { class: "lead" },
    h("p", {}, says),
    h(Fold, { name: "how to read", kind: "small", summary: t("inside.how_to_read"), content }),
  );
}
