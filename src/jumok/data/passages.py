"""What BERT reads: passages of documents, and pairs of them, of which the second follows the first or does not.

A passage is a run of consecutive sentences of one document that fit into a row together. A pair is made of it anew in
every epoch (Devlin et al. 2019, section A.2): cut in two between two sentences, its second part follows its first; or
the second part of another passage, cut likewise and just as long, takes its place. Nothing but the words tells the two
kinds apart: a stranger that is longer or shorter, or was cut to fit, would be known by that without reading it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.shards import Field, Shards

FIELDS = ("text", "ends", "first")
TRIES = 10  # to find a second part of another document
POOL = 1_000_000  # passages that strangers come from, at most; of more, every second, every third and so on


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

    def homes(self, passages: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where passages belong: to their documents or, if there is one document only, to themselves."""
        return passages if len(self._starts) == 1 else np.searchsorted(self._starts, passages, side="right")

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


class SecondParts:
    """All parts of passages that may be the second of a pair, by their length."""

    def __init__(self, passages: Passages) -> None:
        some = passages.divisible[:: 1 + len(passages.divisible) // POOL]
        n_cuts = passages.ends.lengths(some) - 1
        passage = np.repeat(some, n_cuts)
        nth = np.arange(len(passage)) - np.repeat(np.cumsum(n_cuts) - n_cuts, n_cuts)
        start = passages.ends.tokens[passages.ends.offsets[passage] + nth].astype(np.int64)
        length = passages.text.lengths(passage) - start
        order = np.argsort(length, kind="stable")
        self._passage, self._start, length = passage[order], start[order], length[order]
        # Each as likely as it is to be cut: a passage is cut once, at one of its places.
        self._likely = np.concatenate([[0.0], np.cumsum((1 / np.repeat(n_cuts, n_cuts))[order])])
        self._bounds = np.searchsorted(length, np.arange(length.max(initial=0) + 2))
        alike = length[1:] == length[:-1]
        home = passages.homes(self._passage)
        self.interchangeable = bool((alike & (home[1:] != home[:-1])).any())
        """whether any two could take each other's place"""

    def draw(self, length: int, rng: np.random.Generator) -> tuple[int, int] | None:
        """The passage of a part that is so long, and where in it the part begins; None if there is no such part."""
        if length + 1 >= len(self._bounds):
            return None
        first, after = self._bounds[length : length + 2]
        low, high = self._likely[first], self._likely[after]
        k = np.clip(np.searchsorted(self._likely, rng.uniform(low, high), side="right") - 1, first, after - 1)
        return (int(self._passage[k]), int(self._start[k])) if after > first else None


class Pairs:
    """Pairs of passages as a function of (seed, epoch, number): half of them follow, half do not.

    A passage of one sentence cannot be cut in two: it stands alone, and nothing is asked of it. If it were the first
    half of a pair it could only be one that does not follow, and a model would learn to know it by that. Likewise
    nothing is asked where no stranger is as long as what follows.
    """

    def __init__(self, passages: Passages, *, seed: int, next_sentence: bool) -> None:
        self.passages, self.seed = passages, seed
        self._seconds = SecondParts(passages) if next_sentence else None

    def make(self, i: int, *, epoch: int) -> TextPair:
        text = self.passages.text[i].tolist()
        if self._seconds is None or self.passages.sentences(i) == 1:
            return TextPair(text, None, None)
        rng = np.random.Generator(np.random.PCG64([self.seed, epoch, i]))
        ends = self.passages.ends[i]
        cut = int(ends[rng.integers(0, len(ends) - 1)])
        stranger = self._stranger(i, len(text) - cut, self._seconds, rng)
        if stranger is None:
            return TextPair(text, None, None)
        if rng.random() < 0.5:
            return TextPair(text[:cut], text[cut:], True)
        j, start = stranger
        return TextPair(text[:cut], self.passages.text[j].tolist()[start:], False)

    @property
    def possible(self) -> bool:
        """Whether there is anything to ask."""
        return self._seconds is not None and self._seconds.interchangeable

    def _stranger(self, i: int, length: int, seconds: SecondParts, rng: np.random.Generator) -> tuple[int, int] | None:
        """A second part of another document; where there is one document only, of another passage."""
        for _ in range(TRIES):
            found = seconds.draw(length, rng)
            if found is None:
                return None
            here, there = self.passages.homes(np.array([i, found[0]]))
            if here != there:
                return found
        return None
