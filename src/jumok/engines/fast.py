"""The fast engine: CTranslate2 or ONNX Runtime for what they compute as the reference does, the reference for the rest.

torch is imported with the reference, so only when something else is asked for.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from jumok.decode.options import DecodeConfig, Hypothesis, Request
from jumok.engines import Array, Done, Part, Rows, Tags, nobody
from jumok.engines.fast_folder import Built
from jumok.engines.fast_work import Layout
from jumok.text.tokenizer import Tokenizers

if TYPE_CHECKING:
    from jumok.engines.fast_body import FastBert
    from jumok.engines.fast_generation import FastGenerator
    from jumok.engines.fast_translation import FastTranslator
    from jumok.engines.torch import TorchEngine


class FastEngine:
    """One model; what is not defined here is the reference's."""

    n_models = 1

    def __init__(
        self,
        built: Built,
        folder: Path,
        tokenizers: Tokenizers,
        open_reference: Callable[[], "TorchEngine"],
        layout: Layout | None = None,
    ) -> None:
        self.built, self.tokenizers = built, tokenizers
        self.between: Done = nobody
        self.kind, self.longest, self.attends = built.kind, built.longest, built.attends
        layout = layout or Layout.of(built)
        self.workers = layout.workers
        self._parts = built, folder, tokenizers, layout
        self._open_reference, self._lock = open_reference, RLock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.reference, name)

    @cached_property
    def reference(self) -> "TorchEngine":
        with self._lock:
            if "reference" not in vars(self):
                engine = self._open_reference()
                engine.between = lambda n: self.between(n)
                return engine
            return vars(self)["reference"]  # type: ignore[no-any-return]

    @cached_property
    def _translator(self) -> "FastTranslator":
        from jumok.engines.fast_translation import FastTranslator

        return FastTranslator(*self._parts)

    @cached_property
    def _generator(self) -> "FastGenerator":
        from jumok.engines.fast_generation import FastGenerator

        return FastGenerator(*self._parts)

    def search(
        self, sources: Rows | None, requests: Sequence[Request], config: DecodeConfig, *, done: Done = nobody
    ) -> list[list[Hypothesis]]:
        found: list[list[Hypothesis]] = [[] for _ in requests]
        for i, hypotheses in self._searched(sources, requests, config):
            found[i] = hypotheses
            done(1)
        if left := [i for i, hypotheses in enumerate(found) if not hypotheses]:
            rest = None if sources is None else [sources[i] for i in left]
            others = self.reference.search(rest, [requests[i] for i in left], config, done=done)
            for i, hypotheses in zip(left, others, strict=True):
                found[i] = hypotheses
        return found

    def _searched(
        self, sources: Rows | None, requests: Sequence[Request], config: DecodeConfig
    ) -> Iterable[tuple[int, list[Hypothesis]]]:
        """What the library answers as the reference does."""
        if sources is None:
            mine = [i for i, request in enumerate(requests) if self._generator.takes(request, config)]
            return self._generator.search(requests, mine, self.between)
        mine = [i for i, request in enumerate(requests) if self._translator.takes(sources[i], request, config)]
        return self._translator.search(sources, requests, mine, config, self.between)

    def likelihood(self, rows: Rows, *, done: Done = nobody) -> Array:
        found = self._generator.likelihood(rows, self.between)
        done(len(rows))
        return found

    # BERT

    @cached_property
    def _bert(self) -> "FastBert":
        from jumok.engines.fast_body import FastBert

        return FastBert(*self._parts)

    @property
    def can_fill(self) -> bool:
        return self.kind == "bert" and self._bert.can_fill

    @property
    def can_follow(self) -> bool:
        return self.kind == "bert" and self._bert.can_follow

    def logits(self, rows: Rows, *, entities: Sequence[tuple[Part, Part]] = (), done: Done = nobody) -> list[Array]:
        return self._bert.logits(rows, entities, done, self.between)

    def tag(self, emissions: Sequence[Array]) -> list[Tags]:
        return self._bert.tag(emissions)

    def states(self, rows: Rows) -> list[Array]:
        return self._bert.states(rows, self.between)

    def masked(self, rows: Rows) -> list[Array]:
        return self._bert.masked(rows, self.between)

    def follows(self, rows: Rows) -> Array:
        return self._bert.follows(rows, self.between)
