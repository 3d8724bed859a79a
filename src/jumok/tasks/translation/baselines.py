"""Baselines for translation: the source itself, and the translation of the nearest source of training.

The nearest source shares the most words with a text, rare words counting more: the cosine of vectors of inverse
document frequencies. That is what a translation memory would offer.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import log

import numpy as np

from jumok.examples.pairs import Pair
from jumok.score.significance import Metrics
from jumok.tasks.baseline import Baselines, some_of
from jumok.text.bag import words

COMMON = 0.1
"""share of the training sources; a word in more of them finds none, unless a text has no other words"""
FEW = 1000
"""training sources, of which every word finds all that have it"""


def learn_baselines(train: Iterable[Pair], measure: Callable[[Sequence[str], Sequence[str]], Metrics]) -> Baselines:
    """`measure` scores outputs by references."""
    memory = _Memory(train)

    def scored(examples: Sequence[Pair]) -> dict[str, Metrics]:
        sources, gold = [pair.source for pair in examples], [pair.gold for pair in examples]
        said = {"copy": sources, "translation_memory": [memory.nearest(source) for source in sources]}
        return {name: measure(outputs, gold) for name, outputs in said.items()}

    return scored


class _Memory:
    def __init__(self, train: Iterable[Pair]) -> None:
        self.targets: list[str] = []
        places: dict[str, list[int]] = defaultdict(list)
        for pair in some_of(train):
            for word in {*words(pair.source)}:
                places[word].append(len(self.targets))
            self.targets.append(pair.gold)
        n = len(self.targets)
        self._places = {word: np.array(found) for word, found in places.items()}
        self._weights = {word: log(1 + n / len(found)) for word, found in self._places.items()}
        norms = np.zeros(n)
        for word, found in self._places.items():
            norms[found] += self._weights[word] ** 2
        self._norms = np.sqrt(np.maximum(norms, 1e-12))

    def nearest(self, source: str) -> str:
        """The translation of the nearest source, the first of several; empty if no word is known."""
        known = [word for word in Counter(words(source)) if word in self._places]
        most = max(COMMON * len(self.targets), FEW)
        rare = [word for word in known if len(self._places[word]) <= most] or known
        if not rare:
            return ""
        near = np.zeros(len(self.targets))
        for word in rare:
            near[self._places[word]] += self._weights[word] ** 2
        return self.targets[int((near / self._norms).argmax())]
