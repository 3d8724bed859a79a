"""Bootstrap intervals and paired tests for any metric computed from summed per-example statistics."""

from collections.abc import Callable, Iterable, Sized
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumok.errors import DataError

Statistics = NDArray[np.number[Any]]
Values = NDArray[np.float64]
ScoreFunction = Callable[[Values], Values]

# 8 MB of float64: the drawing needs a few arrays of this size, whatever the number of examples and samples.
_WEIGHTS_AT_ONCE = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """A number never travels without its interval."""

    name: str
    """the metric"""
    value: float
    """of all examples together"""
    low: float
    """the lower end of its 95 % interval"""
    high: float
    """the upper end"""
    n: int
    """examples"""
    signature: str
    """how it was computed"""

    def plain(self) -> dict[str, Any]:
        """For JSON, without digits that mean nothing."""
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(self).items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """System b against system a on the same examples; `difference` is b - a, inside `low` … `high`."""

    metric: str
    """what is compared"""
    a: float
    """the first system's score"""
    b: float
    """the second system's"""
    difference: float
    """b - a"""
    low: float
    """the lower end of its 95 % interval"""
    high: float
    """the upper end"""
    p_value: float
    """how often chance alone would make as large a difference"""
    n: int
    """examples"""
    test: str
    """how it was computed"""


class Metric(NamedTuple):
    """One system's additive statistics [examples, k], and what `score` makes of their sums."""

    name: str
    statistics: Values
    score: ScoreFunction


def bootstrap(
    statistics: Statistics,
    score: ScoreFunction,
    *,
    samples: int = 1000,
    seed: int = 12345,
    level: float = 0.95,
) -> tuple[float, float]:
    """The percentile interval of a score when the examples are drawn again with replacement.

    `statistics` is [examples, k] and additive; `score` maps sums [samples, k] to values [samples].
    """
    additive = _checked(statistics)
    examples = len(additive)
    rng = np.random.default_rng(seed)

    def times_drawn(rows: int) -> Values:
        # sacrebleu draws the same for the same seed, so `bs` and `seed` in a signature mean what they say.
        drawn = rng.integers(examples, size=(rows, examples))
        drawn += examples * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * examples)
        return counts.reshape(rows, examples).astype(np.float64)

    values = score(_weighted_sums(additive, samples, times_drawn))
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def score_with_interval(
    name: str,
    statistics: Statistics,
    score: ScoreFunction,
    *,
    signature: str,
    samples: int = 1000,
    seed: int = 12345,
) -> Score:
    """The score of all examples together with its 95% bootstrap interval."""
    additive = _checked(statistics)
    low, high = bootstrap(additive, score, samples=samples, seed=seed)
    return Score(
        name=name,
        value=float(score(additive.sum(axis=0, keepdims=True))[0]),
        low=low,
        high=high,
        n=len(additive),
        signature=signature,
    )


def compare(
    a: Statistics,
    b: Statistics,
    score: ScoreFunction,
    *,
    metric: str,
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Does b differ from a by more than chance, when both were run on the same examples in the same order?

    The interval of the difference is a paired bootstrap: both systems are scored on the same resamples. The
    two-sided p-value is a paired approximate randomization: were the systems alike, exchanging their outputs
    on a random half of the examples would often give a difference at least as large.
    """
    a, b = _checked(a), _checked(b)
    if a.shape != b.shape:
        raise DataError(
            f"the systems to compare have statistics of different shapes, {a.shape} and {b.shape}",
            hint="both systems scored on the same examples, in the same order",
            code="data.shape",
        )
    examples, width = a.shape
    both = np.hstack([a, b])
    rng = np.random.default_rng(seed)

    def difference(sums: Values) -> Values:
        return score(sums[:, width:]) - score(sums[:, :width])

    def exchanged(rows: int) -> Values:
        return rng.integers(2, size=(rows, examples), dtype=np.bool_).astype(np.float64)

    total = both.sum(axis=0, keepdims=True)
    value_a, value_b = float(score(total[:, :width])[0]), float(score(total[:, width:])[0])
    low, high = bootstrap(both, difference, samples=samples, seed=seed)
    by_chance = difference(total + _weighted_sums(np.hstack([b - a, a - b]), samples, exchanged))
    # Rounding must not break a tie: exchanging no example, or all of them, is a difference as large.
    rounding = 1e-12 * max(abs(value_a), abs(value_b))
    as_large = int(np.count_nonzero(np.abs(by_chance) >= abs(value_b - value_a) - rounding))
    return Comparison(
        metric=metric,
        a=value_a,
        b=value_b,
        difference=value_b - value_a,
        low=low,
        high=high,
        p_value=(as_large + 1) / (samples + 1),
        n=examples,
        test=f"paired approximate randomization {samples}, two-sided; "
        f"interval: paired bootstrap {samples}, 95%; seed {seed}",
    )


def scores_of(metrics: Iterable[Metric], *, rule: str, samples: int = 1000, seed: int = 12345) -> list[Score]:
    """Every metric with its interval; the signature names the rule they share."""
    signature = f"{rule}, bootstrap {samples}, seed {seed}, 95%"
    return [score_with_interval(*metric, signature=signature, samples=samples, seed=seed) for metric in metrics]


def values_of(metrics: Iterable[Metric]) -> dict[str, float]:
    """Without intervals: for a look during training."""
    return {name: float(score(statistics.sum(axis=0))) for name, statistics, score in metrics}


def comparisons_of(a: Iterable[Metric], b: Iterable[Metric], *, samples: int, seed: int) -> list[Comparison]:
    """System b against system a, metric by metric."""
    return [
        compare(ours.statistics, theirs.statistics, ours.score, metric=ours.name, samples=samples, seed=seed)
        for ours, theirs in zip(a, b, strict=True)
    ]


def require_pairs(predicted: Sized, gold: Sized, *, what: str = "predictions", of: str = "examples") -> None:
    """One prediction for each, and something to score."""
    if len(predicted) != len(gold) or len(gold) == 0:
        raise DataError(
            f"{len(predicted)} {what} for {len(gold)} {of}",
            hint="one for each, and at least one",
            code="data.counts" if len(predicted) != len(gold) else "data.empty",
        )


def _weighted_sums(statistics: Values, samples: int, draw: Callable[[int], Values]) -> Values:
    """[samples, k]: sums over the examples under weights [rows, examples] drawn a few samples at a time."""
    rows = max(1, _WEIGHTS_AT_ONCE // len(statistics))
    return np.concatenate([draw(min(rows, samples - done)) @ statistics for done in range(0, samples, rows)])


def _checked(statistics: Statistics) -> Values:
    if statistics.ndim != 2 or len(statistics) == 0:
        raise DataError(
            f"statistics of shape {statistics.shape} cannot be scored",
            hint="[examples, k] with at least one example",
            code="data.shape",
        )
    # Counts stay exact in float64 up to 2**53, and only floats get a fast matrix product.
    return statistics.astype(np.float64, copy=False)
