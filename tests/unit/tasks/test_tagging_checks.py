"""The doctor on tagged words: tags that mark no whole span, the scheme of train, and types between splits."""

from collections.abc import Iterable

import pytest

from checked import examine
from jumok.examples.spans import Spans
from jumok.findings import Finding


def sentences(*rows: str, file: str = "train.conll") -> list[Spans]:
    """Each written as "word/TAG word/TAG"."""
    split = [[token.rsplit("/", 1) for token in row.split()] for row in rows]
    return [
        Spans.of_words([word for word, _ in row], [tag for _, tag in row], f"{file}:{i}")
        for i, row in enumerate(split, start=1)
    ]


def faults(findings: Iterable[Finding]) -> list[Finding]:
    """What is not said of every text."""
    return [f for f in findings if f.code != "data.counts" and (f.code, f.severity) != ("data.labels", "note")]


def only(findings: Iterable[Finding], code: str) -> Finding:
    (found,) = (finding for finding in findings if finding.code == code)
    return found


def places(finding: Finding) -> list[str]:
    return [example.split("  ")[0] for example in finding.examples]


class TestTags:
    @pytest.mark.parametrize(
        ("planted", "line"),
        [("to/O Oslo/I-LOC", 12), ("Oslo/I-LOC", 11), ("Ada/B-PER Oslo/I-LOC", 12)],
    )
    def test_a_span_that_begins_in_its_middle(self, planted: str, line: int) -> None:
        """The sentence begins in line 11, and has a word a line."""
        good = ["Ada/B-PER Kim/I-PER sings/O in/O Oslo/B-LOC"] * 10
        finding = only(examine({"train": sentences(*good, planted)}), "data.invalid_tags")
        assert (finding.severity, finding.count) == ("warning", 1)
        assert finding.examples == [f"train.conll:{line}  {planted}"]

    def test_many_of_them_are_an_error(self) -> None:
        rows = ["Ada/B-PER sings/O in/O Oslo/B-LOC"] * 5 + ["in/O Oslo/I-LOC"]
        assert only(examine({"train": sentences(*rows)}), "data.invalid_tags").severity == "error"

    @pytest.mark.parametrize(
        "rows",
        [
            ["Ada/I-PER Kim/I-PER sings/O", "Ada/I-PER Ben/B-PER sing/O in/O Oslo/I-LOC"],  # IOB1
            ["Ada/B-PER Kim/E-PER sings/O", "in/O Oslo/S-LOC", "Ada/B-PER de/I-PER Kim/E-PER"],  # IOBES
            ["she/PRP sings/VBZ", "a/DT song/NN"],  # parts of speech
        ],
    )
    def test_other_schemes_are_no_faults(self, rows: list[str]) -> None:
        assert faults(examine({"train": sentences(*rows)})) == []

    def test_spans_have_to_end_where_ends_are_marked(self) -> None:
        rows = ["Ada/B-PER Kim/E-PER sings/O in/O Oslo/S-LOC"] * 3 + ["Ada/B-PER sings/O"]
        finding = only(examine({"train": sentences(*rows)}), "data.invalid_tags")
        assert (finding.count, finding.share, finding.examples) == (1, 1 / 7, ["train.conll:5  Ada/B-PER sings/O"])

    def test_the_scheme_of_train_holds_for_all(self) -> None:
        """A sentence with marked ends in dev makes no fault of those without."""
        splits = {
            "train": sentences("Ada/B-PER sings/O today/O", "in/O Oslo/B-LOC today/O"),
            "dev": sentences("Ben/B-PER sings/O today/O", "in/O Rome/S-LOC today/O", "Ben/B-PER Kim/E-PER sings/O"),
        }
        assert "data.invalid_tags" not in {finding.code for finding in examine(splits)}
        splits = {
            "train": sentences("Ada/I-PER Ben/B-PER sing/O", "in/O Oslo/I-LOC"),
            "dev": sentences("Cy/B-PER sings/O in/O Oslo/I-LOC"),
        }
        assert "data.invalid_tags" not in {finding.code for finding in examine(splits)}

    def test_tags_of_no_known_form_among_others(self) -> None:
        finding = only(examine({"train": sentences("Ada/B-PER in/O Oslo/LOC_B")}), "data.unknown_tags")
        assert (finding.severity, finding.examples) == ("warning", ["train.conll:3  in/O Oslo/LOC_B"])

    def test_types_are_compared_between_splits(self) -> None:
        splits = {
            "train": sentences("Ada/B-PER sings/O in/O Oslo/B-LOC"),
            "dev": sentences("it/O rains/O"),
            "test": sentences("Ada/B-PER eats/O Snickers/B-MISC"),
        }
        found = [(finding.code, finding.severity, finding.message.split(":")[0]) for finding in faults(examine(splits))]
        assert sorted(found) == [
            ("data.missing_label", "warning", "dev"),
            ("data.missing_label", "warning", "test"),
            ("data.unknown_label", "warning", "test"),
        ]

    def test_the_same_sentence_with_other_tags(self) -> None:
        rows = ["Paris/B-PER met/O all/O her/O friends/O", "Paris/B-LOC met/O all/O her/O friends/O"]
        finding = only(examine({"train": sentences(*rows)}), "data.contradiction")
        assert (places(finding), "another sequence of tags" in finding.message) == (["train.conll:2"], True)
