import { h } from "../view.js";
import { t } from "../words.js";

export const room = { name: "use", title: "use.title", fits: () => true, view: (run) => h("h1", {}, t("use.title"), " ", run.name) };
