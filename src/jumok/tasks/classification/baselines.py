"""Baselines for texts with labels or numbers; a pair is one text, and also the share of words that its two have."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jumok.examples.labelled import Labelled
from jumok.score.significance import Metrics
from jumok.tasks.baseline import Baselines, learn, overlap, some_of
from jumok.tasks.targets import Array, Numbers, Targets
from jumok.text.bag import bag, share_in_common


def learn_baselines(targets: Targets, train: Iterable[Labelled]) -> Baselines:
    if isinstance(targets, Numbers):
        targets = Numbers.of(some_of(train))  # a trained model's are folded into its weights
    shared: list[tuple[float, Sequence[int]]] = []

    def read() -> Iterator[tuple[Array, Sequence[int]]]:
        for example in some_of(train):
            labels = targets.stored(example)
            if example.pair is not None:
                shared.append((share_in_common(example.text, example.pair), labels))
            yield _bag(example), labels

    decide = learn(targets, read())

    def scored(examples: Sequence[Labelled]) -> dict[str, Metrics]:
        decisions = decide([_bag(example) for example in examples])
        if shared:
            asked = [share_in_common(example.text, example.pair or "") for example in examples]
            decisions["overlap"] = overlap(targets, shared, asked)
        gold = targets.gold(examples)
        return {name: targets.metrics(decided, gold) for name, decided in decisions.items()}

    return scored


def _bag(example: Labelled) -> Array:
    text = bag(example.text)
    return text if example.pair is None else np.union1d(text, bag(example.pair))
