// What is folded away until somebody asks for it. What a reader has opened or closed stays so while the page is open.

import { redraw } from "./store.js";
import { h } from "./view.js";

const phone = matchMedia("(max-width: 44rem)");
phone.addEventListener("change", () => redraw());
const chosen = new Map(); // by name, whether it is open

/** Whether there is room for one thing at a time only. */
export const isPhone = () => phone.matches;

/** `content` makes what is inside, once it is open. */
export function Fold({ name, summary, content, open = false, kind = "" }) {
  const is = chosen.get(name) ?? open;
  const toggle = (event) => {
    if (event.target.open === is) return;
    chosen.set(name, event.target.open);
    redraw();
  };
  return h(
    "details",
    { key: `fold ${name}`, class: `fold ${kind}`, open: is, onToggle: toggle },
    h("summary", {}, summary),
    is && content(),
  );
}
