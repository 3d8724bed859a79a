"""What all predictors have in common, whatever their task: text in, something with a line of text out."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from jumok.config import read_config
from jumok.decode.search import DecodeConfig
from jumok.errors import CheckpointError, InputError
from jumok.score.significance import Comparison
from jumok.text.tokenizer import Tokenizers

Done = Callable[[int], None]
"""is told how many texts have been finished since it was told last"""


def nobody(n: int) -> None:
    """A `Done` that nobody listens to."""


class Line(str):
    """A text that knows where it was read, so that what is wrong with it can be found."""

    where: str
    words: list[str] | None = None
    """if they are known, with a space between any two"""

    @classmethod
    def at(cls, text: str, where: str, words: list[str] | None = None) -> "Line":
        line = cls(text)
        line.where, line.words = where, words
        return line


def place(text: str) -> str | None:
    """Where a text was read, if it knows."""
    return text.where if isinstance(text, Line) else None


def refuse_one_text(texts: Sequence[str]) -> None:
    """A text is a sequence of texts, too: of its characters."""
    if isinstance(texts, str):
        raise InputError("one text, where a list of texts is wanted", right=f"[{texts[:30]!r}]")


def line_places(texts: Sequence[str]) -> list[str]:
    """Where each text was read, or which one it is of those that were given."""
    refuse_one_text(texts)
    return [place(text) or f"line {number}" for number, text in enumerate(texts, start=1)]


class LongTextWarning(UserWarning):
    """A text is longer than the model reads at once, or than any that it has seen."""


Notes = dict[str, list[int]]
"""what became of texts that were too long, of how many, and among how many"""
_later: ContextVar[Notes | None] = ContextVar("later", default=None)


@contextmanager
def noted_later(notes: Notes) -> Iterator[None]:
    """What would be noted of long texts is added to `notes`, so that many calls of a predictor say it once."""
    token = _later.set(notes)
    try:
        yield
    finally:
        _later.reset(token)


def note_long(long: int, n: int, became: str) -> None:
    """Warn of `long` texts among n, unless there are none."""
    if (later := _later.get()) is not None:
        before = later.get(became, [0, 0])
        later[became] = [before[0] + long, before[1] + n]
    elif long:
        note(f"{long:,} of {n:,} {became}", LongTextWarning)


def note(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn. Without a registry: Python's own shows a wording once a process, and so hides what is cut later."""
    warnings.warn_explicit(text, kind, __file__, 0)


def plain_output(output: Any) -> dict[str, Any]:
    """All of an output; that its text was cut is said if it was."""
    return {key: value for key, value in asdict(output).items() if (key, value) != ("truncated", False)}


def warn_if_longer(texts: Sequence[Sequence[int]], longest: int | None) -> int | None:
    """Warn once of texts (ids) that are longer than the longest of training; gives what to compare with next time."""
    pieces = max(map(len, texts), default=0)
    if longest is None or pieces <= longest:
        return longest
    said = f"a text of {pieces} pieces is longer than all that the model was trained on (at most {longest}):"
    note(f"{said} its output may be poor", LongTextWarning)
    return None


def stored_decoding(facts: Mapping[str, Any], *, where: Path) -> DecodeConfig:
    """The [decode] of the recipe that a model was trained by, from the facts in its folder."""
    tree, what = facts["decode"], "the model's config"
    return read_config(DecodeConfig, tree, what=what, where=where, path="jumok.decode", error=CheckpointError)


def wanted_decoding(decode: DecodeConfig, options: Mapping[str, Any], *, attends: bool) -> DecodeConfig:
    """A recipe's [decode] with some of its fields replaced by `options`, as far as the model can do it."""
    if options:
        decode = read_config(DecodeConfig, {**asdict(decode), **options}, what="[decode]", path="decode")
    if decode.coverage_penalty and not attends:
        raise InputError("decode.coverage_penalty counts attention, and the model has none", right="a penalty of 0")
    return decode


def refuse_options(options: Mapping[str, Any], who: str) -> None:
    """Of a predictor that has nothing to set."""
    for name in options:
        raise InputError(f"{who} has no option {name}", right="no --set for this run")


class Output(Protocol):
    @property
    def text(self) -> str:
        """What a line of output says."""
        ...


class Predictor(Protocol):
    """One loaded model, or several as an ensemble."""

    tokenizers: Tokenizers

    def __call__(self, texts: Sequence[str], *, done: Done = nobody) -> list[str]: ...

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> Sequence[Output]:
        """Outputs in the order of the texts; `options` are those of the task, such as the fields of [decode]."""
        ...

    def plain(self, text: str, output: Any) -> dict[str, Any]:
        """Everything about one output, for JSON."""
        ...

    def score(
        self, examples: Sequence[Any], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Scores with intervals and signatures of the outputs for the examples, and the outputs."""
        ...

    def compare(self, other: Any, examples: Sequence[Any], *, done: Done = nobody, **options: Any) -> list[Comparison]:
        """Is `other`, a predictor of the same kind, better on these examples?"""
        ...
