"""Tags and the spans they mark: IOB, IOB2 and IOBES, read by the rule of conlleval (CoNLL-2000)."""

from collections.abc import Sequence
from itertools import accumulate

Range = tuple[int, int]
"""first character, character after the last"""
Place = tuple[str, int, int]
"""type, first word (or character), word (or character) after the last"""


def spans(tags: Sequence[str]) -> list[Place]:
    """The spans that IOB, IOB2 or IOBES tags mark; as in conlleval, a span may start with I-."""
    found: list[Place] = []
    start, before, kind = 0, "O", ""
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, now = tag.partition("-")
        if prefix not in ("B", "I", "E", "S"):
            prefix, now = "O", ""
        goes_on = before in ("B", "I") and prefix in ("I", "E") and now == kind
        if before != "O" and not goes_on:
            found.append((kind, start, i))
        if prefix != "O" and not goes_on:
            start = i
        before, kind = prefix, now
    return found


def in_characters(tags: Sequence[str], units: Sequence[Range]) -> list[Place]:
    """The spans that the tags of `units` mark, in characters."""
    return [(kind, units[first][0], units[after - 1][1]) for kind, first, after in spans(tags)]


def places_of(words: Sequence[str]) -> list[Range]:
    """Character ranges of words joined by single spaces."""
    ends = accumulate(words, lambda end, word: end + 1 + len(word), initial=-1)
    next(ends)
    return [(end - len(word), end) for word, end in zip(words, ends, strict=True)]
