"""What BERT reads: passages of documents, and pairs of them, of which the second follows the first or does not.

A passage is a run of consecutive sentences of one document that fit into a row together. A pair is made of it anew in
every epoch (Devlin et al. 2019, section A.2): cut in two between two sentences, its second part follows its first; or
the second part of another passage, cut likewise, takes its place. Nothing but the words tells the two kinds apart.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.shards import Field, Shards

FIELDS = ("text", "ends", "first")
TRIES = 10  # to find a passage of another document


def passages(
    sentences: Iterable[tuple[Sequence[int], bool]], room: int
) -> Iterator[tuple[list[int], list[int], list[int]]]:
    """Ids, ends of the sentences in them, and whether it begins a document, of each passage of at most `room` pieces.

    `sentences` are ids and whether they begin a document. A sentence that is longer than the room is cut.
    """
    text: list[int] = []
    ends: list[int] = []
    begins = False
    for ids, first in sentences:
        for at in range(0, len(ids), room):
            part = ids[at : at + room]
            if text and ((first and at == 0) or len(text) + len(part) > room):
                yield text, ends, [int(begins)]
                text, ends, begins = [], [], False
            begins = begins or (first and at == 0)
            text = [*text, *part]
            ends = [*ends, len(text)]
    if text:
        yield text, ends, [int(begins)]


class Passages:
    """The passages of a corpus, by number; neighbours in the same document have neighbouring numbers."""

    def __init__(self, text: Field, ends: Field, first: Field) -> None:
        self.text, self.ends = text, ends
        self._starts: npt.NDArray[np.int64] = np.flatnonzero(first.tokens)
        self.divisible: npt.NDArray[np.int64] = np.flatnonzero(np.diff(ends.offsets) > 1)
        """passages of two sentences or more"""

    @staticmethod
    def of(found: Iterable[tuple[list[int], list[int], list[int]]]) -> "Passages":
        columns: list[Any] = list(zip(*found, strict=True)) or [[], [], []]
        return Passages(*(_field(column) for column in columns))

    @staticmethod
    def in_shards(shards: Shards) -> "Passages":
        return Passages(*(shards.fields[name] for name in FIELDS))

    def __len__(self) -> int:
        return len(self.text.offsets) - 1

    def document(self, i: int) -> int:
        return int(np.searchsorted(self._starts, i, side="right"))

    def sentences(self, i: int) -> int:
        return int(self.ends.offsets[i + 1] - self.ends.offsets[i])


def _field(rows: Sequence[Sequence[int]]) -> Field:
    offsets = np.cumsum([0, *map(len, rows)])
    return Field(np.array([i for row in rows for i in row], dtype=np.int64), offsets.astype(np.int64))


@dataclass(frozen=True, slots=True)
class TextPair:
    a: list[int]
    b: list[int] | None
    follows: bool | None
    """None: nothing is asked about this one"""


class Pairs:
    """Pairs of passages as a function of (seed, epoch, number): half of them follow, half do not.

    A passage of one sentence cannot be cut in two: it stands alone, and nothing is asked of it. If it were the first
    half of a pair it could only be one that does not follow, and a model would learn to know it by that. Nothing is
    asked either of the only passage that can be cut: whatever came after its first half would follow.
    """

    def __init__(self, passages: Passages, *, room: int, seed: int, next_sentence: bool) -> None:
        self.passages, self.room, self.seed, self.next_sentence = passages, room, seed, next_sentence

    def make(self, i: int, *, epoch: int) -> TextPair:
        text = self.passages.text[i].tolist()
        if not self.next_sentence or self.passages.sentences(i) == 1 or len(self.passages.divisible) == 1:
            return TextPair(text, None, None)
        rng = np.random.Generator(np.random.PCG64([self.seed, epoch, i]))
        cut = self._cut(i, rng)
        if rng.random() < 0.5:
            return TextPair(text[:cut], text[cut:], True)
        j = self._stranger(i, rng)
        return TextPair(*_shorten(text[:cut], self.passages.text[j].tolist()[self._cut(j, rng) :], self.room), False)

    def _cut(self, i: int, rng: np.random.Generator) -> int:
        ends = self.passages.ends[i]
        return int(ends[rng.integers(0, len(ends) - 1)])

    def _stranger(self, i: int, rng: np.random.Generator) -> int:
        """A passage of another document that can be cut; if there seems to be none, another passage."""
        choices = self.passages.divisible
        j = i
        for _ in range(TRIES):
            j = int(choices[rng.integers(0, len(choices))])
            if self.passages.document(j) != self.passages.document(i):
                return j
        return j if j != i else int(choices[(np.searchsorted(choices, i) + 1) % len(choices)])


def _shorten(a: list[int], b: list[int], room: int) -> tuple[list[int], list[int]]:
    """The longer of the two loses its outer end until both fit; if both are longer than half of the room, both do."""
    n_a = min(len(a), max(room - len(b), room // 2))
    return a[len(a) - n_a :], b[: room - n_a]
