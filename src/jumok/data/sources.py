"""Where examples come from: files of pairs, of texts that people have annotated, of plain text, or a generator.

A data config knows how to read a split of it, and what decides the examples.
"""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from jumok.data.files import FileData, ListedData, WindowedData, file_sha256
from jumok.data.made import (
    SyntheticData,
    ToyChoices,
    ToyGrammar,
    ToyJosa,
    ToyNames,
    ToyQuestions,
    ToyRelations,
    ToyReviews,
    ToySimilarity,
    ToyStories,
    ToyTopics,
)
from jumok.data.synthetic import Split
from jumok.text.annotated import (
    Choice,
    Marked,
    Question,
    Related,
    read_choices,
    read_marked,
    read_questions,
    read_related,
)
from jumok.text.documents import DocumentFormat, Sentence, read_document_column, read_documents
from jumok.text.faults import Wrong, read_some, refuse
from jumok.text.formats import Pair, read_lines, read_pairs
from jumok.text.labelled import Labelled, Tagged, read_labelled, read_tagged

SENTENCE_RULES = 1  # another number when text/sentences.py splits in another way
BEGINNING = 1000  # characters of a document that decide its side: many share a heading, and one may be beyond memory
Files = Annotated[list[str], Field(max_length=2)]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelData(FileData):
    """Pairs of texts in files: two line-aligned files, or one TSV, PO, TMX (.gz too) or MO file."""

    kind: Literal["parallel"] = "parallel"
    source: str
    """language code, e.g. "en"; TMX picks its texts by it"""
    target: str
    train: list[Files] = field(default_factory=list)
    """corpora, each [source file, target file] or [file]; read in order"""
    dev: Files = field(default_factory=list)
    test: Files = field(default_factory=list)
    columns: tuple[str, str] | None = None
    """names of the source and target columns of a TSV with a header"""

    def __post_init__(self) -> None:
        self._require_one_way(dev=bool(self.dev), test=bool(self.test))

    def files(self, split: Split) -> list[list[str]]:
        files = {"train": self.train, "dev": [self.dev], "test": [self.test]}[split]
        return self.train if self.share(split) else [pair for pair in files if pair]

    def read(self, split: Split, *, seed: int) -> Iterator[Pair]:
        for files in self.files(split):
            paths = [Path(file) for file in files]
            pairs = read_pairs(paths, source=self.source, target=self.target, columns=self.columns)
            yield from self._part(pairs, split, lambda pair: pair.source)

    def exists(self, split: Split) -> bool:
        return bool(self.files(split))

    def name(self, split: Split) -> str:
        return ", ".join(file for files in self.files(split) for file in files)

    def identity(self, split: Split, *, seed: int) -> bytes:
        parts = [json.dumps([self.source, self.target, self.columns]).encode()]
        for files in self.files(split):
            parts += [b"one file of pairs "] if len(files) == 1 else []
            parts += [file_sha256(file) for file in files]
        return b"".join(parts) + self._shares(split)


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledData(WindowedData):
    """Texts, or pairs of texts, with a label: TSV files (.gz too) whose header names the columns."""

    kind: Literal["labelled"] = "labelled"
    text: str = "text"
    """the column of the text"""
    pair: str | None = None
    """the column of the second text, if there is one"""
    label: str = "label"
    """the column of the label"""
    header: list[str] | None = None
    """names of the columns of files that have no header line, all of them in order"""
    skip_labels: list[str] = field(default_factory=list)
    """rows with one of these labels are left out, such as "-" where the annotators of SNLI did not agree"""
    when_wrong: Literal["refuse", "skip"] = "refuse"
    """a row without a label, or with other columns than the header, is an error, or left out and counted in a note"""
    separator: str = "|"
    """stands between the labels of a text that has several, and alone where it has none; used by
    task.predicts = "labels" """

    def __post_init__(self) -> None:
        self._require_one_way(dev=bool(self.dev), test=bool(self.test))
        if self.label in (self.text, self.pair):
            raise ValueError(f"label must be another column than what is read (got {self.label!r})")
        if not self.separator.strip():
            raise ValueError("separator must be something else than white space, which labels may have")

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Labelled]:
        columns = partial(read_labelled, text=self.text, label=self.label, pair=self.pair, header=self.header)
        read = partial(columns, skip=self.skip_labels)
        some = partial(read_some, read) if self.when_wrong == "skip" and wrong is refuse else partial(read, wrong=wrong)
        return self._read(split, some, lambda example: example.text, lambda example: example.label)

    def identity(self, split: Split, *, seed: int) -> bytes:
        # What was not always there counts only where it is used: older corpora are still known.
        later: list[object] = [self.header, self.skip_labels, *(["skip"] if self.when_wrong == "skip" else [])]
        later += ["dealt"] if self.folds else []
        return self._identity(split, self.kind, self.text, self.pair, self.label, *(later if any(later) else []))


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedData(WindowedData):
    """Words with a tag each, or texts with marked spans.

    CoNLL files have a word and its tag a line, and an empty line between sentences; before a sentence there may be
    comments, which begin with # and have another number of columns. JSONL files (.jsonl) have a text a line,
    `{"text": ..., "spans": [{"start", "end", "label"}]}`, whose spans are counted in characters, end exclusive, and may
    end within a word. All files are of one of the two kinds; each also .gz.
    """

    kind: Literal["tagged"] = "tagged"

    def __post_init__(self) -> None:
        self._require_one_way(dev=bool(self.dev), test=bool(self.test))
        files = [*self.train, *self.dev, *self.test]
        if len({_marks(file) for file in files}) > 1:
            odd = next(file for file in files if _marks(file) != _marks(files[0]))
            raise ValueError(f"{files[0]} and {odd} are of two kinds: all files are .jsonl, or all are CoNLL files")

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Tagged | Marked]:
        return self._read(split, partial(_read_tags, wrong=wrong), _tagged_text)

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind, *(["marked"] if any(map(_marks, self.files(split))) else []))


def _marks(file: str) -> bool:
    """Whether a file marks spans of characters, as its name tells."""
    return file.lower().endswith((".jsonl", ".jsonl.gz"))


def _read_tags(path: Path, *, wrong: Wrong) -> Iterator[Tagged | Marked]:
    return read_marked(path, wrong=wrong) if _marks(path.name) else read_tagged(path, wrong=wrong)


def _tagged_text(example: Tagged | Marked) -> str:
    return example.text if isinstance(example, Marked) else " ".join(example.words)


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationData(WindowedData):
    """Texts with two entities and how they are related: JSONL files (.gz too).

    A line is `{"text": ..., "head": {"start", "end", "type"}, "tail": {...}, "label": ...}`, counted in characters,
    end exclusive; types may be left out.
    """

    kind: Literal["relations"] = "relations"

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Related]:
        read = partial(read_related, wrong=wrong)
        return self._read(split, read, lambda example: example.text, lambda example: example.label)

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind, *(["dealt"] if self.folds else []))


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionData(WindowedData):
    """Questions whose answers stand in a text: JSON files (.gz too) of the form of SQuAD 1.1 or 2.0.

    A share or a fold has whole texts: no text has questions on two sides.
    """

    kind: Literal["questions"] = "questions"

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Question]:
        return self._read(split, partial(read_questions, wrong=wrong), lambda example: example.context)

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChoiceData(WindowedData):
    """Beginnings with several endings, one of which fits: SWAG's CSV files, or JSONL (.gz too).

    A line of JSONL is `{"context": ..., "endings": [...], "label": ...}`, the label being the place of the ending
    that fits, from 0.
    """

    kind: Literal["choices"] = "choices"

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Choice]:
        return self._read(split, partial(read_choices, wrong=wrong), lambda example: example.context)

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class TextData(ListedData):
    """Plain text, a line an example (.gz too)."""

    kind: Literal["text"] = "text"
    language: str = ""

    def read(self, split: Split, *, seed: int) -> Iterator[str]:
        return (line for _, line in self.read_with_places(split))

    def read_with_places(self, split: Split) -> Iterator[tuple[str, str]]:
        """The lines, each after the place it was read from, which only a person wants to know."""

        def placed(path: Path) -> Iterator[tuple[str, str]]:
            return ((f"{path}:{number}", line) for number, line in enumerate(read_lines(path), start=1))

        return self._read(split, placed, lambda line: line[1])

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentData(ListedData):
    """Documents in text files (.gz too) or folders of them."""

    kind: Literal["documents"] = "documents"
    language: str = ""
    format: DocumentFormat = "blank_line"
    """how documents stand in a file: separated by blank lines, one a line, or one a file"""
    split_sentences: bool = True
    """cut lines into sentences; otherwise a line is one"""
    column: str | None = None
    """of tables (.tsv) among the files: the column of the texts, a document a row"""

    def __post_init__(self) -> None:
        super(DocumentData, self).__post_init__()
        tables = any(map(_is_table, [*self.train, *self.dev, *self.test]))
        if tables != (self.column is not None):
            raise ValueError("column names the texts of tables (.tsv): it goes with them, and they with it")

    def read(self, split: Split, *, seed: int) -> Iterator[Sentence]:
        for file in self.files(split):
            if self.column is not None and _is_table(file):
                found = read_document_column(Path(file), self.column, split=self.split_sentences)
            else:
                found = read_documents(Path(file), self.format, split=self.split_sentences)
            yield from self._documents(found, split) if self._divided(split) else found

    def identity(self, split: Split, *, seed: int) -> bytes:
        later: list[object] = [self.column] if self.column is not None else []
        later += [BEGINNING] if self._divided(split) else []
        return self._identity(split, self.kind, self.format, self.split_sentences, SENTENCE_RULES, *later)

    def _documents(self, sentences: Iterator[Sentence], split: Split) -> Iterator[Sentence]:
        """Of all documents those that belong to a split."""
        number = 0

        def document_of(sentence: Sentence) -> int:
            nonlocal number
            number += sentence.first
            return number

        for _, document in groupby(sentences, document_of):
            yield from self._document(document, split)

    def _document(self, sentences: Iterator[Sentence], split: Split) -> Iterator[Sentence]:
        """A document, if it belongs to a split: its beginning decides."""
        begun, text = [], ""
        for sentence in sentences:
            begun.append(sentence)
            text += unicodedata.normalize("NFC", sentence.text) + " "  # or its composition would decide where to cut
            if len(text) > BEGINNING:
                break
        return chain(begun, sentences) if self._side(text[:BEGINNING]) == split else iter(())


def _is_table(file: str) -> bool:
    return file.lower().removesuffix(".gz").endswith(".tsv")


DataConfig = (
    ParallelData
    | SyntheticData
    | LabelledData
    | TaggedData
    | RelationData
    | QuestionData
    | ChoiceData
    | TextData
    | DocumentData
    | ToyReviews
    | ToyTopics
    | ToySimilarity
    | ToyNames
    | ToyJosa
    | ToyRelations
    | ToyQuestions
    | ToyChoices
    | ToyGrammar
    | ToyStories
)


def other_files(data: DataConfig, files: list[str]) -> DataConfig:
    """Data of the same kind, with these files for test and nothing else."""
    match data:
        case SyntheticData():
            return ParallelData(source=data.source, target=data.target, test=files)
        case ToyReviews() | ToyTopics():
            return LabelledData(language=data.language, test=files)
        case ToySimilarity():
            return LabelledData(language=data.language, text="text_a", pair="text_b", test=files)
        case ToyNames() | ToyJosa():
            return TaggedData(language=data.language, test=files)
        case ToyRelations():
            return RelationData(language=data.language, test=files)
        case ToyQuestions():
            return QuestionData(language=data.language, test=files)
        case ToyChoices():
            return ChoiceData(language=data.language, test=files)
        case ToyGrammar():
            return TextData(language=data.language, test=files)
        case ToyStories():
            return DocumentData(language=data.language, test=files)
    nothing: dict[str, Any] = {"train": [], "dev": [], "dev_share": 0.0, "test_share": 0.0, "folds": 0, "fold": None}
    return replace(data, test=files, **nothing)
