"""What is taken for what: counts of gold and predicted labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jumok.score.significance import require_pairs
from jumok.score.tagging import Spans

NO_ENTITY = "O"
"""the label of a span that only one side has"""


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often each gold label was predicted as each label: `confusion` of a split in scores.json."""

    labels: list[str]
    """of rows and columns; for entities also `O`, no entity with these ends"""
    counts: list[list[int]]
    """a row for each gold label, a column for each predicted one"""


@dataclass(frozen=True, slots=True)
class OfLabel:
    """How well one label is found."""

    label: str
    precision: float
    """per cent of what was predicted as it"""
    recall: float
    """per cent of what is it"""
    f1: float
    gold: int
    """how many are it"""
    predicted: int
    """how many were predicted as it"""


def by_label(found: Confusion) -> list[OfLabel]:
    """Precision and recall of each label, 0 where there is nothing to divide by; not of `O`, which is no label."""
    counts = np.array(found.counts)
    rights, golds, saids = np.diag(counts).tolist(), counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist()
    rows: list[OfLabel] = []
    for label, right, gold, said in zip(found.labels, rights, golds, saids, strict=True):
        shares = (100 * right / max(said, 1), 100 * right / max(gold, 1), 200 * right / max(gold + said, 1))
        rows += [OfLabel(label, *shares, gold, said)] if label != NO_ENTITY else []
    return rows


def confused(found: Confusion, most: int = 5) -> list[tuple[str, str, int]]:
    """The most frequent confusions: gold label, predicted label, count."""
    pairs = [
        (gold, said, n)
        for gold, row in zip(found.labels, found.counts, strict=True)
        for said, n in zip(found.labels, row, strict=True)
        if n and gold != said
    ]
    return sorted(pairs, key=lambda pair: -pair[2])[:most]


def confusion(predicted: Sequence[int], gold: Sequence[int], *, labels: Sequence[str]) -> Confusion:
    """Count the pairs of gold and predicted label; both are numbers of `labels`."""
    require_pairs(predicted, gold, of="labels")
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(counts, (np.asarray(gold), np.asarray(predicted)), 1)
    return Confusion(list(labels), counts.tolist())


def span_confusion(predicted: Spans, gold: Spans) -> Confusion:
    """The same for the types of entities: those with the same ends are a pair, all others have none on one side."""
    require_pairs(predicted, gold, what="sentences with spans", of="sentences")
    pairs = []
    for ours, true in zip(predicted, gold, strict=True):
        of_ours, of_true = ({place[1:]: place[0] for place in side} for side in (ours, true))
        pairs += [(of_ours.get(ends, NO_ENTITY), of_true.get(ends, NO_ENTITY)) for ends in {**of_true, **of_ours}]
    labels = [*sorted({label for pair in pairs for label in pair} - {NO_ENTITY}), NO_ENTITY]
    number = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for a, b in pairs:
        counts[number[b], number[a]] += 1
    return Confusion(labels, counts.tolist())
