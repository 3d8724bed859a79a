"""Files as the training data has them, read for prediction: whatever they say of the answer is not looked at."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jumok.errors import DataError
from jumok.examples.choices import Choice, ChoiceData
from jumok.examples.labelled import Labelled, LabelledData
from jumok.examples.questions import Question, QuestionData
from jumok.examples.relations import Related, RelationData
from jumok.examples.spans import Spans, TaggedData
from jumok.text.span import Span

Write = Callable[[str, str], Path]
COLA = ["source", "label", "mark", "sentence"]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, text: str) -> Path:
        (path := tmp_path / name).write_text(text, "utf-8")
        return path

    return write_file


@pytest.mark.parametrize(
    ("text", "pair", "header", "given", "lines"),
    [
        ("text", None, None, "text\tlabel\n좋다\t1\n\n나쁘다\t0\n", ["좋다", "나쁘다"]),
        ("sentence", None, None, "index\tsentence\n0\ta fine film\n1\t\n", ["a fine film", ""]),
        ("b", "a", None, "id\ta\tb\n0\tone\ttwo\n", ["two\tone"]),
        ("sentence", None, COLA, "gj04\t1\t\tThe cat sat.\n", ["The cat sat."]),  # CoLA's train.tsv
        ("sentence", None, COLA, "index\tsentence\n0\tThe cat sat.\n", ["The cat sat."]),  # and its test.tsv
    ],
)
def test_tables(
    write: Write, text: str, pair: str | None, header: list[str] | None, given: str, lines: list[str]
) -> None:
    path = write("a.tsv", given)
    found = LabelledData(text=text, pair=pair, header=header, label="label").read_unlabelled(path)
    examples = [*(found or ())]
    assert [e.text if e.pair is None else f"{e.text}\t{e.pair}" for e in examples] == lines
    assert all(example.where.startswith(f"{path}:") for example in examples)


@pytest.mark.parametrize(
    ("name", "pair", "given"),
    [
        ("a.tsv", None, "a line\nanother\n"),
        ("a.tsv", "more", "one\ttwo\nthree\tfour\n"),
        ("a.txt", None, "text\tlabel\n좋다\t1\n"),
    ],
    ids=["one column", "two texts", "no table by its name"],
)
def test_what_is_no_table_has_a_text_a_line(write: Write, name: str, pair: str | None, given: str) -> None:
    assert LabelledData(pair=pair).read_unlabelled(write(name, given)) is None


def test_a_table_is_known_by_the_names_of_the_training_files(write: Write) -> None:
    path = write("a.txt", "text\tlabel\n좋다\t1\n")
    found = LabelledData(train=["b.txt.gz"]).read_unlabelled(path)
    assert found is not None
    assert [*found] == [Labelled("좋다", None, "1", f"{path}:2")]


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ("text\tlabel\na\t\nb\t - \n", [None, "-"]),
        ("text\tlabel\tlabel\na\tx\ty\n", [None]),
        ("text\nb\n", [None]),
    ],
    ids=["empty or skipped", "two columns", "no column"],
)
def test_a_label_may_be_missing_or_odd(write: Write, given: str, labels: list[str | None]) -> None:
    found = LabelledData(skip_labels=["-"]).read_unlabelled(write("a.tsv", given))
    assert found is not None
    assert [example.label for example in found] == labels


def test_a_table_without_the_column_is_no_list_of_texts(write: Write) -> None:
    path = write("a.tsv", "review\tstars\nfine\t5\n")
    with pytest.raises(DataError) as caught:
        LabelledData().read_unlabelled(path)
    assert (caught.value.code, caught.value.where) == ("data.columns", f"{path}:1")
    assert "review, stars" in caught.value.what
    assert "a header with text" in (caught.value.hint or "")


def test_words_in_columns(write: Write) -> None:
    path = write("a.conll", "-DOCSTART- O\n\nAda B-PER\nruns O\n\nonly\n")
    expected = [Spans.of_words(["Ada", "runs"], None, f"{path}:3"), Spans.of_words(["only"], None, f"{path}:6")]
    assert [*(TaggedData().read_unlabelled(path) or ())] == expected


@pytest.mark.parametrize("name", ["a.conll", "a.iob.gz", "a.IOB2", "a.bio", "a.txt"])
def test_columns_are_known_by_their_suffix_or_that_of_the_training_files(tmp_path: Path, name: str) -> None:
    (path := tmp_path / name).write_bytes(gzip.compress(b"only\n") if name.endswith(".gz") else b"only\n")
    found = TaggedData(train=["corpus.d/train.txt.gz"]).read_unlabelled(path)
    assert [example.words for example in found or ()] == [["only"]]
    assert (TaggedData(train=["train.jsonl"]).read_unlabelled(path) is None) == (name == "a.txt")


def test_a_line_of_columns_without_a_word(write: Write) -> None:
    path = write("a.conll", "a O\n\tO\n")
    with pytest.raises(DataError) as caught:
        [*(TaggedData().read_unlabelled(path) or ())]
    assert (caught.value.code, caught.value.where) == ("data.columns", f"{path}:2")


def test_texts_with_spans(write: Write) -> None:
    path = write("a.jsonl", '{"text": "민아는", "spans": [{"start": 0, "end": 99}]}\n\n{"text": "x"}\n')
    for data in (TaggedData(), TaggedData(train=["a.conll"])):
        found = [*(data.read_unlabelled(path) or ())]
        assert found == [Spans("민아는", where=f"{path}:1"), Spans("x", where=f"{path}:3")]
    path = write("b.jsonl", "{}\n")
    with pytest.raises(DataError) as caught:
        [*(TaggedData().read_unlabelled(path) or ())]
    assert (caught.value.code, caught.value.where) == ("data.json", f"{path}:1")


def test_questions_without_answers(write: Write) -> None:
    qas = [{"id": "q1", "question": "누구?"}, {"id": "q2", "question": "어디?", "answers": [{"text": "없다"}]}]
    path = write("a.json", json.dumps({"data": [{"paragraphs": [{"context": "민아는 서울에", "qas": qas}]}]}))
    found = [*(QuestionData().read_unlabelled(path) or ())]
    assert [question.id for question in found] == ["q1", "q2"]
    assert found[0] == Question("q1", "누구?", "민아는 서울에", None, f"{path}, question q1")
    assert found[1].answers is None
    assert QuestionData().read_unlabelled(write("a.txt", "누구?\t민아는")) is None


def test_relations_without_a_label(write: Write) -> None:
    pair = {"text": "민아는 서울에", "head": {"start": 0, "end": 2}, "tail": {"start": 4, "end": 6, "type": "LOC"}}
    path = write("a.jsonl", "\n".join(json.dumps(line) for line in (pair, {**pair, "label": "lives_in"})))
    found = [*(RelationData().read_unlabelled(path) or ())]
    expected = Related("민아는 서울에", Span(0, 2), Span(4, 6, "LOC"), None, f"{path}:1")
    assert found == [expected, replace(expected, label="lives_in", where=f"{path}:2")]


@pytest.mark.parametrize("label", ["", ",label"])
def test_choices_with_and_without_a_label(write: Write, label: str) -> None:
    path = write("a.csv", f'sent1,sent2,ending0,ending1{label}\n"He, there",He,runs,sits{label and ",1"}\n')
    (found,) = ChoiceData().read_unlabelled(path) or ()
    assert found == Choice("He, there", ["He runs", "He sits"], 1 if label else None, f"{path}:2")
