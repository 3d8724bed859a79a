"""Beam search over a decoder's `step` and its state's `select`.

B sentences, K beams, V vocabulary, S source positions, C candidates.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jumok.decode.options import NO_TOKEN, DecodeConfig, Hypothesis, Request, Trace, length_penalty

if TYPE_CHECKING:
    from jumok.decode.search import Decoder, Read, State

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

GROUP = 64
"""tokens whose maximum is compared with those of other groups"""


def coverage_cost(coverage: Tensor, beta: float) -> Tensor:
    """Wu et al. 2016, Eq. 14: cp = beta * sum_i log(min(sum_j p_ij, 1)) over the source positions."""
    return beta * coverage.clamp(1e-9, 1).log().sum(dim=-1)


def beam_search(
    decoder: "Decoder",
    state: "State",
    requests: Sequence[Request],
    config: DecodeConfig,
    *,
    eos_id: int,
    read: "Read",
    tick: Callable[[], None] = lambda: None,
    trace: Trace | None = None,
) -> list[list[Hypothesis]]:
    """Keep the K likeliest prefixes at every step; stop when no better hypothesis can follow.

    That is when the best unfinished prefix, even at the most favourable length, is no better than the n-th best
    finished hypothesis. Stopping at K finished hypotheses, as is common, can lose a confident model's likeliest one:
    poor early ends fill the K places before it is complete. A `trace` gets every candidate of the first sentence.
    """
    device = decoder.device
    beams = _Beams(requests, config, eos_id, read)
    now: Any = state
    tokens = read.tokens
    coverage: Tensor | None = None
    while len(beams.alive):
        tick()
        attention: list[Tensor] | None = [] if config.coverage_penalty else None
        logits, now = decoder.step(tokens, now, attention=attention)
        if attention:
            coverage = attention[0] if coverage is None else coverage + attention[0]
        forced = [requests[i].forced(int(beams.at[i]), eos_id) for i in beams.alive]
        found = _candidates(logits, torch.from_numpy(beams.scores).to(device), forced, 2 * config.beam)
        rows, pieces = beams.extend(*found, coverage, trace)
        if len(rows) == 0:
            break
        tokens = torch.from_numpy(pieces).to(device)
        if len(rows) != len(logits) or (rows != np.arange(len(rows))).any():
            chosen = torch.from_numpy(rows).to(device)
            now = now.select(chosen)
            coverage = None if coverage is None else coverage.index_select(0, chosen)
    return [request.best(hypotheses, config.n_best) for request, hypotheses in zip(requests, beams.ended, strict=True)]


def _candidates(logits: Tensor, scores: Tensor, forced: list[int], width: int) -> tuple[Floats, Ints, Ints]:
    """The likeliest continuations of all beams of a sentence: their log-probability, beam and last token, [B, C] each.

    2K candidates include at least K unfinished ones, since each beam has only one way to end.
    """
    b, k = scores.shape
    log_probs = logits.float().log_softmax(dim=-1)
    best, pieces = likeliest(log_probs, min(width, logits.shape[-1]))
    c = best.shape[-1]
    if any(token != NO_TOKEN for token in forced):
        only = torch.tensor(forced, device=logits.device).repeat_interleave(k)
        allowed = log_probs.gather(1, only.clamp(min=0)[:, None])
        first = torch.arange(c, device=logits.device) == 0
        is_forced = (only != NO_TOKEN)[:, None]
        best = torch.where(is_forced, allowed.masked_fill(~first, -inf), best)
        pieces = torch.where(is_forced, only[:, None], pieces)
    best, flat = (scores[..., None] + best.view(b, k, c)).flatten(1).topk(min(width, k * c), dim=-1)
    pieces = pieces.view(b, k * c).gather(1, flat)
    found = torch.stack([flat // c, pieces]).cpu().numpy()
    return best.cpu().numpy(), found[0], found[1]


def likeliest(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of each row, and where they are: looked for in the k groups of tokens with the highest maxima.

    Finding maxima takes a tenth of the time that finding the k highest takes.
    """
    n, v = log_probs.shape
    groups = v // GROUP
    if groups < 4 * k:
        best, pieces = log_probs.topk(k, dim=-1)
        return best, pieces
    cut, device = groups * GROUP, log_probs.device
    maxima = log_probs.unfold(1, GROUP, GROUP).amax(dim=-1)
    chosen = maxima.topk(k, dim=-1, sorted=False).indices
    within = (chosen[..., None] * GROUP + torch.arange(GROUP, device=device)).flatten(1)
    pieces = torch.cat([within, torch.arange(cut, v, device=device).expand(n, -1)], dim=1)  # and the tokens left over
    best, at = log_probs.gather(1, pieces).topk(k, dim=-1)
    return best, pieces.gather(1, at)


class _Beams:
    """The unfinished prefixes of the sentences that are not done, one at first and then K of each, and what ended."""

    def __init__(self, requests: Sequence[Request], config: DecodeConfig, eos_id: int, read: "Read") -> None:
        self.requests, self.config, self.eos_id = requests, config, eos_id
        self.alive: Ints = np.arange(len(requests))
        self.at: Ints = np.array(read.lengths, dtype=np.int64)
        self.prefixes = [list(request.prefix[:n]) for request, n in zip(requests, read.lengths, strict=True)]
        self.scores: Floats = np.array(read.log_probs, dtype=np.float32)[:, None]
        self.history: Ints = np.empty((len(requests), 1, 0), dtype=np.int64)
        self.ended: list[list[Hypothesis]] = [[] for _ in requests]
        self.bar = np.full(len(requests), -inf)  # what a hypothesis must surpass to be among the n best
        self.most = np.array([length_penalty(r.max_len + 1, config.length_penalty) for r in requests])

    def extend(
        self, best: Floats, beams: Ints, pieces: Ints, coverage: Tensor | None, trace: Trace | None
    ) -> tuple[Ints, Ints]:
        """Take up a step's candidates; return the rows to continue from and their next tokens."""
        k, before = self.config.beam, self.scores.shape[1]
        if (missing := k - best.shape[1]) > 0:  # a small vocabulary
            best = np.pad(best, ((0, 0), (0, missing)), constant_values=-inf)
            beams, pieces = (np.pad(each, ((0, 0), (0, missing))) for each in (beams, pieces))
        ends = (pieces == self.eos_id) | (best == -inf)
        # An end counts only if it is among the K best, like an unfinished prefix.
        counted = (ends & np.isfinite(best))[:, :k]
        for row, rank in zip(*counted.nonzero(), strict=True):
            beam = beams[row, rank]
            self._end(row, beam, float(best[row, rank]), None if coverage is None else coverage[row * before + beam])
        order = ends.argsort(axis=1, kind="stable")[:, :k]  # candidates come best first
        if trace is not None:
            trace.grow(*(part[0].tolist() for part in (best, beams, pieces, pieces == self.eos_id, order)))
        rows = np.arange(len(best))[:, None]
        scores = np.where(ends[rows, order], np.float32(-inf), best[rows, order])
        done = self.bar[self.alive] >= scores[:, 0] / self.most[self.alive]
        keep = (~done & (scores[:, 0] > -inf)).nonzero()[0]
        self.at[self.alive] += 1
        beams, pieces = beams[rows, order][keep], pieces[rows, order][keep]
        self.alive, self.scores = self.alive[keep], scores[keep]
        self.history = np.concatenate([self.history[keep[:, None], beams], pieces[..., None]], axis=2)
        return (keep[:, None] * before + beams).flatten(), pieces.flatten()

    def _end(self, row: int, beam: int, log_prob: float, coverage: Tensor | None) -> None:
        i, n, alpha = self.alive[row], self.config.n_best, self.config.length_penalty
        t = int(self.at[i])
        score = log_prob / length_penalty(t + 1, alpha)
        if coverage is not None:
            score += float(coverage_cost(coverage[: self.requests[i].source_len], self.config.coverage_penalty))
        self.ended[i].append(Hypothesis(self.prefixes[i] + self.history[row, beam].tolist(), log_prob, score))
        if len(self.ended[i]) >= n:
            self.bar[i] = sorted(hypothesis.score for hypothesis in self.ended[i])[-n]
