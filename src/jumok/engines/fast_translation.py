"""Greedy and beam search of a Transformer by CTranslate2."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ctranslate2

from jumok.decode.options import DecodeConfig, Hypothesis, Request, length_penalty
from jumok.engines import Done, Rows
from jumok.engines.fast_folder import Built
from jumok.engines.fast_work import Layout, Words, finite, prefer_avx512
from jumok.text.tokenizer import Tokenizers

POSITIONS = 1024
"""sinusoidal positions that are stored"""
PATIENCE = 2.0
"""The library ends a beam search when this many times K hypotheses have finished (Kasai et al. 2022), jumok's own when
nothing better can come. With K of them the best is sometimes missed, with twice as many almost never."""


class FastTranslator:
    """The library's search, with jumok's length penalty and forced end."""

    def __init__(self, built: Built, folder: Path, tokenizers: Tokenizers, layout: Layout) -> None:
        self._built, self._layout, self._words = built, layout, Words(tokenizers)
        prefer_avx512()
        self._library = ctranslate2.Translator(
            str(folder),
            device="cpu",
            compute_type=built.compute,
            inter_threads=layout.workers,
            intra_threads=1,
        )

    def takes(self, source: Sequence[int], request: Request, config: DecodeConfig) -> bool:
        """Whether the library would answer as the reference does.

        A sample depends on its text's own generator, coverage on the attention of all layers, and the runners-up on
        every hypothesis that has finished.
        """
        if config.method == "sample" or config.coverage_penalty or config.n_best > 1:
            return False
        if request.prefix or request.watch is not None:
            return False
        return max(len(source), request.max_len) < (self._built.longest or POSITIONS)

    def search(
        self, sources: Rows, requests: Sequence[Request], mine: Sequence[int], config: DecodeConfig, between: Done
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The best hypothesis of each of `mine`, in any order."""
        same = dict[tuple[int, ...], list[int]]()
        for i in mine:  # a text that occurs again is answered once; placeholders that differ may look the same
            same.setdefault(_key(requests[i], sources[i], i), []).append(i)
        firsts = [places[0] for places in same.values()]

        def begin(some: Sequence[int]) -> Any:
            limit = max(requests[i].max_len for i in some) + 1  # and the end
            return self._begin([self._words.of(sources[i]) for i in some], config, limit)

        some = self._layout.batches([len(source) for source in sources], firsts, _beam(config)[0])
        for batch, results in self._layout.computed(some, begin, between):
            for i, result in zip(batch, results, strict=True):
                request, written = requests[i], result.result()
                hypotheses = self._ranked(written, request, config)
                if len(hypotheses[0].ids) > request.max_len:
                    hypotheses = self._forced_to_end(sources[i], written.hypotheses, request, config)
                for place in same[_key(request, sources[i], i)]:
                    yield place, hypotheses

    @property
    def _exact(self) -> bool:
        return self._built.compute == "float32" and not self._built.shortlist

    def _begin(self, texts: Sequence[Sequence[str]], config: DecodeConfig, limit: int) -> Any:
        """Put a batch to work; the result is one promise a text."""
        beam, alpha = _beam(config)
        return self._library.translate_batch(
            texts,
            asynchronous=True,
            beam_size=beam,
            num_hypotheses=beam,
            length_penalty=alpha,
            patience=PATIENCE if self._exact and alpha else 1,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=0,
            use_vmap=bool(self._built.shortlist),
            return_scores=True,
        )

    def _ranked(self, written: Any, request: Request, config: DecodeConfig) -> list[Hypothesis]:
        """The library divides by the length to the power of alpha, jumok as Wu et al. 2016 do."""
        _, alpha = _beam(config)
        both = zip(written.hypotheses, written.scores, strict=True)
        log_probs = [score * (len(pieces) + 1) ** alpha for pieces, score in both]
        return self._hypotheses(written.hypotheses, log_probs, request, config)

    def _forced_to_end(
        self, source: Sequence[int], written: Sequence[Sequence[str]], request: Request, config: DecodeConfig
    ) -> list[Hypothesis]:
        """The library wrote beyond the limit, at which jumok writes the end, and counts it."""
        text = self._words.of(source)
        if self._exact and config.method == "beam":  # other beams survive if those that are too long do not compete
            written = self._begin([text], config, request.max_len)[0].result().hypotheses
        cut = [*dict.fromkeys(tuple(pieces[: request.max_len]) for pieces in written)]
        scored = self._library.score_batch([text] * len(cut), cut, max_input_length=0)
        return self._hypotheses(cut, [sum(each.log_probs) for each in scored], request, config)

    def _hypotheses(
        self, written: Sequence[Sequence[str]], log_probs: Sequence[float], request: Request, config: DecodeConfig
    ) -> list[Hypothesis]:
        """The best of them, which may not be the library's."""
        _, alpha = _beam(config)
        both = zip(finite(log_probs), written, strict=True)
        scores = [log_prob / length_penalty(len(pieces) + 1, alpha) for log_prob, pieces in both]
        order = range(len(scores)) if request.faults else [max(range(len(scores)), key=scores.__getitem__)]
        found = [Hypothesis(self._words.ids(written[i]), log_probs[i], scores[i]) for i in order]
        return request.best(found, 1)


def _key(request: Request, source: Sequence[int], number: int) -> tuple[int, ...]:
    return (request.max_len, -1 if request.faults is None else number, *source)


def _beam(config: DecodeConfig) -> tuple[int, float]:
    """Its width, and the exponent of the length penalty; of no use to greedy search."""
    return (config.beam, config.length_penalty) if config.method == "beam" else (1, 0.0)
