"""Generated data, exact and unlimited: for the quickstart, the toys and the tests."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from jumok.config import Count, CountOrZero
from jumok.errors import Wrong, refuse
from jumok.examples import Split
from jumok.examples.choices import Choice, ChoiceData
from jumok.examples.documents import Sentence
from jumok.examples.files import LongRule, WindowSize
from jumok.examples.labelled import Labelled, LabelledData
from jumok.examples.made import annotated, numbers, toys
from jumok.examples.pairs import Pair, ParallelData
from jumok.examples.plain import DocumentData, Text, TextData
from jumok.examples.questions import Question, QuestionData
from jumok.examples.relations import Related, RelationData
from jumok.examples.spans import Spans, TaggedData


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeData(ABC):
    """Settings common to all generated data."""

    n_train: CountOrZero = 100_000
    n_dev: CountOrZero = 500
    n_test: CountOrZero = 1000
    max_len: Count = 256

    def count(self, split: Split) -> int:
        return {"train": self.n_train, "dev": self.n_dev, "test": self.n_test}[split]

    def exists(self, split: Split) -> bool:
        return self.count(split) > 0

    @property
    def is_made(self) -> bool:
        return True

    def files(self, split: Split) -> list[Any]:
        return []

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Any] | None:
        return self.for_files([]).read_unlabelled(path, wrong=wrong)  # type: ignore[no-any-return]

    def write(self, path: Path, examples: Iterable[Any], *, wrong: Wrong = refuse) -> None:
        self.for_files([]).write(path, examples, wrong=wrong)

    @abstractmethod
    def for_files(self, files: list[str]) -> Any:
        """Return data of the corresponding kind in files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SyntheticData(MadeData):
    """Generated pairs, exact and unlimited; dev and test are held out and never generated for training."""

    kind: Literal["synthetic"] = "synthetic"
    problem: numbers.Problem
    source: str = "en"
    target: str = "ko"
    length: Annotated[int, Field(ge=3)] = 12
    """maximum length of `reverse` and `copy` sequences"""

    def for_files(self, files: list[str]) -> ParallelData:
        return ParallelData(source=self.source, target=self.target, test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Pair]:
        pairs = numbers.generate(self.problem, split, n=self.count(split), seed=seed, max_len=self.length)
        for i, (source, target) in enumerate(pairs):
            yield Pair(source, target, f"{self.problem} {split} {i}")

    def name(self, split: Split) -> str:
        return f"{self.problem} ({split})"

    def identity(self, split: Split, *, seed: int) -> bytes:
        facts = [numbers.VERSION, self.problem, self.count(split), self.length]
        facts += [seed] if split == "train" else []
        return json.dumps([split, *facts]).encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyData(MadeData):
    """Generated data for tasks on one text."""

    language: str = ""

    def identity(self, split: Split, *, seed: int) -> bytes:
        facts = [type(self).__name__, toys.VERSION, self.count(split), split, *([seed] if split == "train" else [])]
        return json.dumps(facts).encode()

    def name(self, split: Split) -> str:
        return f"{type(self).__name__} ({split})"


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowedToy(ToyData):
    """Generated data whose texts may be longer than the input of a model."""

    max_len: WindowSize = 256
    """tokens that a model reads at once; for longer texts see `long_texts`"""
    long_texts: LongRule = "windows"
    """read texts of more than max_len tokens in overlapping windows, truncate them, or refuse them"""
    stride: CountOrZero = 64
    """tokens shared by neighbouring windows, at most half a window"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyReviews(WindowedToy):
    """Generated Korean opinions, positive or negative, some of them negated."""

    kind: Literal["toy_reviews"] = "toy_reviews"

    def for_files(self, files: list[str]) -> LabelledData:
        return LabelledData(language=self.language, test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Labelled]:
        return toys.reviews(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyTopics(WindowedToy):
    """Generated English opinions on one or several topics, with labels such as "food|price"."""

    kind: Literal["toy_topics"] = "toy_topics"

    def for_files(self, files: list[str]) -> LabelledData:
        return LabelledData(language=self.language, test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Labelled]:
        return annotated.topics(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToySimilarity(WindowedToy):
    """Generated pairs of English descriptions, with a similarity from 0 to 5."""

    kind: Literal["toy_similarity"] = "toy_similarity"

    def for_files(self, files: list[str]) -> LabelledData:
        return LabelledData(language=self.language, text="text_a", pair="text_b", test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Labelled]:
        return annotated.similarity(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyNames(WindowedToy):
    """Generated English sentences with persons and places."""

    kind: Literal["toy_names"] = "toy_names"

    def for_files(self, files: list[str]) -> TaggedData:
        return TaggedData(language=self.language, test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Spans]:
        return toys.names(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyJosa(WindowedToy):
    """Generated Korean sentences whose persons and places, marked by characters, have particles attached."""

    kind: Literal["toy_josa"] = "toy_josa"

    def for_files(self, files: list[str]) -> TaggedData:
        return TaggedData(language=self.language, test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Spans]:
        return annotated.josa(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyRelations(WindowedToy):
    """Generated English sentences about who employs or teaches whom, with the direction in the label."""

    kind: Literal["toy_relations"] = "toy_relations"

    def for_files(self, files: list[str]) -> RelationData:
        return RelationData(language=self.language, test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Related]:
        return annotated.relations(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyQuestions(WindowedToy):
    """Generated English questions about a few facts; a quarter of them have no answer."""

    kind: Literal["toy_questions"] = "toy_questions"

    def for_files(self, files: list[str]) -> QuestionData:
        return QuestionData(language=self.language, test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Question]:
        return annotated.questions(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyChoices(WindowedToy):
    """Generated English scenes with four endings, one of them right."""

    kind: Literal["toy_choices"] = "toy_choices"

    def for_files(self, files: list[str]) -> ChoiceData:
        return ChoiceData(language=self.language, test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Choice]:
        return annotated.choices(split, n=self.count(split), seed=seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyGrammar(ToyData):
    """Generated sentences of a small English grammar."""

    kind: Literal["toy_grammar"] = "toy_grammar"

    @property
    def split_sentences(self) -> bool:
        return False

    def for_files(self, files: list[str]) -> TextData:
        return TextData(language=self.language, test=files)

    def sentences(self, split: Split, *, seed: int) -> Iterator[Sentence]:
        """Yield each line as a document of its own."""
        return (Sentence(line.text, True, line.where) for line in self.read(split, seed=seed))

    def read(self, split: Split, *, seed: int) -> Iterator[Text]:
        for i, line in enumerate(toys.grammar(split, n=self.count(split), seed=seed)):
            yield Text(line, None, f"grammar {split} {i}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyStories(ToyData):
    """Generated documents of a few sentences about one thing each, from a small English grammar."""

    kind: Literal["toy_stories"] = "toy_stories"

    @property
    def split_sentences(self) -> bool:
        return True

    def for_files(self, files: list[str]) -> DocumentData:
        return DocumentData(language=self.language, test=files)

    def sentences(self, split: Split, *, seed: int) -> Iterator[Sentence]:
        return self.read(split, seed=seed)

    def read(self, split: Split, *, seed: int) -> Iterator[Sentence]:
        return toys.stories(split, n=self.count(split), seed=seed)
