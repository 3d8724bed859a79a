"""F1 and exact match where an example may have any number of labels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jumok.errors import DataError
from jumok.score.classification import (
    accuracy_from,
    f1_by_label,
    label_statistics,
    macro_f1_from,
    micro_f1_from,
    share_statistics,
)
from jumok.score.significance import Metric, Metrics

Labels = NDArray[np.bool_]
"""[examples, labels]: whether an example has a label"""


def label_metrics(predicted: Labels, gold: Labels, *, names: Sequence[str] = ()) -> Metrics:
    """`micro_f1`, `macro_f1` and `exact_match` (of all labels of an example); with `names`, also `f1_NAME` of each."""
    ours, true = np.asarray(predicted, dtype=np.bool_), np.asarray(gold, dtype=np.bool_)
    if ours.shape != true.shape or true.ndim != 2 or true.size == 0:
        what = f"predicted labels of shape {ours.shape} for gold labels of shape {true.shape}"
        hint = "pass two arrays [examples, labels] of the same shape, neither of them empty"
        raise DataError(what, hint=hint, code="data.shape")
    by_label = label_statistics(ours.astype(np.float64), true.astype(np.float64))
    overall = (
        Metric("micro_f1", by_label, micro_f1_from),
        Metric("macro_f1", by_label, macro_f1_from),
        Metric("exact_match", share_statistics((ours == true).all(axis=1)), accuracy_from),
    )
    return Metrics((*overall, *f1_by_label(by_label, names)), rule=f"any of {true.shape[1]} labels")
