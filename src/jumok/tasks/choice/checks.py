"""The doctor's rules for multiple choice: the position of the right ending, and duplicate endings."""

from collections import Counter
from collections.abc import Hashable, Sequence
from math import inf

from jumok.errors import listed
from jumok.examples.choices import Choice
from jumok.findings import Finding, Rule, Tally, finding, folded, hash_of, judge
from jumok.tasks.checks import Gold, TextChecks, View

_RARE = 0.2  # of the share that each position would have if all were equally frequent

# fmt: off
_RULES: dict[str, Rule] = {
    "one_place": ("data.one_label", 0, inf, "the right ending is always at position {places}", "A model can score"
        " well without reading anything: shuffle the endings of each example"),
    "rare": ("data.imbalanced", inf, inf, "right endings at a rare position ({places})", "All positions should be"
        " equally likely: shuffle the endings of each example"),
    "missing": ("data.missing_label", inf, inf, "positions of the right ending that occur only in train ({places})",
        "All positions should be equally likely: shuffle the endings of each example"),
    "unknown": ("data.unknown_label", 0, inf, "right endings at a position that does not occur in train ({places})",
        "Check the number of endings in both, and shuffle the endings of each example"),
    "twins": ("data.duplicate_endings", 0, 0.1, "choices whose right ending occurs twice", "The two are"
        " indistinguishable: replace the wrong one"),
}
# fmt: on


class ChoiceChecks(TextChecks):
    things = "choices"

    def view(self, example: Choice) -> View:
        key = (example.context, *sorted(example.endings, key=folded))  # their order does not matter
        texts, answer = (example.context, *example.endings), example.endings[example.gold]
        return View(texts, answer, things="choices", answers="right ending", key=key)

    def gold(self) -> Gold:
        return Choices()


class Choices(Gold):
    """The endings of one split, and the positions of the right ones."""

    def __init__(self) -> None:
        self._places: Counter[int] = Counter()
        self._endings: Counter[int] = Counter()
        """choices by their number of endings"""
        self._first: dict[int, Tally] = {}
        self._twins = Tally()

    def add(self, choice: Choice) -> Hashable:
        endings = [folded(ending) for ending in choice.endings]
        right = endings[choice.gold]
        self._places[choice.gold] += 1
        self._endings[len(endings)] += 1
        self._first.setdefault(choice.gold, Tally()).add(choice.where, choice.context, choice.endings[choice.gold])
        if endings.count(right) > 1:
            self._twins.add(choice.where, choice.context, choice.endings[choice.gold])
        return hash_of(right)

    def examine(self, name: str, train: "Choices | None") -> list[Finding]:
        n = self._places.total()

        def about(rule: str, places: Sequence[int], count: int, of: int) -> list[Finding]:
            examples = [self._first[place].examples[0] for place in places if place in self._first]
            facts = {"places": listed([str(place) for place in places])}
            return judge(_RULES[rule], Tally(count, examples[:5]), of, facts, begin=f"{name}: ")

        shares = [f"{place} {_percent(count, n)}" for place, count in sorted(self._places.items())]
        numbers = " or ".join(map(str, sorted(self._endings)))
        message = f"{name}: {numbers} endings to choose from. Position of the right one, from 0: {', '.join(shares)}."
        findings = [finding("data.labels", "note", n, n, message)]
        if len(self._places) == 1 and n >= 2 * max(self._endings):
            findings += about("one_place", [*self._places], n, n)
        rare = [place for place, count in sorted(self._places.items()) if count < _RARE * n / max(self._endings)]
        findings += about("rare", rare, sum(self._places[place] for place in rare), n)
        if train:
            missing = [place for place in sorted(train._places) if place not in self._places]
            findings += about("missing", missing, len(missing), len(train._places))
            unknown = [place for place in sorted(self._places) if place not in train._places]
            findings += about("unknown", unknown, sum(self._places[place] for place in unknown), n)
        return findings + judge(_RULES["twins"], self._twins, n, {}, begin=f"{name}: ")


def _percent(count: int, n: int) -> str:
    return f"{100 * count / n:.1f} %"
