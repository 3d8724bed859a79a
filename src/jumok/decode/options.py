"""What can be asked of a search, and what comes of it; the search itself is next door."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from jumok.config import Count, CountOrZero, NotNegative, Positive, Seed

NO_TOKEN = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeConfig:
    """How an output is chosen."""

    method: Literal["beam", "greedy", "sample"] = "beam"
    """keep the likeliest prefixes, take the likeliest piece, or draw pieces at random"""
    beam: Count = 4
    """prefixes that are kept"""
    length_penalty: NotNegative = 0.6
    """alpha of Wu et al. 2016: scores are divided by ((5 + length) / 6) ^ alpha"""
    coverage_penalty: NotNegative = 0.0
    """beta of Wu et al. 2016: source words that got less attention than one word's worth cost"""
    n_best: Count = 1
    """hypotheses returned, best first; at most `beam`"""
    max_extra: Count = 50
    """an output has at most as many pieces as its input, and this many more"""
    temperature: Positive = 1.0
    """sample: below 1 likely pieces become likelier, above 1 less so"""
    top_k: CountOrZero = 0
    """sample among the k likeliest pieces; 0: all"""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """sample among the likeliest pieces that together reach this probability"""
    seed: Seed = 1
    """for sampling"""

    def __post_init__(self) -> None:
        if self.n_best > (self.beam if self.method == "beam" else 1):
            raise ValueError('n_best can be at most beam, and 1 unless method = "beam"')


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Ids without start and end; `log_prob` is the sum over its pieces, end included."""

    ids: list[int]
    log_prob: float
    score: float
    """what hypotheses are ranked by: log_prob after the penalties"""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for one sentence."""

    source_len: int
    max_len: int
    prefix: Sequence[int] = ()
    seed: int = 0

    def forced(self, t: int, eos_id: int) -> int:
        """The only piece allowed as the t-th: the prefix, then the end when there is no room left."""
        if t < len(self.prefix):
            return self.prefix[t]
        return eos_id if t >= self.max_len else NO_TOKEN
