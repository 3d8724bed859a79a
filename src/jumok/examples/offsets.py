"""Offsets into a text: in characters, end exclusive, never inside what a reader sees as one character."""

import re

from jumok.errors import OffsetError
from jumok.examples.objects import Object
from jumok.text.normalise import clean_label, compose, is_inside_character
from jumok.text.span import Span

OFFSETS = "offsets count characters, end exclusive"


def offsets_of(span: Object, text: str) -> tuple[int, int]:
    start, end = span.whole("start"), span.whole("end")
    marked = span.values.get("text")  # many files also have the marked text, which shows what the offsets should be
    if isinstance(marked, str) and marked and _folded(marked) != _folded(text[start:end]):
        if start >= 0 and text.startswith(marked, start):
            right_end = start + len(marked)
            raise span.misplaced(f"{marked!r} ends at {right_end} of the text, but the span ends at {end}")
        raise misplaced(span, marked, text, start, "the text")
    if start < 0 or end > len(text):
        raise span.misplaced(f"from {start} to {end}, but the text has {len(text)} characters")
    if start >= end:
        raise span.misplaced(f"empty, from {start} to {end}")
    if text[start:end].isspace():
        raise span.misplaced(f"nothing but white space from {start} to {end}")
    require_whole_characters(span, text, start, end)
    return start, end


def require_whole_characters(found: Object, text: str, *offsets: int) -> None:
    for offset in offsets:
        if is_inside_character(text, offset):
            before, after = (f"U+{ord(character):04X}" for character in text[offset - 1 : offset + 1])
            raise found.misplaced(f"offset {offset} is inside a character, between {before} and {after}")


def _folded(text: str) -> str:
    return " ".join(compose(text).split())


def misplaced(found: Object, wanted: str, text: str, start: int, called: str) -> OffsetError:
    """Error for offsets at which the text does not have `wanted`, with the nearest place that has it."""
    places = (match.start() for match in re.finditer(f"(?={re.escape(wanted)})", text))
    nearest = min(places, key=lambda place: abs(place - start), default=None)
    instead = f"nowhere in {called}" if nearest is None else f"at {nearest}"
    what = f"{wanted!r} is not at {start} of {called}, but {instead}"
    return found.misplaced(what, shift=None if nearest is None else nearest - start)


def label_of(found: Object, key: str = "label") -> str:
    label = clean_label(found.text(key))
    if not label:
        raise found.error(f'an empty "{key}"', code="data.label")
    return label


def shown(text: str, span: Span) -> str:
    return f"{text[span.start : span.end]!r} ({span.start} to {span.end})"
