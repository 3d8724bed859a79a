"""Unicode composition (NFC) with offsets into the original text, and boundaries of user-perceived characters.

NFC composes jamo into syllables and letters with their accents; unlike NFKC and NFD it destroys neither.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

# Jamo in the order of a syllable: leading consonants, vowels, trailing consonants. More leading consonants may precede
# a composed syllable; more of the others may follow it.
_LEADING, _VOWEL, _TRAILING = "\u1100-\u115f\ua960-\ua97c", "\u1160-\u11a7\ud7b0-\ud7c6", "\u11a8-\u11ff\ud7cb-\ud7fb"
_SYLLABLE = re.compile(
    f"[{_LEADING}][{_LEADING}{_VOWEL}\uac00-\ud7a3]|[{_VOWEL}\uac00-\ud7a3][{_VOWEL}{_TRAILING}]|[{_TRAILING}]{{2}}"
)
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)  # spell a region after a black flag
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))


def compose_with_spans(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the NFC of `text` and, for each of its characters, the span of `text` it came from.

    A final empty span marks the end of the text.
    """
    if unicodedata.is_normalized("NFC", text):
        return text, spans_of_characters(text)
    composed: list[str] = []
    spans: list[tuple[int, int]] = []
    start = 0
    marks = _marks()
    for i in range(1, len(text) + 1):
        if i < len(text) and text[i] in marks:
            continue  # looked at once, with the character before it: there may be a million of them
        cluster = compose(text[start:i])
        if i < len(text) and _joins(cluster[-1], text[i]):
            continue
        composed.append(cluster)
        spans.extend([(start, i)] * len(cluster))
        start = i
    spans.append((len(text), len(text)))
    return "".join(composed), spans


def spans_of_characters(text: str) -> list[tuple[int, int]]:
    """Return the span of each character of `text`, and a final empty one."""
    return [(i, i + 1) for i in range(len(text))] + [(len(text), len(text))]


def compose(text: str) -> str:
    """Return the NFC of `text`, in time linear in its length.

    Python's own takes a time quadratic in the length of a run of combining marks that are not in canonical order.
    """
    if unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", _long_run().sub(_in_order, text))


@cache
def _marks() -> frozenset[str]:
    """All characters that canonical ordering may move: combining marks, and what decomposes into such."""
    return frozenset(c for c in map(chr, range(0x300, 0x1F000)) if unicodedata.combining(_decomposed(c)[0]))


@cache
def _long_run() -> re.Pattern[str]:
    return re.compile(f"[{''.join(sorted(_marks()))}]{{32,}}")


def _in_order(run: re.Match[str]) -> str:
    """The marks of a run, decomposed and in canonical order: by class, those of one class as they were."""
    return "".join(sorted("".join(map(_decomposed, run[0])), key=unicodedata.combining))


def _decomposed(character: str) -> str:
    return unicodedata.normalize("NFD", character)


def _joins(last: str, starter: str) -> bool:
    """Whether a character that is no mark composes with the last one of the cluster before it.

    A mark between the two would keep them apart.
    """
    return unicodedata.normalize("NFC", last + starter) != last + unicodedata.normalize("NFC", starter)


def is_inside_character(text: str, offset: int) -> bool:
    """Whether an offset falls inside a user-perceived character.

    These are letters with accents, the jamo of a syllable, emoji with a variant, skin tone or joiner, and flags.
    """
    if not 0 < offset < len(text):
        return False
    flags = offset - len(text[:offset].rstrip(_FLAG_LETTERS)) if text[offset] in _FLAG_LETTERS else 0
    return _goes_on(text[offset - 1], text[offset], flags)


def whole_characters(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Widen spans so that none starts or ends inside a user-perceived character."""
    if text.isascii():
        return list(spans)
    begins = list(range(len(text) + 1))
    ends = list(begins)
    flags = 0  # flag letters just before
    for i in range(1, len(text)):
        flags = flags + 1 if text[i - 1] in _FLAG_LETTERS else 0
        if _goes_on(text[i - 1], text[i], flags):
            begins[i] = begins[i - 1]
    for i in range(len(text) - 1, 0, -1):
        if begins[i] != i:
            ends[i] = ends[i + 1]
    return [(begins[start], ends[end]) for start, end in spans]


def _goes_on(before: str, after: str, flags: int) -> bool:
    """Whether two adjacent code points are one user-perceived character; `flags` counts the flag letters before."""
    kind = unicodedata.category(after)[0]
    if kind == "M" or after == _JOINER or ord(after) in _SKIN_TONES or ord(after) in _TAGS:
        return True  # M: combining marks and variation selectors
    if after in _FLAG_LETTERS:  # each pair makes a flag, counting from the first
        return flags % 2 == 1
    return before == _JOINER and kind in "LNS" or bool(_SYLLABLE.fullmatch(before + after))


def clean_label(label: str) -> str:
    """Strip and compose (NFC) a label, so that labels that look alike are equal."""
    return compose(label.strip())
