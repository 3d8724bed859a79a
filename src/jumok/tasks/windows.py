"""Texts longer than a model reads: one rule for every task, in training and in prediction.

With "windows" a text is read in parts that overlap, and what is found in them is merged; with "truncate" its beginning
is read; with "refuse" it is an error. How many texts were too long is counted and said, never hidden.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from jumok.config import Count, CountOrZero
from jumok.errors import DataError
from jumok.tasks.protocol import Note
from jumok.text.tokenizer import Tokenizer

Rule = Literal["windows", "truncate", "refuse"]
Part = tuple[int, int]
"""first piece, piece after the last"""
Row = TypeVar("Row")
NO_LIMIT = 10**9


@dataclass(frozen=True, slots=True)
class Framed:
    """The windows of one text, each with what begins and ends it."""

    rows: list[list[int]]
    long: bool
    """whether there was more than fits into one"""

    @property
    def truncated(self) -> bool:
        return self.long and len(self.rows) == 1


@dataclass(frozen=True, slots=True)
class Beside(Generic[Row]):
    """The windows of a context, each beside all of what is asked of it: a question, or several endings."""

    windows: list[Row]
    long: bool
    """whether there was more context than fits into one"""
    cut: bool
    """whether what is asked is so long that only its beginning is read"""

    @property
    def truncated(self) -> bool:
        return self.cut or (self.long and len(self.windows) == 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowRule:
    """What becomes of texts that are longer than a model reads."""

    rule: Rule = "windows"
    stride: CountOrZero = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowedFacts:
    """What a model of texts that may be too long for it has to remember."""

    language: str = ""
    labels: list[str] = field(default_factory=list)
    max_len: Count | None = None
    long_texts: WindowRule = WindowRule()

    def rule(self, room: int | None) -> "LongTexts":
        """As it was in training; of a model from elsewhere that has room for so many pieces, the usual one."""
        return LongTexts(self.max_len or room or NO_LIMIT, self.long_texts.rule, self.long_texts.stride)


@dataclass(frozen=True, slots=True)
class LongTexts:
    """The rule of one run."""

    max_len: int
    """pieces of a window, with those that frame it"""
    rule: Rule = "windows"
    stride: int = 64
    """pieces that neighbouring windows share"""

    @classmethod
    def of(cls, data: Any) -> "LongTexts":
        """As [data] of a recipe says."""
        return cls(data.max_len, data.long_texts, data.stride)

    @property
    def key(self) -> list[object]:
        """What the rows of shards depend on."""
        return [self.max_len, self.rule, self.stride]

    @property
    def as_fact(self) -> WindowRule:
        return WindowRule(rule=self.rule, stride=self.stride)

    def parts(self, n: int, room: int, *, where: str = "") -> list[Part]:
        """The parts of a text of n pieces that are read, if there is room for `room` of them."""
        if n <= room:
            return [(0, n)]
        if room < 1:
            what = f"{self.max_len} pieces leave no room for a text beside what has to be read with it"
            raise DataError(what, where=where, hint="a larger data.max_len", code="data.no_room")
        match self.rule:
            case "refuse":
                what = f"a text of {n} pieces, where there is room for {room}"
                raise DataError(
                    what, where=where, hint='shorter texts, or data.long_texts = "windows"', code="data.too_long"
                )
            case "truncate":
                return [(0, room)]
            case "windows":
                step = room - min(self.stride, room // 2)
                starts = [*range(0, n - room, step), n - room]
                return [(start, start + room) for start in starts]

    def pair_parts(self, a: int, b: int, room: int, *, where: str = "") -> list[tuple[Part, Part]]:
        """Of two texts that share the room the longer one is read in parts, each beside the whole of the other.

        If the other would take more than half of the room, both are read in parts, side by side.
        """
        if a + b <= room:
            return [((0, a), (0, b))]
        half = room // 2
        if min(a, b) > half:
            firsts, seconds = self.parts(a, half, where=where), self.parts(b, room - half, where=where)
            together = zip_longest(firsts, seconds)
            return [(first or firsts[-1], second or seconds[-1]) for first, second in together]
        if a < b:
            return [((0, a), part) for part in self.parts(b, room - a, where=where)]
        return [(part, (0, b)) for part in self.parts(a, room - b, where=where)]

    def framed(
        self, tokenizer: Tokenizer, text: Sequence[int], pair: Sequence[int] | None = None, *, where: str = ""
    ) -> Framed:
        """A text, or a pair of texts, as a model reads it."""
        room = self.max_len - len(tokenizer.frame([], None if pair is None else []))
        if pair is None:
            found = self.parts(len(text), room, where=where)
            return Framed([tokenizer.frame(text[slice(*part)]) for part in found], len(text) > room)
        both = self.pair_parts(len(text), len(pair), room, where=where)
        rows = [tokenizer.frame(text[slice(*first)], pair[slice(*second)]) for first, second in both]
        return Framed(rows, len(text) + len(pair) > room)

    def became(self, how: str | None = None) -> str:
        """What became of texts that were too long; `how` they were read, if not by the rule."""
        how = how or ("in windows that overlap" if self.rule == "windows" else "at their beginning only")
        return f"texts with more than {self.max_len} pieces, read {how}"

    def became_cut(self, things: str) -> str:
        """What became of `things` that are read beside a context and leave it too little room."""
        return f"{things} that take more than half of {self.max_len} pieces, cut there"

    def notes(self, long: bool, how: str | None = None) -> list[Note]:
        """What is to be said of a text that was too long, if it was."""
        code = "text.cut" if self.rule == "truncate" and how is None else "text.windows"
        return [Note(code, self.became(how))] if long else []

    def notes_beside(self, found: "Beside[Any]", things: str) -> list[Note]:
        cut = [Note("text.question_cut", self.became_cut(things))] if found.cut else []
        return self.notes(found.long) + cut


def owners(parts: Sequence[Part], pieces: Sequence[int]) -> NDArray[np.int64]:
    """Of every piece the part where it has most text on its shorter side (Devlin, google-research/bert#66).

    All parts are of one length, so that it is the one whose middle is nearest; -1 if the piece was cut off.
    """
    where, ends = np.array(pieces, dtype=np.int64), np.array(parts)
    middles = ends.sum(axis=1) - 1  # twice
    found = np.searchsorted(middles[:-1] + middles[1:], 4 * where)
    return np.where(where < ends[found, 1], found, -1)
