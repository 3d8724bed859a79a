"""The doctor's rules for relations: labels of entity pairs, with several pairs per text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jumok.examples.relations import Related
from jumok.findings import Finding
from jumok.score.relations import relation_of
from jumok.tasks.checks import Gold, TextChecks, View
from jumok.tasks.label_checks import Labels, examine_predictions, unknown_in_setting


class RelationChecks(TextChecks):
    things = "pairs of entities"

    def view(self, example: Related) -> View:
        return View((_with_entities(example),), example.gold, things=self.things, context=example.text)

    def gold(self) -> Gold:
        return Labels()

    def examine_settings(self, splits: Mapping[str, Iterable[Any]]) -> list[Finding]:
        weights, none = self.config.class_weights, self.config.no_relation
        named = {
            "task.no_relation": [none] if none else [],
            "task.class_weights": [*weights] if isinstance(weights, dict) else [],
        }
        if not any(named.values()):
            return []
        labels = {example.gold for example in splits.get("train", ())}
        return [found for key, some in named.items() if some for found in unknown_in_setting(key, some, labels)]


def _with_entities(example: Related) -> str:
    """The text with head and tail in brackets: other entities make another example."""
    text = example.text
    brackets = [(example.head.start, "["), (example.head.end, "]"), (example.tail.start, "<"), (example.tail.end, ">")]
    for place, bracket in sorted(brackets, reverse=True):
        text = text[:place] + bracket + text[place:]
    return text


def examine_outputs(
    examples: Sequence[Related], outputs: Sequence[str], result: Mapping[str, Any], split: str = ""
) -> list[Finding]:
    """Findings on the outputs; scores name relations without their direction."""
    return examine_predictions(
        examples,
        outputs,
        result,
        split=split,
        labels=lambda example: [relation_of(example.gold)],
        or_weigh=", or give rare ones a higher weight (task.class_weights)",
    )
