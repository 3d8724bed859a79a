// What the server knows of a model's inside, asked for once and kept while it is looked at.

import { bytes, get, post } from "../../api.js";
import { redraw } from "../../store.js";

const MOST = 24;
const kept = new Map();

/** An answer by its key: {value, problem}, both null while it is under way. */
function looked(key, load) {
  const known = kept.get(key);
  if (known) return known;
  const found = { value: null, problem: null };
  kept.set(key, found);
  if (kept.size > MOST) kept.delete(kept.keys().next().value);
  load()
    .then(
      (value) => (found.value = value),
      (problem) => (found.problem = problem),
    )
    .finally(redraw);
  return found;
}

const path = (run, what) => `/api/runs/${encodeURIComponent(run.name)}/${what}`;

/** The JSON of a question about a text. */
export const asked = (run, what, body) =>
  looked(`${run.name} ${what} ${JSON.stringify(body)}`, () => post(path(run, what), body));

export const partsOf = (run) => looked(`${run.name} parts`, () => get(path(run, "inside")));

/** A message with bytes: {head, body}. `body` null asks by GET. */
export const packed = (run, what, body) =>
  looked(`${run.name} ${what} ${JSON.stringify(body)}`, async () => opened(await bytes(path(run, what), body)));

function opened(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  return { head, body: new Uint8Array(buffer, 4 + size) };
}

/** Try again what failed. */
export function retry() {
  for (const [key, found] of kept) if (found.problem) kept.delete(key);
  redraw();
}

/** How a token is shown: word marks as a thin space, the end as a sign. */
export function shown(token) {
  if (token === "</s>") return "⏎";
  if (token === "<pad>") return "▸";
  const text = token.replace(/^##/, "").replace(/^[▁Ġ]/, "").replace(/Ċ/g, "⏎");
  return text || "␣";
}

/** The rows or columns of a map: label, the tokens that each stands for, and what is hidden. */
export function units(side, { grain, special }) {
  if (!side) return { labels: [""], groups: [[0]], hidden: [] };
  const labels = [];
  const groups = [];
  const hidden = [];
  side.tokens.forEach((token, i) => {
    const word = side.word[i];
    if (word < 0) {
      if (special) hidden.push(i);
      else {
        labels.push(shown(token));
        groups.push([i]);
      }
    } else if (grain === "words" && i && side.word[i - 1] === word) {
      groups.at(-1).push(i);
    } else {
      labels.push(grain === "words" ? side.words[word] : shown(token));
      groups.push([i]);
    }
  });
  return { labels, groups, hidden };
}
