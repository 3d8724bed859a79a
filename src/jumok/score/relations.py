"""F1 of relations by the official rule of SemEval-2010 Task 8.

Hendrickx et al. 2010: (9+1)-way evaluation with directionality taken into account, macro-averaged F1. A hit needs the
right relation in the right direction; the wrong direction is both a false positive and a miss. "No relation" is left
out of the average, but a relation predicted in its place costs precision.
"""

import re
from collections.abc import Sequence

import numpy as np

from jumok.errors import DataError
from jumok.score.classification import (
    accuracy_from,
    accuracy_statistics,
    f1_by_label,
    macro_f1_from,
    micro_f1_from,
)
from jumok.score.significance import Metric, Metrics, Values, require_pairs

OVERALL = ("macro_f1", "micro_f1", "accuracy")
"""the metrics over all relations"""
_DIRECTION = re.compile(r"\((e1,e2|e2,e1)\)$")


def relation_of(label: str) -> str:
    """The label without its direction: Cause-Effect for Cause-Effect(e2,e1)."""
    return _DIRECTION.sub("", label)


def relation_statistics(predicted: Sequence[str], gold: Sequence[str], *, relations: Sequence[str]) -> Values:
    """[n, 3 R]: for each relation, whether it is a hit, and predicted and gold in either direction."""
    ours, true = (
        np.array([[relation_of(label) == relation for relation in relations] for label in side], dtype=np.float64)
        for side in (predicted, gold)
    )
    right = accuracy_statistics(predicted, gold)[:, :1]
    return np.concatenate([right * ours, ours, true], axis=1)


def relation_metrics(
    predicted: Sequence[str], gold: Sequence[str], *, relations: Sequence[str], no_relation: str | None
) -> Metrics:
    """`macro_f1` (the official score), `micro_f1` and `accuracy`, then `f1_RELATION` of each.

    `relations` are all labels of the data, with or without direction; `no_relation` may be one of them.
    """
    require_pairs(predicted, gold, of="relations")
    known = [name for name in dict.fromkeys(map(relation_of, relations)) if name != no_relation]
    if unknown := {relation_of(label) for label in (*predicted, *gold)} - {*known, no_relation}:
        what, hint = f"unknown relation: {', '.join(sorted(unknown))}", f"use one of {', '.join(known)}"
        raise DataError(what, hint=hint, code="data.unknown_label")
    by_relation = relation_statistics(predicted, gold, relations=known)
    overall = (
        Metric("macro_f1", by_relation, macro_f1_from),
        Metric("micro_f1", by_relation, micro_f1_from),
        Metric("accuracy", accuracy_statistics(predicted, gold), accuracy_from),
    )
    without = "" if no_relation is None else f" without {no_relation}"
    rule = f"SemEval-2010 Task 8, {len(known)} relations{without}"
    return Metrics((*overall, *f1_by_label(by_relation, known)), rule=rule)
