// A chart on a canvas: series over steps. All charts share one cursor, moved by pointer, touch or arrow keys; what the
// lines are at it is read out in the legend. A table stands behind every chart.

import { Fold, isPhone } from "./fold.js";
import { before, chartScene, frameOf, lineOf, rowsOf, short } from "./plot.js";
import { Save } from "./save.js";
import { drawOn, paint } from "./scene.js";
import { redraw } from "./store.js";
import { h } from "./view.js";
import { number, t } from "./words.js";

const TABLE_ROWS = 30;
const shown = new Map(); // the charts in the document, by key
let cursor = null; // a step

/** Let all charts point at a step; at none if it is null. */
export function point(step) {
  cursor = step;
  for (const chart of shown.values()) chart.point();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());

/** `chart`: { series, marks, range, log, zero } as in plot.js, and { title, about, table }: texts. */
export function Chart({ key, name, chart, controls }) {
  const size = () => shown.get(key)?.size() ?? [640, 240];
  const how = [
    h("p", { class: "small muted" }, chart.about),
    h(Save, { name: `${name} ${key}`, scene: () => chartScene(chart, ...size()), rows: () => rowsOf(chart) }),
  ];
  return h(
    "figure",
    { key, class: "chart panel", id: `chart-${key}` },
    h("figcaption", { class: "line spread" }, h("h2", {}, chart.title), !isPhone() && controls),
    h("div", { class: "drawn", setup: (element, { data }) => drawn(element, key, data), data: chart }),
    !isPhone() && h("div", { class: "line spread under" }, how),
    h(Fold, {
      name: `chart ${key}`,
      kind: "behind small",
      summary: isPhone() ? t("training.more", { name: chart.title }) : chart.table,
      content: () => [isPhone() && [controls, h("div", { class: "under" }, how)], h(Rows, { chart })],
    }),
  );
}

/** Some of the rows, the last one among them. */
function Rows({ chart }) {
  const [head, ...rows] = rowsOf(chart);
  const every = Math.max(Math.ceil(rows.length / TABLE_ROWS), 1);
  const some = rows.filter((_, i) => i === rows.length - 1 || i % every === 0);
  const cell = (value) => (typeof value === "number" ? short(value) : value);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": chart.table },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((text, i) => h("th", { class: "number", scope: "col" }, i ? text : t("training.step"))),
        ),
      ),
      h(
        "tbody",
        {},
        some.map((row) =>
          h(
            "tr",
            { key: row[0] },
            h("th", { class: "number", scope: "row" }, number(row[0])),
            row.slice(1).map((value) => h("td", { class: "number" }, cell(value))),
          ),
        ),
      ),
    ),
  );
}

/** Legend and plot; both draw themselves, since the cursor moves more often than the page changes. */
function drawn(root, key, chart) {
  const legend = add(root, "ul", "legend");
  const plot = add(root, "div", "plot");
  const [base, over] = [add(plot, "canvas"), add(plot, "canvas", "over")];
  plot.tabIndex = 0;
  plot.setAttribute("role", "slider");
  const size = () => [Math.max(plot.clientWidth, 120), Math.max(plot.clientHeight, 120)];

  const at = () => Math.min(Math.max(cursor ?? chart.range[1], chart.range[0]), chart.range[1]);

  const draw = () => {
    plot.setAttribute("aria-label", `${chart.title}. ${chart.about ?? ""}`);
    plot.setAttribute("aria-valuemin", chart.range[0]);
    plot.setAttribute("aria-valuemax", chart.range[1]);
    plot.setAttribute("aria-valuenow", at());
    if (!plot.clientWidth) return; // not in the document yet
    drawOn(base, chartScene(chart, ...size()));
    entries();
    pointed();
  };

  const entries = () => {
    legend.replaceChildren();
    for (const series of chart.series) {
      const item = add(legend, "li");
      add(item, "span", series.dash ? "key dashed" : "key").style.setProperty("--colour", `var(--${series.colour})`);
      add(item, "span").textContent = series.name;
      add(item, "output", "number");
    }
    const said = [...new Map((chart.marks ?? []).map((mark) => [mark.name, mark])).values()];
    for (const mark of said) {
      const item = add(legend, "li", "mark");
      const sign = add(item, "span", "sign");
      sign.textContent = mark.sign;
      sign.style.setProperty("--colour", `var(--${mark.colour})`);
      add(item, "span").textContent = mark.name;
    }
    add(legend, "li", "at");
  };

  const pointed = () => {
    const frame = frameOf(chart, ...size());
    const step = at();
    const scale = devicePixelRatio || 1;
    Object.assign(over, { width: base.width, height: base.height });
    over.style.width = base.style.width;
    const pen = over.getContext("2d");
    pen.scale(scale, scale);
    if (cursor !== null) {
      pen.fillStyle = paint("muted");
      pen.fillRect(Math.round(frame.x(step)), frame.top, 1, frame.bottom - frame.top);
    }
    const texts = chart.series.map((series, i) => {
      const found = before(lineOf(series), step);
      if (cursor !== null && found && Number.isFinite(found[1]) && (!chart.log || found[1] > 0)) {
        pen.beginPath();
        pen.arc(frame.x(found[0]), frame.y(found[1]), 4, 0, 2 * Math.PI);
        pen.fillStyle = paint(series.colour);
        pen.fill();
      }
      return (legend.children[i].lastChild.textContent = found ? short(found[1]) : "–");
    });
    const where = t("training.at_step", { step });
    legend.lastChild.textContent = where;
    plot.setAttribute("aria-valuenow", step);
    plot.setAttribute(
      "aria-valuetext",
      [where, ...chart.series.map((series, i) => `${series.name} ${texts[i]}`)].join(", "),
    );
  };

  const follow = (event) => {
    const frame = frameOf(chart, ...size());
    const wanted = frame.step(event.clientX - plot.getBoundingClientRect().left);
    const longest = chart.series.reduce((a, b) => (b.points.length > a.points.length ? b : a), { points: [] });
    point(before(longest.points, Math.max(wanted, chart.range[0]))?.[0] ?? null);
  };
  const keys = (event) => {
    const width = Math.max(Math.round((chart.range[1] - chart.range[0]) / 100), 1);
    const from = cursor ?? chart.range[1];
    const to = {
      ArrowLeft: from - width,
      ArrowDown: from - width,
      ArrowRight: from + width,
      ArrowUp: from + width,
      PageDown: from - 10 * width,
      PageUp: from + 10 * width,
      Home: chart.range[0],
      End: chart.range[1],
      Escape: null,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    point(to === null ? null : Math.min(Math.max(to, chart.range[0]), chart.range[1]));
  };
  plot.addEventListener("pointermove", follow);
  plot.addEventListener("pointerdown", follow);
  plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && point(null));
  plot.addEventListener("keydown", keys);
  const sizes = new ResizeObserver(draw);
  sizes.observe(plot);
  shown.set(key, { point: pointed, size });
  draw();
  return {
    update(props) {
      chart = props.data;
      draw();
    },
    destroy() {
      sizes.disconnect();
      shown.delete(key);
    },
  };
}

function add(parent, tag, name = "") {
  const element = document.createElement(tag);
  if (name) element.className = name;
  return parent.appendChild(element);
}
