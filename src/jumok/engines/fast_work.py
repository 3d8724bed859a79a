"""What the fast engine's parts share: tokens as strings, batches of like length, several of them at work."""

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite
from pathlib import Path
from platform import machine, processor
from typing import TypeVar

from jumok.decode.options import damaged
from jumok.engines import Done
from jumok.engines.fast_folder import Built
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.threads import asked_threads, own_cores

WIDTH = {"float32": 128, "int8": 64}
"""hypotheses in a batch, unless this machine was measured: more no longer fit into a core's cache"""
TOKENS = 4096
"""tokens in a batch of long texts"""
Work = TypeVar("Work")


@dataclass(frozen=True, slots=True)
class Layout:
    """How work is laid out: batches computed at the same time, each by one thread, and hypotheses in a batch.

    Threads of one batch would wait for each other after every operation; batches share nothing.
    """

    workers: int
    width: int

    @classmethod
    def of(cls, built: Built) -> "Layout":
        measured = built.width if built.machine == this_machine() else None
        return cls(asked_threads() or len(own_cores()), measured or WIDTH[built.compute])

    def batches(self, sizes: Sequence[int], chosen: Collection[int], beam: int = 1) -> Iterator[Sequence[int]]:
        """The chosen texts by descending size, so that those of a batch are alike; few are shared among the workers."""
        order = sorted(chosen, key=lambda i: -sizes[i])
        rows = min(max(self.width // beam, 1), -(-len(order) // self.workers))
        first = 0
        while first < len(order):
            n = max(min(rows, TOKENS // max(sizes[order[first]], 1)), 1)
            yield order[first : first + n]
            first += n

    def computed(
        self, batches: Iterable[Sequence[int]], begin: Callable[[Sequence[int]], Work], between: Done
    ) -> Iterator[tuple[Sequence[int], Work]]:
        """Batches in their order, always one more at work than there are workers."""
        waiting = deque[tuple[Sequence[int], Work]]()
        for batch in batches:
            between(0)
            waiting.append((batch, begin(batch)))
            if len(waiting) > self.workers:
                yield waiting.popleft()
        yield from waiting


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


@cache
def this_machine() -> str:
    """What a measured layout depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), processor())
    return f"{name}, {asked_threads() or len(own_cores())} cores"


def finite(log_probs: Sequence[float]) -> Sequence[float]:
    if not all(map(isfinite, log_probs)):
        raise damaged()
    return log_probs


def saturates() -> bool:
    """Whether products of bytes are added up in 16 bits, which overflow: x86 processors without VNNI."""
    if machine().lower() not in ("x86_64", "amd64", "i686", "x86"):
        return False
    return not {"avx512_vnni", "avx_vnni"} & _abilities()


def prefer_avx512() -> None:
    """Let CTranslate2 use its AVX-512 kernels, which it leaves aside unless it is told.

    Older processors slow down when they use these instructions; those with VNNI do not. The library reads the setting
    once, when the first model is opened; what the user has set is kept.
    """
    if {"avx512f", "avx512cd", "avx512vl", "avx512bw", "avx512dq", "avx512_vnni"} <= _abilities():
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")


def _abilities() -> frozenset[str]:
    """The processor's flags; none where the system does not tell them."""
    try:
        lines = Path("/proc/cpuinfo").read_text("ascii", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))
