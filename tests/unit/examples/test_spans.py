"""A text with entities: from a line, from a mapping, from words with tags."""

import json
from typing import Any

import pytest

from jumok.errors import DataError
from jumok.examples.spans import Spans
from jumok.tasks.protocol import plain
from jumok.text.span import Span

TEXT = "Ada lives in Oslo"
SPANS = [{"start": 0, "end": 3, "label": "PER"}]


def error_of(given: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        Spans.parse(given, "line 3")
    assert caught.value.where == "line 3"
    return caught.value


# what is known


def test_words_have_a_space_between_any_two_and_tags_mark_characters() -> None:
    example = Spans.of_words(["Ada", "Lee", "lives", "in", "Oslo"], ["B-P", "I-P", "O", "O", "B-L"], "a:1")
    assert (example.text, example.spans, example.where) == ("Ada Lee lives in Oslo", None, "a:1")
    assert example.marked == [Span(0, 7, "P"), Span(17, 21, "L")]
    assert [span.of(example.text) for span in example.marked] == ["Ada Lee", "Oslo"]
    assert example.gold_tags == ["B-P", "I-P", "O", "O", "B-L"]


def test_no_entity_is_not_the_same_as_not_knowing_any() -> None:
    assert Spans(TEXT, []).marked == []
    assert Spans.of_words(["a"], ["O"]).marked == []
    for example in (Spans(TEXT, where="a:1"), Spans.of_words(["a"], None, "a:1")):
        for asked in ("marked", "gold_tags"):
            with pytest.raises(DataError) as caught:
                getattr(example, asked)
            assert (caught.value.code, caught.value.where) == ("data.no_label", "a:1")


# lines


@pytest.mark.parametrize(
    "line",
    [
        TEXT,
        "",
        "  two  spaces ",
        "a\tb",
        "{ a brace",
        '{"A" d B',
        '{"text": "damaged',
        '{"words": ["a"]}',
        "{}",
        '["text"]',
        '"text"',
    ],
)
def test_a_line_is_a_text(line: str) -> None:
    assert Spans.parse(line, "line 3") == Spans(line, where="line 3")


def test_a_line_of_json_with_a_text_is_what_it_says() -> None:
    given = {"text": TEXT, "spans": SPANS}
    found = Spans.parse(json.dumps(given), "line 3")
    assert found == Spans.parse(given, "line 3") == Spans(TEXT, [Span(0, 3, "PER")], where="line 3")


# mappings


@pytest.mark.parametrize(
    ("given", "spans"),
    [
        ({"text": TEXT}, None),
        ({"text": TEXT, "spans": None}, None),
        ({"text": TEXT, "spans": []}, []),
        ({"text": TEXT, "spans": SPANS}, [Span(0, 3, "PER")]),
        ({"text": TEXT, "entities": [{"start": 13, "end": 17, "type": "LOC"}]}, [Span(13, 17, "LOC")]),
        ({"text": TEXT, "spans": [{"start": 0, "end": 99, "label": "PER"}]}, None),  # odd: nobody looks at them
        ({"text": TEXT, "spans": "Ada"}, None),
        ({"text": TEXT, "spans": [], "entities": []}, None),
    ],
)
def test_a_mapping_with_a_text(given: dict[str, Any], spans: list[Span] | None) -> None:
    assert Spans.parse(given, "line 3") == Spans(TEXT, spans, where="line 3")


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        ({"words": ["Ada", "New York"]}, None),
        ({"words": ["Ada", "New York"], "text": "Ada New York"}, None),
        ({"words": ["Ada", "New York"], "tags": ["B-P", "O"]}, ["B-P", "O"]),
        ({"words": ["Ada", "New York"], "tags": ["O"]}, None),
        ({"words": ["Ada", "New York"], "tags": [1, 2]}, None),
        ({"words": ["Ada", "New York"], "tags": "OO"}, None),
    ],
)
def test_a_mapping_with_words(given: dict[str, Any], tags: list[str] | None) -> None:
    assert Spans.parse(given, "line 3") == Spans.of_words(["Ada", "New York"], tags, "line 3")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "data.json"),
        ({"spans": []}, "data.json"),
        ({"text": 3}, "data.json"),
        ({"text": "\ud800"}, "data.json"),
        ('{"text": 3}', "data.json"),
        ({"words": "Ada lives"}, "data.json"),
        ({"words": ["Ada", 3]}, "data.json"),
        ({"words": ["Ada", " "]}, "data.words"),
        ({"words": ["Ada", ""]}, "data.words"),
        ({"words": ["Ada", "lives"], "text": "Ada  lives"}, "data.words"),
    ],
)
def test_a_mapping_that_is_no_text(given: Any, code: str) -> None:
    assert error_of(given).code == code


@pytest.mark.parametrize(
    "example",
    [
        Spans(TEXT),
        Spans(TEXT, []),
        Spans(TEXT, [Span(0, 3, "PER"), Span(13, 17, "LOC")]),
        Spans.of_words(["Ada", "lives"]),
        Spans.of_words(["Ada", "lives"], ["B-P", "O"]),
    ],
)
def test_an_example_is_read_back_from_its_json(example: Spans) -> None:
    found = plain(example)
    assert Spans.parse(found) == Spans.parse(json.dumps(found)) == example
