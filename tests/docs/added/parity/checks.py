"""The doctor's rules for parity: a label that is wrong can be counted."""

from collections.abc import Hashable

from jumok.examples.labelled import Labelled
from jumok.findings import Finding, Rule, Tally, judge
from jumok.tasks.checks import Gold, TextChecks, View
from jumok.tasks.parity import LABELS

# fmt: off
_RULES: dict[str, Rule] = {
    "wrong": ("data.parity", 0.01, 0.1, "labels that are not those of the text", "Count the words again"),
}
# fmt: on


class ParityChecks(TextChecks):
    def view(self, example: Labelled) -> View:
        return View((example.text,), example.gold)

    def gold(self) -> Gold:
        return Parities()


class Parities(Gold):
    """The labels of one split."""

    def __init__(self) -> None:
        self._n, self._wrong = 0, Tally()

    def add(self, example: Labelled) -> Hashable:
        self._n += 1
        if example.gold != LABELS[len(example.text.split()) % 2]:
            self._wrong.add(example.where, example.text, example.gold)
        return example.gold

    def examine(self, name: str, train: "Parities | None") -> list[Finding]:
        return judge(_RULES["wrong"], self._wrong, self._n, {}, begin=f"{name}: ")
