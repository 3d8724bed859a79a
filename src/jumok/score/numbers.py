"""Correlation and error of predicted numbers (regression, similarity), with intervals."""

from collections.abc import Sequence

import numpy as np

from jumok.errors import DataError
from jumok.score.significance import (
    Comparison,
    Metric,
    Score,
    Values,
    comparisons_of,
    require_pairs,
    scores_of,
    values_of,
)

Numbers = Sequence[float] | Values


def ranks(numbers: Values) -> Values:
    """From 1, the smallest; equal numbers share the mean of their ranks."""
    _, place, times = np.unique(numbers, return_inverse=True, return_counts=True)
    mean_rank: Values = np.cumsum(times) - (times - 1) / 2
    return mean_rank[place]


def correlation_statistics(predicted: Values, gold: Values) -> Values:
    """[n, 6]: one, x, y, x², y², xy; each side standardised over the whole set.

    No correlation changes by that, but sums of squares keep their digits, and the outputs of two systems that speak on
    different scales can be exchanged.
    """
    x, y = _standardised(predicted), _standardised(gold)
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def correlation_from(statistics: Values) -> Values:
    """Pearson's r, times 100; zero if a side is constant."""
    n, x, y, xx, yy, xy = (statistics[..., k] for k in range(6))
    spread_x, spread_y = n * xx - x**2, n * yy - y**2
    # A resample of one number drawn again and again has a spread of rounding only.
    constant = (spread_x <= 1e-12 * n * xx) | (spread_y <= 1e-12 * n * yy)
    r = (n * xy - x * y) / np.sqrt(np.where(constant, 1, spread_x * spread_y))
    return 100 * np.where(constant, 0, np.clip(r, -1, 1))


def error_statistics(predicted: Values, gold: Values) -> Values:
    """[n, 2]: distance, one."""
    return np.stack([np.abs(predicted - gold), np.ones_like(gold)], axis=1)


def mean_from(statistics: Values) -> Values:
    mean: Values = statistics[..., 0] / statistics[..., 1]
    return mean


def score_numbers(predicted: Numbers, gold: Numbers, *, samples: int = 1000, seed: int = 12345) -> list[Score]:
    """`pearson` and `spearman`, times 100, and `mean_absolute_error`, in the unit of the gold: lower is better."""
    return scores_of(_metrics(predicted, gold), rule="ranks of the whole set", samples=samples, seed=seed)


def quick_numbers(predicted: Numbers, gold: Numbers) -> dict[str, float]:
    """The same without intervals: for a look during training."""
    return values_of(_metrics(predicted, gold))


def compare_numbers(
    a: Numbers, b: Numbers, gold: Numbers, *, samples: int = 1000, seed: int = 12345
) -> list[Comparison]:
    """System b against system a in every metric of `score_numbers`; each has its ranks in the whole set."""
    return comparisons_of(_metrics(a, gold), _metrics(b, gold), samples=samples, seed=seed)


def _metrics(predicted: Numbers, gold: Numbers) -> list[Metric]:
    require_pairs(predicted, gold, of="numbers")
    x, y = np.asarray(predicted, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError(
            "a number to score is not finite", hint="finite numbers, predicted and gold", code="data.not_finite"
        )
    return [
        Metric("pearson", correlation_statistics(x, y), correlation_from),
        Metric("spearman", correlation_statistics(ranks(x), ranks(y)), correlation_from),
        Metric("mean_absolute_error", error_statistics(x, y), mean_from),
    ]


def _standardised(numbers: Values) -> Values:
    centred = numbers - numbers.mean()
    spread = np.sqrt((centred**2).mean())
    return np.asarray(centred / spread) if spread > 0 else centred
