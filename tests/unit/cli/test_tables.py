"""Entities and relations as the rows of a table, which has its columns even if nothing is found."""

import json
from pathlib import Path

import pytest

from jumok.cli import predict
from jumok.errors import InputError
from jumok.tasks.classification.predictor import Classifier
from jumok.tasks.protocol import Failure
from jumok.tasks.relation.predictor import RelatedText, Relater, Relation
from jumok.tasks.tagging.predictor import TaggedText, Tagger
from jumok.text.span import Span

ASPIRIN, COX = Span(0, 7, "CHEMICAL", "aspirin", 0.9), Span(17, 22, "GENE", "cox\t2", 0.8)
TAGGED = [
    ("-", TaggedText("", [], [], [], [])),
    ("aspirin inhibits cox\t2", TaggedText("", [], [], [], [ASPIRIN, COX])),
]
RELATED = [(line, RelatedText("", output.entities, [])) for line, output in TAGGED]
RELATED[1][1].relations.append(Relation(ASPIRIN, COX, "INHIBITOR", 0.75))


TAGGER, RELATER = object.__new__(Tagger), object.__new__(Relater)


@pytest.fixture
def table(capsys):
    """The lines of a table, as `jumok predict --table` prints them."""

    def lines(predictor, answers, form):
        predict._print(predictor, Path("run"), answers, table=form, as_json=False)
        return capsys.readouterr().out.splitlines()

    return lines


def test_entities_are_rows_with_their_line_and_characters(table):
    header, *rows = table(TAGGER, TAGGED, "tsv")
    assert header == "line\ttype\ttext\tstart\tend\tscore"
    assert rows == ["2\tCHEMICAL\taspirin\t0\t7\t0.9", "2\tGENE\tcox 2\t17\t22\t0.8"]
    first, second = map(json.loads, table(TAGGER, TAGGED, "jsonl"))
    assert [*first] == header.split("\t")
    assert second == {"line": 2, "type": "GENE", "text": "cox\t2", "start": 17, "end": 22, "score": 0.8}


def test_relations_are_rows_with_both_entities(table):
    header, row = table(RELATER, RELATED, "tsv")
    assert row == "2\tINHIBITOR\t0.75\tCHEMICAL\taspirin\t0\t7\tGENE\tcox 2\t17\t22"
    (found,) = map(json.loads, table(RELATER, RELATED, "jsonl"))
    assert [*found] == header.split("\t")
    assert (found["head_text"], found["relation"], found["tail_text"]) == ("aspirin", "INHIBITOR", "cox\t2")


def test_an_empty_table_has_columns(table):
    for found in (TAGGED[:1], []):
        assert table(TAGGER, found, "tsv") == ["line\ttype\ttext\tstart\tend\tscore"]
    (header,) = table(RELATER, RELATED[:1], "tsv")
    assert header.startswith("line\trelation\tprobability\thead_type\thead_text")
    assert table(RELATER, RELATED[:1], "jsonl") == []


def test_a_line_that_failed_has_no_rows_and_is_counted(table):
    failed = Failure("data.too_long", "a text of 30 pieces", "line 1")
    _, *rows = table(TAGGER, [("x", failed), *TAGGED], "tsv")
    assert [row.split("\t")[0] for row in rows] == ["3", "3"]


def test_what_finds_neither_has_no_table(table):
    with pytest.raises(InputError) as caught:
        table(object.__new__(Classifier), [], "tsv")
    assert (caught.value.code, caught.value.where) == ("input.table", "--table")
    assert "classification" in caught.value.what


def test_a_cell_has_no_ends_of_lines(table):
    entity = Span(0, 7, "GENE", "a\r\nb\tc", 0.5)
    _, row = table(TAGGER, [("", TaggedText("", [], [], [], [entity]))], "tsv")
    assert row == "1\tGENE\ta  b c\t0\t7\t0.5"
