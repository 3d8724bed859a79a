"""Units that carry a tag: their place in the text, and the token that represents each.

Labels and tokens are aligned only here, by character offsets. In columns of words a unit is a word, represented by its
first token. Where entities are marked by characters every token is a unit, so that an entity may end inside a word, as
Korean ones do before a particle: whatever follows entities within their words in the training data, such as 는 or
에서, is split off every word that ends with it, in training and in prediction.

A vocabulary that folds case hides the capitals of names. Marks can restore them: an extra token after every word with
capitals, and a second one if it is all capitals.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jumok.config import read_config
from jumok.errors import CheckpointError, DataError
from jumok.examples.spans import Spans
from jumok.tasks.windows import LongTexts, owners
from jumok.text.normalise import compose, whole_characters
from jumok.text.span import Span
from jumok.text.tags import Range, places_of
from jumok.text.tokenizer import Tokenizer

CAPITALS = "^"
_LETTERS = re.compile(r"[\w\u0300-\u036f]+")  # accents may be separate characters
_HANGUL = re.compile("[\u1100-\u11ff가-힣]+")
_ENDING = re.compile(r"(?:n't|'(?:s|m|d|re|ve|ll))$")
OFTEN = 3
"""times that an ending is a word by itself in a corpus that splits it off"""
_PARTICLE = re.compile(r"[가-힣]+")


@dataclass(frozen=True, slots=True)
class Read:
    """The tokens of a text, and its units: their characters, and the token that represents each."""

    ids: list[int]
    units: list[Range]
    firsts: list[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """The units that carry a tag, and how a text is split into them: as in training."""

    of: Literal["words", "pieces"] = "words"
    peel: bool = True
    """words: split off the punctuation around them"""
    endings: frozenset[str] = frozenset()
    """words: those that are split off the end of a word, as 's and n't in corpora of English"""
    particles: frozenset[str] = frozenset()
    """pieces: suffixes to split off words"""
    capitals: bool = False
    """whether capitals are marked"""

    @staticmethod
    def stored(tree: Mapping[str, Any]) -> "Units":
        """Units from the facts of a model, as `plain` returns them; words for an imported model, which has none."""
        found = {"of" if key == "units" else key: value for key, value in tree.items()}
        return read_config(Units, found, what="the model's config", path="jumok.units", error=CheckpointError)

    def plain(self) -> dict[str, Any]:
        """The units as facts of a model."""
        of_words = self.of == "words"
        found: dict[str, Any] = {"units": self.of}
        found |= {"peel": self.peel} if of_words else {"particles": sorted(self.particles)}
        found |= {"endings": sorted(self.endings)} if self.endings else {}
        return found | ({"capitals": True} if self.capitals else {})

    def read(self, tokenizer: Tokenizer, text: str, words: Sequence[str] | None = None) -> Read:
        """The units of a text; `words`, if known, are used where words carry the tags."""
        if self.of == "pieces":
            return read_pieces(tokenizer, text, self.particles, capitals=self.capitals)
        places = split_words(text, peel=self.peel, endings=self.endings) if words is None else places_of(words)
        return read_words(tokenizer, text, places, capitals=self.capitals)


def read_words(tokenizer: Tokenizer, text: str, words: Sequence[Range], *, capitals: bool = False) -> Read:
    """Words, each tokenized by itself; one without tokens, such as a control character, becomes unknown."""
    ids: list[int] = []
    firsts: list[int] = []
    mark = mark_of_capitals(tokenizer) if capitals else []
    parts = [text[start:end] for start, end in words]
    for word, pieces in zip(parts, tokenizer.encode_batch(parts), strict=True):
        firsts.append(len(ids))
        ids += pieces or [tokenizer.unk_id]
        ids += mark * _capitals(word) if mark else []
    return Read(ids, list(words), firsts)


def mark_of_capitals(tokenizer: Tokenizer) -> list[int]:
    ids = tokenizer.encode(CAPITALS)
    if not ids or tokenizer.unk_id in ids:
        hint = "use a vocabulary that has it, or set task.mark_capitals = false"
        raise DataError(f"the vocabulary lacks {CAPITALS}, which marks capitals", hint=hint, code="data.vocabulary")
    return ids


def _capitals(word: str) -> int:
    """Number of marks after a word."""
    return int(word != word.lower()) + int(len(word) > 1 and word.isupper())


def particles_of(example: Spans) -> Iterator[str]:
    """The Hangul that follows entities within their words."""
    for span in example.marked:
        jamo = _HANGUL.match(example.text, span.end)
        if jamo and (rest := _PARTICLE.match(compose(jamo[0]))):
            yield rest[0]


def read_pieces(tokenizer: Tokenizer, text: str, particles: Collection[str] = (), *, capitals: bool = False) -> Read:
    """Every token with characters of its own; of several for one character, the first."""
    encoded = tokenizer.encode_with_offsets(text, particles)
    offsets = whole_characters(text, encoded.offsets)
    mark = mark_of_capitals(tokenizer) if capitals else []
    marks = {word.end(): mark * _capitals(word[0]) for word in re.finditer(_LETTERS, text)} if capitals else {}
    ids: list[int] = []
    units: list[Range] = []
    firsts: list[int] = []
    begins = [start for start, _ in offsets]
    for piece, (start, end), after in zip(encoded.ids, offsets, [*begins, len(text)][1:], strict=True):
        start = max(start, units[-1][1] if units else 0)
        if end > start:
            units.append((start, end))
            firsts.append(len(ids))
        ids.append(piece)
        ids += marks.get(end, []) if after >= end else []
    return Read(ids, units, firsts)


def split_words(text: str, *, peel: bool, endings: Collection[str] = ()) -> list[Range]:
    """Words separated by white space; with `peel`, without the punctuation around them, as in corpora of words, and
    without these endings."""
    found = [match.span() for match in re.finditer(r"\S+", text)]
    if peel:
        found = [(begin + start, begin + end) for begin, after in found for start, end in _peeled(text[begin:after])]
    if not endings:
        return found
    return [part for begin, after in found for part in _without_ending(text, begin, after, endings)]


def _without_ending(text: str, begin: int, after: int, endings: Collection[str]) -> list[Range]:
    word = text[begin:after].lower().replace("’", "'")
    ending = max((ending for ending in endings if word.endswith(ending)), key=len, default="")
    cut = after - len(ending)
    return [(begin, cut), (cut, after)] if ending and cut > begin and text[cut - 1].isalpha() else [(begin, after)]


class Endings:
    """Learns the endings with an apostrophe that a corpus of words splits off."""

    def __init__(self) -> None:
        self._alone: Counter[str] = Counter()
        self._attached: Counter[str] = Counter()

    def add(self, words: Sequence[str]) -> None:
        for word in words:
            if len(word) > 1 and ("'" in word or "’" in word):
                whole = _ENDING.search(word.lower().replace("’", "'"))
                if whole:
                    (self._alone if whole.start() == 0 else self._attached)[whole[0]] += 1

    def learned(self) -> frozenset[str]:
        """Those that are split off more often than not, and not just once or twice."""
        often = (ending for ending, n in self._alone.items() if n >= OFTEN and n > self._attached[ending])
        return frozenset(often)


def _peeled(word: str) -> list[Range]:
    """A word and the punctuation around it; emoji and flags of several code points stay whole."""
    start, end = 0, len(word)
    if word.isalnum():  # most words: nothing is around them
        return [(start, end)]
    before: list[Range] = []
    after: list[Range] = []  # last one first
    while end - start > 1 and _is_punctuation(word[start]):
        before.append((start, start + 1))
        start += 1
    while end - start > 1 and _is_punctuation(word[end - 1]):
        if word[end - 1] == "." and "." in word[start : end - 1]:
            break  # an abbreviation keeps its final period
        after.append((end - 1, end))
        end -= 1
    whole: list[Range] = []
    for first, last in whole_characters(word, [*before, (start, end), *after[::-1]]):
        begin = max(first, whole[-1][1] if whole else 0)
        if last > begin:
            whole.append((begin, last))
    return whole


def is_peeled(words: Sequence[str]) -> tuple[int, int]:
    """How many words end in punctuation, and how many are punctuation alone."""
    ending = [word for word in words if _is_punctuation(word[-1])]
    alone = sum(len(word) == 1 for word in ending)
    return len(ending) - alone, alone


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def tags_of(marks: Sequence[Span], units: Sequence[Range]) -> tuple[list[str], int]:
    """IOB2 tags of the units, and how many marks start or end inside a unit, which is tagged anyway."""
    tags = ["O"] * len(units)
    starts, ends = [start for start, _ in units], [end for _, end in units]
    inexact = 0
    for mark in marks:
        first, last = int(np.searchsorted(ends, mark.start, side="right")), int(np.searchsorted(starts, mark.end))
        free = [i for i in range(first, last) if tags[i] == "O"]
        exact = bool(free) and starts[free[0]] == mark.start and ends[free[-1]] == mark.end
        inexact += not exact
        for i in free:
            tags[i] = f"{'B' if i == free[0] else 'I'}-{mark.label}"
    return tags, inexact


def gold_tags(example: Spans, read: Read, units: Units) -> tuple[list[str], int]:
    """The tags of an example's units, and how many of its spans are not aligned with them."""
    if units.of == "words" and example.words is not None:
        return example.gold_tags, 0
    return tags_of(example.marked, read.units)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a text as model input, and the units to predict there."""

    row: list[int]
    units: list[int]
    """their indices"""
    places: list[int]
    """positions in the row of the tokens that represent them"""


def windows_of(read: Read, tokenizer: Tokenizer, long_texts: LongTexts, *, where: str = "") -> list[Window]:
    """The windows of a text; each unit is predicted once, in the window with the most text around it."""
    room = long_texts.max_len - len(tokenizer.frame([]))
    begin = len(tokenizer.frame([])) - 1
    if len(read.ids) <= room:  # most texts: one window, in which all units are predicted
        units = range(len(read.firsts))
        return [Window(tokenizer.frame(read.ids), [*units], [begin + first for first in read.firsts])]
    parts = long_texts.parts(len(read.ids), room, where=where)
    firsts, owner = np.array(read.firsts, dtype=np.int64), owners(parts, read.firsts)
    kept = np.flatnonzero(owner >= 0)
    asked = np.split(kept, np.searchsorted(owner[kept], range(1, len(parts))))
    found = []
    for (start, end), mine in zip(parts, asked, strict=True):
        row = tokenizer.frame(read.ids[start:end])
        found.append(Window(row, mine.tolist(), (firsts[mine] - start + begin).tolist()))
    return found
