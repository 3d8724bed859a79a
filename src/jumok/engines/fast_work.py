"""What the fast engine's parts share: tokens as strings, batches of like length, several of them at work."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from jumok.decode.options import damaged
from jumok.engines import Done
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.threads import asked_threads, own_cores

ROWS = {"float32": 64, "int8": 32}
"""texts written together: more no longer fit into a core's cache"""
TOKENS = 4096
"""and tokens read, for long ones"""
Work = TypeVar("Work")


@dataclass(frozen=True, slots=True)
class Layout:
    """Batches computed at the same time, and threads for each."""

    workers: int
    threads: int

    @classmethod
    def of_machine(cls) -> "Layout":
        """One thread a batch: batches share no barrier, so no core waits for another."""
        return cls(asked_threads() or len(own_cores()), 1)


class Words:
    """The library's tokens are strings."""

    def __init__(self, tokenizers: Tokenizers) -> None:
        self._source = _pieces(tokenizers.source)
        self._ids = {piece: i for i, piece in enumerate(_pieces(tokenizers.target))}

    def of(self, ids: Sequence[int]) -> list[str]:
        return [self._source[i] for i in ids]

    def ids(self, pieces: Sequence[str]) -> list[int]:
        return [self._ids[piece] for piece in pieces]


def _pieces(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.pieces(range(tokenizer.vocab_size))


def batches(sizes: Sequence[int], chosen: Iterable[int], rows: int) -> Iterator[Sequence[int]]:
    """The chosen texts by descending size, so that those computed together are alike."""
    order = sorted(chosen, key=lambda i: -sizes[i])
    first = 0
    while first < len(order):
        n = max(min(rows, TOKENS // max(sizes[order[first]], 1)), 1)
        yield order[first : first + n]
        first += n


def computed(
    some: Iterable[Sequence[int]], begin: Callable[[Sequence[int]], Work], workers: int, between: Done
) -> Iterator[tuple[Sequence[int], Work]]:
    """Batches in their order, always one more at work than there are workers."""
    waiting = deque[tuple[Sequence[int], Work]]()
    for batch in some:
        between(0)
        waiting.append((batch, begin(batch)))
        if len(waiting) > workers:
            yield waiting.popleft()
    yield from waiting


def finite(log_probs: Sequence[float]) -> Sequence[float]:
    if not all(map(isfinite, log_probs)):
        raise damaged()
    return log_probs
