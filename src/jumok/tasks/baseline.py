"""Baselines to compare a score with, which depend on the data alone and not on a run or its vocabulary.

The most frequent label, or the mean of numbers, and a bag of words (text/bag.py). The bag of words is multinomial naive
Bayes over words and bigrams, each counted once per text (Wang & Manning 2012, "Baselines and Bigrams"): it learns in
one pass over the training data and is hard to beat on short texts. A number is predicted from the mean deviation of
training texts with the same words. A pair is read as one text; another baseline uses only the share of words that its
two texts have in common. The best of them is compared with the model in a paired test.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from jumok.score.significance import Metrics
from jumok.tasks.targets import Array, Numbers, Several, Targets
from jumok.text.bag import BUCKETS

PARTS = 10  # groups of training pairs, by what they have in common
MOST = 200_000
"""training examples that baselines learn from, the first ones: more hardly change them"""
LOWER_IS_BETTER = frozenset({"perplexity", "word_perplexity", "bits_per_byte", "masked_loss", "mean_absolute_error"})
_AT_ONCE = 1 << 22
Example = TypeVar("Example")
Baselines = Callable[[Sequence[Any]], dict[str, Metrics]]
"""the metrics of each baseline on labelled examples, the metric that they are compared in first"""
Decisions = Callable[[Sequence[Array]], dict[str, Array]]
"""the decisions of each baseline on texts, given as their features"""


def some_of(train: Iterable[Example]) -> Iterator[Example]:
    return islice(train, MOST)


def beside(model: Metrics, baselines: Mapping[str, Metrics], known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The values of baselines, and the model against the best of them: two entries of a split in scores.json.

    `known` is what the entry has already, such as baselines that nothing is learned for.
    """
    shared = {name: found.only(model.names) for name, found in baselines.items()}
    shared = {name: found for name, found in shared.items() if found.names}
    if not shared:
        return {}
    values_of = {name: found.values() for name, found in shared.items()}
    entry: dict[str, Any] = {"baselines": {**(known or {}).get("baselines", {}), **values_of}}
    metric = next(iter(shared.values())).names[0]
    sign = -1 if metric in LOWER_IS_BETTER else 1
    values = {name: sign * found.values(metric)[metric] for name, found in shared.items() if metric in found.names}
    best = max(values, key=lambda name: values[name])
    (found,) = shared[best].only([metric]).against(model.only([metric]))
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(found).items()}
    return entry | {"against_baseline": {"baseline": best, **rounded}}


def is_better(against: Mapping[str, Any]) -> bool:
    """Whether a model is better than the best baseline by more than chance, as `beside` compared them."""
    sign = -1 if against["metric"] in LOWER_IS_BETTER else 1
    return bool(sign * against["difference"] > 0 and against["p_value"] < 0.05)


def told_against(against: Mapping[str, Any]) -> str:
    """The comparison in words, with its interval and p."""
    name, metric = against["baseline"].replace("_", " "), against["metric"]
    said = "better than" if is_better(against) else "not clearly better than"
    interval = f"95 % interval {against['low']:+.2f} to {against['high']:+.2f}"
    return (
        f"{said} the best baseline, {name}: {metric} {against['b']:.2f} against {against['a']:.2f},"
        f" {against['difference']:+.2f}, {interval}, p = {against['p_value']:.3f}"
    )


def learn(targets: Targets, train: Iterable[tuple[Array, Sequence[int]]]) -> Decisions:
    """Learn the most frequent label or the mean, and a bag of words, from (features of a text, its labels)."""
    if isinstance(targets, Numbers):
        far = _distances(targets, train)

        def numbers(asked: Sequence[Array]) -> dict[str, Array]:
            found = np.array([far[text].sum() / max(len(text), 1) for text in asked], dtype=np.float64)
            return {"mean": np.full(len(asked), targets.mean), "bag_of_words": targets.believed(found)}

        return numbers
    bayes = _Bayes(targets.width)
    for text, labels in train:
        bayes.learn(text, labels)
    bayes.learned()

    def decided(asked: Sequence[Array]) -> dict[str, Array]:
        n = len(asked)
        if isinstance(targets, Several):
            several = np.array([bayes.odds(text) > 0 for text in asked]).reshape(n, targets.width)
            return {"majority": np.tile(bayes.labels > bayes.n / 2, (n, 1)), "bag_of_words": several}
        classes = np.array([bayes.likelihoods(text).argmax() for text in asked], dtype=np.int64)
        return {"majority": np.full(n, int(bayes.labels.argmax())), "bag_of_words": classes}

    return decided


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


def _distances(targets: Numbers, train: Iterable[tuple[Array, Sequence[int]]]) -> Array:
    """Mean deviation of the texts with each feature, in standard deviations, smoothed by one more text at the mean."""
    sums, counts = np.zeros(BUCKETS), np.ones(BUCKETS)
    for found, stored in train:
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
        begins, ends = (np.searchsorted(self._pairs, (known + more) * len(self.labels)) for more in (0, 1))
        places = [np.arange(begin, end) for begin, end in zip(begins, ends, strict=True)]
        return known, np.concatenate([np.zeros(0, dtype=np.int64), *places])


def _log_ratio(counts: Array, others: Array | int) -> Array:
    with np.errstate(divide="ignore"):  # all texts may have a label, or only empty ones
        return np.log(counts) - np.log(others)
