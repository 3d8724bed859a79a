"""Lines of input that go together, and one of them that cannot be answered."""

from collections.abc import Iterator

import pytest

from jumok.arguments import predictions, stream_to_stdout
from jumok.errors import InputError
from jumok.tasks.predict import Line


class Echo:
    """Answers everything but what it is told not to."""

    def predict(self, texts, **_):
        for text in texts:
            if "odd" in text:
                raise InputError("nothing to say", where=text.where)
        return [text.upper() for text in texts]


def lines(*texts: str) -> Iterator[list[Line]]:
    yield [Line.at(text, f"file:{number}") for number, text in enumerate(texts, start=1)]


def test_the_lines_before_one_that_cannot_be_answered_are():
    found = predictions(Echo(), lines("a", "b", "odd", "c"), {})
    assert [next(found)[1], next(found)[1]] == ["A", "B"]
    with pytest.raises(InputError) as caught:
        next(found)
    assert caught.value.where == "file:3"
    assert [output for _, output in predictions(Echo(), lines("a", "c"), {})] == ["A", "C"]


def test_only_a_translator_is_told_how_to_begin():
    with pytest.raises(InputError) as caught:
        next(predictions(Echo(), lines("a"), {}, prefix="x"))
    assert caught.value.where == "--prefix"


def test_what_does_not_go_with_a_stream_is_named():
    with pytest.raises(InputError, match="goes without --json, --table"):
        stream_to_stdout(Echo(), lines("a"), {}, beside={"--json": True, "--prefix": None, "--table": "tsv"})
