"""Baselines for multiple choice: the position that is most often right, and the ending that repeats its context."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from jumok.examples.choices import Choice
from jumok.score.significance import Metrics
from jumok.tasks.baseline import Baselines, some_of
from jumok.text.bag import vocabulary


def learn_baselines(train: Iterable[Choice], measure: Callable[[Sequence[int], Sequence[int]], Metrics]) -> Baselines:
    """`measure` scores chosen endings by the right ones."""
    places = Counter(example.gold for example in some_of(train))
    usual = min(places, key=lambda place: (-places[place], place))

    def scored(examples: Sequence[Choice]) -> dict[str, Metrics]:
        said = {"majority": [usual] * len(examples), "overlap": [in_common(example) for example in examples]}
        gold = [example.gold for example in examples]
        return {name: measure(chosen, gold) for name, chosen in said.items()}

    return scored


def in_common(example: Choice) -> int:
    """The ending of whose words the largest share is in the context; the first of several."""
    context = vocabulary(example.context)
    endings = [vocabulary(ending) for ending in example.endings]
    return max(range(len(endings)), key=lambda i: (len(endings[i] & context) / max(len(endings[i]), 1), -i))
