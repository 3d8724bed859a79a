"""BERT's training texts: passages of documents, and pairs for next sentence prediction.

A passage is a run of consecutive sentences of one document that fits into a row. Every epoch makes a new pair of it
(Devlin et al. 2019, section A.2): the passage is split between two sentences, and its second part either stays or is
replaced by a second part of the same length from another passage, the stranger. Only the words distinguish the two
cases: a model would recognise a stranger that is longer, shorter or truncated without reading it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.corpus import Corpus
from jumok.data.shards import Field, Shards, in_texts
from jumok.errors import DataError
from jumok.examples.documents import Sentence
from jumok.text.tokenizer import Tokenizer

FIELDS = ("text", "ends", "first")
FRAME, FRAME_OF_PAIR = 2, 3  # [CLS] A [SEP], [CLS] A [SEP] B [SEP]
TRIES = 10  # to find a second part from another document
POOL = 1_000_000  # maximum number of passages that strangers come from; of more, take every second, third, …


def passages(
    sentences: Iterable[tuple[Sequence[int], bool]], room: int
) -> Iterator[tuple[list[int], list[int], list[int]]]:
    """Yield passages of at most `room` tokens: ids, sentence ends, and whether they begin a document.

    `sentences` are ids and whether they begin a document. A sentence longer than `room` is split.
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


def encode_documents(
    corpus: Corpus[Sentence], tokenizer: Tokenizer, max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Yield the passages of the documents, and count the input in `facts`."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "documents": 0, "passages": 0, "alone": 0, "pieces": 0, "words": 0}
    for found in passages(_encoded(corpus, tokenizer, facts), max_len - len(tokenizer.frame([], []))):
        facts["passages"] += 1
        facts["alone"] += len(found[1]) == 1
        facts["pieces"] += len(found[0])
        yield found
    if not facts["passages"]:
        what = f"empty corpus: {facts['read']} sentences read, none with a word"
        raise DataError(what, where=corpus.name, hint="add at least one training document", code="data.empty")


def _encoded(
    corpus: Iterable[Sentence], tokenizer: Tokenizer, facts: dict[str, Any]
) -> Iterator[tuple[list[int], bool]]:
    begins = False  # an empty sentence may have begun the document
    for sentences in in_texts(corpus, lambda sentence: sentence.text):
        rows = tokenizer.encode_batch([sentence.text for sentence in sentences])
        for sentence, ids in zip(sentences, rows, strict=True):
            begins = begins or sentence.first
            facts["read"] += 1
            facts["empty"] += not ids
            facts["words"] += len(sentence.text.split())
            if ids:
                facts["documents"] += begins
                yield ids, begins
                begins = False


class Passages:
    """The passages of a corpus by number; those of a document are numbered consecutively."""

    def __init__(self, text: Field, ends: Field, first: Field) -> None:
        self.text, self.ends = text, ends
        self._starts: npt.NDArray[np.int64] = np.flatnonzero(first.tokens)
        self.divisible: npt.NDArray[np.int64] = np.flatnonzero(np.diff(ends.offsets) > 1)
        """passages of two or more sentences"""

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
        """The document of each passage, or the passage itself if there is only one: strangers must not share it."""
        return passages if len(self._starts) == 1 else np.searchsorted(self._starts, passages, side="right")

    def sentences(self, i: int) -> int:
        return int(self.ends.offsets[i + 1] - self.ends.offsets[i])


def read_passages(sentences: Iterable[Sentence], tokenizer: Tokenizer, max_len: int) -> Passages:
    """Read the passages of documents into memory."""
    facts: dict[str, Any] = {"read": 0, "empty": 0, "words": 0, "documents": 0}
    return Passages.of(passages(_encoded(sentences, tokenizer, facts), max_len - len(tokenizer.frame([], []))))


def _field(rows: Sequence[Sequence[int]]) -> Field:
    offsets = np.cumsum([0, *map(len, rows)])
    return Field(np.array([i for row in rows for i in row], dtype=np.int64), offsets.astype(np.int64))


@dataclass(frozen=True, slots=True)
class TextPair:
    """A text or a pair of texts."""

    a: list[int]
    b: list[int] | None
    follows: bool | None
    """whether b follows a; None if there is no b"""


class SecondParts:
    """All possible second parts of pairs, indexed by length."""

    def __init__(self, passages: Passages) -> None:
        some = passages.divisible[:: 1 + len(passages.divisible) // POOL]
        n_cuts = passages.ends.lengths(some) - 1
        passage = np.repeat(some, n_cuts)
        nth = np.arange(len(passage)) - np.repeat(np.cumsum(n_cuts) - n_cuts, n_cuts)
        start = passages.ends.tokens[passages.ends.offsets[passage] + nth].astype(np.int64)
        length = passages.text.lengths(passage) - start
        order = np.argsort(length, kind="stable")
        self._passage, self._start, length = passage[order], start[order], length[order]
        # Weight each part by how often it occurs: a passage is split once, at a random place.
        self._likely = np.concatenate([[0.0], np.cumsum((1 / np.repeat(n_cuts, n_cuts))[order])])
        self._bounds = np.searchsorted(length, np.arange(length.max(initial=0) + 2))
        alike = length[1:] == length[:-1]
        home = passages.homes(self._passage)
        self.interchangeable = bool((alike & (home[1:] != home[:-1])).any())
        """whether any two can replace each other"""

    def draw(self, length: int, rng: np.random.Generator) -> tuple[int, int] | None:
        """Draw a part of this length: its passage and where it begins. None if no part has this length."""
        if length + 1 >= len(self._bounds):
            return None
        first, after = self._bounds[length : length + 2]
        low, high = self._likely[first], self._likely[after]
        k = np.clip(np.searchsorted(self._likely, rng.uniform(low, high), side="right") - 1, first, after - 1)
        return (int(self._passage[k]), int(self._start[k])) if after > first else None


class Pairs:
    """Pairs of passages as a function of (seed, epoch, number): half of them follow, half do not.

    A passage of one sentence cannot be split and stays alone: as the first text of a pair it would never be followed,
    and a model would learn to recognise it. A passage also stays alone if no stranger fits the length of its second
    part.
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
        """Whether any pairs can be made."""
        return self._seconds is not None and self._seconds.interchangeable

    def _stranger(self, i: int, length: int, seconds: SecondParts, rng: np.random.Generator) -> tuple[int, int] | None:
        """Draw a second part from another document, or from another passage if there is only one document."""
        for _ in range(TRIES):
            found = seconds.draw(length, rng)
            if found is None:
                return None
            here, there = self.passages.homes(np.array([i, found[0]]))
            if here != there:
                return found
        return None
