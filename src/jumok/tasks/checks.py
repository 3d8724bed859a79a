"""What the doctor asks a task about its data.

`doctor/` reads the splits, counts what cannot be read and applies the rules of any text. The checks.py of a task names
its examples and adds the rules that hold for them alone. Data comes in three forms: examples with texts (`TextChecks`),
documents (`DocumentChecks`), and data that a task examines by itself (`Checks`).
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from jumok.examples import Split
from jumok.examples.documents import Sentence
from jumok.examples.faults import Wrong, refuse
from jumok.findings import Finding, Rule
from jumok.text.tokenizer import Tokenizer


class Checks:
    """The rules for the data of a task."""

    cached_as: ClassVar[str] = "text"
    """what training calls the text that its vocabulary is learned from"""

    def __init__(self, config: Any, data: Any) -> None:
        """`config` is the [task] of a recipe, `data` its [data]."""
        self.config, self.data = config, data

    def examine(self, *, seed: int) -> list[Finding]:
        """All findings, for data that is neither texts nor documents."""
        raise NotImplementedError

    def extended(self, tokenizer: Tokenizer, texts: Iterable[str]) -> Tokenizer:
        """The vocabulary as training extends it."""
        return tokenizer


class Gold(ABC):
    """The gold answers of one split: counted, compared with each other, and judged beside those of train."""

    @abstractmethod
    def add(self, example: Any) -> Hashable | None:
        """Count the answer of an example, and give back what is compared; None if it cannot be."""

    def agree(self, one: Any, other: Any) -> bool:
        """Whether two answers to the same text are compatible."""
        return bool(one == other)

    def contradicts(self, answer: Any, earlier: Sequence[Any], where: str, *shown: str) -> bool:
        """Whether an answer that agrees with no earlier one of its text contradicts them; False if only all tell."""
        return True

    @abstractmethod
    def examine(self, name: str, train: Any) -> list[Finding]:
        """The findings of a split called `name`; `train` has the answers of train, unless this is train."""


@dataclass(frozen=True, slots=True)
class View:
    """What the doctor sees of an example."""

    texts: tuple[str, ...]
    """all that a model reads"""
    answer: str | None = None
    """as it is shown; None for plain text"""
    things: str = "texts"
    """what such examples are called"""
    answers: str = "label"
    """what an answer is called"""
    key: tuple[str, ...] = ()
    """the texts in the order in which they are compared, if it is another one"""
    context: str | None = None
    """a text that other examples may share"""

    @property
    def shown(self) -> tuple[str, ...]:
        return self.texts if self.answer is None else (*self.texts, self.answer)


class TextChecks(Checks):
    """The rules for examples that are texts, with an answer to each or without."""

    things: ClassVar[str] = "texts"
    """what examples are called that cannot be read"""
    rules: ClassVar[Mapping[str, Rule]] = {}
    """these replace the doctor's rules of the same name"""
    may_recur: ClassVar[bool] = False
    """short texts may well recur, as headings do: they count as overlap only if many do"""

    @abstractmethod
    def view(self, example: Any) -> View: ...

    def gold(self) -> Gold | None:
        """A new, empty collection of answers for a split; None for plain text."""
        return None

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Any]:
        """The examples of a split; `wrong` is told of those that cannot be read."""
        found: Iterator[Any]
        found = self.data.read(split, seed=seed, **({} if self.data.is_made else {"wrong": wrong}))
        return found

    def examine_file(self, path: Path) -> list[Finding]:
        """Faults of a file that its examples do not show."""
        return []

    @property
    def skips(self) -> bool:
        """Whether training leaves out what cannot be read, and goes on."""
        return False

    @property
    def hint(self) -> str:
        """More about how examples are written, for those that cannot be read."""
        return ""

    def examine_settings(self, splits: Mapping[str, Iterable[Any]]) -> list[Finding]:
        """Settings of the task that its data contradicts, so that training would refuse them."""
        return []


class DocumentChecks(Checks):
    """The rules for documents to pre-train on."""

    def examine_sample(
        self, sample: Sequence[Sentence], tokenizer: Tokenizer, *, seed: int, batch_tokens: int, documents: int
    ) -> list[Finding]:
        """What training makes of a sample of its text, which has so many `documents` in all."""
        return []
