"""Data that is made, exact and without end: for the quickstart, the toys and the tests."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from jumok.config import Count, CountOrZero
from jumok.data import annotated_toys, synthetic, toys
from jumok.data.files import LongRule, WindowSize
from jumok.data.synthetic import Split
from jumok.text.annotated import Choice, Marked, Question, Related
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
class WindowedToy(ToyData):
    """What the made data has in common whose texts may be longer than a model reads at once."""

    max_len: WindowSize = 256
    """the pieces that a model reads at once; `long_texts` says what becomes of more"""
    long_texts: LongRule = "windows"
    """a text of more than max_len pieces is read in windows that overlap, at its beginning only, or is an error"""
    stride: CountOrZero = 64
    """pieces that neighbouring windows share, at most half of one"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyReviews(WindowedToy):
    """Made Korean opinions, good or bad, some of them negated."""

    kind: Literal["toy_reviews"] = "toy_reviews"

    def read(self, split: Split, *, seed: int) -> Iterator[Labelled]:
        return toys.reviews(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyTopics(WindowedToy):
    """Made English opinions with one topic or several: labels such as "food|price"."""

    kind: Literal["toy_topics"] = "toy_topics"

    def read(self, split: Split, *, seed: int) -> Iterator[Labelled]:
        return annotated_toys.topics(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToySimilarity(WindowedToy):
    """Made pairs of English descriptions, and from 0 to 5 how much they share."""

    kind: Literal["toy_similarity"] = "toy_similarity"

    def read(self, split: Split, *, seed: int) -> Iterator[Labelled]:
        return annotated_toys.similarity(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyNames(WindowedToy):
    """Made English sentences with persons and places."""

    kind: Literal["toy_names"] = "toy_names"

    def read(self, split: Split, *, seed: int) -> Iterator[Tagged]:
        return toys.names(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyJosa(WindowedToy):
    """Made Korean sentences whose persons and places, marked by characters, have particles attached."""

    kind: Literal["toy_josa"] = "toy_josa"

    def read(self, split: Split, *, seed: int) -> Iterator[Marked]:
        return annotated_toys.josa(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyRelations(WindowedToy):
    """Made English sentences about who employs or teaches whom, with the direction in the label."""

    kind: Literal["toy_relations"] = "toy_relations"

    def read(self, split: Split, *, seed: int) -> Iterator[Related]:
        return annotated_toys.relations(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyQuestions(WindowedToy):
    """Made English questions about a few facts; a quarter of them is not answered."""

    kind: Literal["toy_questions"] = "toy_questions"

    def read(self, split: Split, *, seed: int) -> Iterator[Question]:
        return annotated_toys.questions(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyChoices(WindowedToy):
    """Made English scenes with four endings, one of which fits."""

    kind: Literal["toy_choices"] = "toy_choices"

    def read(self, split: Split, *, seed: int) -> Iterator[Choice]:
        return annotated_toys.choices(split, n=self.count(split), seed=seed)


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
