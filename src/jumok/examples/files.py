"""Data in files: how splits are held out, and how data is identified by its content."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from jumok.config import Count, CountOrZero, Share
from jumok.errors import DataError, Wrong, refuse
from jumok.examples import Split
from jumok.examples.documents import text_files
from jumok.text.normalise import compose

Example = TypeVar("Example")
LongRule = Literal["windows", "truncate", "refuse"]


WindowSize = Annotated[int, Field(ge=5)]
"""the minimum fits two texts of one token each, with special tokens"""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileData:
    """Settings common to all data in files."""

    dev_share: Share = 0.0
    """without dev files: share of the training examples, chosen by a hash of their text, to hold out for dev"""
    test_share: Share = 0.0
    """the same for test; no text is in two splits"""
    folds: CountOrZero = 0
    """cross-validation: divide the training examples into this many parts by a hash of their text, one of them test;
    labelled texts are stratified: parts have equal numbers of texts and similar shares of every label"""
    fold: Count | None = None
    """the part to use as test, from 1; the others are train, minus dev_share; if not set, each part in turn"""
    max_len: Count = 256
    """training examples with more tokens are skipped and counted"""
    when_changed: Literal["refuse", "accept"] = "refuse"
    """what to do if the files have changed when a run is resumed"""

    @property
    def is_made(self) -> bool:
        return False

    def for_files(self, files: list[str]) -> Any:
        """Return data of the same kind with only these files, for test."""
        nothing: dict[str, Any] = {
            "train": [],
            "dev": [],
            "dev_share": 0.0,
            "test_share": 0.0,
            "folds": 0,
            "fold": None,
        }
        return replace(self, test=files, **nothing)  # type: ignore[call-arg]

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Any] | None:
        """Read a file to predict on, if its name has a format of this data; None for plain lines."""
        return None

    def share(self, split: Split) -> float:
        """Share of the training examples in a split; unless it is 0, all of them are read for it."""
        return {"train": 1.0, "dev": self.dev_share, "test": 1 / self.folds if self.fold else self.test_share}[split]

    def _require_one_way(self, *, dev: bool, test: bool) -> None:
        for split, files, share in (("dev", dev, self.dev_share), ("test", test, self.test_share)):
            if files and share:
                raise ValueError(f"{split} has files: remove them, or {split}_share")
        if self.dev_share + self.test_share >= 1:
            raise ValueError("dev_share and test_share leave nothing to train on")
        if self.folds == 1:
            raise ValueError("folds must be at least 2, or 0 for no cross-validation")
        if self.fold and self.fold > self.folds:
            raise ValueError(f"fold must be from 1 to folds = {self.folds} (got {self.fold})")
        if self.folds and (test or self.test_share):
            raise ValueError("folds already define the test data: remove test files and test_share")

    def _divided(self, split: Split) -> bool:
        """Whether only some of the examples read for a split belong to it."""
        return bool(self.share(split) and (self.dev_share or self.test_share or self.folds))

    def _part(
        self,
        examples: Iterator[Example],
        split: Split,
        text: Callable[[Example], str],
        dealt: Mapping[int, int] | None = None,
    ) -> Iterator[Example]:
        """Filter the examples read for a split to those that belong to it."""
        if not self._divided(split):
            return examples
        return (example for example in examples if self._side(text(example), dealt) == split)

    def _side(self, text: str, dealt: Mapping[int, int] | None = None) -> Split:
        """Split to which a text belongs; `dealt` has the part of every text if a hash alone does not decide it."""
        if self.fold:
            key = _fold_hash(text)
            if (key % self.folds if dealt is None else dealt[key]) + 1 == self.fold:
                return "test"
        place = _hash(text) / 2**64
        if place < self.test_share:
            return "test"
        return "dev" if place < self.test_share + self.dev_share else "train"

    def _shares(self, split: Split) -> bytes:
        """Part of the identity that describes how the data is divided."""
        shares: list[object] = [self.dev_share, self.test_share]
        shares += [self.folds, self.fold] if self.folds else []
        return json.dumps([split, *shares]).encode() if any(shares) else b""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedData(FileData):
    """Data with a list of files for each split."""

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

    def _read(
        self,
        split: Split,
        read: Callable[[Path], Iterator[Example]],
        text: Callable[[Example], str],
        label: Callable[[Example], str] | None = None,
    ) -> Iterator[Example]:
        """Yield the examples of a split, which their `text` decides; folds are stratified by `label` if given."""
        dealt = self._dealt(read, text, label) if label and self.fold and self._divided(split) else None
        for file in self.files(split):
            yield from self._part(read(Path(file)), split, text, dealt)

    def _dealt(
        self,
        read: Callable[[Path], Iterator[Example]],
        text: Callable[[Example], str],
        label: Callable[[Example], str],
    ) -> dict[int, int]:
        """Part of every text: sorted by label and then by hash, texts are dealt out like cards."""
        labels: dict[int, str] = {}
        with warnings.catch_warnings(action="ignore"):  # unreadable examples are reported when they are read again
            for example in (example for file in self.train for example in read(Path(file))):
                labels.setdefault(_fold_hash(text(example)), label(example))
        order = sorted(labels, key=lambda key: (labels[key], key))
        return {key: place % self.folds for place, key in enumerate(order)}

    def _identity(self, split: Split, *facts: object) -> bytes:
        """`facts` are the settings that decide how the files are read."""
        return json.dumps(facts).encode() + b"".join(map(file_sha256, self.files(split))) + self._shares(split)


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowedData(ListedData):
    """Data whose texts may be longer than the input of a model."""

    language: str = ""
    max_len: WindowSize = 256
    """tokens that a model reads at once, including special tokens; for longer texts see `long_texts`"""
    long_texts: LongRule = "windows"
    """read texts of more than max_len tokens in overlapping windows, truncate them, or refuse them; with either of the
    first two, the text of a relation is read once, near its two entities"""
    stride: CountOrZero = 64
    """tokens shared by neighbouring windows, at most half a window: words cut off in one are whole in the other"""


def file_sha256(file: str) -> bytes:
    """Hash of a file, or of all text files in a folder, as part of an identity."""
    if (folder := Path(file)).is_dir():  # identified by the names in it, wherever it is
        files = text_files(folder)
        return b"".join(f"{path.relative_to(folder).as_posix()} ".encode() + file_sha256(str(path)) for path in files)
    try:
        with Path(file).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest().encode() + b"\n"
    except OSError as error:
        raise DataError(f"file cannot be read: {error.strerror}", where=file, code="data.unreadable") from error


def _fold_hash(text: str) -> int:
    """A different hash than for the shares, so that dev is drawn from all parts alike."""
    return _hash(text, b"fold")


def _hash(text: str, person: bytes = b"") -> int:
    """64-bit hash, independent of Unicode composition and surrounding white space."""
    composed = compose(text).strip()
    return int.from_bytes(hashlib.blake2b(composed.encode(), digest_size=8, person=person).digest(), "big")
