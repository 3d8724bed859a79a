"""Accuracy, F1, Matthews correlation and calibration of classifiers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jumok.errors import DataError
from jumok.score.significance import Metric, Metrics, Values, require_pairs

COLDEST, HOTTEST = 0.05, 20.0
"""the range of `temperature_for`"""


def accuracy_statistics(predicted: Sequence[int] | Sequence[str], gold: Sequence[int] | Sequence[str]) -> Values:
    return share_statistics(np.asarray(predicted) == np.asarray(gold))


def share_statistics(right: ArrayLike) -> Values:
    """[n, 2]: whether each is right, and 1."""
    hits = np.asarray(right, dtype=np.float64)
    return np.stack([hits, np.ones_like(hits)], axis=1)


def accuracy_from(statistics: Values) -> Values:
    """The percentage that is right; 0 without examples."""
    share: Values = statistics[..., 0] / np.maximum(statistics[..., 1], 1)
    return 100 * share


def f1_statistics(predicted: Sequence[int], gold: Sequence[int], *, n_labels: int) -> Values:
    """[n, 3 L]: for each label, whether it is a true positive, predicted, and gold."""
    return label_statistics(np.eye(n_labels)[np.asarray(predicted)], np.eye(n_labels)[np.asarray(gold)])


def label_statistics(predicted: Values, gold: Values) -> Values:
    """The same from two indicator matrices [n, L]."""
    return np.concatenate([predicted * gold, predicted, gold], axis=1)


def macro_f1_from(statistics: Values) -> Values:
    """The mean over labels of F1 = 2 tp / (predicted + gold); F1 of a label that never occurs is 0."""
    hits, predicted, gold = np.split(statistics, 3, axis=-1)
    f1: Values = (2 * hits / np.maximum(predicted + gold, 1)).sum(axis=-1) / max(hits.shape[-1], 1)
    return 100 * f1


def micro_f1_from(statistics: Values) -> Values:
    """F1 of the counts of all labels together."""
    hits, predicted, gold = (part.sum(axis=-1) for part in np.split(statistics, 3, axis=-1))
    f1: Values = 2 * hits / np.maximum(predicted + gold, 1)
    return 100 * f1


def mcc_from(statistics: Values) -> Values:
    """Matthews correlation for any number of labels (Gorodkin 2004); 0 if predictions or gold are all one label."""
    hits, predicted, gold = np.split(statistics, 3, axis=-1)
    n = gold.sum(axis=-1)
    covariance = n * hits.sum(axis=-1) - (predicted * gold).sum(axis=-1)
    spread = (n**2 - (predicted**2).sum(axis=-1)) * (n**2 - (gold**2).sum(axis=-1))
    correlation: Values = covariance / np.sqrt(np.where(spread > 0, spread, 1))
    return 100 * correlation


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions of like confidence, and how many of them are right: `reliability` of a split in scores.json."""

    above: float
    """the bin begins above this confidence"""
    up_to: float
    """and ends with this one"""
    n: int
    """number of predictions"""
    confidence: float
    """their mean confidence"""
    accuracy: float
    """the share that is right"""

    def plain(self) -> dict[str, Any]:
        """As JSON values, rounded to four decimals."""
        return {key: round(value, 4) for key, value in asdict(self).items()}


def reliability(confidence: Sequence[float], right: Sequence[bool], *, bins: int = 10) -> list[Bin]:
    """Predictions by confidence, in bins of equal width (Guo et al. 2017, Eqs. 1-2); empty bins are left out."""
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    edges = np.linspace(0, 1, bins + 1)
    bin_of = np.searchsorted(edges[1:-1], sure)
    members = [(b, bin_of == b) for b in np.unique(bin_of).tolist()]
    return [
        Bin(float(edges[b]), float(edges[b + 1]), int(m.sum()), float(sure[m].mean()), float(hit[m].mean()))
        for b, m in members
    ]


def calibration_error(confidence: Sequence[float], right: Sequence[bool], *, bins: int = 10) -> float:
    """Expected calibration error in per cent: mean gap between confidence and accuracy (Guo et al. 2017, Eq. 3)."""
    found = reliability(confidence, right, bins=bins)
    return 100 * sum(abs(b.accuracy - b.confidence) * b.n for b in found) / max(len(confidence), 1)


def softmax(logits: ArrayLike, temperature: float = 1.0) -> Values:
    """Softmax over the last axis, with a temperature (Guo et al. 2017, Eq. 9)."""
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    weights = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def perplexity_of(right: ArrayLike) -> float:
    """Perplexity of the gold labels, from the probabilities that the model gives them."""
    return float(np.exp(-np.log(np.maximum(right, 1e-12)).mean()))


def temperature_for(logits: ArrayLike, gold: ArrayLike) -> float:
    """The T for which softmax(logits / T) maximises the likelihood of the gold labels (Guo et al. 2017, §4.2).

    The negative log-likelihood is convex in 1/T, so the likelihood has one peak, found by bisection on the sign of the
    slope. If every prediction is right, colder is always better and the peak is at the bound.
    """
    scores, labels = np.asarray(logits, dtype=np.float64), np.asarray(gold)
    require_pairs(scores, labels, what="rows of logits", of="labels")
    if not np.isfinite(scores).all():
        raise DataError(
            "the logits are not all finite",
            hint="pass finite numbers, [examples, labels]",
            code="data.not_finite",
        )
    above_gold = scores - np.take_along_axis(scores, labels[:, None], axis=1)
    if not above_gold.any():
        return 1.0  # every T is equally good

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
    """The same for sigmoid(logits / T), [n, L]: each label is a choice between its logit and 0."""
    scores, true = np.asarray(logits, dtype=np.float64), np.asarray(gold, dtype=np.bool_)
    if scores.shape != true.shape:
        what = f"logits of shape {scores.shape} for labels of shape {true.shape}"
        raise DataError(what, hint="pass arrays of the same shape", code="data.shape")
    choices = np.stack([np.zeros(scores.size), scores.ravel()], axis=1)
    return temperature_for(choices, true.ravel().astype(int))


def f1_by_label(statistics: Values, names: Sequence[str]) -> list[Metric]:
    """`f1_NAME` of each label, from `statistics` [n, 3 L] of the L labels with these names."""
    return [Metric(f"f1_{name}", statistics[:, k :: len(names)], macro_f1_from) for k, name in enumerate(names)]


def class_metrics(
    predicted: Sequence[int], gold: Sequence[int], *, n_labels: int, names: Sequence[str] = ()
) -> Metrics:
    """`accuracy`, `macro_f1` and `mcc`; with `names` of the labels, also `f1_NAME` of each."""
    require_pairs(predicted, gold, of="labels")
    by_label = f1_statistics(predicted, gold, n_labels=n_labels)
    overall = (
        Metric("accuracy", accuracy_statistics(predicted, gold), accuracy_from),
        Metric("macro_f1", by_label, macro_f1_from),
        Metric("mcc", by_label, mcc_from),
    )
    return Metrics((*overall, *f1_by_label(by_label, names)), rule=f"{n_labels} labels")
