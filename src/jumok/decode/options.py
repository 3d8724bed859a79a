"""Search options, requests and results; the search itself is in search.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from jumok.config import Count, CountOrZero, NotNegative, Positive, Seed

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

    def forced(self, t: int, eos_id: int) -> int:
        """The only token allowed at step t: the prefix's, or the end once `max_len` is reached."""
        if t < len(self.prefix):
            return self.prefix[t]
        return eos_id if t >= self.max_len else NO_TOKEN
