"""What a recipe says of its labels or answers that its data does not bear out, so that training would refuse it."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from jumok.doctor.findings import Finding, Tally, finding
from jumok.errors import listed


def examine_settings(task: Any, splits: Mapping[str, Iterable[Any]], *, separator: str) -> list[Finding]:
    """The settings of a task beside its examples, which are read only if they matter.

    The task is asked without its class, which needs torch. `separator` stands between labels, where a text has several.
    """
    weights, no_relation = getattr(task, "class_weights", "none"), getattr(task, "no_relation", None)
    if isinstance(weights, dict):
        several = task.predicts == "labels"
        parts = (example.label.split(separator) if several else [example.label] for example in splits.get("train", ()))
        return _unknown("task.class_weights", [*weights], {part.strip() for part in chain(*parts)} - {""})
    if no_relation is not None:
        return _unknown("task.no_relation", [no_relation], {example.label for example in splits.get("train", ())})
    if getattr(task, "no_answer", None) is False:
        return _unanswered(chain(*splits.values()))
    return []


def _unknown(setting: str, named: list[str], labels: set[str]) -> list[Finding]:
    unknown = [label for label in named if label not in labels]
    message = f"{setting} names what is no label of train ({listed(unknown)}), which training refuses. The labels are"
    message += f" {listed(sorted(labels), most=20)}."
    return [finding("settings", "error", len(unknown), len(named), message)] if unknown else []


def _unanswered(questions: Iterable[Any]) -> list[Finding]:
    silent, n = Tally(), 0
    for question in questions:
        n += 1
        if not question.answers:
            silent.add(question.where, question.question)
    message = f"Questions without an answer: {silent.count:,} of {n:,}. Training refuses them, unless the recipe says"
    message += " task.no_answer = true."
    return [finding("settings", "error", silent.count, n, message, silent.examples)] if silent.count else []
