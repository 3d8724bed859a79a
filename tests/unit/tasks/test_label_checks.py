"""Labels of several kinds: sets of them, those with a direction, and those that are spelt in two ways."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from checked import examine
from jumok.doctor import examine_data
from jumok.examples.labelled import Labelled
from jumok.examples.relations import Related
from jumok.findings import Finding
from jumok.text.span import Span


def rows(labels: Iterable[str], file: str = "train.tsv") -> list[Labelled]:
    return [Labelled(f"text {i} of {file}", None, label, f"{file}:{i}") for i, label in enumerate(labels, start=2)]


def relations(labels: Iterable[str], file: str = "train.jsonl") -> list[Related]:
    ends = Span(0, 4, ""), Span(5, 9, "")
    return [Related(f"text more {i} {file}", *ends, label, f"{file}:{i}") for i, label in enumerate(labels, start=1)]


def only(findings: Iterable[Finding], code: str) -> Finding:
    (found,) = (finding for finding in findings if finding.code == code)
    return found


def several(**splits: Sequence[Labelled]) -> list[Finding]:
    return examine(splits, config={"predicts": "labels"})


def codes(findings: Iterable[Finding]) -> set[str]:
    return {finding.code for finding in findings}


class TestSets:
    def test_each_label_is_counted_by_itself(self) -> None:
        findings = several(train=rows(["food|price", "food", "price | food", "staff"]))
        assert only(findings, "data.labels").message == (
            "train: labels by share of the texts: food 3 (75.0 %), price 2 (50.0 %), staff 1 (25.0 %). A text has 1.5"
            " on average and 2 at most."
        )
        assert codes(findings) == {"data.counts", "data.labels"}

    def test_a_set_that_train_lacks_is_known_by_its_labels(self) -> None:
        train = rows(["food|price", "staff", "food", "price", "staff"])
        assert codes(several(train=train, dev=rows(["staff|food|price"], "dev.tsv"))) == {"data.counts", "data.labels"}
        found = only(several(train=train, dev=rows(["staff|view", "food|price"], "dev.tsv")), "data.unknown_label")
        assert (found.severity, found.count, found.examples) == ("error", 1, ["dev.tsv:2  view"])

    def test_the_empty_set_is_stated(self) -> None:
        found = only(several(train=rows(["food|price", "|", "staff"])), "data.no_label")
        assert (found.severity, found.count, found.examples) == ("note", 1, ["train.tsv:3  text 3 of train.tsv"])
        assert only(several(train=rows(["|", "|"])), "data.no_label").severity == "error"

    def test_rare_labels_show_though_their_sets_are_not(self) -> None:
        train = rows([*["food|price"] * 30, *["price|food"] * 30, "food|view"])
        found = only(several(train=train), "data.imbalanced")
        assert (found.count, "(view)" in found.message) == (1, True)

    def test_the_order_of_a_set_contradicts_nothing(self) -> None:
        twice = [Labelled("a", None, label, f"train.tsv:{i}") for i, label in enumerate(["x|y", "y|x", "x"])]
        findings = several(train=twice)
        assert only(findings, "data.duplicate").examples == ["train.tsv:1  a ||| y|x"]
        assert only(findings, "data.contradiction").examples == ["train.tsv:2  a ||| x"]
        assert "another set of labels" in only(findings, "data.contradiction").message

    def test_another_separator_than_that_of_the_recipe(self) -> None:
        found = only(several(train=rows(["food, price", "staff", "food", "food;staff"])), "data.separator")
        assert (found.severity, found.count) == ("warning", 2)
        assert "data.separator is '|'" in found.message
        assert "data.separator" not in codes(several(train=rows(["R&B/soul|jazz", "rock", "jazz"])))

    def test_an_empty_cell_is_told_how_it_is_written(self, tmp_path: Path) -> None:
        (tmp_path / "a.tsv").write_text("text\tlabel\na\tx|y\nb\t\nc\t;\n", "utf-8")
        recipe = tmp_path / "r.toml"
        lines = ['task = { kind = "classification", predicts = "labels" }', 'model = { kind = "rnn" }']
        lines += ['data = { kind = "labelled", train = ["a.tsv"], separator = ";" }', 'train = { metric = "micro_f1" }']
        recipe.write_text("\n".join(lines), "utf-8")
        findings = examine_data([recipe])
        assert "has ';' as its label" in only(findings, "data.unreadable").message
        assert only(findings, "data.no_label").examples == [f"{tmp_path / 'a.tsv'}:4  c"]


class TestDirections:
    LABELS = ("Cause(e1,e2)", "Cause(e2,e1)", "Part(e1,e2)", "Part(e2,e1)", "Other")

    def test_a_direction_may_be_rare_and_may_be_missing(self) -> None:
        train = relations([*["Cause(e1,e2)"] * 40, *["Part(e2,e1)"] * 40, *self.LABELS, *["Other"] * 40])
        dev = relations(["Cause(e1,e2)", "Part(e1,e2)", "Other"], "dev.jsonl")
        assert codes(examine({"train": train, "dev": dev})) == {"data.counts", "data.labels"}

    def test_a_relation_may_not(self) -> None:
        train = relations([*["Cause(e1,e2)"] * 40, *["Other"] * 40, "Part(e1,e2)", "Part(e2,e1)"])
        dev = relations(["Cause(e2,e1)", "Other"], "dev.jsonl")
        findings = examine({"train": train, "dev": dev})
        assert "(Part): 2 of 82" in only(findings, "data.imbalanced").message
        assert "(Part): 1 of 3" in only(findings, "data.missing_label").message
        # Training learns directions, and refuses one that it has not seen.
        unknown = only(findings, "data.unknown_label")
        assert (unknown.severity, unknown.examples) == ("error", ["dev.jsonl:1  Cause(e2,e1)"])


class TestSpellings:
    def test_one_label_in_two_spellings(self) -> None:
        found = only(examine({"train": rows(["good", "bad", "Good", "bad"])}), "data.similar_labels")
        assert (found.severity, found.count) == ("warning", 2)
        assert "(good, Good): 2 of 4" in found.message
        assert "data.similar_labels" not in codes(examine({"train": rows(["A+", "A-", "1", "-1"])}))

    @pytest.mark.parametrize(("label", "meant"), [("1.0", "1"), ("POSITIVE", "positive")])
    def test_an_unknown_label_that_is_only_spelt_otherwise(self, label: str, meant: str) -> None:
        splits = {"train": rows([meant, "0"]), "test": rows([label, "0"], "test.tsv")}
        found = only(examine(splits), "data.unknown_label")
        assert f"(train has {meant})" in found.message
