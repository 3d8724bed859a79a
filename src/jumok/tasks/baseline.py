"""Baselines to compare a score with: the most frequent label, or the mean of numbers, and a bag of words.

The bag of words is multinomial naive Bayes over tokens and bigrams, each counted once per text (Wang & Manning 2012,
"Baselines and Bigrams"): it learns in one pass over the training data and is hard to beat on short texts. A number is
predicted from the mean deviation of training texts with the same tokens. A pair is read as one text; another baseline
uses only the share of tokens that its two texts have in common.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from jumok.tasks.targets import Array, Numbers, Several, Targets

BUCKETS = 1 << 18
PARTS = 10  # groups of training pairs, by what they have in common
_PAIR = 1_000_003  # a prime, so that few bigrams share a bucket
_AT_ONCE = 1 << 22


def baselines(
    targets: Targets, train: Iterable[tuple[Iterable[int], Iterable[int]]], rows: Sequence[Sequence[Sequence[int]]]
) -> dict[str, Array]:
    """Decisions of each baseline, trained on (ids of a text, its labels), on texts in windows of ids."""
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
    """Decisions on pairs by the share they have in common: the mean labels of training pairs, grouped into quantiles of
    that share, are interpolated linearly."""
    in_common, labels = zip(*train, strict=True)
    shares = np.array(in_common)
    edges = np.unique(np.quantile(shares, np.linspace(0, 1, PARTS + 1)[1:-1]))
    part_of = np.searchsorted(edges, shares, side="right")
    parts = [np.flatnonzero(part_of == part) for part in np.unique(part_of)]
    middles = [shares[part].mean() for part in parts]
    means = np.stack([_mean_label(targets, [labels[i] for i in part]) for part in parts])
    predicted = np.stack([np.interp(asked, middles, of_label) for of_label in means.T], axis=1)
    return targets.decided(targets.believed(predicted) if isinstance(targets, Numbers) else predicted)


def _mean_label(targets: Targets, stored: Sequence[Sequence[int]]) -> Array:
    """[width]: the mean number, or the share of examples with each label."""
    if isinstance(targets, Numbers):
        mean: Array = targets.batch(stored).mean(axis=0, keepdims=True)
        return mean
    every = np.array([label for labels in stored for label in labels], dtype=np.int64)
    return np.bincount(every, minlength=targets.width) / len(stored)


def share_in_common(windows: Iterable[Sequence[int]], end: int, special: Collection[int]) -> float:
    """Share of a pair's distinct tokens that occur in both texts. The first text ends at the first `end`."""
    first: set[int] = set()
    second: set[int] = set()
    for row in windows:
        cut = row.index(end)
        first.update(row[:cut])
        second.update(row[cut:])
    ordinary = (first | second).difference(special)
    return len((first & second).difference(special)) / max(len(ordinary), 1)


def features(ids: Iterable[int]) -> Array:
    """Hash buckets of a text's tokens and bigrams."""
    tokens = np.asarray(list(ids), dtype=np.int64)
    bigrams = tokens[:-1] * _PAIR + tokens[1:] + 1
    return np.unique(np.concatenate([tokens, bigrams]) % BUCKETS)


def _distances(targets: Numbers, train: Iterable[tuple[Iterable[int], Iterable[int]]]) -> Array:
    """Mean deviation of the texts with each feature, in standard deviations, smoothed by one more text at the mean."""
    sums, counts = np.zeros(BUCKETS), np.ones(BUCKETS)
    for ids, stored in train:
        found = features(ids)
        sums[found] += float(targets.batch([list(stored)])[0])
        counts[found] += 1
    distances: Array = sums / counts
    return distances


class _Bayes:
    """P(feature | label) with add-one smoothing; features not seen in training are ignored.

    Only the (feature, label) pairs that occur are stored: a full table for thousands of labels would not fit into
    memory.
    """

    def __init__(self, width: int) -> None:
        self.n = 0
        self.labels = np.zeros(width)
        """number of texts with each label"""
        self._texts = np.zeros(BUCKETS)
        """number of texts with each feature"""
        self._pairs: Array = np.zeros(0, dtype=np.int64)
        """feature * width + label, sorted"""
        self._both: Array = np.zeros(0)
        """number of texts with each pair"""
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
        """Call after the last text."""
        self._merge()
        width = len(self.labels)
        self._begin = np.searchsorted(self._pairs, np.arange(BUCKETS + 1) * width)
        self._label = self._pairs % width
        known = np.count_nonzero(self._texts)
        with_label = np.bincount(self._label, weights=self._both, minlength=width)
        self._with, self._without = with_label + known, self._texts.sum() - with_label + known

    def likelihoods(self, found: Array) -> Array:
        """log P(label, text) for each label."""
        known, pairs = self._known(found)
        likely: Array = _log_ratio(self.labels, self.n) - len(known) * np.log(self._with)
        np.add.at(likely, self._label[pairs], np.log(self._both[pairs] + 1))
        return likely

    def odds(self, found: Array) -> Array:
        """log P(label, text) / P(no label, text) for each label separately."""
        known, pairs = self._known(found)
        odds: Array = _log_ratio(self.labels, self.n - self.labels)
        odds += len(known) * (np.log(self._without) - np.log(self._with)) - np.log(self._texts[known] + 1).sum()
        texts, both = self._texts[self._pairs[pairs] // len(self.labels)], self._both[pairs]
        np.add.at(odds, self._label[pairs], np.log(both + 1) - np.log(texts - both + 1) + np.log(texts + 1))
        return odds

    def _known(self, found: Array) -> tuple[Array, Array]:
        """The features seen in training, and the indices of their pairs."""
        known = found[self._texts[found] > 0]
        places = [np.arange(self._begin[feature], self._begin[feature + 1]) for feature in known]
        return known, np.concatenate([np.zeros(0, dtype=np.int64), *places])


def _log_ratio(counts: Array, others: Array | int) -> Array:
    with np.errstate(divide="ignore"):  # all texts may have a label, or only empty ones
        return np.log(counts) - np.log(others)
