// The frame of the page: which run, which room, which language; what is wrong with the server.

import { connection, get, unlock } from "./api.js";
import { room as inside } from "./rooms/inside.js";
import { room as results } from "./rooms/results.js";
import { metricName } from "./rooms/results/data.js";
import { room as training } from "./rooms/training.js";
import { room as use } from "./rooms/use.js";
import { address, begin, go, redraw, state } from "./store.js";
import { h, mount } from "./view.js";
import { languageName, speak, t } from "./words.js";

const ROOMS = [use, inside, training, results];
const LOOK = 4000; // ms between looks for new runs
const runs = { known: null, facts: new Map(), problem: null };

async function start() {
  begin(() => show());
  await speak(state.lang);
  const draw = mount(document.getElementById("page"), Page);
  let spoken = state.lang;
  show = () => {
    if (state.lang === spoken) return draw();
    spoken = state.lang;
    speak(spoken).then(draw);
  };
  addEventListener("jumok:back", look);
  await look();
  setInterval(() => document.hidden || connection.lost || look(), LOOK);
}
let show = () => {};

/** Which runs there are, and what the chosen one can do. */
async function look() {
  try {
    runs.known = (await get("/api/runs")).runs;
    runs.problem = null;
    await learn(chosen());
  } catch (problem) {
    runs.problem = problem;
  }
  redraw();
}

async function learn(run) {
  if (!run?.usable || isWatched(run) || runs.facts.has(run.name)) return;
  runs.facts.set(run.name, null);
  try {
    runs.facts.set(run.name, await get(`/api/runs/${encodeURIComponent(run.name)}`));
  } catch (problem) {
    setTimeout(() => runs.facts.delete(run.name), LOOK); // not again at once: what fails is drawn, and drawing asks
    throw problem;
  }
}

/** Whether a run is only watched while it is trained: nobody needs its model in the server's memory yet. */
const isWatched = (run) => run.checkpoint && ![use.name, inside.name].includes(state.room);

/** The run of the address, or the newest; with what is known of it. */
function chosen() {
  if (!runs.known?.length) return null;
  const found = state.run ? runs.known.find((run) => run.name === state.run) : runs.known[0];
  return found ? { ...runs.facts.get(found.name), checkpoint: null, ...found } : null;
}

function Page() {
  document.documentElement.dataset.theme = state.theme;
  const run = chosen();
  const rooms = run ? ROOMS.filter((room) => room.fits(run)) : [];
  const first = run?.checkpoint ? training : rooms[0]; // what is not finished is watched first
  const room = rooms.find((one) => one.name === state.room) ?? first;
  document.title = [run?.name, "jumok"].filter(Boolean).join(" · ");
  return [
    h("a", { class: "skip", href: "#main", onClick: skip }, t("shell.skip")),
    h(Header, { run, rooms, room }),
    connection.lost && h("p", { class: "banner", role: "status" }, t("shell.lost")),
    connection.locked && h(Key, {}),
    run?.checkpoint && (room === use || room === inside) && h(Unfinished, run),
    h("main", { id: "main", tabindex: "-1" }, Inside(run, room)),
    h("footer", {}, h("span", {}, t("shell.footer")), h("span", { class: "print-only" }, location.href)),
  ];
}

function Inside(run, room) {
  if (runs.problem && !connection.lost && !connection.locked && !runs.known) {
    return h("p", { class: "empty", role: "alert" }, runs.problem.what);
  }
  if (!runs.known) return h("p", { class: "empty", role: "status" }, t("shell.loading"));
  if (!run && state.run && state.room === training.name) return training.waiting(state.run);
  if (!runs.known.length)
    return h("p", { class: "empty" }, t("shell.no_runs"), h("code", {}, "jumok train recipes/quickstart.toml"));
  if (!run) return h("p", { class: "empty", role: "alert" }, t("shell.no_such_run", { run: state.run }));
  if (run.usable && !isWatched(run) && !runs.facts.get(run.name)) {
    learn(run).then(redraw, redraw);
    if (room === use || room === inside) return h("p", { class: "empty", role: "status" }, t("shell.loading_model"));
  }
  return room
    ? h("div", { key: `${room.name} ${run.name}`, class: `room ${room.name}` }, room.view(run, state, runs.known))
    : null;
}

/** What is used is the best checkpoint so far. */
function Unfinished({ checkpoint }) {
  const { step, steps, metric, score } = checkpoint;
  const scored = metric && score != null && t("shell.unfinished.score", { metric: metricName(metric), score });
  return h("p", { class: "banner", role: "status" }, t("shell.unfinished", { step, steps }), scored && ` ${scored}`);
}

function Header({ run, rooms, room }) {
  return h(
    "header",
    { class: "top" },
    h(
      "a",
      { class: "brand", href: "#", "aria-label": "jumok" },
      "jumok",
      h("span", { lang: "ko", "aria-hidden": "true" }, "주목"),
    ),
    h(
      "nav",
      { "aria-label": t("shell.rooms") },
      rooms.map((one) =>
        h(
          "a",
          { key: one.name, href: address({ room: one.name }), "aria-current": one === room ? "page" : null },
          t(one.title),
        ),
      ),
    ),
    h(
      "div",
      { class: "choices" },
      runs.known?.length > 0 && h(RunMenu, { run }),
      h(Menu, {
        label: t("shell.language"),
        value: state.lang,
        options: ["en", "ko"].map((code) => [code, code === "en" ? "English" : "한국어"]),
        onPick: (lang) => go({ lang }, { replace: true }),
      }),
      h(Menu, {
        label: t("shell.theme"),
        value: state.theme,
        options: ["system", "light", "dark"].map((theme) => [theme, t(`shell.theme.${theme}`)]),
        onPick: (theme) => go({ theme }, { replace: true }),
      }),
    ),
  );
}

function RunMenu({ run }) {
  const about = ({ source, target }) => {
    if (!source || !target) return "";
    return ` · ${languageName(source)}${target === source ? "" : ` → ${languageName(target)}`}`;
  };
  return h(Menu, {
    label: t("shell.run"),
    class: "run",
    value: run?.name ?? "",
    options: [...(run ? [] : [["", t("shell.choose")]]), ...runs.known.map((one) => [one.name, one.name + about(one)])],
    onPick: (name) => {
      go({
        ...Object.fromEntries(Object.keys(state).map((key) => [key, null])),
        lang: state.lang,
        theme: state.theme,
        room: state.room,
        run: name,
      });
      look();
    },
  });
}

/** A native select: it works with every keyboard, reader and phone. */
function Menu({ label, value, options, onPick, class: kind = "" }) {
  return h(
    "label",
    { class: `menu ${kind}` },
    h("span", { class: "visually-hidden" }, label),
    h(
      "select",
      { value, onChange: (event) => onPick(event.target.value) },
      options.map(([name, text]) => h("option", { key: name, value: name }, text)),
    ),
  );
}

function Key() {
  const submit = (event) => {
    event.preventDefault();
    unlock(new FormData(event.target).get("key"));
    look();
  };
  return h(
    "form",
    { class: "banner", onSubmit: submit },
    h(
      "label",
      {},
      t("shell.key"),
      " ",
      h("input", { name: "key", type: "password", autocomplete: "off", required: true }),
    ),
    h("button", {}, t("shell.unlock")),
  );
}

function skip(event) {
  event.preventDefault(); // the address after the # is the state
  document.getElementById("main").focus();
}

start();
