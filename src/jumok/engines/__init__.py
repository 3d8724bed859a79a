"""What runs a trained model: ids in, NumPy arrays out.

A predictor knows strings, ids and arrays, and of its model nothing but an Engine. The reference is torch.py; whatever
else implements these methods can take its place. Rows are lists of ids as `Tokenizer.frame` made them.
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
"""first position, position after the last"""
Done = Callable[[int], None]
"""is told how many more texts are finished"""


def nobody(n: int) -> None:
    """A `Done` that nobody listens to."""


@dataclass(frozen=True, slots=True)
class Tags:
    """The best tag of each unit of a text [U], and the probabilities [U, L]."""

    best: NDArray[np.int64]
    probabilities: Array


@dataclass(frozen=True, slots=True)
class Guessed:
    """What a model says of M masked pieces and P pairs."""

    loss: Array
    """[M]: minus the log-probability of the right piece"""
    right: NDArray[np.bool_]
    """[M]: whether the right piece is the likeliest"""
    follows_said: NDArray[np.int64]
    """[P]: 0 if it says that B follows A, else 1"""


class Engine(Protocol):
    """One loaded model, or several as an ensemble. Holds no state between calls: many threads may share it."""

    @property
    def n_models(self) -> int: ...
    @property
    def kind(self) -> str:
        """`model.kind` of the recipe."""
        ...

    @property
    def longest(self) -> int | None:
        """Positions that a text can have; None if there is no end."""
        ...

    @property
    def attends(self) -> bool:
        """Whether a search sees where in the source each word looks."""
        ...

    def logits(self, rows: Rows, *, entities: Sequence[tuple[Part, Part]] = (), done: Done = nobody) -> list[Array]:
        """Of each row what the head says: [M, L] of the text, or [M, S, L] of every piece, of M models.

        `entities` are the two places that each row is asked about, of models that look at them.
        """
        ...

    def focus(self, rows: Rows) -> list[Array] | None:
        """Of each row how much each piece counted [S], by the first model; None if it does not attend."""
        ...

    def tag(self, emissions: Sequence[Array]) -> list[Tags]:
        """Tags from the logits [M, U, L] of each text's units, through the CRF if there is one."""
        ...

    def states(self, rows: Rows) -> list[Array]:
        """The hidden states [S, D] of each row."""
        ...

    def masked(self, rows: Rows) -> list[Array]:
        """Of each row the probabilities [N, V] of the pieces behind its N masks."""
        ...

    def follows(self, rows: Rows) -> Array:
        """[n]: how likely the second text of each row goes on from the first."""
        ...

    @property
    def can_follow(self) -> bool: ...
    @property
    def can_fill(self) -> bool: ...
    def guess(self, packed: Packed) -> Guessed:
        """The masked words and next sentences of a batch of passages."""
        ...

    def likelihood(self, rows: Rows, *, done: Done = nobody) -> Array:
        """[n, directions]: the log-probability of each row's pieces, forwards and, if the model can, backwards."""
        ...

    def continuations(self, prompts: Rows, endings: Rows) -> Array:
        """[M, n, endings]: the log-probability of each ending after each prompt."""
        ...

    def losses(self, sources: Rows, targets: Rows) -> tuple[float, int]:
        """Minus the log-probability of all targets together, and the number of their pieces."""
        ...

    def search(
        self, sources: Rows | None, requests: Sequence[Request], config: DecodeConfig, *, done: Done = nobody
    ) -> list[list[Hypothesis]]:
        """For each request its hypotheses, best first; without sources a text goes on from its prefix."""
        ...

    def stream(self, request: Request, config: DecodeConfig) -> Iterator[int]:
        """The pieces of one text after its prefix, each as soon as it is chosen."""
        ...

    def attention(self, source: Sequence[int], target: Sequence[int] | None = None) -> dict[str, Array]:
        """By name the weights [layers, heads, rows, columns] of the first model, while it reads a row and is made to
        write a target. Nothing if it does not attend."""
        ...
