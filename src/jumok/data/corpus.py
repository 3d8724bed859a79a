"""Where examples come from: files of pairs, of labelled texts, of tagged words, of plain text, or a generator.

A data config knows how to read a split of it; a corpus is such a split, re-readable and known by its fingerprint.
"""

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

from pydantic import Field

from jumok.config import Count, Share
from jumok.data.made import SyntheticData, ToyGrammar, ToyNames, ToyReviews, ToyStories
from jumok.data.shards import FORMAT, Shards, build_shards
from jumok.data.synthetic import Split
from jumok.errors import DataError
from jumok.text.documents import DocumentFormat, Sentence, read_documents, text_files
from jumok.text.formats import Pair, read_lines, read_pairs
from jumok.text.labelled import Labelled, Tagged, read_labelled, read_tagged
from jumok.version import __version__

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
SENTENCE_RULES = 1  # another number when text/sentences.py splits in another way
Files = Annotated[list[str], Field(max_length=2)]
Example = TypeVar("Example")
Example_co = TypeVar("Example_co", covariant=True)


class Data(Protocol[Example_co]):
    """What a corpus is read from."""

    def read(self, split: Split, *, seed: int) -> Iterator[Example_co]: ...
    def exists(self, split: Split) -> bool:
        """Whether the recipe gives this split anything to read."""
        ...

    def name(self, split: Split) -> str: ...
    def identity(self, split: Split, *, seed: int) -> bytes:
        """Everything that decides the examples: the bytes of the files, or the generator's arguments."""
        ...


class Corpus(Generic[Example]):
    """The examples of one split; can be read again and again, and is known by its fingerprint."""

    def __init__(self, data: Data[Example], split: Split, *, seed: int) -> None:
        self.data = data
        self.split = split
        self.seed = seed

    def __iter__(self) -> Iterator[Example]:
        return self.data.read(self.split, seed=self.seed)

    def exists(self) -> bool:
        return self.data.exists(self.split)

    @property
    def name(self) -> str:
        return self.data.name(self.split)

    def fingerprint(self) -> str:
        return hashlib.sha256(self.data.identity(self.split, seed=self.seed)).hexdigest()


@dataclass(frozen=True, slots=True)
class Texts(Generic[Example]):
    """The texts of a corpus, that can be read again."""

    corpus: Iterable[Example]
    texts: Callable[[Example], Iterable[str]]

    def __iter__(self) -> Iterator[str]:
        for example in self.corpus:
            yield from self.texts(example)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileData:
    """What all data in files has in common."""

    dev_share: Share = 0.0
    """without dev files: this share of the training examples, chosen by a hash of their text, is held out for dev"""
    test_share: Share = 0.0
    """the same for test; a text never stands on two sides"""
    max_len: Count = 256
    """training examples with more pieces than this are left out, and counted"""
    when_changed: Literal["refuse", "accept"] = "refuse"
    """what to do when a run is resumed and its files are no longer the same"""

    def share(self, split: Split) -> float:
        return {"train": 1.0, "dev": self.dev_share, "test": self.test_share}[split]

    def _require_one_way(self, *, dev: bool, test: bool) -> None:
        for split, files, share in (("dev", dev, self.dev_share), ("test", test, self.test_share)):
            if files and share:
                raise ValueError(f"{split} has files: {split}_share would take more out of the training data")
        if self.dev_share + self.test_share >= 1:
            raise ValueError("dev_share and test_share leave nothing to train on")

    def _part(self, examples: Iterator[Example], split: Split, text: Callable[[Example], str]) -> Iterator[Example]:
        """Of all training examples those that belong to a split."""
        if not self.dev_share and not self.test_share:
            return examples
        return (example for example in examples if self._side(text(example)) == split)

    def _side(self, text: str) -> Split:
        composed = unicodedata.normalize("NFC", text).strip()
        place = int.from_bytes(hashlib.blake2b(composed.encode(), digest_size=8).digest(), "big") / 2**64
        if place < self.test_share:
            return "test"
        return "dev" if place < self.test_share + self.dev_share else "train"

    def _shares(self, split: Split) -> bytes:
        """Part of the identity of data that is divided."""
        shares = [self.dev_share, self.test_share]
        return json.dumps([split, *shares]).encode() if any(shares) else b""


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
            held_out = split == "train" or self.share(split) > 0
            yield from self._part(pairs, split, lambda pair: pair.source) if held_out else pairs

    def exists(self, split: Split) -> bool:
        return bool(self.files(split))

    def name(self, split: Split) -> str:
        return ", ".join(file for files in self.files(split) for file in files)

    def identity(self, split: Split, *, seed: int) -> bytes:
        parts = [json.dumps([self.source, self.target, self.columns]).encode()]
        for files in self.files(split):
            parts += [b"one file of pairs "] if len(files) == 1 else []
            parts += [_file_sha256(file) for file in files]
        return b"".join(parts) + self._shares(split)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedData(FileData):
    """What data of one kind of file has in common: a list of files for each split."""

    train: list[str] = field(default_factory=list)
    """read in order"""
    dev: list[str] = field(default_factory=list)
    test: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._require_one_way(dev=bool(self.dev), test=bool(self.test))

    def files(self, split: Split) -> list[str]:
        return self.train if self.share(split) else {"train": self.train, "dev": self.dev, "test": self.test}[split]

    def exists(self, split: Split) -> bool:
        return bool(self.files(split))

    def name(self, split: Split) -> str:
        return ", ".join(self.files(split))

    def _identity(self, split: Split, *facts: object) -> bytes:
        return json.dumps(facts).encode() + b"".join(map(_file_sha256, self.files(split))) + self._shares(split)

    def _divided(self, split: Split) -> bool:
        return split == "train" or self.share(split) > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledData(ListedData):
    """Texts, or pairs of texts, with a label: TSV files (.gz too) whose header names the columns."""

    kind: Literal["labelled"] = "labelled"
    language: str = ""
    text: str = "text"
    """the column of the text"""
    pair: str | None = None
    """the column of the second text, if there is one"""
    label: str = "label"
    """the column of the label"""

    def read(self, split: Split, *, seed: int) -> Iterator[Labelled]:
        for file in self.files(split):
            found = read_labelled(Path(file), text=self.text, label=self.label, pair=self.pair)
            yield from self._part(found, split, lambda example: example.text) if self._divided(split) else found

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind, self.text, self.pair, self.label)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedData(ListedData):
    """Words with a tag each: CoNLL files (.gz too), a word and its tag a line, an empty line between sentences."""

    kind: Literal["tagged"] = "tagged"
    language: str = ""

    def read(self, split: Split, *, seed: int) -> Iterator[Tagged]:
        for file in self.files(split):
            found = read_tagged(Path(file))
            yield from self._part(found, split, lambda e: " ".join(e.words)) if self._divided(split) else found

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
        for file in self.files(split):
            found = ((f"{file}:{number}", line) for number, line in enumerate(read_lines(Path(file)), start=1))
            yield from self._part(found, split, lambda placed: placed[1]) if self._divided(split) else found

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

    def read(self, split: Split, *, seed: int) -> Iterator[Sentence]:
        for file in self.files(split):
            found = read_documents(Path(file), self.format, split=self.split_sentences)
            yield from self._documents(found, split) if self._divided(split) else found

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind, self.format, self.split_sentences, SENTENCE_RULES)

    def _documents(self, sentences: Iterator[Sentence], split: Split) -> Iterator[Sentence]:
        """Of all documents those that belong to a split; their first sentence decides."""
        side: Split = "train"
        for sentence in sentences:
            if sentence.first:
                side = self._side(sentence.text)
            if side == split:
                yield sentence


DataConfig = (
    ParallelData
    | SyntheticData
    | LabelledData
    | TaggedData
    | TextData
    | DocumentData
    | ToyReviews
    | ToyNames
    | ToyGrammar
    | ToyStories
)


def other_files(data: DataConfig, files: list[str]) -> DataConfig:
    """Data of the same kind, with these files for test and nothing else."""
    match data:
        case SyntheticData():
            return ParallelData(source=data.source, target=data.target, test=files)
        case ToyReviews():
            return LabelledData(language=data.language, test=files)
        case ToyNames():
            return TaggedData(language=data.language, test=files)
        case ToyGrammar():
            return TextData(language=data.language, test=files)
        case ToyStories():
            return DocumentData(language=data.language, test=files)
    nothing: dict[str, Any] = {"train": [], "dev": [], "dev_share": 0.0, "test_share": 0.0}
    return replace(data, test=files, **nothing)


def _file_sha256(file: str) -> bytes:
    if Path(file).is_dir():
        return b"".join(str(path).encode() + b" " + _file_sha256(str(path)) for path in text_files(Path(file)))
    try:
        with Path(file).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest().encode() + b"\n"
    except OSError as error:
        raise DataError(f"file cannot be read: {error.strerror}", where=file) from error


def open_shards(
    cache: Path,
    key: list[object],
    encode: Callable[[dict[str, Any]], Iterator[Any]],
    *,
    fields: tuple[str, ...],
    vocab_size: int,
) -> Shards:
    """Token shards from the cache, or built into it: `key` is all that they depend on, beside what encodes them.

    `encode` yields a sequence of ids for each field, and counts in the dict that it is given what it leaves out.
    """
    digest = hashlib.sha256(json.dumps([__version__, FORMAT, *key]).encode()).hexdigest()
    folder = cache / "shards" / digest[:32]
    if folder.exists():
        return Shards(folder)
    facts: dict[str, Any] = {}
    return build_shards(folder, encode(facts), fields=fields, vocab_size=vocab_size, facts=facts)
