"""Search options, requests and results; the search itself is in search.py."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Annotated, Literal

from pydantic import Field

from jumok.config import Count, CountOrZero, NotNegative, Positive, Seed
from jumok.errors import CheckpointError

NO_TOKEN = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeConfig:
    """How outputs are decoded."""

    method: Literal["beam", "greedy", "sample"] = "beam"
    """keep the likeliest prefixes, take the likeliest token, or sample tokens"""
    beam: Count = 4
    """prefixes kept at each step"""
    length_penalty: NotNegative = 0.6
    """alpha of Wu et al. 2016: scores are divided by ((5 + length) / 6) ^ alpha"""
    coverage_penalty: NotNegative = 0.0
    """beta of Wu et al. 2016: penalty for source tokens that receive a total attention below 1"""
    n_best: Count = 1
    """hypotheses returned, best first; at most `beam`"""
    max_extra: Count = 50
    """an output has at most this many tokens more than its input"""
    temperature: Positive = 1.0
    """sample: below 1 likely tokens become likelier, above 1 less likely"""
    top_k: CountOrZero = 0
    """sample: only from the k likeliest tokens; 0: from all"""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """sample: only from the likeliest tokens that together reach this probability"""
    seed: Seed = 1
    """for sampling"""

    def __post_init__(self) -> None:
        if self.n_best > (self.beam if self.method == "beam" else 1):
            raise ValueError('n_best must be at most beam, and 1 unless method = "beam"')


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Ids without start and end; `log_prob` is the sum over its tokens, end included."""

    ids: list[int]
    log_prob: float
    score: float
    """ranking score: log_prob after the penalties"""


@dataclass(frozen=True, slots=True)
class Request:
    """Search parameters of one sentence."""

    source_len: int
    max_len: int
    prefix: Sequence[int] = ()
    seed: int = 0
    watch: Callable[[int, float], bool] | None = None
    """greedy search and sampling: gets each token after the prefix as soon as it is chosen, the end token too, and its
    log-probability; True ends the text there"""

    faults: Callable[[Sequence[int]], int] | None = None
    """how many things a hypothesis gets wrong that can be counted: of those found, fewer faults go before the score"""

    def best(self, hypotheses: Sequence[Hypothesis], n: int) -> list[Hypothesis]:
        """The n best of those that were found, best first."""
        faults = self.faults
        if faults is None:
            return sorted(hypotheses, key=lambda h: -h.score)[:n]
        return sorted(hypotheses, key=lambda h: (faults(h.ids), -h.score))[:n]

    def forced(self, t: int, eos_id: int) -> int:
        """The only token allowed at step t: the prefix's, or the end once `max_len` is reached."""
        if t < len(self.prefix):
            return self.prefix[t]
        return eos_id if t >= self.max_len else NO_TOKEN

    def heard(self, t: int, token: int, log_prob: float) -> bool:
        """Whether whoever watches ends the text with this token."""
        return self.watch is not None and t >= len(self.prefix) and self.watch(token, log_prob)


@dataclass(frozen=True, slots=True)
class Node:
    """A prefix that a beam search looked at."""

    token: int
    """its last token"""
    log_prob: float
    """of the whole prefix"""
    parent: int
    """number of the node that it extends; -1: the start"""
    fate: Literal["kept", "finished", "pruned"]


@dataclass(slots=True)
class Trace:
    """The tree of one sentence's beam search: every candidate, and what became of it."""

    nodes: list[Node] = field(default_factory=list)
    _beams: list[int] = field(default_factory=list)

    def grow(
        self,
        log_probs: Sequence[float],
        beams: Sequence[int],
        tokens: Sequence[int],
        ends: Sequence[bool],
        kept: Sequence[int],
    ) -> None:
        """One step: candidates in order of their probability, and the ranks of those that are extended next."""
        found = []
        for rank, (log_prob, beam, token, end) in enumerate(zip(log_probs, beams, tokens, ends, strict=True)):
            if not isfinite(log_prob):  # of a beam that does not exist, or not allowed by the prefix
                found.append(-1)
                continue
            parent = self._beams[beam] if self._beams else -1
            goes_on = rank in kept and not end
            self.nodes.append(
                Node(
                    token, log_prob, parent, "kept" if goes_on else "finished" if end and rank < len(kept) else "pruned"
                )
            )
            found.append(len(self.nodes) - 1)
        self._beams = [found[rank] for rank in kept]


def length_penalty(length: int, alpha: float) -> float:
    """Wu et al. 2016, Eq. 14: lp(Y) = ((5 + |Y|) / 6) ^ alpha; |Y| includes the end token."""
    return float(((5 + length) / 6) ** alpha)


def damaged() -> CheckpointError:
    """Finite weights give finite probabilities: whatever the text, it is the model that is wrong."""
    hint = "use an earlier checkpoint, or train with a lower learning rate"
    what = "the model is damaged: it gives probabilities that are not numbers"
    return CheckpointError(what, hint=hint, code="checkpoint.not_finite")
