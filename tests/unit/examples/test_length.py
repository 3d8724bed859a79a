"""The length of an example, whatever its kind."""

from jumok.examples.choices import Choice
from jumok.examples.length import characters, texts_of
from jumok.examples.pairs import Pair
from jumok.examples.questions import Question
from jumok.examples.spans import Spans


def test_the_longest_text_counts() -> None:
    assert characters("abc") == 3
    assert characters(Pair("ab", "abcd")) == 4
    assert characters(Pair("ab", None)) == 2
    assert characters(Question("1", "why?", "because", None)) == 7
    assert characters(Spans.of_words(["one", "two"])) == 7
    assert characters(Choice("a", ["bcd", "efg"])) == 7  # with a space between the endings
    assert characters(None) == 0


def test_texts_are_all_but_the_place() -> None:
    assert texts_of(Pair("ab", "cd", where="a.tsv:1")) == ["ab", "cd"]
    assert texts_of(Choice("a", ["bcd", "efg"])) == ["a", "bcd efg"]
