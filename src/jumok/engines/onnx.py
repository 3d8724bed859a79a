"""BERT bodies in ONNX Runtime, without torch: the graph, written by hand, and what runs it.

Rows of exactly the same length share a batch, so there is no padding and no mask: nothing is computed that is thrown
away, and no row can see another. The graph is meant to run as it is, without the runtime's optimiser, which would join
additions and LayerNorms to an operator that is eight times slower than the two (ONNX Runtime 1.31).

In int8, weights have a scale for each output and inputs one for each token, so that a text's states do not depend on
the texts beside it: they are the same to the last bit in any batch, as in float32.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby, islice
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from jumok.engines import Done, Rows, nobody

Floats = NDArray[np.float32]
TOKENS = 512
"""in a batch: more leaves the cache, fewer does not fill the matrix units"""


class OnnxBody:
    """The hidden states of a BERT body, from a graph that `write_graph` wrote. Threads can share it."""

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        self.threads = threads
        """batches computed at the same time; may be changed at any time"""
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # it would remember every shape
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        facts = json.loads(self._session.get_modelmeta().custom_metadata_map["jumok"])
        self.int8: bool = facts["int8"]
        self.first_only: bool = facts["first_only"]
        self.longest: int = facts["longest"]
        self._width, self._end_id, self._segments = facts["d_model"], facts["end_id"], facts["n_segments"]

    def states(self, rows: Rows, *, done: Done = nobody, between: Done = nobody, tokens: int = TOKENS) -> list[Floats]:
        """The states [S, D] of each row from `Tokenizer.frame`; of a graph for the first position alone [1, D].

        `between` is called before every batch and may raise to stop, `done` with the number of rows after it.
        """
        found = [np.zeros((0, self._width), dtype=np.float32)] * len(rows)
        for some, hidden in self._run(rows, batches_of_equals([len(row) for row in rows], tokens), between):
            for place, i in enumerate(some):
                found[i] = hidden[place]
            done(len(some))
        return found

    def _run(self, rows: Rows, batches: Sequence[list[int]], between: Done) -> Iterator[tuple[list[int], Floats]]:
        if self.threads == 1 or len(batches) == 1:
            for some in batches:
                between(0)
                yield some, self._hidden([rows[i] for i in some])
            return
        waiting: list[tuple[list[int], Future[Floats]]] = []
        left = iter(batches)
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                while True:
                    for some in islice(left, 2 * self.threads - len(waiting)):
                        between(0)
                        waiting.append((some, pool.submit(self._hidden, [rows[i] for i in some])))
                    if not waiting:
                        return
                    some, hidden = waiting.pop(0)
                    yield some, hidden.result()
            finally:
                for _, hidden in waiting:
                    hidden.cancel()

    def _hidden(self, rows: Rows) -> Floats:
        """[B, S, D] of rows of one length; tokens after the end of the first text form the second segment."""
        ids = np.array(rows, dtype=np.int32)
        ends = ids == self._end_id
        segments = (ends.cumsum(axis=1, dtype=np.int32) - ends).clip(0, self._segments - 1)
        hidden: Floats = self._session.run(None, {"ids": ids, "segments": segments.astype(np.int32)})[0]
        return hidden


def batches_of_equals(sizes: Sequence[int], tokens: int) -> list[list[int]]:
    """Indices of rows of equal length, within the budget; longest first, empty rows in no batch."""
    order = sorted((i for i, size in enumerate(sizes) if size), key=lambda i: -sizes[i])
    found: list[list[int]] = []
    for size, group in groupby(order, key=lambda i: sizes[i]):
        same, at_once = list(group), max(tokens // size, 1)
        found += [same[first : first + at_once] for first in range(0, len(same), at_once)]
    return found
