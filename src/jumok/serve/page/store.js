// The one state of the page. What a colleague needs to see the same view is kept in the URL, after the #; language and
// theme are personal and stay in this browser, unless a link names them.

import { locale } from "./words.js";

const PERSONAL = { lang: ["en", "ko"], theme: ["system", "light", "dark"] };
const URL_DELAY = 250; // ms: browsers refuse to change the address at every key stroke

/** Texts by name: room, run, text, layer, … */
export const state = {};

let draw = () => {};
let timer = 0;

/** Show the page anew. */
export function redraw() {
  draw();
}

/** Read the state from the URL, and follow the back button. */
export function begin(shown) {
  draw = shown;
  read();
  addEventListener("hashchange", () => {
    read();
    draw();
  });
}

/** Change the state and show it. `replace`: without a step for the back button, as for text that is being typed.
 *  A value of null or "" takes a key away. */
export function go(changes, { replace = false } = {}) {
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") delete state[key];
    else state[key] = String(value);
    if (key in PERSONAL) remember(key, state[key]);
  }
  clearTimeout(timer);
  if (replace) timer = setTimeout(() => history.replaceState(null, "", address()), URL_DELAY);
  else if (address() !== (location.hash || "#")) history.pushState(null, "", address());
  draw();
}

/** The address of what is shown. */
export function address(changes = {}) {
  const found = new URLSearchParams();
  for (const [key, value] of Object.entries({ ...state, ...changes })) {
    if (!(key in PERSONAL) && value) found.set(key, String(value).toWellFormed());
  }
  return `#${found}`;
}

function read() {
  for (const key of Object.keys(state)) delete state[key];
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) state[key] = value;
  for (const [key, values] of Object.entries(PERSONAL)) {
    const fallback = key === "lang" ? locale() : values[0];
    state[key] = [state[key], localStorage.getItem(`jumok.${key}`), fallback].find((value) => values.includes(value));
  }
}

function remember(key, value) {
  if (PERSONAL[key].includes(value)) localStorage.setItem(`jumok.${key}`, value);
}
