"""A recurrent layer one token at a time, with everything that its equations name."""

import torch
from torch import Tensor

from jumok.nn.recurrent import RecurrentLayer, State

Named = dict[str, Tensor]


def unrolled(layer: RecurrentLayer, x: Tensor, state: State) -> tuple[Named, Named]:
    """x [T, D] in the order of reading; the states before the first token [H], and all parts of every step [T, H]."""
    names = ("h", "c")[: len(state)]
    before = {name: part[0] for name, part in zip(names, state, strict=True)}
    steps: list[Named] = []
    here = dict(before)
    for one in x:
        parts = PARTS[layer.cell](layer.w_x(one), layer.w_h(here["h"]), here)
        here = {name: parts[name] for name in names}
        steps.append(parts)
    return before, {name: torch.stack([step[name] for step in steps]) for name in steps[0]}


def _elman(a: Tensor, b: Tensor, state: Named) -> Named:
    return {"h": (a + b).tanh()}


def _lstm(a: Tensor, b: Tensor, state: Named) -> Named:
    i, f, g, o = (a + b).chunk(4)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    c = f * state["c"] + i * g
    return {"i": i, "f": f, "o": o, "g": g, "c": c, "h": o * c.tanh()}


def _gru(a: Tensor, b: Tensor, state: Named) -> Named:
    (a_r, a_z, a_n), (b_r, b_z, b_n) = a.chunk(3), b.chunk(3)
    r, z = (a_r + b_r).sigmoid(), (a_z + b_z).sigmoid()
    n = (a_n + r * b_n).tanh()
    return {"r": r, "z": z, "n": n, "h": (1 - z) * n + z * state["h"]}


PARTS = {"elman": _elman, "lstm": _lstm, "gru": _gru}
