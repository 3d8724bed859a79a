"""Recurrent networks: a state passed from word to word.

Elman 1990; LSTM, Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000; GRU, Cho et al. 2014.

`step` implements the papers' equations for one position. `unroll` computes the same for all positions of a batch: the
input's contribution to the gates is one matrix product, each sentence takes part for as many steps as it has words, and
the hand-written backward pass computes the weights' gradient in one product instead of one per step.

B sentences, S positions, N words in the batch, D input width, H state width.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from jumok.nn.dropout import Dropout
from jumok.nn.linear import Linear

Cell = Literal["elman", "lstm", "gru"]
GATES: dict[Cell, int] = {"elman": 1, "lstm": 4, "gru": 3}

# Gradients with respect to the inputs of tanh, g (1 - y^2), and sigmoid, g y (1 - y), each in one pass.
tanh_gradient = torch.ops.aten.tanh_backward.grad_input
sigmoid_gradient = torch.ops.aten.sigmoid_backward.grad_input

State = tuple[Tensor, ...]
"""(h,), or (h, c) for an LSTM; [B, H] each"""


def elman_step(a: Tensor, b: Tensor, state: State) -> State:
    """h_t = tanh(W_x x_t + W_h h_{t-1} + b); a = W_x x_t + b, b = W_h h_{t-1}."""
    return (torch.tanh(a + b),)


def lstm_step(a: Tensor, b: Tensor, state: State) -> State:
    """
    i, f, o = sigmoid(W x_t + U h_{t-1} + b)      input, forget and output gate
    g       = tanh(W x_t + U h_{t-1} + b)         candidate
    c_t     = f * c_{t-1} + i * g
    h_t     = o * tanh(c_t)
    """
    i, f, g, o = (a + b).chunk(4, dim=-1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_step(a: Tensor, b: Tensor, state: State) -> State:
    """
    r, z = sigmoid(W x_t + U h_{t-1} + b)         reset and update gate
    n    = tanh(W_n x_t + r * (U_n h_{t-1} + b))  candidate
    h_t  = (1 - z) * n + z * h_{t-1}
    """
    (a_r, a_z, a_n), (b_r, b_z, b_n) = a.chunk(3, dim=-1), b.chunk(3, dim=-1)
    r, z = (a_r + b_r).sigmoid(), (a_z + b_z).sigmoid()
    n = (a_n + r * b_n).tanh()
    return (n + z * (state[0] - n),)


STEPS = {"elman": elman_step, "lstm": lstm_step, "gru": gru_step}


@dataclass(frozen=True, slots=True)
class Packing:
    """The words of a batch in reading order: every sentence's first, every sentence's second, ...

    Sentences are sorted by length, longest first, so those still active at a step are the first rows of the state.
    """

    index: Tensor
    """[N]: index of each word in the flattened [B * S]"""
    sizes: list[int]
    """active sentences at each step"""
    order: Tensor
    """[B]: sentences by length, longest first"""

    @staticmethod
    def of(lengths: Tensor, width: int) -> "Packing":
        order = lengths.argsort(descending=True, stable=True)
        steps = torch.arange(width, device=lengths.device)[:, None]
        active = lengths[order] > steps  # [S, B]
        return Packing((order * width + steps)[active], active.sum(dim=1).tolist(), order)

    def pack(self, x: Tensor) -> Tensor:
        """[B, S, D] to [N, D]."""
        return x.flatten(0, 1).index_select(0, self.index)

    def unpack(self, packed: Tensor, shape: torch.Size) -> Tensor:
        """[N, H] to [B, S, H], zero at padding."""
        b, s = shape[:2]
        return packed.new_zeros(b * s, packed.shape[1]).index_copy(0, self.index, packed).view(b, s, -1)

    def sort(self, state: State) -> State:
        return tuple(part.index_select(0, self.order) for part in state)

    def unsort(self, state: State) -> State:
        return tuple(torch.empty_like(part).index_copy(0, self.order, part) for part in state)


class RecurrentLayer(nn.Module):
    """One layer in one direction."""

    def __init__(self, cell: Cell, d_in: int, d_hidden: int) -> None:
        super().__init__()
        self.cell: Cell = cell
        self.d_hidden = d_hidden
        self.w_x = Linear(d_in, GATES[cell] * d_hidden)
        # Only the GRU needs both biases: its candidate has one inside the reset gate.
        self.w_h = Linear(d_hidden, GATES[cell] * d_hidden, bias=cell == "gru")
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(d_hidden**-0.5), d_hidden**-0.5)

    def zeros(self, rows: int) -> State:
        zero = self.w_h.weight.new_zeros(rows, self.d_hidden)
        return (zero, zero) if self.cell == "lstm" else (zero,)

    def step(self, x: Tensor, state: State) -> State:
        return STEPS[self.cell](self.w_x(x), self.w_h(state[0]), state)

    def unroll(self, x: Tensor, sizes: list[int], state: State, *, backward: bool = False) -> tuple[Tensor, State]:
        """x [N, D], packed; returns all words' states h [N, H] and each sentence's last state, in packing order."""
        h, *last = _Unrolled.apply(self.cell, self.w_x(x), self.w_h.weight, self.w_h.bias, sizes, backward, *state)  # type: ignore[no-untyped-call]
        return h, tuple(last)


class Recurrent(nn.Module):
    """Stacked layers in one or both directions, with dropout in between.

    Two directions split d_hidden evenly, so a state is [h forward ; h backward].
    """

    def __init__(
        self, cell: Cell, d_in: int, d_hidden: int, *, n_layers: int = 1, both_ways: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        ways = 2 if both_ways else 1
        widths = [d_in] + [d_hidden] * (n_layers - 1)
        self.d_hidden = d_hidden
        self.layers = nn.ModuleList(
            nn.ModuleList(RecurrentLayer(cell, width, d_hidden // ways) for _ in range(ways)) for width in widths
        )
        self.dropout = Dropout(dropout)

    def zeros(self, rows: int) -> list[State]:
        return [_join([way.zeros(rows) for way in ways]) for ways in self._layers()]

    def forward(self, x: Tensor, lengths: Tensor, states: list[State] | None = None) -> tuple[Tensor, list[State]]:
        """x [B, S, D] with `lengths` real positions per row, at least 1; returns outputs [B, S, H] and last states."""
        packing = Packing.of(lengths, x.shape[1])
        y, last = packing.pack(x), []
        for i, ways in enumerate(self._layers()):
            y = self.dropout(y) if i else y
            before = packing.sort(states[i]) if states else _join([way.zeros(len(x)) for way in ways])
            parts = zip(*(part.chunk(len(ways), dim=-1) for part in before), strict=True)
            found = [
                way.unroll(y, packing.sizes, part, backward=k == 1)
                for k, (way, part) in enumerate(zip(ways, parts, strict=True))
            ]
            y = torch.cat([h for h, _ in found], dim=-1)
            last.append(packing.unsort(_join([state for _, state in found])))
        return packing.unpack(y, x.shape), last

    def step(self, x: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
        """Read one more word, x [B, D]; one direction only."""
        after = []
        for i, (way,) in enumerate(self._layers()):
            x = self.dropout(x) if i else x
            after.append(way.step(x, states[i]))
            x = after[-1][0]
        return x, after

    def _layers(self) -> list[list[RecurrentLayer]]:
        return [list(ways) for ways in self.layers]  # type: ignore[call-overload]


def _join(states: list[State]) -> State:
    return tuple(torch.cat(parts, dim=-1) for parts in zip(*states, strict=True))


class _Unrolled(torch.autograd.Function):
    """All steps of one layer, with a hand-written gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        a: Tensor,
        w: Tensor,
        bias: Tensor | None,
        sizes: list[int],
        backward: bool,
        *state: Tensor,
    ) -> tuple[Tensor, ...]:
        n, width = len(a), w.shape[1]
        spans, h = _spans(sizes, backward), [part.clone() for part in state]
        # Saved for every word: its gates, the state before it, and whatever else the cell's gradient needs.
        gates, before = torch.empty_like(a), a.new_empty(n, width)
        extra = None if cell == "elman" else a.new_empty(n, width)
        cells = a.new_empty(n, width) if cell == "lstm" else None
        out = a.new_empty(n, width)
        for at, k in spans:
            g = gates[at : at + k]
            before[at : at + k] = h[0][:k]
            match cell:
                case "elman":
                    torch.addmm(a[at : at + k], h[0][:k], w.T, out=g).tanh_()
                    h[0][:k] = g
                case "lstm":
                    torch.addmm(a[at : at + k], h[0][:k], w.T, out=g)
                    g[:, : 2 * width].sigmoid_()
                    g[:, 2 * width : 3 * width].tanh_()
                    g[:, 3 * width :].sigmoid_()
                    i, f, new, o = g.chunk(4, dim=1)
                    assert cells is not None
                    assert extra is not None
                    cells[at : at + k] = h[1][:k]
                    c = torch.mul(f, h[1][:k], out=h[1][:k]).addcmul_(i, new)
                    torch.mul(o, torch.tanh(c, out=extra[at : at + k]), out=h[0][:k])
                case "gru":
                    assert bias is not None
                    assert extra is not None
                    torch.addmm(bias, h[0][:k], w.T, out=g)
                    extra[at : at + k] = g[:, 2 * width :]
                    g[:, : 2 * width].add_(a[at : at + k, : 2 * width]).sigmoid_()
                    r, z, new = g.chunk(3, dim=1)
                    torch.addcmul(a[at : at + k, 2 * width :], r, extra[at : at + k], out=new).tanh_()
                    h[0][:k] = torch.lerp(new, h[0][:k], z)
            out[at : at + k] = h[0][:k]
        ctx.cell, ctx.spans, ctx.has_bias = cell, spans, bias is not None
        ctx.save_for_backward(gates, before, extra, cells, w)
        return out, *h

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_out: Tensor, *grad_last: Tensor) -> tuple[Any, ...]:
        gates, before, extra, cells, w = ctx.saved_tensors
        width = w.shape[1]
        grad_a = torch.empty_like(gates)  # with respect to the gates' pre-activations
        grad_b = torch.empty_like(gates) if ctx.cell == "gru" else grad_a  # and the state's part of them
        dh, *rest = [grad.clone() for grad in grad_last]
        for at, k in reversed(ctx.spans):
            g, da, d = gates[at : at + k], grad_a[at : at + k], dh[:k]
            d += grad_out[at : at + k]
            match ctx.cell:
                case "elman":
                    torch.mm(tanh_gradient(d, g, grad_input=da), w, out=d)
                case "lstm":
                    dc, t = rest[0][:k], extra[at : at + k]
                    i, f, new, o = g.chunk(4, dim=1)
                    d_i, d_f, d_new, d_o = da.chunk(4, dim=1)
                    d_t = d * o
                    dc += tanh_gradient(d_t, t, grad_input=d_t)
                    torch.mul(dc, new, out=d_i)
                    torch.mul(dc, cells[at : at + k], out=d_f)
                    torch.mul(dc, i, out=d_new)
                    torch.mul(d, t, out=d_o)
                    dc *= f
                    d_if = da[:, : 2 * width]
                    sigmoid_gradient(d_if, g[:, : 2 * width], grad_input=d_if)
                    tanh_gradient(d_new, new, grad_input=d_new)
                    sigmoid_gradient(d_o, o, grad_input=d_o)
                    torch.mm(da, w, out=d)
                case "gru":
                    db, kept = grad_b[at : at + k], d * g[:, width : 2 * width]
                    r, _, new = g.chunk(3, dim=1)
                    d_r, d_z, d_new = da.chunk(3, dim=1)
                    torch.sub(d, kept, out=d_new)
                    tanh_gradient(d_new, new, grad_input=d_new)
                    torch.mul(d_new, extra[at : at + k], out=d_r)
                    torch.sub(before[at : at + k], new, out=d_z).mul_(d)
                    d_rz = da[:, : 2 * width]
                    db[:, : 2 * width] = sigmoid_gradient(d_rz, g[:, : 2 * width], grad_input=d_rz)
                    torch.mul(d_new, r, out=db[:, 2 * width :])
                    torch.addmm(kept, db, w, out=d)
        grad_w = grad_b.T @ before
        grad_bias = grad_b.sum(dim=0) if ctx.has_bias else None
        return None, grad_a, grad_w, grad_bias, None, None, dh, *rest


def _spans(sizes: list[int], backward: bool) -> list[tuple[int, int]]:
    """(first word, number of words) of each step, in reading order; steps without words are skipped."""
    spans, at = [], 0
    for size in sizes:
        if size:
            spans.append((at, size))
        at += size
    return spans[::-1] if backward else spans
