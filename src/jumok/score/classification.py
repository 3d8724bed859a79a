"""Accuracy, F1, Matthews correlation and calibration of classifiers, with intervals."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

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

COLDEST, HOTTEST = 0.05, 20.0
"""The temperatures that `temperature_for` chooses between."""


def accuracy_statistics(predicted: Sequence[int] | Sequence[str], gold: Sequence[int] | Sequence[str]) -> Values:
    return share_statistics(np.asarray(predicted) == np.asarray(gold))


def share_statistics(right: ArrayLike) -> Values:
    """[n, 2]: right, one."""
    hits = np.asarray(right, dtype=np.float64)
    return np.stack([hits, np.ones_like(hits)], axis=1)


def accuracy_from(statistics: Values) -> Values:
    """Right of all; of none, zero."""
    share: Values = statistics[..., 0] / np.maximum(statistics[..., 1], 1)
    return 100 * share


def f1_statistics(predicted: Sequence[int], gold: Sequence[int], *, n_labels: int) -> Values:
    """[n, 3 L]: for each label whether it is predicted and right, predicted, and right."""
    return label_statistics(np.eye(n_labels)[np.asarray(predicted)], np.eye(n_labels)[np.asarray(gold)])


def label_statistics(said: Values, true: Values) -> Values:
    """[n, 3 L] from [n, L] and [n, L], one where a label is said, and where it is true."""
    return np.concatenate([said * true, said, true], axis=1)


def macro_f1_from(statistics: Values) -> Values:
    """The mean over labels of F1 = 2 tp / (predicted + right); a label that never occurs counts zero."""
    hits, said, true = np.split(statistics, 3, axis=-1)
    f1: Values = (2 * hits / np.maximum(said + true, 1)).sum(axis=-1) / max(hits.shape[-1], 1)
    return 100 * f1


def micro_f1_from(statistics: Values) -> Values:
    """The same F1 of the counts of all labels together."""
    hits, said, true = (part.sum(axis=-1) for part in np.split(statistics, 3, axis=-1))
    f1: Values = 2 * hits / np.maximum(said + true, 1)
    return 100 * f1


def mcc_from(statistics: Values) -> Values:
    """Gorodkin 2004: the correlation of what is said with what is true; zero if either is always the same label."""
    hits, said, true = np.split(statistics, 3, axis=-1)
    n = true.sum(axis=-1)
    covariance = n * hits.sum(axis=-1) - (said * true).sum(axis=-1)
    spread = (n**2 - (said**2).sum(axis=-1)) * (n**2 - (true**2).sum(axis=-1))
    correlation: Values = covariance / np.sqrt(np.where(spread > 0, spread, 1))
    return 100 * correlation


def calibration_error(confidence: Sequence[float], right: Sequence[bool], *, bins: int = 10) -> float:
    """Guo et al. 2017, Eq. 3: mean distance, in per cent, between how sure the model is and how often it is right."""
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [abs(hit[place == b].mean() - sure[place == b].mean()) * (place == b).mean() for b in np.unique(place)]
    return 100 * float(np.sum(gaps))


def softmax(logits: ArrayLike, temperature: float = 1.0) -> Values:
    """Guo et al. 2017, Eq. 9, over the last axis: hotter is less sure."""
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    weights = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def perplexity_of(right: ArrayLike) -> float:
    """How many labels a model is torn between, by the probabilities that it gives to the right ones."""
    return float(np.exp(-np.log(np.maximum(right, 1e-12)).mean()))


def temperature_for(logits: ArrayLike, gold: ArrayLike) -> float:
    """Guo et al. 2017, §4.2: the T whose softmax(logits / T) gives the gold labels the highest likelihood.

    The likelihood has one peak, as its negative logarithm is convex in 1/T: the sign of the slope says on which side.
    If all are right, colder is always better: then the peak is at the bound.
    """
    scores, labels = np.asarray(logits, dtype=np.float64), np.asarray(gold)
    require_pairs(scores, labels, what="rows of logits", of="labels")
    if not np.isfinite(scores).all():
        raise DataError(
            "logits that are not finite have no temperature",
            hint="finite numbers, [examples, labels]",
            code="data.not_finite",
        )
    above_gold = scores - np.take_along_axis(scores, labels[:, None], axis=1)
    if not above_gold.any():
        return 1.0  # every T is as good

    def too_cold(temperature: float) -> bool:
        return bool((softmax(above_gold, temperature) * above_gold).sum() > 0)

    low, high = COLDEST, HOTTEST
    if not too_cold(low):
        return low
    if too_cold(high):
        return high
    while high / low > 1 + 1e-12:
        middle = sqrt(low * high)
        low, high = (middle, high) if too_cold(middle) else (low, middle)
    return sqrt(low * high)


def temperature_for_labels(logits: ArrayLike, gold: ArrayLike) -> float:
    """The same for sigmoid(logits / T) of any number of labels, [n, L]: each is a choice between its logit and 0."""
    scores, true = np.asarray(logits, dtype=np.float64), np.asarray(gold, dtype=np.bool_)
    if scores.shape != true.shape:
        raise DataError(
            f"logits of shape {scores.shape} for labels of shape {true.shape}", hint="the same shape", code="data.shape"
        )
    choices = np.stack([np.zeros(scores.size), scores.ravel()], axis=1)
    return temperature_for(choices, true.ravel().astype(int))


def score_classes(
    predicted: Sequence[int],
    gold: Sequence[int],
    *,
    n_labels: int,
    names: Sequence[str] = (),
    samples: int = 1000,
    seed: int = 12345,
) -> list[Score]:
    """`accuracy`, `macro_f1` and `mcc`, then `f1_NAME` of each label, if they have names."""
    return scores_of(_metrics(predicted, gold, n_labels, names), rule=f"{n_labels} labels", samples=samples, seed=seed)


def quick_scores(predicted: Sequence[int], gold: Sequence[int], *, n_labels: int) -> dict[str, float]:
    """The same without intervals: for a look during training."""
    return values_of(_metrics(predicted, gold, n_labels))


def compare_classes(
    a: Sequence[int],
    b: Sequence[int],
    gold: Sequence[int],
    *,
    n_labels: int,
    names: Sequence[str] = (),
    samples: int = 1000,
    seed: int = 12345,
) -> list[Comparison]:
    """System b against system a in every metric of `score_classes`."""
    ours, theirs = (_metrics(predicted, gold, n_labels, names) for predicted in (a, b))
    return comparisons_of(ours, theirs, samples=samples, seed=seed)


def of_each_label(by_label: Values, names: Sequence[str]) -> list[Metric]:
    """F1 of each label, `by_label` being [n, 3 L], where all of them have names."""
    return [Metric(f"f1_{name}", by_label[:, k :: len(names)], macro_f1_from) for k, name in enumerate(names)]


def _metrics(predicted: Sequence[int], gold: Sequence[int], n_labels: int, names: Sequence[str] = ()) -> list[Metric]:
    require_pairs(predicted, gold, of="labels")
    by_label = f1_statistics(predicted, gold, n_labels=n_labels)
    return [
        Metric("accuracy", accuracy_statistics(predicted, gold), accuracy_from),
        Metric("macro_f1", by_label, macro_f1_from),
        Metric("mcc", by_label, mcc_from),
        *of_each_label(by_label, names),
    ]
