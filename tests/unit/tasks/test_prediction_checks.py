"""Findings on the labels, entities and answers that a model predicts, and on their scores."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from checked import DATA
from jumok.doctor import examined
from jumok.examples.labelled import Labelled
from jumok.examples.questions import Question
from jumok.examples.relations import Related
from jumok.examples.spans import Spans
from jumok.findings import Finding
from jumok.text.span import Span

LABELS = "ab" * 10


def texts(labels: str) -> list[Labelled]:
    return [Labelled(f"text {i}", None, label, f"p:{i}") for i, label in enumerate(labels)]


def scored(**scores: float) -> dict[str, Any]:
    return {"scores": {name: {"value": value} for name, value in scores.items()}}


def examine_outputs(
    examples: Sequence[Any],
    outputs: Sequence[str],
    result: dict[str, Any],
    *,
    split: str = "",
    separator: str | None = None,
) -> list[Finding]:
    """What the doctor says of outputs for these examples."""
    name, _ = DATA[type(examples[0]) if examples else Labelled]
    predictor = SimpleNamespace(kind=name, targets=SimpleNamespace(separator=separator))
    return examined(predictor, examples, outputs, result, split)


def codes(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in findings]


def test_a_model_that_learned_is_well() -> None:
    result = scored(accuracy=90, f1_a=91, f1_b=89)
    result["baselines"] = {"majority": {"accuracy": 50.0}, "bag_of_words": {"accuracy": 80.0}}
    assert examine_outputs(texts(LABELS), list(LABELS), result) == []


def test_a_model_that_says_the_same_of_everything() -> None:
    (found,) = examine_outputs(texts(LABELS), ["a"] * 20, scored(accuracy=50), split="dev")
    assert (found.code, found.severity, found.count) == ("output.ignores_input", "error", 20)
    assert found.message.startswith("dev: the model predicts 'a' for every text: 20 of 20")
    assert examine_outputs(texts("a" * 20), ["a"] * 20, scored(accuracy=100)) == []
    assert examine_outputs(texts("ab"), ["a"] * 2, scored(accuracy=50)) == []


def test_an_answerer_that_never_answers() -> None:
    asked = [Question(f"{i}", "who?", "Ada", [("Ada", 0)], f"q:{i}") for i in range(12)]
    assert codes(examine_outputs(asked, [""] * 12, scored(answer_f1=0))) == [("output.ignores_input", "error")]


@pytest.mark.parametrize(
    ("accuracy", "macro_f1", "expected"),
    [
        (40, 30, [("output.baseline", "error"), ("output.baseline", "warning")]),
        (70, 30, [("output.baseline", "warning")]),
        (70, 90, []),
        (80, 79, [("output.baseline", "warning")]),
        (100, 100, []),
    ],
)
def test_what_is_no_better_than_a_baseline(accuracy: float, macro_f1: float, expected: list[tuple[str, str]]) -> None:
    result = scored(accuracy=accuracy, macro_f1=macro_f1)
    result["baselines"] = {
        "majority": {"accuracy": 50.0, "macro_f1": 33.3},
        "bag_of_words": {"accuracy": 80.0, "macro_f1": 79.0},
    }
    findings = examine_outputs(texts(LABELS), list(LABELS), result)
    assert codes(findings) == expected
    assert all("accuracy" in finding.message and "macro_f1" in finding.message for finding in findings)


def test_an_error_is_better_if_it_is_lower() -> None:
    result = scored(pearson=10, mean_absolute_error=1.5)
    result["baselines"] = {"mean": {"pearson": 0.0, "mean_absolute_error": 1.4}, "bag_of_words": {"pearson": 9.0}}
    assert examine_outputs(texts(LABELS), list(LABELS), result) == []
    result["baselines"] = {"mean": {"pearson": 10.0, "mean_absolute_error": 1.4}}
    assert codes(examine_outputs(texts(LABELS), list(LABELS), result)) == [("output.baseline", "error")]


def test_labels_of_which_nothing_is_found() -> None:
    """One that nobody has given is none of them."""
    (found,) = examine_outputs(texts("aab" * 5), ["a", "c"] * 7 + ["a"], scored(f1_a=60, f1_b=0, f1_c=0))
    assert (found.code, found.severity, found.count) == ("output.never_right", "warning", 5)
    assert (found.examples[0], "(b): 5 of 15" in found.message) == ("p:2  b", True)


def test_of_nothing_nothing_is_said() -> None:
    assert examine_outputs([], [], {"scores": {}}) == []


def test_of_several_labels_each_is_looked_at() -> None:
    examples = [Labelled(f"text {i}", None, label, f"p:{i}") for i, label in enumerate(["sun | rain", "rain", "|"])]
    (found,) = examine_outputs(examples, ["rain"] * 3, scored(f1_sun=0, f1_rain=80), separator="|")
    assert "(sun): 1 of 3" in found.message
    assert "task.class_weights" in found.message


def test_a_score_that_is_called_like_a_label_is_none_of_it() -> None:
    """And a text that has two such labels is one text."""
    examples = [Spans("Ada Bo", [Span(0, 3, "span_f1"), Span(4, 6, "LOC"), Span(4, 6, "PER")], where="p:1")]
    (found,) = examine_outputs(examples, ["x"], scored(span_f1=0, f1_LOC=0, f1_PER=0))
    assert "(LOC, PER): 1 of 1" in found.message


def test_where_nothing_is_wrong_a_baseline_may_be_as_good() -> None:
    result = {**scored(accuracy=100), "baselines": {"bag_of_words": {"accuracy": 100.0}}}
    assert examine_outputs(texts(LABELS), list(LABELS), result) == []


def test_a_baseline_of_another_metric_says_nothing() -> None:
    result = {**scored(accuracy=40), "baselines": {"majority": {"exact_match": 50.0}}}
    assert examine_outputs(texts(LABELS), list(LABELS), result) == []


@pytest.mark.parametrize(
    "example",
    [
        Spans.of_words(["Ada", "Bo"], ["B-PER", "I-PER"], "p:1"),
        Spans("Ada Bo", [Span(0, 3, "PER")], where="p:1"),
        Related("Ada Bo", Span(0, 3, ""), Span(4, 6, ""), "PER(e2,e1)", "p:1"),
    ],
    ids=["tagged", "marked", "related"],
)
def test_entities_and_relations_of_which_nothing_is_found(example: Any) -> None:
    (found,) = examine_outputs([example], ["x"], scored(f1_PER=0, f1_LOC=0))
    assert "(PER): 1 of 1" in found.message
    assert ("task.class_weights" in found.message) == isinstance(example, Related)  # tags have none


def test_a_difference_that_may_be_chance_is_told_with_its_test() -> None:
    against = {"baseline": "bag_of_words", "metric": "accuracy", "a": 80.0, "b": 81.0, "difference": 1.0}
    against |= {"low": -2.0, "high": 4.0, "p_value": 0.4, "n": 200, "test": ""}
    result = {**scored(accuracy=81.0), "baselines": {"bag_of_words": {"accuracy": 80.0}}, "against_baseline": against}
    (found,) = examine_outputs(texts(LABELS), list(LABELS), result)
    assert (found.code, found.severity) == ("output.baseline", "warning")
    assert all(number in found.message for number in ("81.00", "80.00", "-2.00", "+4.00", "0.400"))
    sure = {**result, "against_baseline": {**against, "low": 0.5, "p_value": 0.01}}
    assert examine_outputs(texts(LABELS), list(LABELS), sure) == []
    worse = {**result, "baselines": {"bag_of_words": {"accuracy": 82.0}}}
    worse["against_baseline"] = {**against, "a": 82.0, "difference": -1.0}
    assert len(examine_outputs(texts(LABELS), list(LABELS), worse)) == 1  # told once
