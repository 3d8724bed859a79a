"""Accuracy, F1 and calibration of classifiers, with intervals."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from jumok.errors import DataError
from jumok.score.significance import Comparison, Score, ScoreFunction, Values, compare, score_with_interval


def accuracy_statistics(predicted: Sequence[int], gold: Sequence[int]) -> Values:
    """[n, 2]: right, one."""
    right = np.asarray(predicted) == np.asarray(gold)
    return np.stack([right, np.ones_like(right)], axis=1).astype(np.float64)


def accuracy_from(statistics: Values) -> Values:
    share: Values = statistics[..., 0] / statistics[..., 1]
    return 100 * share


def f1_statistics(predicted: Sequence[int], gold: Sequence[int], *, n_labels: int) -> Values:
    """[n, 3 L]: for each label whether it is predicted and right, predicted, and right."""
    said, true = np.eye(n_labels)[np.asarray(predicted)], np.eye(n_labels)[np.asarray(gold)]
    return np.concatenate([said * true, said, true], axis=1)


def macro_f1_from(statistics: Values) -> Values:
    """The mean over labels of F1 = 2 tp / (predicted + right); a label that never occurs counts zero."""
    hits, said, true = np.split(statistics, 3, axis=-1)
    f1: Values = (2 * hits / np.maximum(said + true, 1)).mean(axis=-1)
    return 100 * f1


def calibration_error(confidence: Sequence[float], right: Sequence[bool], *, bins: int = 10) -> float:
    """Guo et al. 2017, Eq. 3: mean distance, in per cent, between how sure the model is and how often it is right."""
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [abs(hit[place == b].mean() - sure[place == b].mean()) * (place == b).mean() for b in np.unique(place)]
    return 100 * float(np.sum(gaps))


def score_classes(
    predicted: Sequence[int], gold: Sequence[int], *, n_labels: int, samples: int = 1000, seed: int = 12345
) -> list[Score]:
    """`accuracy` and `macro_f1`."""
    _require(predicted, gold)
    signature = f"{n_labels} labels, bootstrap {samples}, seed {seed}, 95%"
    return [
        score_with_interval(name, count(predicted, gold), score, signature=signature, samples=samples, seed=seed)
        for name, count, score in _metrics(n_labels)
    ]


def quick_scores(predicted: Sequence[int], gold: Sequence[int], *, n_labels: int) -> dict[str, float]:
    """The same without intervals: for a look during training."""
    _require(predicted, gold)
    return {name: float(score(count(predicted, gold).sum(axis=0))) for name, count, score in _metrics(n_labels)}


def compare_classes(
    a: Sequence[int], b: Sequence[int], gold: Sequence[int], *, n_labels: int, samples: int = 1000, seed: int = 12345
) -> list[Comparison]:
    """System b against system a in every metric of `score_classes`."""
    _require(a, gold)
    _require(b, gold)
    return [
        compare(count(a, gold), count(b, gold), score, metric=name, samples=samples, seed=seed)
        for name, count, score in _metrics(n_labels)
    ]


Count = Callable[[Sequence[int], Sequence[int]], Values]


def _metrics(n_labels: int) -> list[tuple[str, Count, ScoreFunction]]:
    return [
        ("accuracy", accuracy_statistics, accuracy_from),
        ("macro_f1", partial(f1_statistics, n_labels=n_labels), macro_f1_from),
    ]


def _require(predicted: Sequence[int], gold: Sequence[int]) -> None:
    if len(predicted) != len(gold) or not gold:
        what = f"{len(predicted)} predictions for {len(gold)} labels"
        raise DataError(what, right="one for every label, and at least one")
