"""Initialise embeddings from text files of word vectors (word2vec, fastText, GloVe; .gz too).

word2vec and fastText files start with a header, "COUNT DIMENSION"; GloVe has none. Each line is a word and its values,
separated by spaces. Only wanted words are kept, so memory grows with the vocabulary, not with the file.
"""

import re
import unicodedata
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from string import punctuation
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumok.errors import DataError
from jumok.text.lines import read_lines
from jumok.text.normalise import compose
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import EOS, PAD, SPACE, UNK, WORDPIECE_PREFIX, Kind, TokenizerConfig

Floats = npt.NDArray[np.float32]
Wanted = Container[str] | Callable[[str], bool]

_HEADER = re.compile(r"([0-9]{1,15}) ([0-9]{1,15})")
_PLAIN = re.compile(r"[-+.0-9eE ]*")  # float() alone would also accept 1_000, nan, and the digits of every script


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorsConfig:
    """Pre-trained word vectors to initialise the embeddings from."""

    source: str | None = None
    """vectors for the source, or for the only text: a word2vec, GloVe or fastText text file, .gz too"""
    target: str | None = None
    """vectors for the target"""
    frozen: bool = False
    """freeze the embeddings initialised from vectors, words without a vector included"""


@dataclass(frozen=True, slots=True)
class Vectors:
    """The wanted vectors of a file, with counts of the rest."""

    vectors: dict[str, Floats]
    dimension: int
    read: int
    """vectors in the file, wanted or not"""
    duplicates: int
    """lines that repeat a wanted word; the first one counts"""
    first_duplicate: str | None
    """location of the first such line"""


@dataclass(frozen=True, slots=True)
class VectorsReport:
    """Coverage of a vocabulary by a file of vectors; special tokens count, except `<pad>`."""

    dimension: int
    vocabulary: int
    found: int
    unknown: int
    coverage: float
    """share of the vocabulary with a vector"""
    text_coverage: float | None
    """the same, weighted by token frequency; None if no counts were given"""
    read: int
    duplicates: int
    first_duplicate: str | None

    def __str__(self) -> str:
        text = "" if self.text_coverage is None else f" ({self.text_coverage:.1%} of the text)"
        covered = f"{self.found} of {self.vocabulary} tokens have a vector of {self.dimension} values"
        twice = f"; {self.duplicates} duplicates skipped, the first at {self.first_duplicate}"
        return f"{covered}: {self.coverage:.1%}{text}{twice if self.duplicates else ''}"


class Embeddings(NamedTuple):
    """The initial matrix [V, D], a mask [V] of the rows that come from the file, and their coverage."""

    matrix: Floats
    found: npt.NDArray[np.bool_]
    report: VectorsReport


def read_vectors(path: Path, wanted: Wanted, *, lowercase: bool = False) -> Vectors:
    """Read the vectors of the wanted words, which must be NFC like a tokenizer's; the file's words are normalised.

    With `lowercase`, wanted words must be lower-case: "The" in the file stands in for "the" if the file has no "the".
    Every line's shape is checked, but only the values of wanted words are parsed.
    """
    wants = wanted if callable(wanted) else wanted.__contains__
    exact: dict[str, Floats] = {}
    folded: dict[str, Floats] = {}
    duplicates, first_duplicate = 0, None
    entries = _Entries(path)
    for number, raw, values in entries:
        word = compose(raw)
        if wants(word):
            if word not in exact:
                exact[word] = _parsed(values, f"{path}:{number}")
                continue
            duplicates += 1
            first_duplicate = first_duplicate or f"{path}:{number}"
        elif lowercase:
            word = compose(_lowered(raw))
            if word not in exact and word not in folded and wants(word):
                folded[word] = _parsed(values, f"{path}:{number}")
    return Vectors({**folded, **exact}, entries.dimension, entries.read, duplicates, first_duplicate)


def surface_words(pieces: Sequence[str], kind: Kind) -> list[str | None]:
    """The word to look up for each token; None for `<pad>`, bytes, and tokens that continue a word."""
    return [_surface(piece, kind) for piece in pieces]


def embeddings_from_vectors(
    path: Path, tokenizer: Tokenizer, config: TokenizerConfig, *, seed: int, counts: Sequence[int] | None = None
) -> Embeddings:
    """Build an embedding matrix from the file's vectors; `config` is the config the tokenizer was trained with.

    Words missing from the file get random values with the standard deviation of the found ones; `<pad>` gets zeros.
    `counts` is how often each id occurs in the text.
    """
    size, pad = tokenizer.vocab_size, tokenizer.pad_id
    words = surface_words(tokenizer.pieces(range(size)), config.kind)
    file = read_vectors(path, {word for word in words if word is not None}, lowercase=config.lowercase)
    known = {i: file.vectors[word] for i, word in enumerate(words) if word is not None and word in file.vectors}
    found = np.zeros(size, dtype=np.bool_)
    found[list(known)] = True
    # With nothing to measure, use the deviation that gives a row a norm of about 1.
    deviation = np.std(list(known.values()), dtype=np.float64) if known else 0.0
    deviation = deviation or file.dimension**-0.5
    # Draw all rows, so that no row depends on which others were found.
    matrix = np.random.default_rng(seed).standard_normal((size, file.dimension), dtype=np.float32)
    matrix *= np.float32(deviation)
    for i, vector in known.items():
        matrix[i] = vector
    matrix[pad] = 0.0
    text_coverage = None
    if counts is not None:
        if len(counts) != size:
            raise ValueError(f"counts of {len(counts)} ids for a vocabulary of {size}")
        total = sum(counts) - counts[pad]
        text_coverage = sum(counts[i] for i in known) / total if total else 0.0
    report = VectorsReport(
        dimension=file.dimension,
        vocabulary=size - 1,
        found=len(known),
        unknown=size - 1 - len(known),
        coverage=len(known) / (size - 1),
        text_coverage=text_coverage,
        read=file.read,
        duplicates=file.duplicates,
        first_duplicate=file.first_duplicate,
    )
    return Embeddings(matrix, found, report)


def _surface(piece: str, kind: Kind) -> str | None:
    if piece in (EOS, UNK):
        return piece  # fastText has a vector for the end of a text, GloVe for unknown words
    if piece == PAD:
        return None
    if kind == "wordpiece":
        return None if piece.startswith(WORDPIECE_PREFIX) else piece
    # Punctuation is never attached to a word, so it is a word even without the mark of a space.
    if kind == "word" or piece.startswith(SPACE) or _is_punctuation(piece):
        return piece.removeprefix(SPACE) or None
    return None


def _is_punctuation(piece: str) -> bool:
    return len(piece) == 1 and (piece in punctuation or unicodedata.category(piece).startswith("P"))


def _lowered(word: str) -> str:
    """Lowercase letter by letter, as `tokenizers` does; str.lower() has a special rule for a final sigma."""
    return "".join(map(str.lower, word))


class _Entries:
    """Iterates over line number, word and values (still text); rejects a line of another shape."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._promised: int | None = None
        self.dimension = 0
        self.read = 0

    def __iter__(self) -> Iterator[tuple[int, str, str]]:
        for number, line in enumerate(read_lines(self._path), start=1):
            line = line.rstrip(" ")  # word2vec and fastText end each line with a space
            if number == 1 and self._begin(line):
                continue
            self.read += 1
            if self._promised is not None and self.read > self._promised:
                raise self._wrong_count(number, "more")
            yield number, *self._cut(line, number)
        if self._promised is not None and self.read < self._promised:
            raise self._wrong_count(1, f"only {self.read}")
        if not self.read:
            raise DataError(
                "no vectors in it", where=self._path, hint="put a word and its values on each line", code="data.empty"
            )

    def _begin(self, line: str) -> bool:
        """Read the dimension from the first line; return whether it is a header."""
        header = _HEADER.fullmatch(line)
        if header:
            self._promised, self.dimension = int(header[1]), int(header[2])
        else:
            # The word ends before the first number, but may itself start with one.
            fields = line.split(" ")[1:]
            self.dimension = next((len(fields) - i for i, field in enumerate(fields) if _looks_numeric(field)), 0)
        if not self.dimension:
            raise DataError(
                "vectors without values" if header else "a word without values",
                where=f"{self._path}:1",
                hint='start with a header "COUNT DIMENSION", or with a word and its values, separated by spaces',
                code="data.columns",
            )
        return bool(header)

    def _cut(self, line: str, number: int) -> tuple[str, str]:
        """Split a line into word and values; the word may contain spaces, like ". . ." in GloVe's largest file."""
        n_values = line.count(" ")
        if n_values == self.dimension:
            word, _, values = line.partition(" ")
        elif n_values > self.dimension:
            word = line.rsplit(" ", self.dimension)[0]
            values = line[len(word) + 1 :]
            word = word.strip(" ")
            # If it ends with a number, it is more likely a word with too many values than a word of several parts.
            parts = word.split(" ")[:0:-1]
            n_values = self.dimension + len(list(takewhile(_looks_numeric, parts)))
        if n_values != self.dimension:
            raise DataError(
                f"{n_values} values, but {'line 1 has' if self._promised is None else 'the header says'}"
                f" {self.dimension}",
                where=f"{self._path}:{number}",
                hint=f"write a word and {self.dimension} values, separated by single spaces",
                code="data.columns",
            )
        if not word:
            raise DataError(
                "values without a word",
                where=f"{self._path}:{number}",
                hint=f"write a word and {self.dimension} values",
                code="data.words",
            )
        return word, values

    def _wrong_count(self, number: int, there_are: str) -> DataError:
        return DataError(
            f"the header declares {self._promised} vectors, but there are {there_are}",
            where=f"{self._path}:{number}",
            hint="use the complete file, or correct the count in its header",
            code="data.counts",
        )


def _looks_numeric(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _parsed(values: str, where: str) -> Floats:
    fields = values.split(" ")
    try:
        if _PLAIN.fullmatch(values):
            with np.errstate(over="ignore"):
                row = np.array(list(map(float, fields)), dtype=np.float32)
            if np.isfinite(row).all():
                return row
    except ValueError:
        pass
    place, field = next((i, field) for i, field in enumerate(fields, start=1) if not _is_finite(field))
    raise DataError(
        f"value {place} is not a finite number: {field[:40]!r}",
        where=where,
        hint="use 32-bit numbers like -0.25 or 1e-3, separated by single spaces",
        code="data.not_a_number",
    )


def _is_finite(field: str) -> bool:
    with np.errstate(over="ignore"):
        return bool(_PLAIN.fullmatch(field)) and _looks_numeric(field) and bool(np.isfinite(np.float32(field)))
