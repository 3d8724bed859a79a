"""Entities and relations as the rows of a table, which has its columns even if nothing is found."""

import json

import pytest

from jumok.arguments import table_lines
from jumok.errors import InputError
from jumok.predictor import RelatedText, TaggedText
from jumok.tasks.classifier import Classifier
from jumok.tasks.relater import Relater, Relation
from jumok.tasks.tagger import Found, Tagger

ASPIRIN, COX = Found(0, 7, "CHEMICAL", "aspirin", 0.9), Found(17, 22, "GENE", "cox\t2", 0.8)
TAGGED = [
    ("-", TaggedText("", [], [], [], [])),
    ("aspirin inhibits cox\t2", TaggedText("", [], [], [], [ASPIRIN, COX])),
]
RELATED = [(line, RelatedText("", output.entities, [])) for line, output in TAGGED]
RELATED[1][1].relations.append(Relation(ASPIRIN, COX, "INHIBITOR", 0.75))


TAGGER, RELATER = object.__new__(Tagger), object.__new__(Relater)


def test_entities_are_rows_with_their_line_and_characters():
    header, *rows = table_lines(TAGGER, iter(TAGGED), "tsv")
    assert header == "line\ttype\ttext\tstart\tend\tscore"
    assert rows == ["2\tCHEMICAL\taspirin\t0\t7\t0.9", "2\tGENE\tcox 2\t17\t22\t0.8"]
    first, second = (json.loads(line) for line in table_lines(TAGGER, iter(TAGGED), "jsonl"))
    assert [*first] == header.split("\t")
    assert second == {"line": 2, "type": "GENE", "text": "cox\t2", "start": 17, "end": 22, "score": 0.8}


def test_relations_are_rows_with_both_entities():
    header, row = table_lines(RELATER, iter(RELATED), "tsv")
    assert row == "2\tINHIBITOR\t0.75\tCHEMICAL\taspirin\t0\t7\tGENE\tcox 2\t17\t22"
    (found,) = (json.loads(line) for line in table_lines(RELATER, iter(RELATED), "jsonl"))
    assert [*found] == header.split("\t")
    assert (found["head_text"], found["relation"], found["tail_text"]) == ("aspirin", "INHIBITOR", "cox\t2")


def test_an_empty_table_has_columns():
    for found in (TAGGED[:1], []):
        assert [*table_lines(TAGGER, iter(found), "tsv")] == ["line\ttype\ttext\tstart\tend\tscore"]
    (header,) = table_lines(RELATER, iter(RELATED[:1]), "tsv")
    assert header.startswith("line\trelation\tprobability\thead_type\thead_text")
    assert [*table_lines(RELATER, iter(RELATED[:1]), "jsonl")] == []


def test_what_finds_neither_has_no_table():
    with pytest.raises(InputError, match="neither entities nor relations"):
        next(table_lines(object.__new__(Classifier), iter([]), "tsv"))


def test_a_cell_has_no_ends_of_lines():
    entity = Found(0, 7, "GENE", "a\r\nb\tc", 0.5)
    _, row = table_lines(TAGGER, iter([("", TaggedText("", [], [], [], [entity]))]), "tsv")
    assert row == "1\tGENE\ta  b c\t0\t7\t0.5"
