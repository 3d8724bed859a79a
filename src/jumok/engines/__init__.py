"""Engines run trained models: ids in, NumPy arrays out.

A predictor works with strings, ids and arrays and reaches its model only through an Engine. The reference is torch.py;
anything that implements these methods can replace it. Rows are lists of ids from `Tokenizer.frame`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from jumok.data.packing import Packed
from jumok.decode.options import DecodeConfig, Hypothesis, Node, Request

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


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a decoder chose from at each of T steps: the k likeliest tokens [T, k], and the one it wrote [T]."""

    tokens: NDArray[np.int64]
    log_probs: Array
    written: Array
    """[T]: log-probability of the token that was written"""
    ranks: NDArray[np.int64]
    """[T]: how many tokens were likelier"""


Method = Literal["gradient", "integrated"]


@dataclass(frozen=True, slots=True)
class Asked:
    """An output whose causes are looked for."""

    wanted: int
    """label or token"""
    against: int | None = None
    """another one: why the first, and not this?"""
    position: int | None = None
    """of the token, if every token has a label"""
    raw: bool = False
    """the output itself is explained, not the logarithm of its share among all"""


@dataclass(frozen=True, slots=True)
class Attributed:
    """Shares of each token read, of the source [S] and of the words already written [T], in an output's value."""

    source: Array
    target: Array
    value: float
    baseline: float
    """the value with all embeddings zero"""

    @property
    def gap(self) -> float:
        """By which the sum of the shares misses the difference to the baseline: 0 if they account for all of it."""
        return float(self.source.sum() + self.target.sum() - (self.value - self.baseline))


@dataclass(frozen=True, slots=True)
class HeadStep:
    """One row of one head: d_k and d_v wide, S columns."""

    allowed: list[bool]
    """[S]: which columns the mask lets through"""
    q: Array
    k: Array
    v: Array
    scores: Array
    scaled: Array
    weights: Array
    context: Array


@dataclass(frozen=True, slots=True)
class AdditiveStep:
    """One row of additive attention: s_i, W s_i, U h_j, e_ij, the weights and the context."""

    s: Array
    ws: Array
    uh: Array
    h: Array
    scores: Array
    weights: Array
    context: Array


@dataclass(frozen=True, slots=True)
class CellSteps:
    """A recurrent layer over T tokens: its gates, states and candidate by their letter, [T, H] each."""

    cell: str
    before: dict[str, Array]
    """the states before the first token [H]"""
    parts: dict[str, Array]
    order: list[int]
    """position of the token read at each step"""


class Engine(Protocol):
    """One loaded model, or several as an ensemble; stateless between calls, so threads can share it."""

    between: Done
    """called between batches; may raise"""

    @property
    def n_models(self) -> int: ...
    @property
    def workers(self) -> int:
        """Batches that are computed at the same time."""
        ...

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
        """The hypotheses of each request, best first; without sources, texts continue from their prefixes, and the
        log-probability is that of what is written after them (with beam search, of the whole text)."""
        ...

    def stream(self, request: Request, config: DecodeConfig) -> Iterator[int]:
        """Yield the tokens of one text after its prefix, each as soon as it is chosen."""
        ...

    def attention(self, source: Sequence[int], target: Sequence[int] | None = None) -> dict[str, Array]:
        """The first model's attention weights [layers, heads, rows, columns] by name, for a source and a forced target;
        empty if it does not attend."""
        ...

    # looking inside: the first model

    def attention_maps(
        self, source: Sequence[int], target: Sequence[int] | None = None
    ) -> dict[str, list[NDArray[np.float32]]]:
        """The same as `attention`, layer by layer [heads, rows, columns], in the model's own precision."""
        ...

    def chosen(self, source: Sequence[int] | None, written: Sequence[int], k: int) -> Chosen:
        """What the decoder chose from when it wrote these tokens."""
        ...

    def trace(
        self, source: Sequence[int] | None, request: Request, config: DecodeConfig, *, done: Done = nobody
    ) -> tuple[list[Hypothesis], list[Node]]:
        """A beam search, and the tree of what it looked at."""
        ...

    def values(self, rows: Rows, asked: Asked, *, targets: Rows | None = None) -> Array:
        """[n]: the value of the asked output for rows of equal length, and words written before it."""
        ...

    def attribute(
        self,
        source: Sequence[int],
        asked: Asked,
        *,
        target: Sequence[int] | None = None,
        method: Method = "integrated",
        steps: int = 32,
    ) -> Attributed:
        """Gradient times input, or integrated gradients (Sundararajan et al. 2017) from embeddings of zero."""
        ...

    @property
    def parts(self) -> dict[str, list[int]]:
        """What can be looked at step by step, by name: layers and heads of an attention map, or layers and directions
        of a recurrent network."""
        ...

    def head_step(
        self, source: Sequence[int], target: Sequence[int] | None, *, name: str, layer: int, head: int, row: int
    ) -> HeadStep: ...
    def additive_step(self, source: Sequence[int], target: Sequence[int] | None, *, row: int) -> AdditiveStep: ...
    def cell_steps(
        self, source: Sequence[int], target: Sequence[int] | None, *, name: str, layer: int, way: int
    ) -> CellSteps: ...
    def positions(self, n: int) -> tuple[str, Array] | None:
        """`sinusoidal` or `learned`, and at most n position encodings [n, D]; None without."""
        ...
