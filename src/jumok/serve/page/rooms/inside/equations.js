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

const EQUATIONS = {
  attention: () => [
    row(
      of("Attention", mi("Q"), mo(","), mi("K"), mo(","), mi("V")),
      mo("="),
      around("softmax", frac(row(mi("Q"), h("msup", {}, mi("K"), mi("T"))), root(sub("d", "k")))),
      mi("V"),
    ),
  ],
  additive: () => [
    row(
      sub("e", "ij"),
      mo("="),
      h("msup", {}, mi("v"), mi("T")),
      of("tanh", mi("W"), h("msub", {}, mi("s"), row(mi("i"), mo("−"), mi("1"))), mo("+"), mi("U"), sub("h", "j")),
    ),
    row(sub("α", "ij"), mo("="), h("msub", {}, mi("softmax"), mi("j")), mo("("), sub("e", "ij"), mo(")")),
    row(sub("c", "i"), mo("="), h("munder", {}, mo("∑"), mi("j")), sub("α", "ij"), sub("h", "j")),
  ],
  lstm: () => [
    gate("i"),
    gate("f"),
    gate("o"),
    gate("g", "tanh"),
    row(sub("c", "t"), mo("="), mi("f"), mo("⊙"), before("c"), mo("+"), mi("i"), mo("⊙"), mi("g")),
    row(sub("h", "t"), mo("="), mi("o"), mo("⊙"), of("tanh", sub("c", "t"))),
  ],
  gru: () => [
    gate("r"),
    gate("z"),
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
  ],
  elman: () => [
    row(
      sub("h", "t"),
      mo("="),
      of("tanh", sub("W", "x"), sub("x", "t"), mo("+"), sub("W", "h"), before("h"), mo("+"), mi("b")),
    ),
  ],
};

export function Equation({ name }) {
  return h(
    "figure",
    { class: "equation", tabindex: "0", role: "group", "aria-label": t("inside.equation") },
    EQUATIONS[name]().map((one, i) => h("math", { key: i, display: "block" }, one)),
    h("figcaption", { class: "small muted" }, t(`inside.paper.${name}`)),
  );
}
