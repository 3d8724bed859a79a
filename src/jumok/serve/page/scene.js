// A picture as a list of shapes, drawn on a canvas, as SVG in the page, or as a file: the same everywhere.
//
//   { width, height, shapes: [{ kind: "rect" | "text" | "line" | "path" | "dot" | "cells", … }] }
//   path: { points: [[x, y] or null where it is interrupted], stroke, thick, dash, opacity }
//   cells: { x, y, columns, rows, size, values (0 to 1, row by row) }: colours from paper to heat; with `signed`, values
//   from -1 to 1 between the colours of against and for

import { h } from "./view.js";

const probe = document.createElement("span");
probe.hidden = true;

/** A colour of the style sheet as [red, green, blue]. */
export function colour(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe)
    .color.match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);
}

const css = (rgb) => `rgb(${rgb.map(Math.round).join(" ")})`;
export const paint = (name) => css(colour(name));

/** A colour between two. */
export const mixed = (a, b, share) => a.map((from, i) => from + (b[i] - from) * share);

const FONT = "system-ui, 'Noto Sans', 'Noto Sans KR', 'NanumGothic', sans-serif";
const measure = document.createElement("canvas").getContext("2d");

/** How wide a text is, in pixels. */
export function widthOf(text, size) {
  measure.font = `400 ${size}px ${FONT}`;
  return measure.measureText(text).width;
}

/** A text that is no wider than this. */
export function cutTo(text, width, size) {
  if (widthOf(text, size) <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && widthOf(`${letters.join("")}…`, size) > width) letters.pop();
  return `${letters.join("")}…`;
}

/** How wide a picture in a panel can be. */
export function roomIn() {
  const main = document.getElementById("main");
  const phone = matchMedia("(max-width: 44rem)").matches;
  return (main?.clientWidth ?? 1200) - (phone ? 66 : 92);
}

/** The colour of a cell's value. */
function shades({ signed }) {
  const paper = colour("surface");
  if (signed) {
    const [against, forIt] = [colour("against"), colour("for")];
    return (value) => mixed(paper, value < 0 ? against : forIt, Math.min(Math.abs(value), 1));
  }
  const heat = colour("heat");
  return (value) => mixed(paper, heat, Math.min(Math.sqrt(value), 1)); // the root: small weights stay visible
}

export function drawOn(canvas, scene, scale = devicePixelRatio || 1) {
  canvas.width = Math.ceil(scene.width * scale);
  canvas.height = Math.ceil(scene.height * scale);
  canvas.style.width = `${scene.width}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.fillStyle = paint("surface");
  pen.fillRect(0, 0, scene.width, scene.height);
  for (const shape of scene.shapes) DRAW[shape.kind](pen, shape);
}

const DRAW = {
  rect(pen, s) {
    pen.globalAlpha = s.opacity ?? 1;
    if (s.fill) {
      pen.fillStyle = s.fill;
      pen.fillRect(s.x, s.y, s.w, s.h);
    }
    if (s.stroke) {
      pen.strokeStyle = s.stroke;
      pen.lineWidth = s.thick ?? 1;
      pen.strokeRect(s.x, s.y, s.w, s.h);
    }
    pen.globalAlpha = 1;
  },
  text(pen, s) {
    pen.save();
    pen.translate(s.x, s.y);
    if (s.turn) pen.rotate((s.turn * Math.PI) / 180);
    pen.font = `${s.bold ? 600 : 400} ${s.size}px ${FONT}`;
    pen.fillStyle = s.fill;
    pen.textAlign = s.anchor === "middle" ? "center" : (s.anchor ?? "start");
    pen.textBaseline = "middle";
    pen.fillText(s.text, 0, 0);
    pen.restore();
  },
  line(pen, s) {
    pen.globalAlpha = s.opacity ?? 1;
    pen.strokeStyle = s.stroke;
    pen.lineWidth = s.thick ?? 1;
    pen.beginPath();
    pen.moveTo(s.x1, s.y1);
    const bend = (s.x2 - s.x1) / 2;
    if (s.curved) pen.bezierCurveTo(s.x1 + bend, s.y1, s.x2 - bend, s.y2, s.x2, s.y2);
    else pen.lineTo(s.x2, s.y2);
    pen.stroke();
    pen.globalAlpha = 1;
  },
  path(pen, s) {
    pen.globalAlpha = s.opacity ?? 1;
    pen.strokeStyle = s.stroke;
    pen.lineWidth = s.thick ?? 1;
    pen.lineJoin = "round";
    pen.setLineDash(s.dash ?? []);
    pen.beginPath();
    s.points.forEach((point, i) => point && (s.points[i - 1] ? pen.lineTo(...point) : pen.moveTo(...point)));
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  },
  dot(pen, s) {
    pen.beginPath();
    pen.arc(s.x, s.y, s.r, 0, 2 * Math.PI);
    pen.fillStyle = s.fill;
    pen.fill();
    pen.strokeStyle = s.stroke ?? s.fill;
    pen.lineWidth = s.thick ?? 1;
    pen.stroke();
  },
  cells(pen, s) {
    const image = new ImageData(s.columns, s.rows);
    const shade = shades(s);
    s.values.forEach((value, i) => image.data.set([...shade(value), 255], 4 * i));
    const small = document.createElement("canvas");
    small.width = s.columns;
    small.height = s.rows;
    small.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, s.x, s.y, s.columns * s.size, s.rows * s.size);
  },
};

/** The same picture as the text of an SVG file. */
export function svgOf(scene) {
  const parts = scene.shapes.map((shape) => SVG[shape.kind](shape)).flat();
  const size = `width="${scene.width}" height="${scene.height}" viewBox="0 0 ${scene.width} ${scene.height}"`;
  const back = `<rect width="100%" height="100%" fill="${paint("surface")}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${FONT}">\n${back}\n${parts.join("\n")}\n</svg>\n`;
}

const safe = (text) =>
  text
    .replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "\ufffd");
const tenth = (x) => Math.round(x * 10) / 10;

const SVG = {
  rect: (s) =>
    `<rect x="${tenth(s.x)}" y="${tenth(s.y)}" width="${tenth(s.w)}" height="${tenth(s.h)}" fill="${s.fill ?? "none"}" stroke="${s.stroke ?? "none"}" opacity="${s.opacity ?? 1}"/>`,
  text: (s) =>
    `<text transform="translate(${tenth(s.x)} ${tenth(s.y)}) rotate(${s.turn ?? 0})" font-size="${s.size}" font-weight="${s.bold ? 600 : 400}" fill="${s.fill}" text-anchor="${s.anchor ?? "start"}" dominant-baseline="central">${safe(s.text)}</text>`,
  line: (s) => {
    const bend = (s.x2 - s.x1) / 2;
    const to = s.curved ? `C${tenth(s.x1 + bend)} ${tenth(s.y1)} ${tenth(s.x2 - bend)} ${tenth(s.y2)} ` : "L";
    return `<path d="M${tenth(s.x1)} ${tenth(s.y1)}${to}${tenth(s.x2)} ${tenth(s.y2)}" fill="none" stroke="${s.stroke}" stroke-width="${s.thick ?? 1}" opacity="${s.opacity ?? 1}"/>`;
  },
  path: (s) => {
    const d = s.points
      .map((point, i) => (point ? `${s.points[i - 1] ? "L" : "M"}${tenth(point[0])} ${tenth(point[1])}` : ""))
      .join("");
    return `<path d="${d}" fill="none" stroke="${s.stroke}" stroke-width="${s.thick ?? 1}" stroke-linejoin="round" stroke-dasharray="${(s.dash ?? []).join(" ")}" opacity="${s.opacity ?? 1}"/>`;
  },
  dot: (s) =>
    `<circle cx="${tenth(s.x)}" cy="${tenth(s.y)}" r="${s.r}" fill="${s.fill}" stroke="${s.stroke ?? s.fill}" stroke-width="${s.thick ?? 1}"/>`,
  cells: (s) => {
    const shade = shades(s);
    const found = [];
    s.values.forEach((value, i) => {
      if (Math.abs(value) < 0.0036) return; // as pale as the paper
      const [x, y] = [s.x + (i % s.columns) * s.size, s.y + Math.floor(i / s.columns) * s.size];
      found.push(
        `<rect x="${tenth(x)}" y="${tenth(y)}" width="${s.size}" height="${s.size}" fill="${css(shade(value))}"/>`,
      );
    });
    return found;
  },
};

/** A canvas that shows a scene; `data` changes it. */
export function Picture({ key, scene, label, ...props }) {
  const setup = (canvas, { data }) => {
    drawOn(canvas, data);
    return { update: (next) => drawOn(canvas, next.data) };
  };
  return h("canvas", { key, role: "img", "aria-label": label, ...props, data: scene, setup });
}
