"""Correlation and error of predicted numbers (regression, similarity)."""

from collections.abc import Sequence

import numpy as np

from jumok.errors import DataError
from jumok.score.significance import Metric, Metrics, Values, require_pairs

Numbers = Sequence[float] | Values


def ranks(numbers: Values) -> Values:
    """Ranks from 1 for the smallest; equal numbers share their mean rank."""
    _, place, times = np.unique(numbers, return_inverse=True, return_counts=True)
    mean_rank: Values = np.cumsum(times) - (times - 1) / 2
    return mean_rank[place]


def correlation_statistics(predicted: Values, gold: Values) -> Values:
    """[n, 6]: 1, x, y, x², y², xy; each side standardised over the whole set.

    Standardising leaves correlations unchanged, but keeps the digits of sums of squares, and makes the outputs of two
    systems with different scales interchangeable.
    """
    x, y = _standardised(predicted), _standardised(gold)
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def correlation_from(statistics: Values) -> Values:
    """Pearson's r, times 100; zero if a side is constant."""
    n, x, y, xx, yy, xy = (statistics[..., k] for k in range(6))
    spread_x, spread_y = n * xx - x**2, n * yy - y**2
    # The spread of a resample that repeats a single number is rounding error.
    constant = (spread_x <= 1e-12 * n * xx) | (spread_y <= 1e-12 * n * yy)
    r = (n * xy - x * y) / np.sqrt(np.where(constant, 1, spread_x * spread_y))
    return 100 * np.where(constant, 0, np.clip(r, -1, 1))


def error_statistics(predicted: Values, gold: Values) -> Values:
    """[n, 2]: absolute error, and 1."""
    return np.stack([np.abs(predicted - gold), np.ones_like(gold)], axis=1)


def mean_from(statistics: Values) -> Values:
    mean: Values = statistics[..., 0] / statistics[..., 1]
    return mean


def number_metrics(predicted: Numbers, gold: Numbers) -> Metrics:
    """`pearson` and `spearman`, times 100, and `mean_absolute_error`, in the unit of the gold: lower is better."""
    require_pairs(predicted, gold, of="numbers")
    x, y = np.asarray(predicted, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        hint = "pass finite numbers, predicted and gold"
        raise DataError("a number to score is not finite", hint=hint, code="data.not_finite")
    metrics = (
        Metric("pearson", correlation_statistics(x, y), correlation_from),
        Metric("spearman", correlation_statistics(ranks(x), ranks(y)), correlation_from),
        Metric("mean_absolute_error", error_statistics(x, y), mean_from),
    )
    return Metrics(metrics, rule="ranks of the whole set")


def _standardised(numbers: Values) -> Values:
    centred = numbers - numbers.mean()
    spread = np.sqrt((centred**2).mean())
    return np.asarray(centred / spread) if spread > 0 else centred
