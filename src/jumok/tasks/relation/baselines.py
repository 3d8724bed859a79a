"""Baselines for relations: the most frequent one, the words of the text, and those between its two entities."""

from collections.abc import Iterable, Sequence
from typing import Any

from jumok.examples.relations import Related
from jumok.score.relations import OVERALL, relation_metrics
from jumok.score.significance import Metrics
from jumok.tasks.baseline import Baselines, learn, some_of
from jumok.tasks.targets import Array, Classes
from jumok.text.bag import bag, features, words


def learn_baselines(labels: Sequence[str], rule: dict[str, Any], train: Iterable[Related]) -> Baselines:
    """`rule` are the arguments of `relation_metrics`."""
    targets, read = Classes([*labels]), [*some_of(train)]
    stored = [targets.stored(example) for example in read]
    whole = learn(targets, ((bag(example.text), label) for example, label in zip(read, stored, strict=True)))
    between = learn(targets, ((_between(example), label) for example, label in zip(read, stored, strict=True)))

    def scored(examples: Sequence[Related]) -> dict[str, Metrics]:
        decisions = whole([bag(example.text) for example in examples])
        decisions["words_between"] = between([_between(example) for example in examples])["bag_of_words"]
        gold = [example.gold for example in examples]
        said = {name: [labels[i] for i in decided] for name, decided in decisions.items()}
        return {name: relation_metrics(lines, gold, **rule).only(OVERALL) for name, lines in said.items()}

    return scored


def _between(example: Related) -> Array:
    """The words between the entities, with the types of both and which comes first."""
    first, second = sorted([example.head, example.tail], key=lambda span: span.start)
    order = "head_first" if first is example.head else "tail_first"
    types = [f"{order} {example.head.label} {example.tail.label}", order]
    return features([order, *words(example.text[first.end : second.start]), order], types)
