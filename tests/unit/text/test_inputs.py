"""Files as the training data has them, read for prediction: whatever they say of the answer is not looked at."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jumok.errors import DataError, InputError
from jumok.text.inputs import lines_of_choices, lines_of_marked, lines_of_questions, lines_of_table, words_of_columns

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
        ("text", None, None, "a line\nanother\n", ["a line", "another"]),
        ("text", "more", None, "one\ttwo\nthree\tfour\n", ["one\ttwo", "three\tfour"]),
    ],
)
def test_tables(
    write: Write, text: str, pair: str | None, header: list[str] | None, given: str, lines: list[str]
) -> None:
    path = write("a.tsv", given)
    found = [*lines_of_table(path, text, pair, header)]
    assert [line for line, _ in found] == lines
    assert all(where.startswith(f"{path}:") for _, where in found)


def test_a_table_without_the_column_is_no_list_of_texts(write: Write) -> None:
    path = write("a.tsv", "review\tstars\nfine\t5\n")
    with pytest.raises(InputError, match="a table of 2 columns: review, stars") as caught:
        lines_of_table(path, "text", None, None)
    assert (caught.value.where, "a header with text" in (caught.value.right or "")) == (f"{path}:1", True)


def test_words_in_columns(write: Write) -> None:
    path = write("a.conll", "-DOCSTART- O\n\nAda B-PER\nruns O\n\nonly\n")
    assert [*words_of_columns(path)] == [(["Ada", "runs"], f"{path}:3"), (["only"], f"{path}:6")]


def test_texts_with_spans(write: Write) -> None:
    path = write("a.jsonl", '{"text": "민아는", "spans": [{"start": 0, "end": 99}]}\n\n{"text": "x"}\n')
    assert [*lines_of_marked(path)] == [("민아는", f"{path}:1"), ("x", f"{path}:3")]
    with pytest.raises(DataError, match='no "text"'):
        [*lines_of_marked(write("b.jsonl", "{}\n"))]


def test_questions_without_answers(write: Write) -> None:
    qas = [{"id": "q1", "question": "누구?"}, {"id": "q2", "question": "어디?", "answers": [{"text": "없다"}]}]
    path = write("a.json", json.dumps({"data": [{"paragraphs": [{"context": "민아는 서울에", "qas": qas}]}]}))
    found = [(json.loads(line), where) for line, where in lines_of_questions(path)]
    assert [line["id"] for line, _ in found] == ["q1", "q2"]
    assert found[0] == ({"id": "q1", "question": "누구?", "context": "민아는 서울에"}, f"{path}, question q1")


@pytest.mark.parametrize("label", ["", ",label"])
def test_choices_with_and_without_a_label(write: Write, label: str) -> None:
    path = write("a.csv", f'sent1,sent2,ending0,ending1{label}\n"He, there",He,runs,sits{label and ",1"}\n')
    ((line, where),) = lines_of_choices(path)
    assert json.loads(line) == {"context": "He, there", "endings": ["He runs", "He sits"]}
    assert where == f"{path}:2"
