// The papers' equations, as MathML.

import { h } from "../../view.js";
import { t } from "../../words.js";

const mi = (x) => h("mi", {}, x);
const mo = (x) => h("mo", {}, x);
const sub = (a, b) => h("msub", {}, mi(a), mi(b));
const row = (...parts) => h("mrow", {}, ...parts);
const frac = (a, b) => h("mfrac", {}, a, b);
// Not msqrt: without a mathematical font, browsers leave its sign out.
const root = (a) => row(mo("√"), h("mrow", { class: "radicand" }, a));
const low = (x) => h("mo", { stretchy: "false" }, x);
const of = (name, ...inside) => row(mi(name), low("("), ...inside, low(")"));
const around = (name, ...inside) => row(mi(name), mo("("), ...inside, mo(")"));

const linear = (gate) => [
  sub("W", gate),
  sub("x", "t"),
  mo("+"),
  sub("U", gate),
  h("msub", {}, mi("h"), row(mi("t"), mo("−"), mi("1"))),
  mo("+"),
  sub("b", gate),
];
const gate = (name, by = "σ") => row(mi(name), mo("="), of(by, ...linear(name)));
const before = (x) => h("msub", {}, mi(x), row(mi("t"), mo("−"), mi("1")));

const softmax = (score) => row(h("msub", {}, mi("softmax"), mi("j")), low("("), score, low(")"));
const sum = (value) => row(h("munder", {}, mo("∑"), mi("j")), sub("α", "j"), sub(value, "j"));

/** By paper, by what is computed. */
const EQUATIONS = {
  attention: {
    score: () => row(sub("e", "j"), mo("="), frac(row(mi("q"), mo("·"), sub("k", "j")), root(sub("d", "k")))),
    weight: () => row(sub("α", "j"), mo("="), softmax(sub("e", "j"))),
    context: () => row(mi("c"), mo("="), sum("v")),
    whole: () =>
      row(
        of("Attention", mi("Q"), mo(","), mi("K"), mo(","), mi("V")),
        mo("="),
        around("softmax", frac(row(mi("Q"), h("msup", {}, mi("K"), mi("T"))), root(sub("d", "k")))),
        mi("V"),
      ),
  },
  additive: {
    score: () =>
      row(
        sub("e", "j"),
        mo("="),
        h("msup", {}, mi("v"), mi("T")),
        of("tanh", mi("W"), mi("s"), mo("+"), mi("U"), sub("h", "j")),
      ),
    weight: () => row(sub("α", "j"), mo("="), softmax(sub("e", "j"))),
    context: () => row(mi("c"), mo("="), sum("h")),
  },
  lstm: {
    i: () => gate("i"),
    f: () => gate("f"),
    o: () => gate("o"),
    g: () => gate("g", "tanh"),
    c: () => row(sub("c", "t"), mo("="), mi("f"), mo("⊙"), before("c"), mo("+"), mi("i"), mo("⊙"), mi("g")),
    h: () => row(sub("h", "t"), mo("="), mi("o"), mo("⊙"), of("tanh", sub("c", "t"))),
  },
  gru: {
    r: () => gate("r"),
    z: () => gate("z"),
    n: () =>
      row(
        mi("n"),
        mo("="),
        of(
          "tanh",
          sub("W", "n"),
          sub("x", "t"),
          mo("+"),
          mi("r"),
          mo("⊙"),
          low("("),
          sub("U", "n"),
          before("h"),
          mo("+"),
          sub("b", "n"),
          low(")"),
        ),
      ),
    h: () =>
      row(
        sub("h", "t"),
        mo("="),
        low("("),
        h("mn", {}, "1"),
        mo("−"),
        mi("z"),
        low(")"),
        mo("⊙"),
        mi("n"),
        mo("+"),
        mi("z"),
        mo("⊙"),
        before("h"),
      ),
  },
  elman: {
    h: () =>
      row(
        sub("h", "t"),
        mo("="),
        of("tanh", sub("W", "x"), sub("x", "t"), mo("+"), sub("W", "h"), before("h"), mo("+"), mi("b")),
      ),
  },
};

export const Formula = ({ paper, name }) => h("math", { display: "block" }, EQUATIONS[paper][name]());

/** Where the equations are from; of attention, all of them in one. */
export function Source({ paper }) {
  return h(
    "p",
    { class: "small muted source" },
    t(`inside.paper.${paper}`),
    EQUATIONS[paper].whole && h(Formula, { paper, name: "whole" }),
  );
}
