"""The fast engine: CTranslate2 for what it computes as the reference does, the reference for everything else.

torch is imported with the reference, so only when something else is asked for.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import ctranslate2

from jumok.decode.options import DecodeConfig, Hypothesis, Request, damaged, length_penalty
from jumok.engines import Done, Rows, nobody
from jumok.engines.stored import Built
from jumok.text.tokenizer import Tokenizers
from jumok.threads import asked_threads, own_cores

if TYPE_CHECKING:
    from jumok.engines.torch import TorchEngine

POSITIONS = 1024
"""sinusoidal positions that are stored"""
PATIENCE = 2.0
"""The library ends a beam search when this many times K hypotheses have finished (Kasai et al. 2022), jumok's own when
nothing better can come. With K of them the best is sometimes missed, with twice as many almost never."""
ROWS = {"float32": 64, "int8": 32}
"""sentences decoded together: more no longer fit into a core's cache"""
TOKENS = 4096
"""and tokens of sources, for long ones"""
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


class FastEngine:
    """One model; what is not defined here is the reference's."""

    n_models = 1

    def __init__(
        self, built: Built, folder: Path, tokenizers: Tokenizers, open_reference: Callable[[], "TorchEngine"]
    ) -> None:
        self.built, self.tokenizers = built, tokenizers
        self.tokenizer = tokenizers.source
        self.between: Done = nobody
        self.kind, self.longest, self.attends = built.kind, built.longest, built.attends
        self._folder, self._open_reference, self._lock = folder, open_reference, Lock()
        self._layout = Layout.of_machine()

    @cached_property
    def reference(self) -> "TorchEngine":
        with self._lock:
            if "reference" not in vars(self):
                engine = self._open_reference()
                engine.between = lambda n: self.between(n)
                vars(self)["reference"] = engine
            return vars(self)["reference"]  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.reference, name)

    def search(
        self, sources: Rows | None, requests: Sequence[Request], config: DecodeConfig, *, done: Done = nobody
    ) -> list[list[Hypothesis]]:
        """Greedy and beam search of a Transformer; what the library would answer otherwise is left to the reference."""
        found: list[list[Hypothesis]] = [[] for _ in requests]
        left = list(range(len(requests)))
        if sources is not None and self.kind == "transformer" and _searches(config):
            mine = [i for i in left if self._takes(sources[i], requests[i])]
            for i, hypotheses in self._translated(sources, requests, mine, config):
                found[i] = hypotheses
                done(1)
            left = [i for i in left if not found[i]]
        if left:
            rest = None if sources is None else [sources[i] for i in left]
            asked = self.reference.search(rest, [requests[i] for i in left], config, done=done)
            for i, hypotheses in zip(left, asked, strict=True):
                found[i] = hypotheses
        return found

    def _takes(self, source: Sequence[int], request: Request) -> bool:
        fits = max(len(source), request.max_len) < (self.longest or POSITIONS)
        return fits and not request.prefix and request.watch is None

    def _translated(
        self, sources: Rows, requests: Sequence[Request], mine: Sequence[int], config: DecodeConfig
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The hypotheses of each request, in any order."""
        same = dict[tuple[int, ...], list[int]]()
        for i in mine:  # a text that occurs again is answered once
            same.setdefault((requests[i].max_len, *sources[i]), []).append(i)
        firsts = sorted((places[0] for places in same.values()), key=lambda i: -len(sources[i]))
        batches = _batches(firsts, [len(source) for source in sources], ROWS[self.built.compute])

        def begin(some: Sequence[int]) -> Any:
            limit = max(requests[i].max_len for i in some)
            return self._begin([self._words.source(sources[i]) for i in some], config, limit)

        for some, results in self._computed(batches, begin):
            for i, result in zip(some, results, strict=True):
                request, written = requests[i], result.result()
                hypotheses = self._ranked(written, config)
                if any(len(h.ids) > request.max_len for h in hypotheses):
                    hypotheses = self._forced_to_end(sources[i], request, config)
                for place in same[(request.max_len, *sources[i])]:
                    yield place, hypotheses

    def _begin(self, texts: Sequence[Sequence[str]], config: DecodeConfig, limit: int) -> Any:
        """Put a batch to work; the result is one promise a text."""
        beam, alpha = _beam(config)
        exact = self.built.compute == "float32" and not self.built.shortlist
        return self._translator.translate_batch(
            texts,
            asynchronous=True,
            beam_size=beam,
            num_hypotheses=beam,
            length_penalty=alpha,
            patience=PATIENCE if exact and alpha else 1,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=0,
            use_vmap=bool(self.built.shortlist),
            return_scores=True,
        )

    def _ranked(self, written: Any, config: DecodeConfig) -> list[Hypothesis]:
        """The library divides by the length to the power of alpha, jumok as Wu et al. 2016 do."""
        _, alpha = _beam(config)
        log_probs = [
            score * (len(pieces) + 1) ** alpha for pieces, score in zip(written.hypotheses, written.scores, strict=True)
        ]
        return self._hypotheses(written.hypotheses, log_probs, config)

    def _forced_to_end(self, source: Sequence[int], request: Request, config: DecodeConfig) -> list[Hypothesis]:
        """The library stops at its limit; jumok writes the end there, which counts."""
        text = self._words.source(source)
        written = self._begin([text], config, request.max_len)[0].result().hypotheses
        scored = self._translator.score_batch([text] * len(written), written, max_input_length=0)
        return self._hypotheses(written, [sum(each.log_probs) for each in scored], config)

    def _hypotheses(
        self, written: Sequence[Sequence[str]], log_probs: Sequence[float], config: DecodeConfig
    ) -> list[Hypothesis]:
        """The best first."""
        if not all(map(isfinite, log_probs)):
            raise damaged()
        _, alpha = _beam(config)
        found = [
            Hypothesis(self._words.ids(pieces), log_prob, log_prob / length_penalty(len(pieces) + 1, alpha))
            for pieces, log_prob in zip(written, log_probs, strict=True)
        ]
        return sorted(found, key=lambda h: -h.score)[: config.n_best]

    def _computed(
        self, batches: Iterable[Sequence[int]], begin: Callable[[Sequence[int]], Work]
    ) -> Iterator[tuple[Sequence[int], Work]]:
        """Batches in their order, always one more at work than there are workers."""
        waiting = deque[tuple[Sequence[int], Work]]()
        for some in batches:
            self.between(0)
            waiting.append((some, begin(some)))
            if len(waiting) > self._layout.workers:
                yield waiting.popleft()
        yield from waiting

    @cached_property
    def _words(self) -> "Words":
        return Words(self.tokenizers)

    @cached_property
    def _translator(self) -> Any:
        layout = self._layout
        return ctranslate2.Translator(
            str(self._folder),
            device="cpu",
            compute_type=self.built.compute,
            inter_threads=layout.workers,
            intra_threads=layout.threads,
        )


class Words:
    """The library's tokens are strings."""

    def __init__(self, tokenizers: Tokenizers) -> None:
        self._source = tokenizers.source.pieces(range(tokenizers.source.vocab_size))
        target = tokenizers.target.pieces(range(tokenizers.target.vocab_size))
        self._ids = {piece: i for i, piece in enumerate(target)}

    def source(self, ids: Sequence[int]) -> list[str]:
        return [self._source[i] for i in ids]

    def ids(self, pieces: Sequence[str]) -> list[int]:
        return [self._ids[piece] for piece in pieces]


def _searches(config: DecodeConfig) -> bool:
    """Samples depend on one generator for each text, and coverage on the attention of all layers."""
    return config.method != "sample" and not config.coverage_penalty


def _beam(config: DecodeConfig) -> tuple[int, float]:
    """Its width, and the exponent of the length penalty; of no use to greedy search."""
    return (config.beam, config.length_penalty) if config.method == "beam" else (1, 0.0)


def _batches(order: Sequence[int], sizes: Sequence[int], rows: int) -> Iterator[Sequence[int]]:
    """Consecutive texts of descending length."""
    first = 0
    while first < len(order):
        n = max(min(rows, TOKENS // max(sizes[order[first]], 1)), 1)
        yield order[first : first + n]
        first += n
