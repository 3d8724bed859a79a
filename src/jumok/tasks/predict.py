"""What all predictors have in common, whatever their task: text in, something with a line of text out."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from jumok.score.significance import Comparison
from jumok.text.tokenizer import Tokenizers

Done = Callable[[int], None]
"""is told how many texts have been finished since it was told last"""


def nobody(n: int) -> None:
    """A `Done` that nobody listens to."""


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
