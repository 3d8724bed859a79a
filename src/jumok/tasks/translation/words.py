"""The words of a translation: how sure the model was of each, and which others could stand in its place."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import exp

import numpy as np
from numpy.typing import NDArray

from jumok.engines import Engine
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import SPACE

TRIED = 4
"""beginnings tried for each alternative that is wanted: several may lead to the same word"""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of an output, split at white space, and its probability."""

    text: str
    """the word"""
    start: int
    """its first character in the output, counted from 0"""
    end: int
    """the character after its last"""
    probability: float
    """of the word, given the source and the words before it"""


def words_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """The index of each token's word, decoding the tokens one after the other."""
    return [max(len(tokenizer.decode(ids[: i + 1]).split()) - 1, 0) for i in range(len(ids))]


def token_spans(tokenizer: Tokenizer, ids: Sequence[int]) -> list[tuple[int, int]]:
    """The characters of each token in the decoded text, decoding the tokens one after the other."""
    ends = accumulate((len(tokenizer.decode(ids[:i])) for i in range(len(ids) + 1)), max)
    return list(pairwise(ends))


def sure_words(engine: Engine, tokenizer: Tokenizer, source: Sequence[int], ids: Sequence[int]) -> list[Word]:
    """The words of an output with their probabilities: the products of those of their tokens."""
    if not ids:
        return []
    log_probs = engine.after(source, [ids])[0][np.arange(len(ids)), list(ids)]
    text = tokenizer.decode(ids)
    places = [match.span() for match in re.finditer(r"\S+", text)]
    sums = np.zeros(max(len(places), 1))
    np.add.at(sums, np.minimum(words_of(tokenizer, ids), len(sums) - 1), log_probs)
    return [Word(text[a:b], a, b, round(exp(total), 6)) for (a, b), total in zip(places, sums.tolist(), strict=False)]


def beginnings(
    engine: Engine, tokenizer: Tokenizer, source: Sequence[int], prefix: str, n: int
) -> tuple[list[list[int]], int]:
    """The likeliest tokens that an output starting with `prefix` may start with, best first, and the number of whole
    words in it.

    The prefix is cut at its last white space: what follows is a word half typed, which is matched as characters,
    because the tokens of a whole word are often not those of its beginning.
    """
    whole, half = _cut(prefix)
    first = tokenizer.encode(whole) if whole else []
    free = np.array([not continues for continues in tokenizer.continues_word()])
    pieces = [piece.removeprefix(SPACE) for piece in tokenizer.pieces(range(tokenizer.vocab_size))]
    banned = [tokenizer.end_id, tokenizer.unk_id, tokenizer.pad_id, *tokenizer.empty_slots]
    banned = [i for i in banned if i < tokenizer.vocab_size]
    found: list[tuple[float, list[int]]] = []
    waiting: list[tuple[float, list[int], str]] = [(0.0, first, half)]
    for _ in range(len(half) + 2):
        if not waiting:
            break
        after = engine.after(source, [ids for _, ids, _ in waiting])
        grown: list[tuple[float, list[int], str]] = []
        for (total, ids, rest), log_probs in zip(waiting, after, strict=True):
            row = log_probs[-1].copy()
            row[[i for i in banned if i < len(row)]] = -np.inf
            row[~_fits(pieces, free, rest, starts=len(ids) == len(first))[: len(row)]] = -np.inf
            for token in np.argsort(-row, kind="stable")[: n * TRIED].tolist():
                if np.isfinite(row[token]):
                    grown.append((total + float(row[token]), [*ids, token], _left(rest, pieces[token])))
        grown.sort(key=lambda one: -one[0])
        open_ = []
        for total, ids, rest in grown[: n * TRIED]:
            complete = not rest and len(tokenizer.decode(ids).split()) > len(whole.split())
            if complete:
                found.append((total, ids))
            else:
                open_.append((total, ids, rest))
        waiting = open_
    found.sort(key=lambda one: -one[0])
    return [ids for _, ids in found[: n * TRIED]], len(whole.split())


def _cut(prefix: str) -> tuple[str, str]:
    """Whole words, and the beginning of one more."""
    words = prefix.split()
    if not words or prefix[-1].isspace():
        return " ".join(words), ""
    return " ".join(words[:-1]), words[-1]


def _fits(pieces: Sequence[str], free: NDArray[np.bool_], rest: str, *, starts: bool) -> NDArray[np.bool_]:
    """[V]: the tokens that agree with the characters that are still to come; the first of them starts a word."""
    may = free.copy() if starts else np.ones(len(pieces), dtype=np.bool_)
    if rest:
        may &= np.array([bool(piece) and (piece.startswith(rest) or rest.startswith(piece)) for piece in pieces])
    return may


def _left(rest: str, piece: str) -> str:
    """The characters that are still to come after this token."""
    return rest[len(piece) :] if len(piece) < len(rest) else ""
