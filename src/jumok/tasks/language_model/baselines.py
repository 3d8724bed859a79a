"""A baseline for language models: the next byte, told by the five before it.

Counts of bytes in context, smoothed as by Witten & Bell 1991: the more different bytes followed a context, the more the
shorter context has to say. It works on bytes, so that it depends on no vocabulary, and is compared in bits per byte.
"""

from collections.abc import Iterable, Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from jumok.score.significance import Values

ORDER = 5
MOST = 1 << 23
"""bytes of training text that it learns from, the first ones: 8 MiB"""
END = 0xFF
"""the end of a text, and what is before its beginning; no byte of UTF-8"""
Numbers = NDArray[np.int64]


class Bytes:
    """P(byte | up to five bytes before it)."""

    def __init__(self, texts: Iterable[str]) -> None:
        parts, size = [], 0
        for text in texts:
            parts.append(_framed(text))
            size += len(parts[-1])
            if size >= MOST:
                break
        self._counts = [_counted(_grams(parts, n + 1)) for n in range(ORDER + 1)]
        self._contexts = [_followed(grams, counts) for grams, counts in self._counts]

    def losses(self, text: str) -> Values:
        """-ln P of every byte, and of the end."""
        framed = _framed(text)
        p = np.full(len(framed) - ORDER, 1 / 256)
        for n, (grams, counts) in enumerate(self._counts):
            asked = _grams([framed], n + 1)
            contexts, totals, kinds = self._contexts[n]
            seen, total, different = _looked_up(contexts, asked >> 9, totals, kinds)
            _, count = _looked_up(grams, asked, counts)
            p = np.where(seen > 0, (count + different * p) / np.maximum(total + different, 1), p)
        losses: Values = -np.log(p)
        return losses

    def statistics(self, texts: Sequence[str]) -> Values:
        """[n, 5], as of a model: the loss of each text, tokens (0), its bytes and words with the end, and 0."""
        rows = np.zeros((len(texts), 5))
        for row, text in zip(rows, texts, strict=True):
            if text:
                row[0] = self.losses(text).sum()
                row[2:4] = len(text.encode()) + 1, len(text.split()) + 1
        return rows

    def bits_per_byte(self, texts: Sequence[str]) -> float:
        rows = self.statistics(texts)
        return float(rows[:, 0].sum() / log(2) / max(rows[:, 2].sum(), 1))


def _framed(text: str) -> Numbers:
    written = bytes([END] * ORDER) + text.encode(errors="replace") + bytes([END])
    return np.frombuffer(written, dtype=np.uint8).astype(np.int64)


def _grams(parts: Sequence[Numbers], n: int) -> Numbers:
    """For every byte but the first ORDER of each part, it and the n - 1 before it as one number."""
    found = [np.zeros(len(part) - ORDER, dtype=np.int64) for part in parts]
    for part, grams in zip(parts, found, strict=True):
        for k in range(n):
            at = ORDER - n + 1 + k
            grams <<= 9
            grams |= part[at : at + len(grams)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def _counted(grams: Numbers) -> tuple[Numbers, Numbers]:
    found, counts = np.unique(grams, return_counts=True)
    return found, counts


def _followed(grams: Numbers, counts: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The contexts of sorted grams, how often each occurs, and how many different bytes follow it."""
    contexts, starts, kinds = np.unique(grams >> 9, return_index=True, return_counts=True)
    return contexts, np.add.reduceat(counts, starts) if len(counts) else counts, kinds


def _looked_up(keys: Numbers, asked: Numbers, *values: Numbers) -> list[Numbers]:
    """Whether each is a key, and its values, or 0."""
    if not len(keys):
        return [np.zeros(len(asked), dtype=np.int64)] * (1 + len(values))
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    known = keys[at] == asked
    return [known.astype(np.int64), *(np.where(known, column[at], 0) for column in values)]
