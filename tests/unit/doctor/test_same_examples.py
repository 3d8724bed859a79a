"""Of every kind of example: the same again, the same with another answer, and the same in train and in test."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from checked import examine
from jumok.examples.choices import Choice
from jumok.examples.labelled import Labelled
from jumok.examples.questions import Question
from jumok.examples.relations import Related
from jumok.examples.spans import Spans
from jumok.findings import Finding
from jumok.text.span import Span

TEXT = "Mina pays Omar and then goes home"


def related(head: tuple[int, int], tail: tuple[int, int], label: str, where: str) -> Related:
    return Related(TEXT, Span(*head, ""), Span(*tail, ""), label, where)


def asked(answer: str, where: str, question: str = "Who pays?") -> Question:
    return Question(where, question, TEXT, [(answer, TEXT.index(answer))] if answer else [], where)


def choice(endings: Sequence[str], label: int, where: str) -> Choice:
    return Choice("It rains and", list(endings), label, where)


# of each kind: an example, the same, and the same with another answer
EXAMPLES: dict[str, tuple[Any, Any, Any]] = {
    "table": (Labelled("a", None, "x", "p:1"), Labelled(" a ", None, "x", "p:2"), Labelled("a", None, "y", "p:3")),
    "pairs": (Labelled("a", "b", "x", "p:1"), Labelled("a", "b ", "x", "p:2"), Labelled("a", "b", "y", "p:3")),
    "tagged": (
        Spans.of_words(TEXT.split(), ["B-P", *["O"] * 6], "p:1"),
        Spans.of_words(TEXT.split(), ["B-P", *["O"] * 6], "p:2"),
        Spans.of_words(TEXT.split(), ["O", "O", "B-P", *["O"] * 4], "p:3"),
    ),
    "marked": (
        Spans(TEXT, [Span(0, 4, "P")], where="p:1"),
        Spans(TEXT, [Span(0, 4, "P")], where="p:2"),
        Spans(TEXT, [Span(0, 9, "P")], where="p:3"),
    ),
    "related": (
        related((0, 4), (10, 14), "pays", "p:1"),
        related((0, 4), (10, 14), "pays", "p:2"),
        related((0, 4), (10, 14), "knows", "p:3"),
    ),
    "questions": (asked("Mina", "p:1"), asked("Mina pays", "p:2"), asked("Omar", "p:3")),
    "silence": (asked("Mina", "p:1"), asked("Mina", "p:2"), asked("", "p:3")),
    "choices": (
        choice(["she runs", "she flies"], 0, "p:1"),
        choice(["she flies", "she runs"], 1, "p:2"),
        choice(["she runs", "she flies"], 1, "p:3"),
    ),
}


def found(findings: Iterable[Finding], code: str) -> list[list[str]]:
    return [[example.split("  ")[0] for example in f.examples] for f in findings if f.code == code]


@pytest.mark.parametrize("kind", EXAMPLES)
class TestEveryKind:
    def test_duplicates_and_contradictions_of_a_split(self, kind: str) -> None:
        findings = examine({"train": EXAMPLES[kind]})
        assert (found(findings, "data.duplicate"), found(findings, "data.contradiction")) == ([["p:2"]], [["p:3"]])

    def test_overlap_of_train_and_test(self, kind: str) -> None:
        one, same, other = EXAMPLES[kind]
        findings = examine({"train": [one], "test": [same, other]})
        messages = sorted((f.message.split(":")[0], f.examples[0][:3]) for f in findings if f.code == "data.overlap")
        assert [place for _, place in messages] == ["p:2", "p:3"]
        assert "are also in train" in messages[0][0]
        assert "are in train with another" in messages[1][0]


def test_both_answers_of_a_contradiction_in_train_are_known_in_test() -> None:
    one, same, other = EXAMPLES["table"]
    findings = examine({"train": [one, other], "test": [same, other]})
    assert found(findings, "data.overlap") == [["p:2", "p:3"]]


def test_other_entities_of_a_sentence_are_another_example_of_the_same_text() -> None:
    train, swapped = related((0, 4), (10, 14), "pays", "p:1"), related((10, 14), (0, 4), "is paid", "p:2")
    findings = examine({"train": [train, swapped]})
    assert found(findings, "data.contradiction") == found(findings, "data.duplicate") == []
    findings = examine({"train": [train], "test": [swapped]})
    (overlap,) = (finding for finding in findings if finding.code == "data.overlap")
    assert (overlap.severity, overlap.examples[0][:3]) == ("warning", "p:2")
    assert "test pairs of entities whose text has other pairs of entities in train: 1 of 1" in overlap.message


def test_other_questions_on_a_context_of_train() -> None:
    splits = {"train": [asked("Mina", "p:1")], "test": [asked("Omar", "p:2", question="Who is paid?")]}
    assert found(examine(splits), "data.overlap") == [["p:2"]]


def test_short_sentences_with_other_tags_contradict_each_other() -> None:
    tags = ["B-PER", "B-LOC", "B-PER"]
    train: list[Spans] = [Spans.of_words(["영희가", "왔다"], [tag, "O"], f"p:{i}") for i, tag in enumerate(tags)]
    assert found(examine({"train": train}), "data.contradiction") == [["p:1"]]


@pytest.mark.parametrize(("n_same", "severity"), [(1, "note"), (3, "warning"), (8, "error")])
def test_short_sentences_may_recur_but_not_all_of_them(n_same: int, severity: str) -> None:
    def sentences(words: Iterable[str], file: str) -> list[Spans]:
        return [Spans.of_words([word, "runs"], ["O", "O"], f"{file}:{i}") for i, word in enumerate(words)]

    train = sentences("abcdefghij", "train")
    findings = examine({"train": train, "test": sentences([*"abcdefghij"[:n_same], *"klmnopqrst"[n_same:]], "test")})
    (overlap,) = (finding for finding in findings if finding.code == "data.overlap")
    assert (overlap.count, overlap.severity) == (n_same, severity)
    assert overlap.examples[0].startswith("test:0  a runs")
    assert not [finding for finding in findings if finding.code == "data.duplicate"]
