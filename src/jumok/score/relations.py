"""F1 of relations by the official rule of SemEval-2010 Task 8, with intervals.

Hendrickx et al. 2010: (9+1)-way evaluation with directionality taken into account, macro-averaged F1. A hit is the
right relation in the right direction; one in the wrong direction is predicted, and missed. "No relation" is not
averaged, but a relation predicted there costs precision.
"""

import re
from collections.abc import Sequence

import numpy as np

from jumok.errors import DataError
from jumok.score.classification import accuracy_from, accuracy_statistics, macro_f1_from, micro_f1_from
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

_DIRECTION = re.compile(r"\((e1,e2|e2,e1)\)$")


def relation_of(label: str) -> str:
    """Without the direction: Cause-Effect(e2,e1) is a Cause-Effect."""
    return _DIRECTION.sub("", label)


def relation_statistics(predicted: Sequence[str], gold: Sequence[str], *, relations: Sequence[str]) -> Values:
    """[n, 3 R]: for each relation whether it is right and in its direction; predicted, and in the gold, in any."""
    said, true = (
        np.array([[relation_of(label) == relation for relation in relations] for label in side], dtype=np.float64)
        for side in (predicted, gold)
    )
    right = accuracy_statistics(predicted, gold)[:, :1]
    return np.concatenate([right * said, said, true], axis=1)


def score_relations(
    predicted: Sequence[str],
    gold: Sequence[str],
    *,
    no_relation: str | None,
    relations: Sequence[str] | None = None,
    samples: int = 1000,
    seed: int = 12345,
) -> list[Score]:
    """`macro_f1` (the official score), `micro_f1` and `accuracy`, then `f1_RELATION` of each.

    `relations` are all there are, with direction or without; if it is not given, those that occur.
    """
    found = _relations([predicted, gold], no_relation, relations)
    metrics = _metrics(predicted, gold, found) + _of_each(predicted, gold, found)
    without = "" if no_relation is None else f" without {no_relation}"
    rule = f"SemEval-2010 Task 8, {len(found)} relations{without}"
    return scores_of(metrics, rule=rule, samples=samples, seed=seed)


def quick_relations(
    predicted: Sequence[str],
    gold: Sequence[str],
    *,
    no_relation: str | None,
    relations: Sequence[str] | None = None,
) -> dict[str, float]:
    """The first three without intervals: for a look during training."""
    return values_of(_metrics(predicted, gold, _relations([predicted, gold], no_relation, relations)))


def compare_relations(
    a: Sequence[str],
    b: Sequence[str],
    gold: Sequence[str],
    *,
    no_relation: str | None,
    relations: Sequence[str] | None = None,
    samples: int = 1000,
    seed: int = 12345,
) -> list[Comparison]:
    """System b against system a; a relation that either of them predicts counts for both."""
    found = _relations([a, b, gold], no_relation, relations)
    ours, theirs = (_metrics(said, gold, found) + _of_each(said, gold, found) for said in (a, b))
    return comparisons_of(ours, theirs, samples=samples, seed=seed)


def _relations(sides: Sequence[Sequence[str]], no_relation: str | None, relations: Sequence[str] | None) -> list[str]:
    occurring = {relation_of(label) for side in sides for label in side} - {no_relation}
    if relations is None:
        return sorted(occurring)
    known = [name for name in dict.fromkeys(map(relation_of, relations)) if name != no_relation]
    if unknown := sorted(occurring - set(known)):
        raise DataError(
            f"no such relation: {', '.join(unknown)}", hint=f"one of {', '.join(known)}", code="data.unknown_label"
        )
    return known


def _metrics(predicted: Sequence[str], gold: Sequence[str], relations: Sequence[str]) -> list[Metric]:
    require_pairs(predicted, gold, of="relations")
    by_relation = relation_statistics(predicted, gold, relations=relations)
    return [
        Metric("macro_f1", by_relation, macro_f1_from),
        Metric("micro_f1", by_relation, micro_f1_from),
        Metric("accuracy", accuracy_statistics(predicted, gold), accuracy_from),
    ]


def _of_each(predicted: Sequence[str], gold: Sequence[str], relations: Sequence[str]) -> list[Metric]:
    return [
        Metric(f"f1_{name}", relation_statistics(predicted, gold, relations=[name]), macro_f1_from)
        for name in relations
    ]
