import { h } from "../view.js";
import { t } from "../words.js";

export const room = { name: "results", title: "results.title", fits: () => true, view: (run) => h("h1", {}, t("results.title"), " ", run.name) };
