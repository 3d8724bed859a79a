"""Unicode composition (NFC) that remembers where each character came from.

NFC joins jamo into syllables and letters with their accents; unlike NFKC and NFD it destroys neither.
"""

import unicodedata


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
