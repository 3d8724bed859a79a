// Requests to the server that the page came from. Failures are `Problem`s with the server's own words.

import { redraw } from "./store.js";

/** What the page knows of its server: whether it answers, and whether it wants a key. */
export const connection = { lost: false, locked: false };

export class Problem extends Error {
  constructor(status, { code = "", what = "", hint = "" } = {}) {
    super(what || `HTTP ${status}`);
    Object.assign(this, { status, code, what: what || `HTTP ${status}`, hint });
  }
}

const KEY = "jumok.key";
const RETRY = 1000; // ms between looks whether a lost server is back
let token = null;

/** JSON of a GET. */
export const get = async (path, { signal } = {}) => (await ask(path, { signal })).json();

/** JSON of a POST of JSON. */
export const post = async (path, body, { signal } = {}) => (await ask(path, sending(body, signal))).json();

/** The bytes of an answer: of a GET, or of a POST if there is a body. */
export const bytes = async (path, body, { signal } = {}) =>
  (await ask(path, body === undefined ? { signal } : sending(body, signal))).arrayBuffer();

/** The answer itself, to be read as it comes. */
export const stream = (path, body, { signal } = {}) => ask(path, sending(body, signal));

/** A POST that changes something, such as stopping a training: it carries the token of this page. */
export async function act(path, body = {}) {
  token ??= (await get("/api/session")).token;
  const asked = sending(body);
  asked.headers["x-jumok-token"] = token;
  return (await ask(path, asked)).json();
}

/** Use this key from now on. */
export function unlock(key) {
  sessionStorage.setItem(KEY, key);
  connection.locked = false;
  redraw();
}

function sending(body, signal) {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal };
}

async function ask(path, options) {
  const key = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lose();
    throw new Problem(0, { code: "page.lost", what: error.message });
  }
  if (answer.ok) return answer;
  if (answer.status === 401) {
    connection.locked = true;
    redraw();
  }
  const said = await answer.json().catch(() => ({}));
  throw new Problem(answer.status, typeof said.error === "object" ? said.error : { what: said.error });
}

/** The server does not answer: look until it does. */
function lose() {
  if (connection.lost) return;
  connection.lost = true;
  token = null; // another process has another one
  redraw();
  const look = setInterval(async () => {
    const back = await fetch("/health").then(
      (answer) => answer.ok,
      () => false,
    );
    if (!back) return;
    clearInterval(look);
    connection.lost = false;
    dispatchEvent(new Event("jumok:back"));
    redraw();
  }, RETRY);
}
