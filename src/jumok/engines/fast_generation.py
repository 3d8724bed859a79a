"""A GPT that continues texts greedily, and scores them, by CTranslate2."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from jumok.decode.options import DecodeConfig, Hypothesis, Request
from jumok.engines import Array, Done, Rows
from jumok.engines.fast_folder import Built
from jumok.engines.fast_work import Layout, Words, finite, prefer_avx512
from jumok.text.tokenizer import Tokenizers


class FastGenerator:
    """Texts of like length are continued together; the library reads their beginnings in one pass."""

    def __init__(self, built: Built, folder: Path, tokenizers: Tokenizers, layout: Layout) -> None:
        self._built, self._layout, self._words = built, layout, Words(tokenizers)
        self._start, self._end = tokenizers.source.start_id, tokenizers.source.end_id
        prefer_avx512()
        self._library = ctranslate2.Generator(
            str(folder),
            device="cpu",
            compute_type=built.compute,
            inter_threads=layout.workers,
            intra_threads=1,
        )

    def takes(self, request: Request, config: DecodeConfig) -> bool:
        """Whether the library would answer as the reference does."""
        return config.method == "greedy" and request.watch is None and len(request.prefix) < request.max_len

    def search(
        self, requests: Sequence[Request], mine: Sequence[int], between: Done
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The continuation of each of `mine`, in any order."""

        def begin(some: Sequence[int]) -> Any:
            return self._library.generate_batch(
                [self._words.of([self._start, *requests[i].prefix]) for i in some],
                asynchronous=True,
                max_length=requests[some[0]].max_len - len(requests[some[0]].prefix),
                include_prompt_in_result=False,
                min_length=0,
                return_scores=True,
                length_penalty=0,  # the score is the log-probability
            )

        # Texts of one batch are written on for as long as each other: some have less room. And beside an empty text,
        # the library writes the beginnings of the others again.
        alike = dict[tuple[int, bool], list[int]]()
        for i in mine:
            n = len(requests[i].prefix)
            alike.setdefault((requests[i].max_len - n, n == 0), []).append(i)
        sizes = [len(request.prefix) for request in requests]
        some = chain.from_iterable(self._layout.batches(sizes, each) for each in alike.values())
        for batch, results in self._layout.computed(some, begin, between):
            for i, result in zip(batch, results, strict=True):
                found = result.result()
                (log_prob,) = finite(found.scores)
                text = [*requests[i].prefix, *self._words.ids(found.sequences[0])]
                yield i, [Hypothesis(text, log_prob, log_prob)]

    def likelihood(self, rows: Rows, between: Done) -> Array:
        """[n, 1]: log-probability of each row's tokens."""
        found = np.zeros((len(rows), 1))

        def begin(some: Sequence[int]) -> Any:
            texts = [self._words.of([self._start, *rows[i]]) for i in some]
            return self._library.score_batch(texts, asynchronous=True, max_input_length=0)

        some = self._layout.batches([len(row) for row in rows], range(len(rows)))
        for batch, results in self._layout.computed(some, begin, between):
            for i, result in zip(batch, results, strict=True):
                found[i, 0] = sum(finite(result.result().log_probs))
        return found
