"""What a score has to be held against: the most frequent label, and a bag of words.

Multinomial naive Bayes over pieces and pairs of neighbouring pieces, each counted once a text (Wang & Manning 2012,
"Baselines and Bigrams"): it learns in one pass over the training data, and on short texts it is hard to beat.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from jumok.data.shards import Shards
from jumok.tasks.targets import Array, Numbers, Several, Targets

BUCKETS = 1 << 18
_PAIR = 1_000_003  # a prime, so that pairs of pieces fall into buckets of their own more often than not


def baselines(targets: Targets, train: Shards, rows: Sequence[Sequence[Sequence[int]]]) -> dict[str, Array]:
    """What each baseline, trained on shards with the fields `text` and `label`, decides of texts in windows of ids."""
    text, label = train.fields["text"], train.fields["label"]
    if isinstance(targets, Numbers):
        return {}  # a mean says the same of all, and correlates with nothing
    labels = [label[i].tolist() for i in range(len(train))]
    table = np.zeros((targets.width, BUCKETS))
    counts = np.zeros(targets.width)
    for i, marked in enumerate(labels):
        found = features(text[i])
        for each in marked:
            counts[each] += 1
            table[each, found] += 1
    if isinstance(targets, Several):
        return {"majority": np.tile(counts > len(labels) / 2, (len(rows), 1))}
    seen = table.any(axis=0)  # what training does not know says nothing
    weights = np.where(seen, np.log((table + 1) / (table.sum(axis=1, keepdims=True) + seen.sum())), 0.0)
    with np.errstate(divide="ignore"):  # of a label all texts may be empty
        prior = np.log(counts / counts.sum())
    words = [int((prior + weights[:, _all(windows)].sum(axis=1)).argmax()) for windows in rows]
    return {"majority": np.full(len(rows), int(counts.argmax())), "bag_of_words": np.array(words)}


def features(ids: Iterable[int]) -> Array:
    """The buckets of a text's pieces and of its pairs of neighbours."""
    pieces = np.asarray(list(ids), dtype=np.int64)
    pairs = pieces[:-1] * _PAIR + pieces[1:] + 1
    return np.unique(np.concatenate([pieces, pairs]) % BUCKETS)


def _all(windows: Sequence[Sequence[int]]) -> Array:
    return np.unique(np.concatenate([features(row) for row in windows]))
