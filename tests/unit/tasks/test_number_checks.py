"""Labels that are numbers: what is none, what is far off, and what two splits or two rows say of the same texts."""

from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path

import pytest

from checked import examine
from jumok.doctor import examine_data
from jumok.examples.labelled import Labelled, are_numbers
from jumok.findings import Finding

SPREAD = ["0", "1.25", "2.5", "3.75", "5", "0.5", "4.4"]


def rows(labels: Iterable[object], file: str = "train.tsv") -> list[Labelled]:
    return [Labelled(f"text {i} of {file}", None, str(label), f"{file}:{i}") for i, label in enumerate(labels, start=2)]


def examined(**splits: Sequence[Labelled]) -> list[Finding]:
    return examine(splits, config={"predicts": "number"})


def only(findings: Iterable[Finding], code: str) -> Finding:
    (found,) = (finding for finding in findings if finding.code == code)
    return found


def faults(findings: Iterable[Finding]) -> list[Finding]:
    return [f for f in findings if f.code != "data.counts" and (f.code, f.severity) != ("data.labels", "note")]


def test_numbers_are_told_by_their_range_and_their_spread_and_are_no_classes() -> None:
    findings = examined(train=rows(SPREAD), dev=rows(["4.999", "0.001"], "dev.tsv"))
    assert faults(findings) == []
    said = next(finding.message for finding in findings if finding.message.startswith("train: numbers"))
    assert said == (
        "train: numbers from 0 to 5, 7 different ones, mean 2.49, median 2.5. 0: 14.3 %, 0.5: 14.3 %, 1.25: 14.3 %,"
        " 2.5: 14.3 %, 3.75: 14.3 %, 4.4: 14.3 %, 5: 14.3 %."
    )


def test_many_numbers_are_told_in_steps() -> None:
    said = only(examined(train=rows([0, *(i / 10 for i in range(20, 40)), 5])), "data.labels").message
    assert said.endswith("0 to 1: 4.5 %, 1 to 2: 0.0 %, 2 to 3: 45.5 %, 3 to 4: 45.5 %, 4 to 5: 4.5 %.")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("n/a", "labels that are not numbers"),
        ("2,5", "labels that are not numbers"),
        ("1_000", "labels that are not numbers"),  # to Python they are
        ("４", "labels that are not numbers"),
        ("nan", "labels that are NaN or infinite"),
        ("-inf", "labels that are NaN or infinite"),
        ("1e999", "labels that are NaN or infinite"),
    ],
)
def test_what_is_no_number_is_an_error_at_its_place(label: str, message: str) -> None:
    found = only(examined(train=rows([*SPREAD, label])), "data.not_a_number")
    assert (found.severity, found.count, found.examples) == ("error", 1, [f"train.tsv:9  {label}"])
    assert f"train: {message}: 1 of 8 (12.5 %)." in found.message
    assert "data.skip_labels" in found.message


def test_no_number_at_all_is_told_without_a_range() -> None:
    findings = examined(train=rows(["good", "bad"]))
    assert only(findings, "data.not_a_number").count == 2
    assert "data.labels" not in {finding.code for finding in findings}


def test_one_value_alone_is_an_error() -> None:
    (found,) = faults(examined(train=rows(["3", "3.0", "3.00"])))
    assert (found.code, found.severity) == ("data.one_label", "error")
    assert "train: 3 is the only number: 3 of 3" in found.message


def test_numbers_outside_those_of_train() -> None:
    held_out = rows(["2", "5.5", "-1", "5", "0"], "test.tsv")
    (found,) = faults(examined(train=rows(SPREAD), test=held_out))
    assert (found.code, found.severity, found.count) == ("data.out_of_range", "error", 2)
    assert found.examples == ["test.tsv:4  -1", "test.tsv:3  5.5"]
    assert "which is 0 to 5: 2 of 5" in found.message
    many = rows([*(i / 20 for i in range(100)), 5.5], "test.tsv")
    assert only(examined(train=rows(SPREAD), test=many), "data.out_of_range").severity == "warning"


def test_a_split_on_another_scale_is_told_though_it_is_inside_the_range() -> None:
    train = rows([i / 10 for i in range(51)])
    (found,) = faults(examined(train=train, test=rows([i / 50 for i in range(51)], "test.tsv")))
    assert (found.code, found.severity) == ("data.out_of_range", "warning")
    assert "(90 % are from 0.05 to 0.95, in train from 0.25 to 4.75): 51 of 51" in found.message
    assert faults(examined(train=train, test=rows([1 + i / 20 for i in range(51)], "test.tsv"))) == []


class TestTheSameTexts:
    def again(self, text: str, pair: str, *labels: str, file: str = "train.tsv") -> list[Labelled]:
        return [Labelled(text, pair, label, f"{file}:{90 + i}") for i, label in enumerate(labels)]

    def test_numbers_that_differ_by_much_contradict_each_other(self) -> None:
        findings = examined(train=[*self.again("a", "b", "1", "4.5"), *rows(SPREAD)])
        found = only(findings, "data.contradiction")
        assert (found.count, found.examples) == (1, ["train.tsv:91  a ||| b ||| 4.5 ||| earlier 1"])
        assert "a number more than 1 away: 1 of 9" in found.message
        assert "data.duplicate" not in {finding.code for finding in findings}

    def test_one_number_that_is_far_off_is_found_and_hides_no_contradiction(self) -> None:
        far = Labelled("far", None, "99999", "train.tsv:80")
        findings = examined(train=[*self.again("a", "b", "1", "4.5"), *rows(SPREAD * 6), far])
        assert only(findings, "data.contradiction").examples == ["train.tsv:91  a ||| b ||| 4.5 ||| earlier 1"]
        found = only(findings, "data.out_of_range")
        assert (found.severity, found.count, found.examples) == ("warning", 1, ["train.tsv:80  99999"])
        assert "90 % of the numbers are from 0 to 5" in found.message

    def test_a_small_difference_is_a_duplicate(self) -> None:
        findings = examined(train=[*self.again("a", "b", "1", "1.5"), *rows(SPREAD)])
        assert "with a number at most 1 away: 1 of 9" in only(findings, "data.duplicate").message
        assert "data.contradiction" not in {finding.code for finding in findings}

    def test_one_number_written_in_two_ways_is_the_same(self) -> None:
        found = only(examined(train=[*self.again("a", "b", "4", "4.00"), *rows(SPREAD)]), "data.duplicate")
        assert "that repeat an earlier one of the split: 1 of 9" in found.message

    @pytest.mark.parametrize(
        ("label", "words"), [("1.5", "that are also in train"), ("4.5", "in train with another number")]
    )
    def test_texts_of_train_in_test(self, label: str, words: str) -> None:
        train, test = [*self.again("a", "b", "1"), *rows(SPREAD)], self.again("a", "b", label, file="test.tsv")
        found = only(examined(train=train, test=test), "data.overlap")
        assert words in found.message
        assert found.examples == [f"test.tsv:90  a ||| b ||| {label}"]


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        ([i / 4 for i in range(20)], True),
        ([*(i / 4 for i in range(20)), "n/a"], True),
        ([*(i / 4 for i in range(8)), *("n/a",) * 2], False),
        (range(150), False),  # intents are called so
        ([f"{i}.0" for i in range(20)], False),
        (["0.5", "1", "1.5"] * 20, False),
        (["a", "b"], False),
        ([], False),
    ],
    ids=["fractions", "one fault", "too many faults", "whole", "written with .0", "few", "words", "nothing"],
)
def test_labels_are_taken_for_numbers_if_many_differ_and_have_fractions(
    labels: Iterable[object], numbers: bool
) -> None:
    assert are_numbers(map(str, labels)) is numbers


@pytest.mark.parametrize(
    ("whole", "kinds"), [(False, {"data.counts", "data.labels", "data.kind"}), (True, {"data.counts", "data.labels"})]
)
def test_a_file_alone_is_guessed_and_it_is_said(tmp_path: Path, whole: bool, kinds: set[str]) -> None:
    path = tmp_path / "a.tsv"
    labels = cycle("123") if whole else (f"{i / 8}" for i in range(24))
    lines = [f"left {i}\tright {i}\t{label}\n" for i, label in zip(range(24), labels, strict=False)]
    path.write_text("text_a\ttext_b\tlabel\n" + "".join(lines), "utf-8")
    findings = examine_data([path])
    assert {finding.code for finding in findings} == kinds
    assert {finding.severity for finding in findings} == {"note"}
    if not whole:
        assert 'task.predicts = "class"' in only(findings, "data.kind").message


def test_a_recipe_says_that_labels_are_numbers(tmp_path: Path) -> None:
    table = "text\tlabel\n" + "".join(f"text {i}\t{i % 3}\n" for i in range(9)) + "last\tthree\n"
    (tmp_path / "a.tsv").write_text(table, "utf-8")
    recipe = tmp_path / "r.toml"
    lines = ['task = { kind = "classification", predicts = "number" }', 'model = { kind = "rnn" }']
    lines += ['data = { kind = "labelled", train = ["a.tsv"] }', 'train = { metric = "pearson" }']
    recipe.write_text("\n".join(lines), "utf-8")
    found = only(examine_data([recipe]), "data.not_a_number")
    assert found.examples == [f"{tmp_path / 'a.tsv'}:11  three"]
