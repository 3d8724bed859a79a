"""Bootstrap intervals and paired tests for any metric computed from summed per-example statistics."""

from collections.abc import Callable, Collection, Sized
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumok.errors import DataError

Statistics = NDArray[np.number[Any]]
Values = NDArray[np.float64]
ScoreFunction = Callable[[Values], Values]

# 8 MB of float64: resampling needs a few arrays of this size, whatever the number of examples and samples.
_WEIGHTS_AT_ONCE = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """A metric's value with its interval and signature."""

    name: str
    """the metric"""
    value: float
    """over all examples"""
    low: float
    """lower end of the 95 % interval"""
    high: float
    """upper end of the interval"""
    n: int
    """number of examples"""
    signature: str
    """how it was computed"""

    def plain(self) -> dict[str, Any]:
        """The score as JSON values, rounded to four decimals."""
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(self).items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """System b against system a on the same examples."""

    metric: str
    """name of the metric"""
    a: float
    """score of the first system"""
    b: float
    """score of the second system"""
    difference: float
    """b - a"""
    low: float
    """lower end of the difference's 95 % interval"""
    high: float
    """upper end of the interval"""
    p_value: float
    """probability of a difference at least this large if the systems were equally good"""
    n: int
    """number of examples"""
    test: str
    """how it was computed"""


class Metric(NamedTuple):
    """One system's additive statistics [examples, k], and the function that scores their sums."""

    name: str
    statistics: Values
    score: ScoreFunction
    signature: str = ""
    """replaces the signature that all metrics share; {samples} and {seed} are filled in"""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of one system on a set of examples."""

    metrics: tuple[Metric, ...]
    rule: str = ""
    """how the metrics are computed, for their signature"""

    @property
    def names(self) -> list[str]:
        return [metric.name for metric in self.metrics]

    def only(self, names: Collection[str]) -> "Metrics":
        """The metrics with these names."""
        return replace(self, metrics=tuple(metric for metric in self.metrics if metric.name in names))

    def values(self, *names: str) -> dict[str, float]:
        """Values without intervals, of all metrics or of those named: cheap enough for every evaluation on dev."""
        chosen = self.only(names) if names else self
        return {m.name: float(m.score(m.statistics.sum(axis=0))) for m in chosen.metrics}

    def scores(self, *, samples: int = 1000, seed: int = 12345) -> list[Score]:
        """Values with 95 % bootstrap intervals."""
        shared = f"{self.rule}, bootstrap {samples}, seed {seed}, 95%"
        scores = []
        for name, statistics, score, own in self.metrics:
            additive = _checked(statistics)
            value = float(score(additive.sum(axis=0, keepdims=True))[0])
            low, high = bootstrap(additive, score, samples=samples, seed=seed)
            signature = own.format(samples=samples, seed=seed) or shared
            scores.append(Score(name=name, value=value, low=low, high=high, n=len(additive), signature=signature))
        return scores

    def against(self, other: "Metrics", *, samples: int = 1000, seed: int = 12345) -> list[Comparison]:
        """Compare this system, a, with another, b, that was run on the same examples."""
        if self.names != other.names:
            raise DataError(
                f"the systems have different metrics: {', '.join(self.names)} and {', '.join(other.names)}",
                hint="score both systems on the same examples with the same metrics",
                code="data.shape",
            )
        return [
            compare(a.statistics, b.statistics, a.score, metric=a.name, samples=samples, seed=seed)
            for a, b in zip(self.metrics, other.metrics, strict=True)
        ]


def bootstrap(
    statistics: Statistics,
    score: ScoreFunction,
    *,
    samples: int = 1000,
    seed: int = 12345,
    level: float = 0.95,
) -> tuple[float, float]:
    """The percentile interval of a score over resamples of the examples, drawn with replacement.

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


def compare(
    a: Statistics,
    b: Statistics,
    score: ScoreFunction,
    *,
    metric: str,
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Test whether b differs from a by more than chance; both have the same examples in the same order.

    The interval of the difference is a paired bootstrap: both systems are scored on the same resamples. The
    two-sided p-value is a paired approximate randomization: were the systems alike, swapping their outputs
    on a random half of the examples would often give a difference at least as large.
    """
    a, b = _checked(a), _checked(b)
    if a.shape != b.shape:
        raise DataError(
            f"the systems to compare have statistics of different shapes, {a.shape} and {b.shape}",
            hint="score both systems on the same examples, in the same order",
            code="data.shape",
        )
    examples, width = a.shape
    both = np.hstack([a, b])
    rng = np.random.default_rng(seed)

    def difference(sums: Values) -> Values:
        return score(sums[:, width:]) - score(sums[:, :width])

    def swapped(rows: int) -> Values:
        return rng.integers(2, size=(rows, examples), dtype=np.bool_).astype(np.float64)

    total = both.sum(axis=0, keepdims=True)
    value_a, value_b = float(score(total[:, :width])[0]), float(score(total[:, width:])[0])
    low, high = bootstrap(both, difference, samples=samples, seed=seed)
    by_chance = difference(total + _weighted_sums(np.hstack([b - a, a - b]), samples, swapped))
    # Rounding must not break a tie: swapping no example, or all of them, gives an equal difference.
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


def require_pairs(predicted: Sized, gold: Sized, *, what: str = "predictions", of: str = "examples") -> None:
    """Refuse predictions that are not one for each example, or none at all."""
    if len(predicted) != len(gold) or len(gold) == 0:
        raise DataError(
            f"{len(predicted)} {what} for {len(gold)} {of}",
            hint="pass one prediction for each, and at least one",
            code="data.counts" if len(predicted) != len(gold) else "data.empty",
        )


def _weighted_sums(statistics: Values, samples: int, draw: Callable[[int], Values]) -> Values:
    """[samples, k]: sums over the examples, weighted by [rows, examples], which are drawn a few rows at a time."""
    rows = max(1, _WEIGHTS_AT_ONCE // len(statistics))
    return np.concatenate([draw(min(rows, samples - done)) @ statistics for done in range(0, samples, rows)])


def _checked(statistics: Statistics) -> Values:
    if statistics.ndim != 2 or len(statistics) == 0:
        raise DataError(
            f"statistics of shape {statistics.shape} cannot be scored",
            hint="pass an array [examples, k] with at least one example",
            code="data.shape",
        )
    # Counts stay exact in float64 up to 2**53, and only floats get a fast matrix product.
    return statistics.astype(np.float64, copy=False)
