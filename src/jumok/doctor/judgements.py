"""What is wrong with what a model says of texts: their labels, entities, relations and answers."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from jumok.doctor.findings import Finding, Rule, Tally, finding, judge, worst_first
from jumok.errors import listed
from jumok.score.relations import relation_of
from jumok.text.annotated import Choice, Marked, Question, Related
from jumok.text.labelled import Labelled, Tagged

# fmt: off
_RULES: dict[str, Rule] = {
    "ignores_input": ("ignores_input", 0, 0, "texts of which one and the same is said ({said!r})", "The model ignores"
        " its input: lower the learning rate, train longer, and look at the labels"),
    "never_right": ("never_right", 0, inf, "texts with a label of which nothing is ever found ({labels})", "A score"
        " over all hardly shows it: collect more of them{or_weigh}"),
}
# fmt: on
JUDGED = Labelled | Tagged | Marked | Related | Question | Choice
_LOWER_IS_BETTER = {"mean_absolute_error"}
_ENOUGH = 10  # texts, of which it is no accident any more


def examine_judgements(
    examples: Sequence[Any],
    outputs: Sequence[str],
    result: Mapping[str, Any],
    *,
    split: str = "",
    separator: str | None = None,
) -> list[Finding]:
    """What shows in the outputs for a split and in their scores, baselines beside them; worst first.

    `separator` stands between the labels of a text that may have several.
    """
    begin = f"{split}: " if split else ""
    findings = [*_below_baselines(result, begin)]
    gold = [{*_labels(example, separator)} for example in examples]
    every: set[str] = set().union(*gold)
    if len({*outputs}) == 1 and len(outputs) >= _ENOUGH and len(every) != 1:
        tally = Tally(len(outputs), [example.where for example in examples[:5]])
        findings += judge(_RULES["ignores_input"], tally, len(outputs), {"said": outputs[0][:60]}, begin=begin)
    scores = result["scores"].items()
    never = {name[3:] for name, score in scores if name.startswith("f1_") and score["value"] == 0}
    missed = Tally()
    for example, labels in zip(examples, gold, strict=True):
        if here := sorted(labels & never):
            missed.add(example.where, *here)
    labelled = any(isinstance(example, Labelled) for example in examples)
    weigh = ", or let rare ones weigh more (task.class_weights)" if labelled else ""
    facts = {"labels": listed(sorted(never & every)), "or_weigh": weigh}
    findings += judge(_RULES["never_right"], missed, len(examples), facts, begin=begin)
    return worst_first(findings)


def _labels(example: Any, separator: str | None) -> Iterator[str]:
    """What a person has said of an example, or the types of the entities that they found in it."""
    match example:
        case Labelled():
            yield from map(str.strip, [example.label] if separator is None else example.label.split(separator))
        case Related():
            yield relation_of(example.label)
        case Tagged():
            yield from (tag[2:] for tag in example.tags if tag[1:2] == "-")
        case Marked():
            yield from (mark.label for mark in example.marks)


def _below_baselines(result: Mapping[str, Any], begin: str) -> Iterator[Finding]:
    for name, scores in result.get("baselines", {}).items():
        found = result["scores"]
        pairs = {metric: (found[metric]["value"], than) for metric, than in scores.items() if metric in found}
        no_better = [
            (value >= than) if metric in _LOWER_IS_BETTER else (value <= than)
            for metric, (value, than) in pairs.items()
        ]
        perfect = all(value == 100 for value, _ in pairs.values())  # so easy that both are
        if pairs and all(no_better) and not perfect:
            known = ", ".join(f"{metric} {value:.2f} and {than:.2f}" for metric, (value, than) in pairs.items())
            message = (
                f"{begin}no better than the baseline, {name.replace('_', ' ')} ({known}). Lower the learning rate,"
            )
            message += " train longer, or take the baseline."
            yield finding("baseline", "warning" if name in ("bag_of_words", "overlap") else "error", 1, 1, message)
