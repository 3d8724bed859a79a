// The picture of a chart: series over steps as a scene (scene.js), their smoothing, and the ticks of the axes.
//
//   series: { name, colour, points: [[step, value or null], …], smooth, dash, dots }   the points in the order of steps
//   marks: { step, sign, name, colour, tall }                                          what is to be said of a step

import { paint } from "./scene.js";

const MARGIN = { top: 18, right: 14, bottom: 26, left: 50 };
const SIGN = 12;

const smoothings = new WeakMap();

/** The median of the points up to `width` / 2 steps before and after each, equally far to both sides. It ends where the
 *  steps after a point are not all known yet: what has been drawn once never changes. */
export function smoothed(points, width) {
  if (width < 2 || !points.length) return points;
  if (!smoothings.has(points)) smoothings.set(points, new Map());
  const known = smoothings.get(points);
  if (!known.has(width)) known.set(width, medians(points, width / 2));
  return known.get(width);
}

function medians(points, half) {
  const [first, last] = [points[0][0], points.at(-1)[0]];
  const found = [];
  let [low, high] = [0, 0];
  for (const [step] of points) {
    const reach = Math.min(half, step - first);
    if (step + reach > last) break;
    while (points[low][0] < step - reach) low++;
    while (high < points.length && points[high][0] <= step + reach) high++;
    const near = points
      .slice(low, high)
      .map((point) => point[1])
      .filter(Number.isFinite);
    near.sort((a, b) => a - b);
    const middle = near.length >> 1;
    found.push([step, near.length ? (near.length % 2 ? near[middle] : (near[middle - 1] + near[middle]) / 2) : null]);
  }
  return found;
}

/** What a series draws as its line. */
export const lineOf = (series) => smoothed(series.points, series.smooth ?? 0);

/** The last point at or before a step; null if there is none. */
export function before(points, step) {
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= step) low = middle + 1;
    else high = middle;
  }
  return low ? points[low - 1] : null;
}

/** Where steps and values are in a picture of this size. `range`: first and last step, the same for all charts; `most`:
 *  what no value can exceed. */
export function frameOf({ series, range, log = false, zero = false, most = Infinity }, width, height) {
  const values = series
    .flatMap((one) => one.points.map((point) => point[1]))
    .filter((value) => Number.isFinite(value) && (!log || value > 0));
  let [low, high] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  if (low > high) [low, high] = log ? [0.1, 1] : [0, 1];
  if (zero) low = Math.min(low, 0);
  if (low === high)
    [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) / 10, high + (Math.abs(high) || 1) / 10];
  high = Math.min(high, most);
  const scale = log ? Math.log10 : (value) => value;
  const pad = (scale(high) - scale(low)) * 0.05;
  const [bottom, top] = [scale(low) - (zero && low === 0 ? 0 : pad), scale(high) + pad];
  const [x0, x1] = [range[0], Math.max(range[1], range[0] + 1)];
  const inner = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  return {
    ...inner,
    x: (step) => inner.left + ((step - x0) / (x1 - x0)) * (inner.right - inner.left),
    y: (value) => inner.bottom - ((scale(value) - bottom) / (top - bottom)) * (inner.bottom - inner.top),
    step: (x) => x0 + ((x - inner.left) / (inner.right - inner.left)) * (x1 - x0),
    yTicks: (log ? logTicks(bottom, top) : ticks(bottom, top, 5)).filter((value) => value <= most),
    xTicks: ticks(x0, x1, width < 420 ? 4 : 6).filter(Number.isInteger),
  };
}

/** Round numbers from low to high, about so many. */
export function ticks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 5, 10].find((n) => n * power >= rough * 0.999) * power;
  const found = [];
  for (let n = Math.ceil(low / size - 1e-9); n * size <= high + size * 1e-9; n++)
    found.push(Number((n * size).toPrecision(12)));
  return found;
}

/** 1, 2, 5, 10, … between two powers of ten; rounder numbers only if there are many. */
function logTicks(low, high) {
  const digits = [
    [3, [1]],
    [1, [1, 2, 5]],
    [0.4, [1, 2, 3, 5, 7]],
  ].find(([wide]) => high - low > wide)?.[1] ?? [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const found = [];
  for (let power = Math.floor(low); power <= high; power++)
    found.push(...digits.map((digit) => Number((digit * 10 ** power).toPrecision(3))));
  return found.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high);
}

/** A number as an axis or a read-out shows it: three digits, thousands as the language shortens them. */
export function short(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size && size < 0.0001) return value.toExponential(1).replace(".0e", "e").replace("-", "−").replace("e-", "e−");
  const options =
    size >= 10_000
      ? { notation: "compact", maximumSignificantDigits: 3 }
      : { maximumSignificantDigits: size >= 1000 ? 4 : 3 };
  return new Intl.NumberFormat(document.documentElement.lang || "en", options).format(value);
}

/** The chart as a scene. */
export function chartScene(chart, width, height) {
  const frame = frameOf(chart, width, height);
  const [muted, line] = [paint("muted"), paint("line")];
  const shapes = [];
  for (const value of frame.yTicks) {
    const y = Math.round(frame.y(value)) + 0.5;
    shapes.push({ kind: "line", x1: frame.left, x2: frame.right, y1: y, y2: y, stroke: line });
    shapes.push({ kind: "text", x: frame.left - 8, y, text: short(value), size: 12, anchor: "end", fill: muted });
  }
  for (const step of frame.xTicks) {
    const [x, text] = [frame.x(step), short(step)];
    const anchor = x + 4 * text.length > width ? "end" : "middle"; // nothing is cut off at the right
    shapes.push({
      kind: "text",
      x: anchor === "end" ? width - 2 : x,
      y: frame.bottom + 15,
      text,
      size: 12,
      anchor,
      fill: muted,
    });
  }
  for (const mark of chart.marks ?? []) shapes.push(...markShapes(mark, frame));
  const faint = chart.series.filter((one) => one.smooth).length > 1 ? 0.15 : 0.28;
  for (const one of chart.series) shapes.push(...seriesShapes(one, frame, chart.log, faint));
  return { width, height, shapes };
}

function markShapes({ step, sign, colour, tall }, frame) {
  const x = Math.round(frame.x(step)) + 0.5;
  if (x < frame.left - 1 || x > frame.right + 1) return [];
  const stroke = paint(colour);
  return [
    ...(tall
      ? [
          {
            kind: "path",
            points: [
              [x, frame.top - 2],
              [x, frame.bottom],
            ],
            stroke,
            dash: [3, 3],
            opacity: 0.7,
          },
        ]
      : []),
    { kind: "text", x, y: frame.top - 10, text: sign, size: tall ? SIGN : SIGN - 3, anchor: "middle", fill: stroke },
  ];
}

function seriesShapes(series, frame, log, faint) {
  const colour = paint(series.colour);
  const place = (points) =>
    points.map(([step, value]) =>
      Number.isFinite(value) && (!log || value > 0) ? [frame.x(step), frame.y(value)] : null,
    );
  const shapes = [];
  const line = lineOf(series);
  if (series.smooth)
    shapes.push({ kind: "path", points: decimated(place(series.points)), stroke: colour, opacity: faint });
  const placed = place(line);
  shapes.push({
    kind: "path",
    points: decimated(placed),
    stroke: colour,
    thick: 1.75,
    dash: series.dash ? [5, 4] : [],
  });
  if (series.dots || placed.length === 1) {
    const inside = paint("surface");
    placed.forEach((point, i) => {
      const ring = line[i][0] === series.chosen;
      if (point)
        shapes.push({
          kind: "dot",
          x: point[0],
          y: point[1],
          r: ring ? 5 : 3,
          fill: ring ? inside : colour,
          stroke: colour,
          thick: ring ? 2.5 : 1,
        });
    });
  }
  return shapes;
}

/** At most four points for each pixel column: the first, the highest, the lowest and the last. */
function decimated(points) {
  const found = [];
  for (let start = 0, end; start < points.length; start = end) {
    const column = points[start] && Math.floor(points[start][0]);
    for (end = start + 1; end < points.length && points[end] && points[start] && Math.floor(points[end][0]) === column;)
      end++;
    if (end - start <= 4) {
      found.push(...points.slice(start, end));
      continue;
    }
    const inside = points.slice(start, end);
    const heights = inside.map((point) => point[1]);
    const kept = new Set([
      0,
      heights.indexOf(Math.min(...heights)),
      heights.indexOf(Math.max(...heights)),
      inside.length - 1,
    ]);
    found.push(...[...kept].sort((a, b) => a - b).map((i) => inside[i]));
  }
  return found;
}

/** The points on screen as rows of a table: raw values, and what the line shows where that is another number. */
export function rowsOf({ series }) {
  const columns = series.flatMap((one) => {
    const line = lineOf(one);
    const raw = [one.name, new Map(one.points)];
    return line === one.points ? [raw] : [raw, [`${one.name} (${one.smoothing ?? one.smooth})`, new Map(line)]];
  });
  const steps = [...new Set(series.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);
  return [
    ["step", ...columns.map(([name]) => name)],
    ...steps.map((step) => [step, ...columns.map(([, values]) => values.get(step) ?? "")]),
  ];
}
