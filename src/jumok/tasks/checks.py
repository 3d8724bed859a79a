"""The interface between the doctor and the data checks of a task.

`doctor/` reads the splits, counts what cannot be read and applies the rules for any text. A task's checks.py describes
its examples and adds the rules specific to them. Data comes in three forms: examples with texts (`TextChecks`),
documents (`DocumentChecks`), and data that a task examines by itself (`Checks`).
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from jumok.errors import Wrong, refuse
from jumok.examples import Split
from jumok.examples.documents import Sentence
from jumok.findings import Finding, Rule
from jumok.text.tokenizer import Tokenizer


class Checks:
    """The rules for the data of a task."""

    cached_as: ClassVar[str] = "text"
    """cache name of the text that training learns its vocabulary from"""

    def __init__(self, config: Any, data: Any) -> None:
        """`config` is a recipe's [task], `data` its [data]."""
        self.config, self.data = config, data

    def examine(self, *, seed: int) -> list[Finding]:
        """All findings, for data that is neither texts nor documents."""
        raise NotImplementedError

    def extended(self, tokenizer: Tokenizer, texts: Iterable[str]) -> Tokenizer:
        """The vocabulary with the tokens that training adds."""
        return tokenizer


class Gold(ABC):
    """The gold answers of one split: counted, and compared with each other and with train."""

    @abstractmethod
    def add(self, example: Any) -> Hashable | None:
        """Count an example's answer and return its comparable form; None if it has none."""

    def agree(self, one: Any, other: Any) -> bool:
        """Whether two answers to the same text are compatible."""
        return bool(one == other)

    def contradicts(self, answer: Any, earlier: Sequence[Any], where: str, *shown: str) -> bool:
        """Whether an answer that agrees with no earlier one of its text contradicts them; False if not known yet."""
        return True

    @abstractmethod
    def examine(self, name: str, train: Any) -> list[Finding]:
        """The findings of the split `name`; `train` has the answers of train, or is None if this is train."""


@dataclass(frozen=True, slots=True)
class View:
    """An example as the doctor sees it."""

    texts: tuple[str, ...]
    """all model inputs"""
    answer: str | None = None
    """as shown; None for plain text"""
    things: str = "texts"
    """plural name of such examples"""
    answers: str = "label"
    """name of an answer"""
    key: tuple[str, ...] = ()
    """the texts in the order of comparison, if it differs"""
    context: str | None = None
    """a text that other examples may share"""

    @property
    def shown(self) -> tuple[str, ...]:
        return self.texts if self.answer is None else (*self.texts, self.answer)


class TextChecks(Checks):
    """The rules for examples that are texts, with or without answers."""

    things: ClassVar[str] = "texts"
    """plural name of examples that cannot be read"""
    rules: ClassVar[Mapping[str, Rule]] = {}
    """replace the doctor's rules of the same name"""
    may_recur: ClassVar[bool] = False
    """short texts may recur, as headings do: they count as overlap only if many do"""

    @abstractmethod
    def view(self, example: Any) -> View: ...

    def gold(self) -> Gold | None:
        """An empty collection of answers for a split; None for plain text."""
        return None

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Any]:
        """The examples of a split; those that cannot be read are reported to `wrong`."""
        found: Iterator[Any]
        found = self.data.read(split, seed=seed, **({} if self.data.is_made else {"wrong": wrong}))
        return found

    def examine_file(self, path: Path) -> list[Finding]:
        """Findings on a file that its examples do not show."""
        return []

    @property
    def skips(self) -> bool:
        """Whether training skips examples that cannot be read."""
        return False

    @property
    def hint(self) -> str:
        """More on the format, for the message about examples that cannot be read."""
        return ""

    def examine_settings(self, splits: Mapping[str, Iterable[Any]]) -> list[Finding]:
        """Findings on task settings that contradict the data, so that training would refuse them."""
        return []


class DocumentChecks(Checks):
    """The rules for pre-training documents."""

    def examine_sample(
        self, sample: Sequence[Sentence], tokenizer: Tokenizer, *, seed: int, batch_tokens: int, documents: int
    ) -> list[Finding]:
        """Findings on a sample read as in training; `documents` is the total number of documents."""
        return []
