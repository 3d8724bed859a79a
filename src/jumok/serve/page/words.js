// What the page says, in English and Korean: words/ROOM.LANGUAGE.json holds texts by key. A text has {names} in it; one
// that depends on a number {n} is an object by plural category.

const ROOMS = ["shell", "use", "inside", "training", "results"];
const loaded = {};
let current = "en";

/** The language the reader's browser prefers. */
export const locale = () => (navigator.language.startsWith("ko") ? "ko" : "en");

/** Fetch a language, once, and speak it. */
export async function speak(language) {
  loaded[language] ??= Object.assign({}, ...(await Promise.all(ROOMS.map((room) => words(room, language)))));
  current = language;
  document.documentElement.lang = language;
}

async function words(room, language) {
  const answer = await fetch(new URL(`words/${room}.${language}.json`, import.meta.url));
  const texts = await answer.json();
  return Object.fromEntries(Object.entries(texts).map(([key, text]) => [`${room}.${key}`, text]));
}

/** The text of a key, such as "use.copy", with its {names} filled in; numbers as the language writes them. */
export function t(key, values = {}) {
  let text = loaded[current]?.[key] ?? key;
  if (typeof text === "object") text = text[new Intl.PluralRules(current).select(values.n)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return typeof value === "number" ? number(value) : String(value ?? whole);
  });
}

/** A number in the reader's language, with at most so many decimals. */
export const number = (value, digits = 2) => written(value, { maximumFractionDigits: digits });

/** A number with exactly so many decimals, for columns. */
export const fixed = (value, digits = 2) =>
  written(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });

const written = (value, how) =>
  new Intl.NumberFormat(current, { ...how, signDisplay: "negative" }).format(value).replace("-", "−");

/** The name of a language, such as "Korean" or "한국어" of "ko". */
export function languageName(code) {
  try {
    return new Intl.DisplayNames([current], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

/** How long ago, or how long still: "3 minutes". */
export function duration(seconds) {
  const [unit, size] = [
    ["hour", 3600],
    ["minute", 60],
    ["second", 1],
  ].find(([, size]) => seconds >= size * 1.5) ?? ["second", 1];
  return new Intl.NumberFormat(current, { style: "unit", unit, unitDisplay: "long" }).format(
    Math.round(seconds / size),
  );
}
