"""Words of a text by a fixed rule, which depends on no vocabulary: what baselines know of a text.

A word is a run of letters and digits, or a single mark of punctuation, in lower case. Scripts in which words take
particles or have no spaces between them (Hangul, Han, kana) also give each pair of neighbouring characters.
"""

import re
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from jumok.text.normalise import compose

BUCKETS = 1 << 22
_WORD = re.compile(r"\w+|[^\w\s]")
_PAIRED = re.compile("[ぁ-ヿ㐀-鿿가-힣]{2,}")
_PAIR = 1_000_003  # a prime, so that few bigrams share a bucket
Array = NDArray[np.int64]


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    return _WORD.findall(compose(text).lower())


def character_pairs(word: str) -> list[str]:
    """The pairs of neighbouring characters, in the scripts that need them."""
    if word.isascii():
        return []
    return [run[i : i + 2] for run in _PAIRED.findall(word) for i in range(len(run) - 1)]


def bag(text: str) -> Array:
    """Hash buckets of a text's words, word bigrams and character pairs, each once."""
    found = words(text)
    return features(found, [pair for word in found for pair in character_pairs(word)])


def features(words: Sequence[str], others: Iterable[str] = ()) -> Array:
    """Hash buckets of words, in order, and their bigrams, and of `others`, each once."""
    numbers = np.array([crc32(word.encode()) for word in words], dtype=np.int64)
    bigrams = numbers[:-1] * _PAIR + numbers[1:] + 1
    more = np.array([crc32(f"\0{other}".encode()) for other in others], dtype=np.int64)
    return np.unique(np.concatenate([numbers, bigrams, more]) % BUCKETS)


def share_in_common(first: str, second: str) -> float:
    """Share of the distinct words of two texts that both have, Korean and the like by pairs of characters."""
    one, other = vocabulary(first), vocabulary(second)
    return len(one & other) / max(len(one | other), 1)


def vocabulary(text: str) -> set[str]:
    """The distinct words of a text without punctuation; of paired scripts, the character pairs of longer words."""
    return {
        part
        for word in words(text)
        if word[0].isalnum()
        for part in (character_pairs(word) if len(word) > 2 else ()) or [word]
    }
