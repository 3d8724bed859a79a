"""F1 and exact match where an example may have any number of labels, with intervals."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jumok.errors import DataError
from jumok.score.classification import (
    accuracy_from,
    label_statistics,
    macro_f1_from,
    micro_f1_from,
    of_each_label,
    share_statistics,
)
from jumok.score.significance import Comparison, Metric, Score, comparisons_of, scores_of, values_of

Labels = NDArray[np.bool_]
"""[examples, labels]: which of them an example has"""


def score_labels(
    predicted: Labels, gold: Labels, *, names: Sequence[str] = (), samples: int = 1000, seed: int = 12345
) -> list[Score]:
    """`micro_f1`, `macro_f1` and `exact_match`: all the labels of an example are right; then `f1_NAME` of each label,
    if they have names."""
    rule = f"any of {np.shape(gold)[-1]} labels"
    return scores_of(_metrics(predicted, gold, names), rule=rule, samples=samples, seed=seed)


def quick_labels(predicted: Labels, gold: Labels) -> dict[str, float]:
    """The same without intervals: for a look during training."""
    return values_of(_metrics(predicted, gold))


def compare_labels(
    a: Labels, b: Labels, gold: Labels, *, names: Sequence[str] = (), samples: int = 1000, seed: int = 12345
) -> list[Comparison]:
    """System b against system a in every metric of `score_labels`."""
    return comparisons_of(_metrics(a, gold, names), _metrics(b, gold, names), samples=samples, seed=seed)


def _metrics(predicted: Labels, gold: Labels, names: Sequence[str] = ()) -> list[Metric]:
    said, true = np.asarray(predicted, dtype=np.bool_), np.asarray(gold, dtype=np.bool_)
    if said.shape != true.shape or true.ndim != 2 or true.size == 0:
        what = f"predicted labels of shape {said.shape} for labels of shape {true.shape}"
        raise DataError(what, hint="[examples, labels], the same for both, and at least one of each", code="data.shape")
    by_label = label_statistics(said.astype(np.float64), true.astype(np.float64))
    return [
        Metric("micro_f1", by_label, micro_f1_from),
        Metric("macro_f1", by_label, macro_f1_from),
        Metric("exact_match", share_statistics((said == true).all(axis=1)), accuracy_from),
        *of_each_label(by_label, names),
    ]
