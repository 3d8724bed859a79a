"""Data that is made, exact and without end: for the quickstart, the toys and the tests."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from jumok.config import Count, CountOrZero
from jumok.data import synthetic, toys
from jumok.data.synthetic import Split
from jumok.text.documents import Sentence
from jumok.text.formats import Pair
from jumok.text.labelled import Labelled, Tagged


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeData:
    """What all made data has in common."""

    n_train: CountOrZero = 100_000
    n_dev: CountOrZero = 500
    n_test: CountOrZero = 1000
    max_len: Count = 256

    def count(self, split: Split) -> int:
        return {"train": self.n_train, "dev": self.n_dev, "test": self.n_test}[split]

    def exists(self, split: Split) -> bool:
        return self.count(split) > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SyntheticData(MadeData):
    """Pairs that are made, exact and without end; dev and test are held out and never made for training."""

    kind: Literal["synthetic"] = "synthetic"
    problem: synthetic.Problem
    source: str = "en"
    target: str = "ko"
    length: Annotated[int, Field(ge=3)] = 12
    """longest sequence of `reverse` and `copy`"""

    def read(self, split: Split, *, seed: int) -> Iterator[Pair]:
        pairs = synthetic.generate(self.problem, split, n=self.count(split), seed=seed, max_len=self.length)
        for i, (source, target) in enumerate(pairs):
            yield Pair(source, target, f"{self.problem} {split} {i}")

    def name(self, split: Split) -> str:
        return f"{self.problem} ({split})"

    def identity(self, split: Split, *, seed: int) -> bytes:
        facts = [synthetic.VERSION, self.problem, self.count(split), self.length]
        facts += [seed] if split == "train" else []
        return json.dumps([split, *facts]).encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyData(MadeData):
    """What the made data of the tasks over one text has in common."""

    language: str = ""

    def identity(self, split: Split, *, seed: int) -> bytes:
        facts = [type(self).__name__, toys.VERSION, self.count(split), split, *([seed] if split == "train" else [])]
        return json.dumps(facts).encode()

    def name(self, split: Split) -> str:
        return f"{type(self).__name__} ({split})"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyReviews(ToyData):
    """Made Korean opinions, good or bad, some of them negated."""

    kind: Literal["toy_reviews"] = "toy_reviews"

    def read(self, split: Split, *, seed: int) -> Iterator[Labelled]:
        return toys.reviews(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyNames(ToyData):
    """Made English sentences with persons and places."""

    kind: Literal["toy_names"] = "toy_names"

    def read(self, split: Split, *, seed: int) -> Iterator[Tagged]:
        return toys.names(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyGrammar(ToyData):
    """Sentences of a small English grammar."""

    kind: Literal["toy_grammar"] = "toy_grammar"

    def read(self, split: Split, *, seed: int) -> Iterator[str]:
        return toys.grammar(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyStories(ToyData):
    """Documents of a few sentences about one thing each, of a small English grammar."""

    kind: Literal["toy_stories"] = "toy_stories"

    def read(self, split: Split, *, seed: int) -> Iterator[Sentence]:
        return toys.stories(split, n=self.count(split), seed=seed)
