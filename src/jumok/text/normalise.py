"""Unicode composition (NFC) with offsets into the original text, and boundaries of user-perceived characters.

NFC composes jamo into syllables and letters with their accents; unlike NFKC and NFD it destroys neither.
"""

import re
import unicodedata
from collections.abc import Sequence

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
        return text, [(i, i + 1) for i in range(len(text))] + [(len(text), len(text))]
    composed: list[str] = []
    spans: list[tuple[int, int]] = []
    start = 0
    for i in range(1, len(text) + 1):
        if i < len(text) and _joins(text[start:i], text[i]):
            continue
        cluster = unicodedata.normalize("NFC", text[start:i])
        composed.append(cluster)
        spans.extend([(start, i)] * len(cluster))
        start = i
    spans.append((len(text), len(text)))
    return "".join(composed), spans


def _joins(cluster: str, character: str) -> bool:
    """Whether `character` composes with, or may be reordered into, the cluster before it."""
    if unicodedata.combining(unicodedata.normalize("NFD", character)[0]):
        return True
    nfc = unicodedata.normalize
    return nfc("NFC", cluster + character) != nfc("NFC", cluster) + nfc("NFC", character)


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
    return unicodedata.normalize("NFC", label.strip())
