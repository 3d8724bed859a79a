"""Where examples come from: parallel files or an embedded generator; the same pipeline for both."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from jumok.config import Count, CountOrZero
from jumok.data import synthetic
from jumok.data.shards import FORMAT, Shards, build_shards, in_chunks
from jumok.errors import DataError
from jumok.text.formats import Pair, read_pairs
from jumok.text.tokenizer import EOS_ID, Tokenizer
from jumok.version import __version__

Split = synthetic.Split
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
CHUNK = 4096
Files = Annotated[list[str], Field(max_length=2)]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelData:
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
    max_len: Count = 256
    """pairs with more pieces than this on either side are left out of training, and counted"""
    when_changed: Literal["refuse", "accept"] = "refuse"
    """what to do when a run is resumed and its files are no longer the same"""

    def files(self, split: Split) -> list[list[str]]:
        if split == "train":
            return self.train
        files = self.dev if split == "dev" else self.test
        return [files] if files else []


@dataclass(frozen=True, kw_only=True, slots=True)
class SyntheticData:
    """Pairs that are made, exact and without end; dev and test are held out and never made for training."""

    kind: Literal["synthetic"] = "synthetic"
    problem: synthetic.Problem
    source: str = "en"
    target: str = "ko"
    n_train: CountOrZero = 100_000
    n_dev: CountOrZero = 500
    n_test: CountOrZero = 1000
    length: Annotated[int, Field(ge=3)] = 12
    """longest sequence of `reverse` and `copy`"""
    max_len: Count = 256

    def count(self, split: Split) -> int:
        return {"train": self.n_train, "dev": self.n_dev, "test": self.n_test}[split]


DataConfig = ParallelData | SyntheticData


class Corpus:
    """The pairs of one split; can be read again and again, and is known by its fingerprint."""

    def __init__(self, data: DataConfig, split: Split, *, seed: int) -> None:
        self.data = data
        self.split = split
        self.seed = seed

    def __iter__(self) -> Iterator[Pair]:
        match self.data:
            case ParallelData():
                for files in self.data.files(self.split):
                    yield from read_pairs(
                        [Path(file) for file in files],
                        source=self.data.source,
                        target=self.data.target,
                        columns=self.data.columns,
                    )
            case SyntheticData():
                pairs = synthetic.generate(
                    self.data.problem,
                    self.split,
                    n=self.data.count(self.split),
                    seed=self.seed,
                    max_len=self.data.length,
                )
                for i, (source, target) in enumerate(pairs):
                    yield Pair(source, target, f"{self.data.problem} {self.split} {i}")

    def exists(self) -> bool:
        """Whether the recipe gives this split anything to read."""
        match self.data:
            case ParallelData():
                return bool(self.data.files(self.split))
            case SyntheticData():
                return self.data.count(self.split) > 0

    @property
    def name(self) -> str:
        match self.data:
            case ParallelData():
                return ", ".join(file for files in self.data.files(self.split) for file in files)
            case SyntheticData():
                return f"{self.data.problem} ({self.split})"

    def fingerprint(self) -> str:
        """SHA-256 of everything that decides the pairs: the bytes of the files, or the generator's arguments."""
        digest = hashlib.sha256()
        match self.data:
            case ParallelData():
                digest.update(json.dumps([self.data.source, self.data.target, self.data.columns]).encode())
                for files in self.data.files(self.split):
                    if len(files) == 1:
                        digest.update(b"one file of pairs ")
                    for file in files:
                        digest.update(_file_sha256(Path(file)).encode() + b"\n")
            case SyntheticData():
                facts = [synthetic.VERSION, self.data.problem, self.data.count(self.split), self.data.length]
                facts += [self.seed] if self.split == "train" else []
                digest.update(json.dumps([self.split, *facts]).encode())
        return digest.hexdigest()

    def texts(self, side: Literal["source", "target", "both"]) -> "Texts":
        return Texts(self, side)


@dataclass(frozen=True, slots=True)
class Texts:
    """One side of a corpus, or both in turn, as text that can be read again."""

    corpus: Corpus
    side: Literal["source", "target", "both"]

    def __iter__(self) -> Iterator[str]:
        for pair in self.corpus:
            if self.side != "target":
                yield pair.source
            if self.side != "source":
                yield pair.target


def _file_sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"file cannot be read: {error.strerror}", where=path) from error


def open_shards(corpus: Corpus, *, source: Tokenizer, target: Tokenizer, cache: Path, fingerprint: str) -> Shards:
    """The token shards of a corpus: taken from the cache, or built into it."""
    max_len = corpus.data.max_len
    key = [__version__, FORMAT, fingerprint, source.sha256, target.sha256, max_len]
    folder = cache / "shards" / hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
    if folder.exists():
        return Shards(folder)
    facts: dict[str, Any] = {"read": 0, "empty": 0, "too_long": 0}
    return build_shards(
        folder,
        _encode(corpus, source, target, facts),
        fields=("source", "target"),
        vocab_size=max(source.vocab_size, target.vocab_size),
        facts=facts,
    )


def _encode(
    corpus: Corpus, source: Tokenizer, target: Tokenizer, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    for pairs in in_chunks(corpus, CHUNK):
        sources = source.encode_batch([pair.source for pair in pairs])
        targets = target.encode_batch([pair.target for pair in pairs])
        for source_ids, target_ids in zip(sources, targets, strict=True):
            facts["read"] += 1
            if not source_ids or not target_ids:
                facts["empty"] += 1
            elif max(len(source_ids), len(target_ids)) > corpus.data.max_len:
                facts["too_long"] += 1
            else:
                yield [*source_ids, EOS_ID], [*target_ids, EOS_ID]
    if facts["read"] == facts["empty"] + facts["too_long"]:
        counts = f"{facts['read']} pairs read, {facts['empty']} empty, {facts['too_long']} too long"
        raise DataError(f"empty corpus: {counts}", where=corpus.name, right="at least one pair to train on")
