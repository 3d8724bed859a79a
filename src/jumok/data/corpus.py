"""A corpus: one split of some data, that can be read again and is known by its fingerprint, and the shards of it."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from jumok.data.shards import FORMAT, Shards, build_shards
from jumok.examples import Split
from jumok.version import __version__

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
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
