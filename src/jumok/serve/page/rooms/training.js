import { h } from "../view.js";
import { t } from "../words.js";

export const room = { name: "training", title: "training.title", fits: () => true, view: (run) => h("h1", {}, t("training.title"), " ", run.name) };
