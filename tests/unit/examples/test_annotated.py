"""Texts in which people have marked something: what is read, and the place of what cannot be."""

import csv
import gzip
import io
import json
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumok.errors import DataError
from jumok.examples.choices import Choice, read_choices
from jumok.examples.questions import Question, QuestionData, read_questions
from jumok.examples.relations import Related, RelationData, read_related
from jumok.examples.spans import Spans, read_marked
from jumok.text.normalise import is_inside_character
from jumok.text.span import Span

Write = Callable[..., Path]
Read = Callable[[Path], Iterator[Any]]
READERS: dict[str, Read] = {
    "a.jsonl": read_marked,
    "b.jsonl": read_related,
    "c.json": read_questions,
    "d.jsonl": read_choices,
    "e.csv": read_choices,
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: Any, name: str = "file.jsonl") -> Path:
        """Bytes, text, or values to be written as lines of JSON."""
        path = tmp_path / name
        if isinstance(content, list):
            content = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in content)
        content = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write_file


def wrong(read: Read, path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        list(read(path))
    assert caught.value.hint
    return caught.value


def marked(text: str, *spans: tuple[int, int, str]) -> dict[str, Any]:
    return {"text": text, "spans": [{"start": start, "end": end, "label": label} for start, end, label in spans]}


# marked spans


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_spans_are_read_in_the_order_of_the_text(write: Write, name: str) -> None:
    text = "민아는 서울에서 일한다"
    path = write([marked(text, (4, 6, "LOC"), (0, 2, " PER ")), marked("no names")], name)
    first, second = read_marked(path)
    assert first == Spans(text, [Span(0, 2, "PER"), Span(4, 6, "LOC")], where=f"{path}:1")
    assert [text[mark.start : mark.end] for mark in first.marked] == ["민아", "서울"]
    assert second == Spans("no names", [], where=f"{path}:2")


def test_entities_and_types_are_other_words_for_spans_and_labels(write: Write) -> None:
    path = write([{"text": "Oslo", "entities": [{"start": 0, "end": 4, "type": "LOC", "id": 7}], "meta": {"x": 1}}])
    assert [example.spans for example in read_marked(path)] == [[Span(0, 4, "LOC")]]


def test_spans_may_touch_and_blank_lines_are_passed_over(write: Write) -> None:
    line = json.dumps(marked("ab", (0, 1, "X"), (1, 2, "Y")))
    path = write(f"\ufeff\n{line}\r\n  \n{line}")
    assert [example.where for example in read_marked(path)] == [f"{path}:2", f"{path}:4"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes, column 2"),
        ("null", "null, not an object"),
        ('["text"]', "a list, not an object"),
        ("3", "a whole number, not an object"),
        ('{"spans": []}', 'no "text"'),
        ('{"text": null, "spans": []}', 'no "text"'),
        ('{"text": 3, "spans": []}', '"text" is a whole number, not text'),
        ('{"text": "a"}', 'no "spans"'),
        ('{"text": "a", "spans": [], "entities": []}', 'both "spans" and "entities"'),
        ('{"text": "a", "spans": {}}', '"spans" is an object, not a list'),
        ('{"text": "a", "spans": [[0, 1, "X"]]}', "span 1 is a list, not an object"),
        ('{"text": "a", "spans": [{"end": 1, "label": "X"}]}', 'span 1: no "start"'),
        ('{"text": "a", "spans": [{"start": 0, "end": 1}]}', 'span 1: no "label"'),
        ('{"text": "a", "spans": [{"start": 0, "end": 1, "label": " "}]}', 'span 1: an empty "label"'),
        ('{"text": "a", "spans": [{"start": 0, "end": 1, "label": 7}]}', 'span 1: "label" is a whole number, not text'),
        ('{"text": "a", "spans": [{"start": "0", "end": 1}]}', 'span 1: "start" is text, not a whole number'),
        ('{"text": "a", "spans": [{"start": 0.0, "end": 1}]}', 'span 1: "start" is a number with a fraction, not a'),
        ('{"text": "a", "spans": [{"start": NaN, "end": 1}]}', 'span 1: "start" is a number with a fraction, not a'),
        ('{"text": "a", "spans": [{"start": false, "end": 1}]}', 'span 1: "start" is true or false, not a whole'),
        ("[" * 100_000, "unreadable JSON: "),
        (f'{{"text": {"9" * 5000}}}', "unreadable JSON: "),
        (r'{"text": "a\ud83d", "spans": []}', r'"text" has an unpaired surrogate \ud83d at character 1'),
        (r'{"text": "\udc4d\ud83d", "spans": []}', r'"text" has an unpaired surrogate \udc4d at character 0'),
        (r'{"text": "a", "spans": [{"start": 0, "end": 1, "label": "\udfff"}]}', r'span 1: "label" has an unpaired'),
    ],
)
def test_a_line_that_marks_nothing(write: Write, line: str, what: str) -> None:
    path = write(json.dumps(marked("fine")) + "\n" + line)
    error = wrong(read_marked, path)
    assert error.what.startswith(what)
    assert error.where == f"{path}:2"
    assert '"spans"' in (error.hint or "")


def test_a_whole_surrogate_pair_is_one_character(write: Write) -> None:
    path = write(r'{"text": "\ud83d\udc4d ok", "spans": [{"start": 0, "end": 1, "label": "X"}]}')
    assert [example.text for example in read_marked(path)] == ["👍 ok"]


@pytest.mark.parametrize(
    ("text", "start", "end", "what"),
    [
        ("abc", 0, 4, "from 0 to 4, but the text has 3 characters"),
        ("abc", -1, 2, "from -1 to 2, but the text has 3 characters"),
        ("abc", 7, 9, "from 7 to 9"),
        ("abc", 0, 10**30, "from 0 to 1000"),
        ("", 0, 1, "the text has 0 characters"),
        ("abc", 2, 2, "empty, from 2 to 2"),
        ("abc", 2, 1, "empty, from 2 to 1"),
        ("a  c", 1, 3, "nothing but white space from 1 to 3"),
        ("a\u3000\tc", 1, 3, "nothing but white space from 1 to 3"),
        (unicodedata.normalize("NFD", "é"), 0, 1, "offset 1 is inside a character, between U+0065 and U+0301"),
        ("a" + unicodedata.normalize("NFD", "é"), 2, 3, "offset 2 is inside a character, between U+0065 and U+0301"),
        (unicodedata.normalize("NFD", "각"), 0, 1, "offset 1 is inside a character, between U+1100 and U+1161"),
        (unicodedata.normalize("NFD", "각"), 0, 2, "offset 2 is inside a character, between U+1161 and U+11A8"),
        ("가\u11a8", 0, 1, "offset 1 is inside a character, between U+AC00 and U+11A8"),
        ("❤\ufe0f", 0, 1, "offset 1 is inside a character, between U+2764 and U+FE0F"),
        ("👩\u200d🔬", 0, 1, "offset 1 is inside a character, between U+1F469 and U+200D"),
        ("👩\u200d🔬", 0, 2, "offset 2 is inside a character, between U+200D and U+1F52C"),
        ("👍🏽", 0, 1, "offset 1 is inside a character, between U+1F44D and U+1F3FD"),
        ("🇰🇷", 0, 1, "offset 1 is inside a character, between U+1F1F0 and U+1F1F7"),
    ],
)
def test_offsets_that_mark_nothing_whole(write: Write, text: str, start: int, end: int, what: str) -> None:
    path = write([marked(text, (start, end, "X"))])
    error = wrong(read_marked, path)
    assert error.what.startswith("span 1: ")
    assert what in error.what
    assert error.where == f"{path}:1"


@pytest.mark.parametrize("text", ["é", "각", "❤\ufe0f", "👩\u200d🔬", "👍🏽"])
def test_whole_characters_may_be_marked(write: Write, text: str) -> None:
    for form in (text, unicodedata.normalize("NFD", text)):
        path = write([marked(f"a{form}b", (1, 1 + len(form), "X"))])
        assert [example.spans for example in read_marked(path)] == [[Span(1, 1 + len(form), "X")]]


@pytest.mark.parametrize(("start", "end"), [(0, 6), (5, 8), (5, 9)])
def test_a_span_has_no_white_space_at_its_edges(write: Write, start: int, end: int) -> None:
    """No tagger would ever find it, and its tags would look right all the same."""
    path = write([{"text": "Seoul is big", "spans": [{"start": start, "end": end, "label": "X"}]}])
    error = wrong(read_marked, path)
    assert error.what.startswith("span 1: white space at an edge: ")
    assert error.where == f"{path}:1"


def test_spans_that_overlap_are_both_named(write: Write) -> None:
    path = write([marked("New York City", (4, 13, "LOC"), (9, 13, "LOC"), (0, 3, "X"))])
    error = wrong(read_marked, path)
    assert error.what == "two spans overlap: 'York City' (4 to 13) and 'City' (9 to 13)"
    assert wrong(read_marked, write([marked("ab", (0, 1, "X"), (0, 1, "Y"))])).what.startswith("two spans overlap")


# relations


def related(text: str, head: tuple[int, int], tail: tuple[int, int], label: Any = "x") -> dict[str, Any]:
    ends = [{"start": start, "end": end} for start, end in (head, tail)]
    return {"text": text, "head": ends[0], "tail": ends[1], "label": label}


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_relations(write: Write, name: str) -> None:
    typed = related("Vela hired Mina", (11, 15), (0, 4), "employs(e2,e1)")
    typed["head"]["type"] = "PERSON"
    path = write([typed, related("a b", (0, 1), (2, 3))], name)
    assert list(read_related(path)) == [
        Related("Vela hired Mina", Span(11, 15, "PERSON"), Span(0, 4, ""), "employs(e2,e1)", f"{path}:1"),
        Related("a b", Span(0, 1, ""), Span(2, 3, ""), "x", f"{path}:2"),
    ]


def test_an_entity_may_be_part_of_the_other(write: Write) -> None:
    for head, tail in (((0, 7), (0, 16)), ((0, 16), (0, 7)), ((8, 16), (0, 16))):
        (found,) = read_related(write([related("insulin receptor", head, tail)]))
        assert (found.head.start, found.head.end, found.tail.start, found.tail.end) == (*head, *tail)


@pytest.mark.parametrize(
    ("example", "what"),
    [
        (related("a b", (0, 1), (0, 1)), "head and tail are the same: 'a' (0 to 1)"),
        (related("a b c", (0, 3), (2, 5)), "head and tail cross: 'a b' (0 to 3) and 'b c' (2 to 5)"),
        (related("a b c", (2, 5), (0, 3)), "head and tail cross: 'b c' (2 to 5) and 'a b' (0 to 3)"),
        (related("a b", (0, 1), (2, 4)), "tail: from 2 to 4, but the text has 3 characters"),
        (related("a b", (1, 2), (2, 3)), "head: nothing but white space from 1 to 2"),
        (related("a b", (0, 0), (2, 3)), "head: empty, from 0 to 0"),
        (related("e\u0301 b", (0, 1), (3, 4)), "head: offset 1 is inside a character, between U+0065 and U+0301"),
        (related("a b", (0, 1), (2, 3), ""), 'an empty "label"'),
        (related("a b", (0, 1), (2, 3), 3), '"label" is a whole number, not text'),
        (related("a b", (0, 1), (2, 3), None), 'no "label"'),
        ({"text": "a", "head": 0, "tail": 1}, '"head" is a whole number, not an object'),
        ({"text": "a", "tail": {}}, 'no "head"'),
        (
            {"text": "a", "head": {"start": 0, "end": 1, "type": 1}, "tail": {}},
            'head: "type" is a whole number, not text',
        ),
    ],
)
def test_what_is_no_relation(write: Write, example: dict[str, Any], what: str) -> None:
    path = write([example])
    error = wrong(read_related, path)
    assert (error.what, error.where) == (what, f"{path}:1")


def test_a_relation_to_be_predicted() -> None:
    asked = related("a b", (0, 1), (2, 3))
    for label, read in (("known", "known"), (" ", None), (3, None), (None, None)):
        line = {**asked, "label": label}
        expected = Related("a b", Span(0, 1, ""), Span(2, 3, ""), read, "line 3")
        assert Related.parse(line, "line 3") == Related.parse(json.dumps(line), "line 3") == expected
    with pytest.raises(DataError) as caught:
        Related.parse("Vela hired Mina", "line 4")
    assert (caught.value.code, caught.value.where) == ("data.not_json", "line 4")
    assert '"head"' in (caught.value.hint or "")
    assert "--entities" in (caught.value.hint or "")
    assert '"label"' not in (caught.value.hint or "")


@pytest.mark.parametrize("key", ["type", "label"])
def test_the_type_of_an_entity(key: str) -> None:
    asked = related("a b", (0, 1), (2, 3))
    asked["head"] |= {key: " GENE ", "text": "", "score": 1.0}
    assert Related.parse(asked) == Related("a b", Span(0, 1, "GENE"), Span(2, 3, ""), "x")


def test_a_relation_that_is_not_known_is_no_answer() -> None:
    with pytest.raises(DataError) as caught:
        Related("a b", Span(0, 1), Span(2, 3), where="a.jsonl:7").gold  # noqa: B018
    assert (caught.value.code, caught.value.where) == ("data.no_label", "a.jsonl:7")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "A.JSONL"])
def test_a_file_of_relations_to_be_predicted(write: Write, name: str) -> None:
    path = write([related("a b", (0, 1), (2, 3), None), related("c d", (0, 1), (2, 3), 5)], name)
    found = RelationData().read_unlabelled(path)
    assert [(e.text, e.label, e.where) for e in found or ()] == [("a b", None, f"{path}:1"), ("c d", None, f"{path}:2")]
    assert RelationData().read_unlabelled(path.with_suffix(".txt")) is None


# questions


def squad(*paragraphs: tuple[str, list[dict[str, Any]]]) -> str:
    written = [{"context": context, "qas": qas} for context, qas in paragraphs]
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": written}]}, indent=1)


def qas(identity: str = "q1", answers: Any = (("Oslo", 14),), **more: Any) -> dict[str, Any]:
    written = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": identity, "question": "Where?", "answers": written, **more}


CONTEXT = "Mina lives in Oslo, and Oslo is in Norway."


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_questions_of_both_versions(write: Write, name: str) -> None:
    one = qas(answers=(("Oslo", 14), ("Oslo", 24), ("in Oslo", 11)))
    other = qas("q2", (), is_impossible=True, plausible_answers=[{"text": "Oslo", "answer_start": 0}])
    path = write(squad((CONTEXT, [one, other]), ("x", [qas("q3", (("x", 0),), is_impossible=False)])), name)
    assert list(read_questions(path)) == [
        Question("q1", "Where?", CONTEXT, [("Oslo", 14), ("Oslo", 24), ("in Oslo", 11)], f"{path}, question q1"),
        Question("q2", "Where?", CONTEXT, [], f"{path}, question q2"),
        Question("q3", "Where?", "x", [("x", 0)], f"{path}, question q3"),
    ]


def test_a_question_without_an_answer_needs_no_list_of_them(write: Write) -> None:
    path = write(squad(("x", [{"id": "q", "question": "Where?", "is_impossible": True}])))
    assert [found.answers for found in read_questions(path)] == [[]]


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (qas(answers=(("Oslo", 13),)), "answer 1: 'Oslo' is not at 13 of the context, but at 14"),
        (qas(answers=(("Oslo", 14), ("Oslo", 22))), "answer 2: 'Oslo' is not at 22 of the context, but at 24"),
        (qas(answers=(("Oslo", -28),)), "answer 1: 'Oslo' is not at -28 of the context, but at 14"),
        (qas(answers=(("Oslo", 10**30),)), "but at 24"),
        (qas(answers=(("oslo", 14),)), "answer 1: 'oslo' is not at 14 of the context, but nowhere in the context"),
        (qas(answers=((".*", 14),)), "answer 1: '.*' is not at 14 of the context, but nowhere in the context"),
        (qas(answers=(("", 0),)), "answer 1: no text"),
        (qas(answers=((" ", 4),)), "answer 1: no text"),
        (qas(answers=(("Oslo", "14"),)), 'answer 1: "answer_start" is text, not a whole number'),
        (qas(answers=((None, 14),)), 'answer 1: no "text"'),
        (qas(answers=()), 'no answers, but "is_impossible" is not true'),
        (qas(answers=(), is_impossible=False), 'no answers, but "is_impossible" is not true'),
        (qas(is_impossible=True), 'answers, but "is_impossible" is true'),
        (qas(is_impossible="yes"), '"is_impossible" is text, not true or false'),
        (qas(question=None), 'no "question"'),
        (qas(answers=(), question=3), '"question" is a whole number, not text'),
        ({"id": "q1", "question": "Where?"}, 'no "answers"'),
        ({"id": "q1", "question": "Where?", "answers": {}}, '"answers" is an object, not a list'),
    ],
)
def test_what_is_wrong_with_a_question_is_told_with_its_id(write: Write, asked: dict[str, Any], what: str) -> None:
    path = write(squad((CONTEXT, [asked])))
    error = wrong(read_questions, path)
    assert error.what.endswith(what)
    assert error.where == f"{path}, question q1"


@pytest.mark.parametrize(
    ("context", "answer", "start", "offset"),
    [("cafe\u0301 x", "cafe", 0, 4), ("cafe\u0301 x", "\u0301 x", 4, 4), ("in 🇰🇷", "in 🇰", 0, 4)],
)
def test_an_answer_has_whole_characters(write: Write, context: str, answer: str, start: int, offset: int) -> None:
    path = write(squad((context, [qas(answers=((answer, start),))])))
    error = wrong(read_questions, path)
    assert error.what.startswith(f"answer 1: offset {offset} is inside a character, between ")
    assert error.where == f"{path}, question q1"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "not JSON: Expecting value, column 1"),
        ("[]", "a list, not an object"),
        ('{"context": "a", "question": "b"}', 'no "data"'),
        ('{"data": {"paragraphs": []}}', '"data" is an object, not a list'),
        ('{"data": [{"title": "t"}]}', 'article 1: no "paragraphs"'),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', 'article 1, paragraph 1: no "context"'),
        ('{"data": [{"paragraphs": [{"context": "a"}]}]}', 'article 1, paragraph 1: no "qas"'),
        ('{"data": [{"paragraphs": [{"context": "a", "qas": [{}]}]}]}', 'article 1, paragraph 1, question 1: no "id"'),
        ('{"data": [{"paragraphs": [{"context": "a", "qas": [3]}]}]}', "article 1, paragraph 1: question 1 is a whole"),
        (
            r'{"data": [{"paragraphs": [{"context": "\ud800", "qas": []}]}]}',
            'article 1, paragraph 1: "context" has an unpaired',
        ),
        (
            squad((CONTEXT, [qas("same"), qas("same")])),
            "article 1, paragraph 1, question 2: duplicate id same",
        ),
    ],
)
def test_what_is_not_squad(write: Write, content: str, what: str) -> None:
    path = write(content)
    error = wrong(read_questions, path)
    assert error.what.startswith(what)
    assert error.where == str(path)
    assert "SQuAD" in (error.hint or "")


def test_the_line_that_is_not_json_is_named(write: Write) -> None:
    path = write('{"data": [\n{"paragraphs": [}\n]}')
    assert wrong(read_questions, path).where == f"{path}:2"


def test_a_question_to_be_answered() -> None:
    asked = {"question": "Where?", "context": CONTEXT}
    expected = Question("", "Where?", CONTEXT, None, "line 1")
    for line in (asked, json.dumps(asked), f"Where?\t{CONTEXT}"):
        assert Question.parse(line, "line 1") == expected
    assert Question.parse({**asked, "id": "q", "answers": 3}, "line 1") == replace(expected, id="q")
    with pytest.raises(DataError) as caught:
        Question.parse('{"question": "Where?"}', "line 2")
    assert (caught.value.code, caught.value.where, "context" in caught.value.what) == ("data.json", "line 2", True)
    with pytest.raises(DataError) as caught:
        Question.parse("Where?", "line 3")
    assert (caught.value.code, caught.value.where) == ("data.no_context", "line 3")
    with pytest.raises(DataError) as caught:
        expected.gold  # noqa: B018
    assert (caught.value.code, caught.value.where) == ("data.no_label", "line 1")


@pytest.mark.parametrize(
    ("told", "answers"),
    [
        ({"answers": [{"text": "Oslo", "answer_start": 14}]}, [("Oslo", 14)]),
        ({"answers": [["Oslo", 14], ["Oslo", 24]]}, [("Oslo", 14), ("Oslo", 24)]),
        ({"answers": []}, []),
        ({"is_impossible": True}, []),
        ({"answers": [], "is_impossible": True}, []),
        ({"answers": None}, None),
        ({"answers": [["Oslo", 15]]}, None),
        ({"answers": [["Oslo"]]}, None),
        ({"answers": [{"text": "Oslo"}]}, None),
        ({"answers": [["Oslo", 14]], "is_impossible": True}, None),
    ],
)
def test_answers_that_a_question_need_not_have(told: dict[str, Any], answers: list[tuple[str, int]] | None) -> None:
    asked = {"question": "Where?", "context": CONTEXT, **told}
    assert Question.parse(asked).answers == Question.parse(json.dumps(asked)).answers == answers


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "A.JSON"])
def test_a_file_of_questions_to_be_answered(write: Write, name: str) -> None:
    """A test file may have no answers, or answers that do not fit, and ids that are not unique."""
    asked = [{"id": "q", "question": "Where?"}, qas("q", (("Bergen", 3),)), qas("r")]
    path = write(squad((CONTEXT, asked)), name)
    assert [*(QuestionData().read_unlabelled(path) or ())] == [
        Question("q", "Where?", CONTEXT, None, f"{path}, question q"),
        Question("q", "Where?", CONTEXT, None, f"{path}, question q"),
        Question("r", "Where?", CONTEXT, [("Oslo", 14)], f"{path}, question r"),
    ]
    assert QuestionData().read_unlabelled(path.with_suffix(".jsonl")) is None
    path = write(squad((CONTEXT, [{"id": "q"}])), name)
    with pytest.raises(DataError) as caught:
        [*(QuestionData().read_unlabelled(path) or ())]
    assert caught.value.where == f"{path}, question q"


# choices

HEADER = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label"
SWAG = [*csv.reader([HEADER])][0]
ROW = ["0", "lsmdc", "18313", "Students look. She", "Students look.", "She", "gold"]
ROW += ["a, b.", 'says "c".', "d.", "e.", "2"]


def table(*rows: list[str]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_choices_of_swag(write: Write, name: str) -> None:
    no_second = ["1", *ROW[1:5], "", *ROW[6:7], "two\nlines", "b", "c", "d", "0"]
    path = write(table(SWAG, no_second, ROW), name)
    assert list(read_choices(path)) == [
        Choice("Students look.", ["two\nlines", "b", "c", "d"], 0, f"{path}:2"),
        Choice("Students look.", ["She a, b.", 'She says "c".', "She d.", "She e."], 2, f"{path}:4"),
    ]


def test_the_cells_of_swag_may_be_long_and_its_lines_empty(write: Write) -> None:
    path = write(table(SWAG, [*ROW[:4], "a" * 200_000, *ROW[5:]]) + "\n\n", "a.csv")
    (found,) = read_choices(path)
    assert len(found.context) == 200_000


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_choices_in_jsonl(write: Write, name: str) -> None:
    path = write([{"context": "a", "endings": ["b", "c", "d"], "label": 2}], name)
    assert list(read_choices(path)) == [Choice("a", ["b", "c", "d"], 2, f"{path}:1")]


@pytest.mark.parametrize(
    ("rows", "line", "what"),
    [
        ([[name for name in SWAG if name != "label"], ROW[:-1]], 1, "no column label"),
        ([SWAG[:8] + SWAG[-1:]], 1, "no column ending1"),
        ([[*SWAG, "label"], [*ROW, "1"]], 1, "more than one column label"),
        ([["sentence", "label"]], 1, "no column sent1, sent2, ending0, ending1"),
        ([SWAG, [*ROW[:-1], "4"]], 2, "the label is '4'"),
        ([SWAG, [*ROW[:-1], "-1"]], 2, "the label is '-1'"),
        ([SWAG, [*ROW[:-1], ""]], 2, "the label is ''"),
        ([SWAG, [*ROW[:-1], "9" * 5000]], 2, "the label is '999"),
        ([SWAG, ROW, ROW[:-1]], 3, "11 columns"),
        ([SWAG, [*ROW[:7], "two\nlines", *ROW[8:]], ["x"]], 4, "1 columns"),
    ],
)
def test_what_is_wrong_with_a_table_of_choices(write: Write, rows: list[list[str]], line: int, what: str) -> None:
    path = write(table(*rows), "a.csv")
    error = wrong(read_choices, path)
    assert error.what.startswith(what)
    assert error.where == f"{path}:{line}"


def test_a_quote_that_is_never_closed(write: Write) -> None:
    path = write(table(SWAG) + '0,"open\n', "a.csv")
    assert wrong(read_choices, path).what.startswith("not CSV: ")


@pytest.mark.parametrize(
    ("example", "what"),
    [
        (
            {"context": "a", "endings": ["b", "c"], "label": 2},
            "the label is 2, but there are 2 endings, numbered from 0",
        ),
        (
            {"context": "a", "endings": ["b", "c"], "label": -1},
            "the label is -1, but there are 2 endings, numbered from 0",
        ),
        ({"context": "a", "endings": ["b", "c"], "label": "1"}, '"label" is text, not a whole number'),
        ({"context": "a", "endings": ["b", "c"], "label": True}, '"label" is true or false, not a whole number'),
        ({"context": "a", "endings": ["b", "c"]}, 'no "label"'),
        ({"context": "a", "endings": ["b"], "label": 0}, "too few endings: 1"),
        ({"context": "a", "endings": [], "label": 0}, "too few endings: 0"),
        ({"context": "a", "endings": "bc", "label": 0}, '"endings" is text, not a list'),
        ({"context": "a", "endings": ["b", 3], "label": 0}, '"endings" 1 is a whole number, not text'),
        ({"endings": ["b", "c"], "label": 0}, 'no "context"'),
        ({"context": "a", "endings": ["b", "c", "d"], "label": 0}, "3 endings"),
    ],
)
def test_what_is_wrong_with_a_line_of_choices(write: Write, example: dict[str, Any], what: str) -> None:
    path = write([{"context": "a", "endings": ["b", "c"], "label": 1}, example])
    error = wrong(read_choices, path)
    assert (error.what, error.where) == (what, f"{path}:2")


def test_choices_are_known_by_the_name_of_their_file(write: Write) -> None:
    assert wrong(read_choices, write("", "a.tsv")).code == "data.format"


def test_a_choice_to_be_made() -> None:
    line = json.dumps({"context": "a", "endings": ["b", "c"]})
    assert Choice.parse(line, "line 1") == Choice("a", ["b", "c"], None, "line 1")
    with pytest.raises(DataError) as caught:
        Choice.parse("{}", "line 1")
    assert '"label"' not in (caught.value.hint or "")


# whatever is in a file


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_nothing_and_no_file(tmp_path: Path, write: Write, name: str) -> None:
    if READERS[name] is not read_questions:
        assert list(READERS[name](write("", name))) == []
    assert wrong(READERS[name], tmp_path / "nowhere" / name).where == str(tmp_path / "nowhere" / name)


@pytest.mark.parametrize("name", READERS)
def test_bytes_that_are_no_utf8_are_named(write: Write, name: str) -> None:
    path = write(b'{"text":\n "\xff"}', name)
    assert wrong(READERS[name], path).where in (f"{path}:2, byte 3", f"{path}:1")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=4),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(
        ["text", "spans", "start", "end", "label", "type", "head", "tail", "data", "paragraphs", "context", "qas", "id",
         "question", "answers", "answer_start", "is_impossible", "endings"]), below, max_size=8),
    max_leaves=30,
)  # fmt: skip


def place_of_what_is_wrong(read: Read, path: Path, *, otherwise: str) -> str:
    try:
        list(read(path))
    except DataError as error:
        return error.where or ""
    return otherwise


patient = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", READERS)
@patient
@given(
    content=st.binary(max_size=200) | st.text(st.characters(), max_size=200).map(lambda t: t.encode(errors="ignore"))
)
def test_no_bytes_are_anything_but_read_or_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert str(path) in place_of_what_is_wrong(READERS[name], path, otherwise=str(path))


@pytest.mark.parametrize("name", READERS)
@patient
@given(value=VALUES)
def test_no_json_is_anything_but_read_or_refused(tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(value), "utf-8")
    assert str(path) in place_of_what_is_wrong(READERS[name], path, otherwise=str(path))


@patient
@given(
    text=st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20),
    cuts=st.lists(st.integers(0, 20), min_size=2, max_size=6, unique=True),
)
def test_what_is_marked_can_be_read_back(tmp_path: Path, text: str, cuts: list[int]) -> None:
    """Any spans side by side are read as they are, or one of them is no whole piece of the text."""
    ends = sorted(cuts)
    spans = [(start, end, "X") for start, end in zip(ends[::2], ends[1::2], strict=False)]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(marked(text, *spans)), "utf-8")
    whole = all(
        end <= len(text)
        and text[start:end] == text[start:end].strip() != ""
        and not any(is_inside_character(text, at) for at in (start, end))
        for start, end, _ in spans
    )
    if whole:
        assert list(read_marked(path)) == [Spans(text, [Span(*span) for span in spans], where=f"{path}:1")]
    else:
        assert wrong(read_marked, path).what.startswith("span ")


def test_a_kept_error_keeps_no_file_open(write: Write) -> None:
    path = write([{"text": "a", "spans": 3}, {"text": "b", "spans": []}])
    error = wrong(read_marked, path)
    assert error.where == f"{path}:1"
    assert path.stat().st_ino not in {os.fstat(int(fd)).st_ino for fd in os.listdir("/proc/self/fd") if _is_open(fd)}


def _is_open(fd: str) -> bool:
    return Path(f"/proc/self/fd/{fd}").exists()


# real sets


def data(name: str) -> Path:
    folder = os.environ.get("JUMOK_DATA")
    if not folder or not (path := Path(folder) / name).exists():
        pytest.skip(f"JUMOK_DATA names no folder with {name}")
    return path


@pytest.mark.parametrize(
    ("name", "examples", "labels"),
    [
        ("semeval2010_task8/train.jsonl.gz", 8000, 19),
        ("semeval2010_task8/test.jsonl", 2717, 19),
        ("chemprot/train.jsonl.gz", 4169, 13),
        ("chemprot/dev.jsonl", 2427, 12),
        ("chemprot/test.jsonl.gz", 3469, 12),
    ],
)
def test_real_relations(name: str, examples: int, labels: int) -> None:
    found = list(read_related(data(name)))
    assert len(found) == examples
    assert len({example.label for example in found}) == labels
    types = Counter((example.head.label, example.tail.label) for example in found)
    assert types == {("CHEMICAL", "GENE") if name.startswith("chemprot") else ("", ""): examples}
    # Neither set has entities that share a character.
    assert all(e.head.end <= e.tail.start or e.tail.end <= e.head.start for e in found)


@pytest.mark.parametrize(
    ("name", "questions", "paragraphs"),
    [("train_new_wiki", 7938, 1581), ("train_reddit", 9803, 2035), ("dev_squad", 2575, 568)],
)
def test_real_questions(name: str, questions: int, paragraphs: int) -> None:
    found = list(read_questions(data(f"squad_style_en/{name}.json.gz")))
    assert len(found) == questions
    assert len({id(question.context) for question in found}) == paragraphs
    assert all(question.answers for question in found)
