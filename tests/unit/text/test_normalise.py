"""Composition with spans: the composed text is NFC, and every part of the original stands behind some of it."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumok.text.normalise import _marks, compose, compose_with_spans, is_inside_character, whole_characters

# Characters that compose, decompose or move: where composition by clusters could go wrong.
MOVING = (
    "aeoAE가각한 "
    "\u0300\u0301\u0307\u0308\u030a\u0323\u0327\u0345"  # accents above, below and attached
    "\u1100\u1112\u1161\u1175\u11a8\u11ab\u11c2\u115f\u1160"  # jamo, and their fillers
    "\u212b\u2126\u0958\u0344\u1e69\u01d5"  # singletons, exclusions, two accents at once
    "\u304b\u304c\u3099\u309a"  # kana and their voicing marks
    "\u0f40\u0f71\u0f72\u0f73\u0f75\u0f81"  # Tibetan vowels that decompose into two marks
    "\u0915\u093c\u09c7\u09be\u09d7"  # Indic vowels that join across their consonant
)
moving_text = st.text(st.sampled_from(MOVING), max_size=12)
# Characters that this Python does not know yet have no decomposition here.
any_text = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=40)
texts = st.one_of(any_text, moving_text, any_text.map(lambda text: unicodedata.normalize("NFD", text)))

many = settings(max_examples=300, deadline=None)


@many
@given(texts)
@example("か\u0f73\u3099")  # the second character decomposes into marks, so the third reaches the first
def test_the_text_is_nfc(text: str) -> None:
    assert compose_with_spans(text)[0] == unicodedata.normalize("NFC", text)


@many
@given(texts)
def test_spans_cover_the_text_without_gaps(text: str) -> None:
    composed, spans = compose_with_spans(text)
    assert len(spans) == len(composed) + 1
    assert spans[-1] == (len(text), len(text))
    distinct = list(dict.fromkeys(spans[:-1]))
    assert [start for start, _ in distinct] == [0, *(end for _, end in distinct)][: len(distinct)]
    assert "".join(text[start:end] for start, end in distinct) == text


@many
@given(texts)
def test_a_span_composes_to_its_characters(text: str) -> None:
    composed, spans = compose_with_spans(text)
    for span in set(spans[:-1]):
        characters = "".join(c for c, s in zip(composed, spans, strict=False) if s == span)
        assert unicodedata.normalize("NFC", text[slice(*span)]) == characters


@pytest.mark.parametrize(
    ("text", "composed", "spans"),
    [
        ("", "", [(0, 0)]),
        ("ab", "ab", [(0, 1), (1, 2), (2, 2)]),
        ("cafe\u0301!", "café!", [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (6, 6)]),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국", [(0, 3), (3, 6), (6, 6)]),
        ("\uac00\u11a8a", "각a", [(0, 2), (2, 3), (3, 3)]),
        ("\u212b\u0323", "\u1ea0\u030a", [(0, 2), (0, 2), (2, 2)]),
    ],
    ids=["empty", "plain", "accent", "jamo", "syllable and final", "reordered"],
)
def test_known_texts(text: str, composed: str, spans: list[tuple[int, int]]) -> None:
    assert compose_with_spans(text) == (composed, spans)


# where a character ends


@pytest.mark.parametrize(
    "character",
    [
        "e\u0301",  # a letter and an accent
        "o\u0302\u0301",  # two of them
        "\u1112\u1161\u11ab",  # 한 in jamo
        "\u1112\u119e",  # an old syllable that has no composed form
        "가\u11a8",  # a composed syllable and a trailing consonant
        "\u1100각",
        "\u0915\u093f",  # a consonant and its vowel sign
        "か\u3099",
        "❤\ufe0f",  # a picture and its variant
        "1\ufe0f\u20e3",
        "👍🏽",
        "👩\u200d🔬",
        "👩🏽\u200d❤\ufe0f\u200d👨",
        "\u0915\u094d\u200d\u0937",
        "🇰🇷",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    ],
)
def test_nothing_ends_inside_of_a_character(character: str) -> None:
    text = f"x{character}y {character}"
    ends = [offset for offset in range(len(text) + 1) if not is_inside_character(text, offset)]
    n = len(character)
    assert ends == [0, 1, n + 1, n + 2, n + 3, len(text)]


@pytest.mark.parametrize(
    "text", ["abc", "한글과 말", "ㅋㅋㅋ", "서울에서", "👍👍", "а б", "漢字", "a\u200b b", "\u0647\u200d)"]
)
def test_characters_end_between_all_others(text: str) -> None:
    if "\u200d" in text:
        assert not is_inside_character(text, 2)  # the joiner shapes the letter before it
    else:
        assert not any(is_inside_character(text, offset) for offset in range(-1, len(text) + 2))


def test_flags_in_a_row_are_pairs_from_the_first() -> None:
    text = "a🇰🇷🇳🇴🇸b"
    assert [offset for offset in range(len(text) + 1) if is_inside_character(text, offset)] == [2, 4]


@many
@given(texts | st.text(st.sampled_from("a가🇰🇷👍🏽👩\u200d\u0301ᄀ"), max_size=12), st.data())
def test_spans_grow_until_they_have_whole_characters(text: str, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    ((first, after),) = whole_characters(text, [(start, end)])
    assert not is_inside_character(text, first)
    assert not is_inside_character(text, after)
    assert all(is_inside_character(text, offset) for offset in [*range(first + 1, start + 1), *range(end, after)])


@many
@given(texts)
def test_what_composes_is_one_character(text: str) -> None:
    """So that a span of whole characters stays one, whatever form the text takes."""
    for start, end in compose_with_spans(text)[1]:
        assert all(is_inside_character(text, offset) for offset in range(start + 1, end))


MARKS = [chr(c) for c in range(0x300, 0x1F000) if unicodedata.combining(chr(c))]


def test_every_mark_is_known_as_one() -> None:
    everything = (chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    expected = {c for c in everything if unicodedata.combining(unicodedata.normalize("NFD", c)[0])}
    assert _marks() == expected >= {*MARKS}


@given(st.lists(st.sampled_from([*MARKS, *MOVING]), max_size=90))
def test_composing_is_as_unicode_has_it(characters: list[str]) -> None:
    text = "".join(characters)
    composed, spans = compose_with_spans(text)
    assert composed == compose(text) == unicodedata.normalize("NFC", text)
    assert len(spans) == len(composed) + 1


def test_a_long_run_of_marks_is_put_in_order() -> None:
    text = "e" + "\u0315\u0301\u0323" * 40 + "x"
    assert compose(text) == unicodedata.normalize("NFC", text)
    composed, spans = compose_with_spans(text)
    assert composed == compose(text)
    assert {*spans[:-2]} == {(0, len(text) - 1)}


def test_a_million_marks_are_composed_at_once() -> None:
    """Work that grew with the square of their number would take an hour."""
    text = "e" + "\u0315\u0301" * 500_000
    composed, spans = compose_with_spans(text)
    assert composed == compose(text) == "\xe9" + "\u0301" * 499_999 + "\u0315" * 500_000
    assert len(spans) == 1_000_001
