"""Plain text: lines, or documents."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, Self

from jumok.errors import DataError, Wrong, refuse
from jumok.examples import Split
from jumok.examples.documents import DocumentFormat, Sentence, read_document_column, read_documents, write_documents
from jumok.examples.faults import say_each, suffix_of, unknown_format
from jumok.examples.files import ListedData
from jumok.examples.objects import as_object, read_objects
from jumok.examples.tables import TABLES
from jumok.text.lines import as_line, numbered_lines, write_lines
from jumok.text.normalise import compose

SENTENCE_RULES = 1  # increased when text/sentences.py splits differently

BEGINNING = 1000  # characters that decide a document's split: many share a heading, and one may not fit in memory


@dataclass(frozen=True, slots=True)
class Text:
    """A text or a pair of texts, and its location."""

    text: str
    """the text, or the first of two"""
    pair: str | None = None
    """the second of two texts"""
    where: str = ""

    @classmethod
    def parse(cls, given: str | Mapping[str, Any], where: str = "") -> Self:
        """Parse a line as the text, or a mapping with `text` and optionally `pair`."""
        if isinstance(given, str):
            return cls(given, None, where)
        found = as_object(given, where=where, hint='use {"text": "..."}')
        return cls(found.text("text"), found.text("pair") if "pair" in found else None, where)


def read_texts(path: Path, *, wrong: Wrong = refuse) -> Iterator[Text]:
    """Read plain text (.gz too), one text per line."""
    return (Text(line, None, f"{path}:{number}") for number, line in numbered_lines(path, wrong=wrong))


def _objects(path: Path, wrong: Wrong) -> Iterator[Text]:
    hint = 'write each line as an object with "text"'
    return read_objects(path, lambda found: Text.parse(found.values, found.where), hint=hint, wrong=wrong)


def write_plain(path: Path, examples: Iterable[Text], *, wrong: Wrong = refuse) -> None:
    """Write plain text (.gz too), one text per line."""

    def line(example: Text) -> str:
        if example.pair is not None:
            hint = "write one text per line"
            raise DataError("a pair of texts does not fit on a line", where=example.where, hint=hint, code="data.pair")
        return as_line(example.text, example.where)

    write_lines(path, say_each(examples, line, wrong))


@dataclass(frozen=True, kw_only=True, slots=True)
class TextData(ListedData):
    """Plain text, one example per line (.gz too)."""

    kind: Literal["text"] = "text"
    language: str = ""

    @property
    def split_sentences(self) -> bool:
        return False

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Text]:
        return self._read(split, partial(read_texts, wrong=wrong), lambda line: line.text)

    def sentences(self, split: Split, *, seed: int) -> Iterator[Sentence]:
        """Yield each line as a document of its own."""
        return (Sentence(line.text, True, line.where) for line in self.read(split, seed=seed))

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Text] | None:
        """Texts to predict on are plain lines, or the objects of a JSONL file."""
        return _objects(path, wrong) if suffix_of(path) == "jsonl" else None

    def write(self, path: Path, examples: Iterable[Text], *, wrong: Wrong = refuse) -> None:
        write_plain(path, examples, wrong=wrong)

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentData(ListedData):
    """Documents in text files (.gz too) or folders of them."""

    kind: Literal["documents"] = "documents"
    language: str = ""
    format: DocumentFormat = "blank_line"
    """documents in a file: separated by blank lines, one per line, or one per file"""
    split_sentences: bool = True
    """split lines into sentences; otherwise each line is one"""
    column: str | None = None
    """for tables (.tsv, .csv or .jsonl): column of the texts, one document per row"""

    def __post_init__(self) -> None:
        super(DocumentData, self).__post_init__()
        tables = any(map(_is_table, [*self.train, *self.dev, *self.test]))
        if tables != (self.column is not None):
            raise ValueError("column must be set if there are tables (.tsv, .csv or .jsonl), and only then")

    def read(self, split: Split, *, seed: int) -> Iterator[Sentence]:
        for file in self.files(split):
            if self.column is not None and _is_table(file):
                found = read_document_column(Path(file), self.column, split=self.split_sentences)
            else:
                found = read_documents(Path(file), self.format, split=self.split_sentences)
            yield from self._documents(found, split) if self._divided(split) else found

    def sentences(self, split: Split, *, seed: int) -> Iterator[Sentence]:
        return self.read(split, seed=seed)

    def identity(self, split: Split, *, seed: int) -> bytes:
        later: list[object] = [self.column] if self.column is not None else []
        later += [BEGINNING] if self._divided(split) else []
        return self._identity(split, self.kind, self.format, self.split_sentences, SENTENCE_RULES, *later)

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Text] | None:
        """Texts to predict on are plain lines, or the objects of a JSONL file."""
        return _objects(path, wrong) if suffix_of(path) == "jsonl" else None

    def write(self, path: Path, examples: Iterable[Text | Sentence], *, wrong: Wrong = refuse) -> None:
        """Write texts as plain lines, or sentences as documents separated by blank lines."""
        if self.format != "blank_line" or _is_table(path.name):
            raise unknown_format("documents", path, 'set format = "blank_line", and use a .txt file')
        found = list(examples)
        if sentences := [example for example in found if isinstance(example, Sentence)]:
            write_documents(path, sentences, wrong=wrong)
        else:
            write_plain(path, [example for example in found if isinstance(example, Text)], wrong=wrong)

    def _documents(self, sentences: Iterator[Sentence], split: Split) -> Iterator[Sentence]:
        """Yield the documents that belong to a split."""
        number = 0

        def document_of(sentence: Sentence) -> int:
            nonlocal number
            number += sentence.first
            return number

        for _, document in groupby(sentences, document_of):
            yield from self._document(document, split)

    def _document(self, sentences: Iterator[Sentence], split: Split) -> Iterator[Sentence]:
        """Return a document if its beginning assigns it to the split, else nothing."""
        begun, text = [], ""
        for sentence in sentences:
            begun.append(sentence)
            text += compose(sentence.text) + " "  # or composition would move the limit
            if len(text) > BEGINNING:
                break
        return chain(begun, sentences) if self._side(text[:BEGINNING]) == split else iter(())


def _is_table(file: str) -> bool:
    return suffix_of(Path(file)) in TABLES
