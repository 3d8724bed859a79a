"""A corpus: one split of the data, identified by its fingerprint."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from jumok.examples import Split

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
Example = TypeVar("Example")
Example_co = TypeVar("Example_co", covariant=True)


class Data(Protocol[Example_co]):
    """A source of examples, by split."""

    def read(self, split: Split, *, seed: int) -> Iterator[Example_co]: ...
    def exists(self, split: Split) -> bool:
        """Whether the recipe provides this split."""
        ...

    def name(self, split: Split) -> str: ...
    def identity(self, split: Split, *, seed: int) -> bytes:
        """Everything that determines the examples: the bytes of the files, or the generator's arguments."""
        ...


class Corpus(Generic[Example]):
    """The examples of one split; can be read repeatedly and is identified by its fingerprint."""

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
    """The texts of a corpus; can be read repeatedly."""

    corpus: Iterable[Example]
    texts: Callable[[Example], Iterable[str]]

    def __iter__(self) -> Iterator[str]:
        for example in self.corpus:
            yield from self.texts(example)
