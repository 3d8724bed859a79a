"""Texts too long for a model: one rule for every task, in training and in prediction.

"windows" reads a text in overlapping parts and merges the results; "truncate" reads only its beginning; "refuse" raises
an error. The number of long texts is always reported.
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
"""first token, token after the last"""
Row = TypeVar("Row")
NO_LIMIT = 10**9


@dataclass(frozen=True, slots=True)
class Framed:
    """The windows of one text, with the special tokens around each."""

    rows: list[list[int]]
    long: bool
    """whether the text does not fit into one"""

    @property
    def truncated(self) -> bool:
        return self.long and len(self.rows) == 1


@dataclass(frozen=True, slots=True)
class Beside(Generic[Row]):
    """The windows of a context, each beside the whole question, or all endings."""

    windows: list[Row]
    long: bool
    """whether the context does not fit into one"""
    cut: bool
    """whether the question, or an ending, was truncated"""

    @property
    def truncated(self) -> bool:
        return self.cut or (self.long and len(self.windows) == 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowRule:
    """How to read texts that are too long for a model."""

    rule: Rule = "windows"
    stride: CountOrZero = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowedFacts:
    """Facts that a model needs for prediction if texts may be too long for it."""

    language: str = ""
    labels: list[str] = field(default_factory=list)
    max_len: Count | None = None
    long_texts: WindowRule = WindowRule()

    def rule(self, room: int | None) -> "LongTexts":
        """The rule of training; for an imported model with room for `room` tokens, the default."""
        return LongTexts(self.max_len or room or NO_LIMIT, self.long_texts.rule, self.long_texts.stride)


@dataclass(frozen=True, slots=True)
class LongTexts:
    """The rule for long texts of one run."""

    max_len: int
    """tokens of a window, special tokens included"""
    rule: Rule = "windows"
    stride: int = 64
    """tokens that neighbouring windows share"""

    @classmethod
    def of(cls, data: Any) -> "LongTexts":
        """The rule in a recipe's [data]."""
        return cls(data.max_len, data.long_texts, data.stride)

    @property
    def key(self) -> list[object]:
        """Everything that the rows of shards depend on."""
        return [self.max_len, self.rule, self.stride]

    @property
    def as_fact(self) -> WindowRule:
        return WindowRule(rule=self.rule, stride=self.stride)

    def parts(self, n: int, room: int, *, where: str = "") -> list[Part]:
        """The parts to read of a text of n tokens, if there is room for `room` of them."""
        if n <= room:
            return [(0, n)]
        if room < 1:
            what = f"{self.max_len} tokens leave no room for a text beside what is read with it"
            raise DataError(what, where=where, hint="increase data.max_len", code="data.no_room")
        match self.rule:
            case "refuse":
                what = f"the text has {n} tokens, but there is room for {room}"
                raise DataError(
                    what, where=where, hint='shorten it, or set data.long_texts = "windows"', code="data.too_long"
                )
            case "truncate":
                return [(0, room)]
            case "windows":
                step = room - min(self.stride, room // 2)
                starts = [*range(0, n - room, step), n - room]
                return [(start, start + room) for start in starts]

    def pair_parts(self, a: int, b: int, room: int, *, where: str = "") -> list[tuple[Part, Part]]:
        """Parts of two texts that share the room: the longer one is split, each part read beside the whole other one.

        If the shorter one would take more than half of the room, both are split and read side by side.
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
        """A text, or a pair of texts, as model input."""
        room = self.max_len - len(tokenizer.frame([], None if pair is None else []))
        if pair is None:
            found = self.parts(len(text), room, where=where)
            return Framed([tokenizer.frame(text[slice(*part)]) for part in found], len(text) > room)
        both = self.pair_parts(len(text), len(pair), room, where=where)
        rows = [tokenizer.frame(text[slice(*first)], pair[slice(*second)]) for first, second in both]
        return Framed(rows, len(text) + len(pair) > room)

    def became(self, how: str | None = None) -> str:
        """The note on texts that are too long; `how` they are read, if not by the rule."""
        how = how or ("in overlapping windows" if self.rule == "windows" else "at their beginning only")
        return f"texts with more than {self.max_len} tokens, read {how}"

    def became_cut(self, things: str) -> str:
        """The note on `things` that are read beside a context and leave it too little room."""
        return f"{things} that take more than half of {self.max_len} tokens, truncated"

    def notes(self, long: bool, how: str | None = None) -> list[Note]:
        """A note if the text was too long."""
        code = "text.cut" if self.rule == "truncate" and how is None else "text.windows"
        return [Note(code, self.became(how))] if long else []

    def notes_beside(self, found: "Beside[Any]", things: str) -> list[Note]:
        cut = [Note("text.question_cut", self.became_cut(things))] if found.cut else []
        return self.notes(found.long) + cut


def owners(parts: Sequence[Part], pieces: Sequence[int]) -> NDArray[np.int64]:
    """For every token, the part with the most text on its shorter side (Devlin, google-research/bert#66).

    All parts have the same length, so it is the one whose middle is nearest; -1 if the token was truncated.
    """
    where, ends = np.array(pieces, dtype=np.int64), np.array(parts)
    middles = ends.sum(axis=1) - 1  # twice
    found = np.searchsorted(middles[:-1] + middles[1:], 4 * where)
    return np.where(where < ends[found, 1], found, -1)
