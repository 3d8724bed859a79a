"""Engines run trained models: ids in, NumPy arrays out.

A predictor works with strings, ids and arrays and reaches its model only through an Engine. The reference is torch.py;
anything that implements these methods can replace it. Rows are lists of ids from `Tokenizer.frame`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jumok.data.packing import Packed
from jumok.decode.options import DecodeConfig, Hypothesis, Request

Array = NDArray[np.float64]
Rows = Sequence[Sequence[int]]
Part = tuple[int, int]
"""first position, end position (exclusive)"""
Done = Callable[[int], None]
"""called with the number of newly finished texts"""


def nobody(n: int) -> None:
    """A `Done` that does nothing."""


@dataclass(frozen=True, slots=True)
class Tags:
    """The best tag of each unit of a text [U], and the probabilities [U, L]."""

    best: NDArray[np.int64]
    probabilities: Array


@dataclass(frozen=True, slots=True)
class Guessed:
    """Predictions for M masked tokens and P pairs."""

    loss: Array
    """[M]: negative log-probability of the right token"""
    right: NDArray[np.bool_]
    """[M]: whether the right token is the likeliest"""
    follows_said: NDArray[np.int64]
    """[P]: 0 if B is predicted to follow A, else 1"""


class Engine(Protocol):
    """One loaded model, or several as an ensemble; stateless between calls, so threads can share it."""

    @property
    def n_models(self) -> int: ...
    @property
    def kind(self) -> str:
        """`model.kind` of the recipe."""
        ...

    @property
    def longest(self) -> int | None:
        """Maximum length of a text; None if unlimited."""
        ...

    @property
    def attends(self) -> bool:
        """Whether search can use the attention to the source."""
        ...

    def logits(self, rows: Rows, *, entities: Sequence[tuple[Part, Part]] = (), done: Done = nobody) -> list[Array]:
        """The head's output for each row from M models: [M, L] per text, or [M, S, L] per token.

        `entities` are the positions of each row's two entities, for models that use them.
        """
        ...

    def focus(self, rows: Rows) -> list[Array] | None:
        """The first model's attention over the tokens of each row [S]; None if it does not attend."""
        ...

    def tag(self, emissions: Sequence[Array]) -> list[Tags]:
        """Tags from the logits [M, U, L] of each text's units, through the CRF if there is one."""
        ...

    def states(self, rows: Rows) -> list[Array]:
        """The hidden states [S, D] of each row."""
        ...

    def masked(self, rows: Rows) -> list[Array]:
        """The probabilities [N, V] of the tokens behind each row's N masks."""
        ...

    def follows(self, rows: Rows) -> Array:
        """[n]: probability that the second text of each row follows the first."""
        ...

    @property
    def can_follow(self) -> bool: ...
    @property
    def can_fill(self) -> bool: ...
    def guess(self, packed: Packed) -> Guessed:
        """Predict the masked words and next sentences of a batch of passages."""
        ...

    def likelihood(self, rows: Rows, *, done: Done = nobody) -> Array:
        """[n, directions]: log-probability of each row's tokens, forwards and, if the model can, backwards."""
        ...

    def continuations(self, prompts: Rows, endings: Rows) -> Array:
        """[M, n, endings]: log-probability of each ending after each prompt."""
        ...

    def losses(self, sources: Rows, targets: Rows) -> tuple[float, int]:
        """Total negative log-probability of all targets, and the number of their tokens."""
        ...

    def after(self, source: Sequence[int], targets: Rows) -> list[Array]:
        """For each target of one source, log-probabilities [T + 1, V] of every next token under teacher forcing."""
        ...

    def search(
        self, sources: Rows | None, requests: Sequence[Request], config: DecodeConfig, *, done: Done = nobody
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each request, best first; without sources, texts continue from their prefixes."""
        ...

    def stream(self, request: Request, config: DecodeConfig) -> Iterator[int]:
        """Yield the tokens of one text after its prefix, each as soon as it is chosen."""
        ...

    def attention(self, source: Sequence[int], target: Sequence[int] | None = None) -> dict[str, Array]:
        """The first model's attention weights [layers, heads, rows, columns] by name, for a source and a forced target;
        empty if it does not attend."""
        ...
