"""What a score has to be held against: the most frequent label, and a bag of words.

Multinomial naive Bayes over pieces and pairs of neighbouring pieces, each counted once a text (Wang & Manning 2012,
"Baselines and Bigrams"): it learns in one pass over the training data, and on short texts it is hard to beat.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from jumok.tasks.targets import Array, Numbers, Several, Targets

BUCKETS = 1 << 18
_PAIR = 1_000_003  # a prime, so that pairs of pieces fall into buckets of their own more often than not


def baselines(
    targets: Targets, train: Iterable[tuple[Iterable[int], Iterable[int]]], rows: Sequence[Sequence[Sequence[int]]]
) -> dict[str, Array]:
    """What each baseline, trained on (ids of a text, its labels), decides of texts in windows of ids."""
    if isinstance(targets, Numbers):
        return {}  # a mean says the same of all, and correlates with nothing
    table, counts = np.zeros((targets.width, BUCKETS)), np.zeros(targets.width)
    every, n = np.zeros(BUCKETS), 0
    for ids, labels in train:
        found = features(ids)
        every[found] += 1
        n += 1
        for label in labels:
            counts[label] += 1
            table[label, found] += 1
    known = every > 0  # what training does not know says nothing
    texts = [_all(windows) for windows in rows]
    if isinstance(targets, Several):  # each label by itself, against all texts without it
        odds = _log_odds(counts, n - counts) + _sums(_weights(table, known) - _weights(every - table, known), texts)
        return {"majority": np.tile(counts > n / 2, (len(rows), 1)), "bag_of_words": odds > 0}
    likely = _log_odds(counts, n) + _sums(_weights(table, known), texts)
    return {"majority": np.full(len(rows), int(counts.argmax())), "bag_of_words": likely.argmax(axis=1)}


def features(ids: Iterable[int]) -> Array:
    """The buckets of a text's pieces and of its pairs of neighbours."""
    pieces = np.asarray(list(ids), dtype=np.int64)
    pairs = pieces[:-1] * _PAIR + pieces[1:] + 1
    return np.unique(np.concatenate([pieces, pairs]) % BUCKETS)


def _all(windows: Sequence[Sequence[int]]) -> Array:
    return np.unique(np.concatenate([features(row) for row in windows]))


def _weights(table: Array, known: Array) -> Array:
    """log P(feature | label), each counted once more than it was seen."""
    smoothed = np.log((table + 1) / (table.sum(axis=1, keepdims=True) + known.sum()))
    return np.where(known, smoothed, 0.0)


def _sums(weights: Array, texts: Sequence[Array]) -> Array:
    """[texts, labels]"""
    return np.array([weights[:, found].sum(axis=1) for found in texts]).reshape(len(texts), len(weights))


def _log_odds(counts: Array, others: Array | int) -> Array:
    with np.errstate(divide="ignore"):  # a label may be that of all texts, or its texts may all be empty
        return np.log(counts) - np.log(others)
