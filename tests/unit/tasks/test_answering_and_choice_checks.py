"""What the doctor says of questions without an answer, and of the places of right endings."""

from collections.abc import Iterable, Sequence

import pytest

from checked import examine
from jumok.examples.choices import Choice
from jumok.examples.questions import Question
from jumok.findings import Finding


def questions(answers: Iterable[Sequence[str]], file: str = "train.json") -> list[Question]:
    def context(i: int) -> str:
        return f"Mina and Omar are {file} {i // 2}"

    return [
        Question(f"q{i}", f"Who is it, {i}?", context(i), [(text, 0) for text in texts], f"{file}:{i}")
        for i, texts in enumerate(answers)
    ]


def choices(labels: Iterable[int], n: int = 4, file: str = "train.jsonl") -> list[Choice]:
    return [
        Choice(f"It rains {i} in {file}", [f"ending {k} of {i}" for k in range(n)], label, f"{file}:{i}")
        for i, label in enumerate(labels, start=1)
    ]


def only(findings: Iterable[Finding], code: str) -> Finding:
    (found,) = (finding for finding in findings if finding.code == code)
    return found


def codes(findings: Iterable[Finding]) -> set[str]:
    return {finding.code for finding in findings}


class TestQuestions:
    def test_shares_and_lengths_are_told(self) -> None:
        found = only(examine({"train": questions([["Mina"], ["Mina", "Omar and Mina"], [], ["Omar"]])}), "data.answers")
        assert found.message == (
            "train: 4 questions on 2 contexts, 25.0 % without an answer and 25.0 % with several. Words per question:"
            " median 4, 95 % at most 4, longest 4; per answer: median 1, 95 % at most 2, longest 3."
        )

    def test_silence_that_train_does_not_teach(self) -> None:
        splits = {"train": questions([["Mina"]] * 4), "test": questions([["Mina"], []], "test.json")}
        found = only(examine(splits), "data.unanswerable")
        assert (found.severity, found.count, found.examples) == ("warning", 1, ["test.json:1  Who is it, 1?"])
        assert "task.no_answer = true" in found.message

    def test_silence_that_is_not_tested(self) -> None:
        splits = {"train": questions([["Mina"], []]), "test": questions([["Mina"]], "test.json")}
        assert only(examine(splits), "data.unanswerable").severity == "note"

    def test_nothing_but_silence(self) -> None:
        assert only(examine({"train": questions([[], []])}), "data.unanswerable").severity == "error"
        assert "data.unanswerable" not in codes(examine({"train": questions([["Mina"], []])}))

    def test_a_long_context_is_only_noted(self) -> None:
        long = Question("q", "Who?", "so " * 300, [("so", 0)], "train.json:1")
        found = only(examine({"train": [long]}), "data.too_long")
        assert (found.severity, "data.long_texts" in found.message) == ("note", True)


class TestChoices:
    def test_places_are_told_and_an_even_spread_is_no_fault(self) -> None:
        findings = examine({"train": choices([0, 1, 2, 3] * 3), "test": choices([3, 2, 1, 0], file="test.jsonl")})
        assert codes(findings) == {"data.counts", "data.labels"}
        messages = [finding.message for finding in findings]
        assert (
            "train: 4 endings to choose from. Position of the right one, from 0: 0 25.0 %, 1 25.0 %, 2 25.0 %,"
            " 3 25.0 %." in messages
        )

    def test_all_at_one_place(self) -> None:
        found = next(f for f in examine({"train": choices([2] * 8)}) if f.severity == "warning")
        assert (found.code, found.count, "position 2" in found.message) == ("data.one_label", 8, True)
        assert "shuffle" in found.message

    def test_rare_missing_and_unknown_places(self) -> None:
        train = choices([*[0] * 30, *[1] * 30, 2])
        findings = examine({"train": train, "test": choices([0, 3, 1], file="test.jsonl")})
        rare, missing, unknown = (
            only(findings, k) for k in ("data.imbalanced", "data.missing_label", "data.unknown_label")
        )
        assert (rare.severity, rare.count, rare.examples[0][:14]) == ("note", 1, "train.jsonl:61")
        assert (missing.severity, "(2): 1 of 3" in missing.message) == ("note", True)
        assert (unknown.severity, unknown.count, unknown.examples[0][:12]) == ("warning", 1, "test.jsonl:2")

    @pytest.mark.parametrize(("twin", "found"), [("the right", True), ("a wrong", False)])
    def test_a_right_ending_that_is_there_twice(self, twin: str, found: bool) -> None:
        endings = ["she runs", "she  runs", "she flies"] if twin == "the right" else ["she runs", "no", "no"]
        findings = examine({"train": [*choices([0, 1, 2], n=3), Choice("It rains", endings, 0, "train.jsonl:9")]})
        assert [f.examples[0][:13] for f in findings if f.code == "data.duplicate_endings"] == ["train.jsonl:9"] * found
