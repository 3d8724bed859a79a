import { h } from "../view.js";
import { t } from "../words.js";

export const room = { name: "inside", title: "inside.title", fits: () => true, view: (run) => h("h1", {}, t("inside.title"), " ", run.name) };
