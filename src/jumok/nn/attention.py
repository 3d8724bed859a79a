"""Attention: a softmax over scores, a weighted sum of values.

B batch, T query positions, S key positions, D d_model, H heads. Masks are bool, True = may be attended to.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.nn.linear import Linear


@dataclass(frozen=True, slots=True)
class Attended:
    """A context and the attention weights that produced it."""

    context: Tensor
    weights: Tensor


def attend(scores: Tensor, values: Tensor, mask: Tensor | None) -> Attended:
    """The last step of every attention, and the reference for fused kernels.

        alpha = softmax(scores)      context = alpha values

    scores [..., T, S], values [..., S, D]. A query that may attend to nothing gets the zero vector.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    alpha = scores.softmax(dim=-1)
    if mask is not None:
        alpha = alpha.masked_fill(~mask, 0.0)
    return Attended(alpha @ values, alpha)


def dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attended:
    """Vaswani et al. 2017, Eq. 1: softmax(Q K^T / sqrt(d_k)) V."""
    return attend(q @ k.transpose(-1, -2) / sqrt(q.shape[-1]), v, mask)


@dataclass(slots=True)
class _Room:
    """Buffers with positions to spare, and how many are written: whoever holds them all may write the next."""

    k: Tensor
    v: Tensor
    written: int


@dataclass(frozen=True, slots=True)
class KeysValues:
    """Projected keys and values of one attention: [B, H, S, d_k] and [B, H, S, d_v]."""

    SPARE: ClassVar = 32

    k: Tensor
    v: Tensor
    room: _Room | None = None
    """where k and v are, if there is more than their S positions"""

    def then(self, later: "KeysValues") -> "KeysValues":
        """Both, one after the other. Without gradients, the second of them is written behind the first, unless
        another one was."""
        s, n = self.k.shape[2], later.k.shape[2]
        if torch.is_grad_enabled():
            return KeysValues(torch.cat([self.k, later.k], dim=2), torch.cat([self.v, later.v], dim=2))
        room = self.room
        if room is None or room.written != s or room.k.shape[2] < s + n:
            spare = max(n * self.SPARE, s // 2)
            room = _Room(_with_room(self.k, spare), _with_room(self.v, spare), s)
        room.k[:, :, s : s + n], room.v[:, :, s : s + n] = later.k, later.v
        room.written = s + n
        return KeysValues(room.k[:, :, : s + n], room.v[:, :, : s + n], room)

    def select(self, rows: Tensor) -> "KeysValues":
        return KeysValues(self.k.index_select(0, rows), self.v.index_select(0, rows))


def _with_room(x: Tensor, spare: int) -> Tensor:
    b, h, s, d = x.shape
    found = x.new_empty(b, h, s + spare, d)
    found[:, :, :s] = x
    return found


class MultiHeadAttention(nn.Module):
    """Vaswani et al. 2017, section 3.2.2.

        MultiHead(Q, K, V) = Concat(head_1 .. head_h) W^O      head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

    The heads' projections are slices of one matrix each. `keys_values` and the query are separate calls, so a
    decoder projects its memory once and each new token once.
    """

    def __init__(self, d_model: int, n_heads: int, *, d_k: int, d_v: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.dropout = dropout
        self.w_q = Linear(d_model, n_heads * d_k)
        self.w_k = Linear(d_model, n_heads * d_k)
        self.w_v = Linear(d_model, n_heads * d_v)
        self.w_o = Linear(n_heads * d_v, d_model)

    def keys_values(self, x: Tensor) -> KeysValues:
        return KeysValues(self._split(self.w_k(x)), self._split(self.w_v(x)))

    def forward(
        self, x: Tensor, memory: KeysValues, mask: Tensor | None, *, weights: list[Tensor] | None = None
    ) -> Tensor:
        """Attend from x [B, T, D] to `memory`; mask broadcasts to [B, H, T, S].

        If `weights` is a list, the attention weights [B, H, T, S] are appended to it; otherwise a fused kernel computes
        the same result without storing them.
        """
        q = self._split(self.w_q(x))
        if weights is None:
            p = self.dropout if self.training else 0.0
            context = F.scaled_dot_product_attention(q, memory.k, memory.v, attn_mask=mask, dropout_p=p)
        else:
            attended = dot_product_attention(q, memory.k, memory.v, mask)
            context = attended.context
            weights.append(attended.weights)
        out: Tensor = self.w_o(context.transpose(1, 2).flatten(2))
        return out

    def _split(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        return x.view(b, t, self.n_heads, d // self.n_heads).transpose(1, 2)  # [B, H, T, d]


def causal_mask(t: int, s: int, *, device: torch.device) -> Tensor:
    """[T, S]: the last T of S positions, each seeing itself and all earlier ones."""
    return torch.ones(t, s, dtype=torch.bool, device=device).tril(s - t)


def neighbourhood_mask(t: int, s: int, r: int, *, device: torch.device) -> Tensor:
    """Restricted self-attention (Vaswani et al. 2017, section 4): at most r positions to either side."""
    positions = torch.arange(s, device=device)
    return (positions[s - t :, None] - positions).abs() <= r


def basic_self_attention(x: Tensor, mask: Tensor | None = None) -> Attended:
    """Self-attention without parameters: z_i = sum_j alpha_ij x_j with alpha_i = softmax_j(x_i . x_j).

    x [B, S, D]. Each word becomes a mixture of the words that resemble it. Multi-head attention adds learned
    projections of x for its three roles, several times in parallel.
    """
    return attend(x @ x.transpose(-1, -2), x, mask)


class DotScore(nn.Module):
    """Luong et al. 2015, Eq. 8: score(s_t, h_j) = s_t . h_j."""

    def keys(self, h: Tensor) -> Tensor:
        return h

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        return s @ keys.transpose(-1, -2)


class GeneralScore(DotScore):
    """Luong et al. 2015, Eq. 8: score(s_t, h_j) = s_t . W h_j."""

    def __init__(self, d_query: int, d_memory: int) -> None:
        super().__init__()
        self.w = Linear(d_memory, d_query, bias=False)

    def keys(self, h: Tensor) -> Tensor:
        keys: Tensor = self.w(h)
        return keys


class AdditiveScore(nn.Module):
    """Bahdanau et al. 2015, Eq. 6: e_ij = v . tanh(W s_i + U h_j).

    Luong's `concat`, v . tanh(W [s ; h]), is the same with W and U side by side. U h_j is computed once per sentence.
    """

    def __init__(self, d_query: int, d_memory: int, d_score: int) -> None:
        super().__init__()
        self.w = Linear(d_query, d_score)
        self.u = Linear(d_memory, d_score, bias=False)
        self.v = Linear(d_score, 1, bias=False)

    def keys(self, h: Tensor) -> Tensor:
        keys: Tensor = self.u(h)
        return keys

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        q, v = self.w(s), self.v.weight[0]
        if not torch.is_grad_enabled():
            return _scores_alone(q, keys, v)
        if q.shape[1] == 1:  # one step: small enough to keep for the gradient
            return _every_pair(q, keys) @ v
        scores: Tensor = _AdditiveScores.apply(q, keys, v)  # type: ignore[no-untyped-call]
        return scores


def _every_pair(q: Tensor, k: Tensor) -> Tensor:
    """tanh(q_i + k_j), [B, T, S, d]."""
    return (q[:, :, None] + k[:, None]).tanh_()


def _scores_alone(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The scores without a gradient: tanh(x) = 2 sigmoid(2 x) - 1, and sigmoid takes a third of the time."""
    q, k, few = 2 * q, 2 * k, _at_once(q, k)
    parts = [slice(at, at + few) for at in range(0, len(q), few)]
    found = [(q[part, :, None] + k[part, None]).sigmoid_() @ v for part in parts]
    return 2 * torch.cat(found) - v.sum()


def _at_once(q: Tensor, k: Tensor) -> int:
    """Sentences whose pairs fit in the cache."""
    return max(1, _AdditiveScores.FLOATS // (q[0].numel() * k.shape[1]))


class _AdditiveScores(torch.autograd.Function):
    """v . tanh(q_i + k_j), a few sentences at a time: their pairs fit in the cache and are recomputed in backward.

    All pairs of a batch, [B, T, S, d], would be by far its largest tensor; they never exist at once.
    """

    FLOATS = 1 << 18

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v)
        few = _at_once(q, k)
        ctx.parts = [slice(at, at + few) for at in range(0, len(q), few)]
        return torch.cat([_every_pair(q[part], k[part]) @ v for part in ctx.parts])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        q, k, v = ctx.saved_tensors
        grad_q, grad_k, grad_v = torch.empty_like(q), torch.empty_like(k), torch.zeros_like(v)
        for part in ctx.parts:
            pairs, g = _every_pair(q[part], k[part]), grad[part, ..., None]
            grad_v += g.flatten() @ pairs.flatten(0, 2)
            torch.addcmul(g, pairs, pairs * g, value=-1, out=pairs)  # g (1 - tanh^2)
            torch.sum(pairs, dim=2, out=grad_q[part])
            torch.sum(pairs, dim=1, out=grad_k[part])
        return grad_q.mul_(v), grad_k.mul_(v), grad_v


class PredictedPosition(nn.Module):
    """Luong et al. 2015, Eq. 9: p_t = S sigmoid(v_p . tanh(W_p s_t)), the centre of local-p's window at step t."""

    def __init__(self, d_query: int) -> None:
        super().__init__()
        self.w_p = Linear(d_query, d_query, bias=False)
        self.v_p = Linear(d_query, 1, bias=False)

    def forward(self, s: Tensor, lengths: Tensor) -> Tensor:
        """s [B, T, D], source lengths [B]; returns centres [B, T]."""
        centres: Tensor = self.v_p(self.w_p(s).tanh())[..., 0].sigmoid() * lengths[:, None]
        return centres


def attend_locally(
    scores: Tensor, values: Tensor, mask: Tensor, centres: Tensor, reach: int, *, bell: bool
) -> Attended:
    """Luong et al. 2015, section 3.2: attend only to positions within `reach` of each step's centre.

    scores [B, T, S], values [B, S, D], centres [B, T]. With `bell` (local-p) the weights are then multiplied, Eq. 10,
    by exp(-(j - p_t)^2 / (2 sigma^2)) with sigma = reach / 2, which lets the gradient reach p_t.
    """
    distance = torch.arange(scores.shape[-1], device=scores.device) - centres[..., None]
    attended = attend(scores, values, mask & (distance.detach().abs() <= reach))
    if not bell:
        return attended
    weights = attended.weights * (-2 * (distance / reach).square()).exp()
    return Attended(weights @ values, weights)
