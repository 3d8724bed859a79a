"""What a score has to be held against: the most frequent label, or the mean of numbers, and a bag of words.

Multinomial naive Bayes over pieces and pairs of neighbouring pieces, each counted once a text (Wang & Manning 2012,
"Baselines and Bigrams"): it learns in one pass over the training data, and on short texts it is hard to beat. A
number is told by how far from the mean texts with such pieces are. It reads a pair as one text; beside it stands what
the share of their pieces that the two have in common tells.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from jumok.tasks.targets import Array, Numbers, Several, Targets

BUCKETS = 1 << 18
PARTS = 10  # of the training pairs, by what they have in common
_PAIR = 1_000_003  # a prime, so that pairs of pieces fall into buckets of their own more often than not
_AT_ONCE = 1 << 22


def baselines(
    targets: Targets, train: Iterable[tuple[Iterable[int], Iterable[int]]], rows: Sequence[Sequence[Sequence[int]]]
) -> dict[str, Array]:
    """What each baseline, trained on (ids of a text, its labels), decides of texts in windows of ids."""
    texts = (np.unique(np.concatenate([features(row) for row in windows])) for windows in rows)
    if isinstance(targets, Numbers):
        far = _distances(targets, train)
        numbers = np.array([far[found].sum() / max(len(found), 1) for found in texts], dtype=np.float64)
        return {"mean": np.full(len(rows), targets.mean), "bag_of_words": targets.believed(numbers)}
    bayes = _Bayes(targets.width)
    for ids, labels in train:
        bayes.learn(features(ids), labels)
    bayes.learned()
    if isinstance(targets, Several):
        several = np.array([bayes.odds(found) > 0 for found in texts]).reshape(len(rows), targets.width)
        return {"majority": np.tile(bayes.labels > bayes.n / 2, (len(rows), 1)), "bag_of_words": several}
    classes = np.array([bayes.likelihoods(found).argmax() for found in texts], dtype=np.int64)
    return {"majority": np.full(len(rows), int(bayes.labels.argmax())), "bag_of_words": classes}


def overlap(targets: Targets, train: Iterable[tuple[float, Sequence[int]]], asked: Sequence[float]) -> Array:
    """What is decided of pairs that have so much in common, by the mean labels of training pairs: those of equal parts
    of them, from little in common to much, and straight lines between."""
    in_common, labels = zip(*train, strict=True)
    shares = np.array(in_common)
    edges = np.unique(np.quantile(shares, np.linspace(0, 1, PARTS + 1)[1:-1]))
    part_of = np.searchsorted(edges, shares, side="right")
    parts = [np.flatnonzero(part_of == part) for part in np.unique(part_of)]
    middles = [shares[part].mean() for part in parts]
    means = np.stack([_mean_label(targets, [labels[i] for i in part]) for part in parts])
    told = np.stack([np.interp(asked, middles, of_label) for of_label in means.T], axis=1)
    return targets.decided(targets.believed(told) if isinstance(targets, Numbers) else told)


def _mean_label(targets: Targets, stored: Sequence[Sequence[int]]) -> Array:
    """[width]: the mean number, or which share of the examples has each label."""
    if isinstance(targets, Numbers):
        mean: Array = targets.batch(stored).mean(axis=0, keepdims=True)
        return mean
    every = np.array([label for labels in stored for label in labels], dtype=np.int64)
    return np.bincount(every, minlength=targets.width) / len(stored)


def share_in_common(windows: Iterable[Sequence[int]], end: int, special: Collection[int]) -> float:
    """Of the pieces of a pair, each counted once: how many stand in both texts. The first ends at the first `end`."""
    first: set[int] = set()
    second: set[int] = set()
    for row in windows:
        cut = row.index(end)
        first.update(row[:cut])
        second.update(row[cut:])
    ordinary = (first | second).difference(special)
    return len((first & second).difference(special)) / max(len(ordinary), 1)


def features(ids: Iterable[int]) -> Array:
    """The buckets of a text's pieces and of its pairs of neighbours."""
    pieces = np.asarray(list(ids), dtype=np.int64)
    pairs = pieces[:-1] * _PAIR + pieces[1:] + 1
    return np.unique(np.concatenate([pieces, pairs]) % BUCKETS)


def _distances(targets: Numbers, train: Iterable[tuple[Iterable[int], Iterable[int]]]) -> Array:
    """Of each feature how far from the mean its texts are on average, in standard deviations, with one more at it."""
    sums, counts = np.zeros(BUCKETS), np.ones(BUCKETS)
    for ids, stored in train:
        found = features(ids)
        sums[found] += float(targets.batch([list(stored)])[0])
        counts[found] += 1
    distances: Array = sums / counts
    return distances


class _Bayes:
    """P(feature | label) with each counted once more than it was seen; what training does not have says nothing.

    Few labels have any one feature: what is kept are the pairs that occur, else a table of thousands of labels would
    not fit into memory.
    """

    def __init__(self, width: int) -> None:
        self.n = 0
        self.labels = np.zeros(width)
        """texts of each label"""
        self._texts = np.zeros(BUCKETS)
        """and of each feature"""
        self._pairs: Array = np.zeros(0, dtype=np.int64)
        """feature * width + label, in order"""
        self._both: Array = np.zeros(0)
        """texts that have the two"""
        self._new: list[Array] = []
        self._waiting = 0

    def learn(self, found: Array, labels: Iterable[int]) -> None:
        self.n += 1
        self._texts[found] += 1
        for label in labels:
            self.labels[label] += 1
            self._new.append(found * len(self.labels) + label)
            self._waiting += len(found)
        if self._waiting > _AT_ONCE:
            self._merge()

    def _merge(self) -> None:
        pairs = np.concatenate([self._pairs, *self._new])
        both = np.concatenate([self._both, np.ones(self._waiting)])
        self._pairs, place = np.unique(pairs, return_inverse=True)
        self._both = np.bincount(place, weights=both, minlength=len(self._pairs))
        self._new, self._waiting = [], 0

    def learned(self) -> None:
        """After the last text."""
        self._merge()
        width = len(self.labels)
        self._begin = np.searchsorted(self._pairs, np.arange(BUCKETS + 1) * width)
        self._label = self._pairs % width
        known = np.count_nonzero(self._texts)
        with_label = np.bincount(self._label, weights=self._both, minlength=width)
        self._with, self._without = with_label + known, self._texts.sum() - with_label + known

    def likelihoods(self, found: Array) -> Array:
        """log P(label, text) of each label."""
        known, pairs = self._known(found)
        likely: Array = _log_ratio(self.labels, self.n) - len(known) * np.log(self._with)
        np.add.at(likely, self._label[pairs], np.log(self._both[pairs] + 1))
        return likely

    def odds(self, found: Array) -> Array:
        """log P(label, text) / P(text without the label) of each label by itself."""
        known, pairs = self._known(found)
        odds: Array = _log_ratio(self.labels, self.n - self.labels)
        odds += len(known) * (np.log(self._without) - np.log(self._with)) - np.log(self._texts[known] + 1).sum()
        texts, both = self._texts[self._pairs[pairs] // len(self.labels)], self._both[pairs]
        np.add.at(odds, self._label[pairs], np.log(both + 1) - np.log(texts - both + 1) + np.log(texts + 1))
        return odds

    def _known(self, found: Array) -> tuple[Array, Array]:
        """The features that training has, and the places of their pairs with a label."""
        known = found[self._texts[found] > 0]
        places = [np.arange(self._begin[feature], self._begin[feature + 1]) for feature in known]
        return known, np.concatenate([np.zeros(0, dtype=np.int64), *places])


def _log_ratio(counts: Array, others: Array | int) -> Array:
    with np.errstate(divide="ignore"):  # a label may be that of all texts, or its texts may all be empty
        return np.log(counts) - np.log(others)
