"""Unicode composition (NFC) that remembers where each character came from, and where a character ends.

NFC joins jamo into syllables and letters with their accents; unlike NFKC and NFD it destroys neither.
"""

import re
import unicodedata

# Jamo that stand one after the other in a syllable: leading consonants, vowels, trailing consonants. Composed
# syllables can begin with more of the first and go on with more of the others.
_LEADING, _VOWEL, _TRAILING = "\u1100-\u115f\ua960-\ua97c", "\u1160-\u11a7\ud7b0-\ud7c6", "\u11a8-\u11ff\ud7cb-\ud7fb"
_SYLLABLE = re.compile(
    f"[{_LEADING}][{_LEADING}{_VOWEL}\uac00-\ud7a3]|[{_VOWEL}\uac00-\ud7a3][{_VOWEL}{_TRAILING}]|[{_TRAILING}]{{2}}"
)
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))


def compose_with_spans(text: str) -> tuple[str, list[tuple[int, int]]]:
    """NFC of `text`, and for each of its characters the span of `text` that it stands for.

    One more span, empty, marks the end of the text.
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
    """Whether an offset parts what a reader sees as one character.

    That is a letter and its accents, the jamo of a syllable, pictures with a variant, a colour or a joiner, and flags.
    """
    if not 0 < offset < len(text):
        return False
    before, after = text[offset - 1], text[offset]
    kind = unicodedata.category(after)[0]
    if kind == "M" or after == _JOINER or ord(after) in _SKIN_TONES:  # M: all that combines, and variation selectors
        return True
    if after in _FLAG_LETTERS:  # two make a flag, counted from the first
        return (offset - len(text[:offset].rstrip(_FLAG_LETTERS))) % 2 == 1
    return before == _JOINER and kind in "LNS" or bool(_SYLLABLE.fullmatch(before + after))
