"""A BERT in ONNX Runtime, its heads in NumPy: labels, tags, states, masked words."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from jumok.engines import Array, Done, Part, Rows, Tags, heads
from jumok.engines.fast_folder import BODY, HEADS, Built
from jumok.engines.fast_work import Layout, finite
from jumok.engines.onnx import OnnxBody
from jumok.text.tokenizer import Tokenizers


class FastBert:
    """The body's states, and what a head makes of them; as TorchEngine, for one model."""

    def __init__(self, built: Built, folder: Path, tokenizers: Tokenizers, layout: Layout) -> None:
        self._built, self._tokenizer = built, tokenizers.source
        self._tensors = load_file(folder / HEADS)
        self._body = OnnxBody(folder / BODY, threads=layout.workers)

    @property
    def can_fill(self) -> bool:
        return self._built.asks == "masked"

    @property
    def can_follow(self) -> bool:
        return "next_sentence.weight" in self._tensors

    def logits(self, rows: Rows, entities: Sequence[tuple[Part, Part]], done: Done, between: Done) -> list[Array]:
        found: list[Array] = []
        for i, states in enumerate(self._body.states(rows, done=done, between=between)):
            match self._built.asks:
                case "text":
                    logits = heads.of_text(self._tensors, states, pooling=self._built.pooling)
                case "entities":
                    logits = heads.of_entities(self._tensors, states, *entities[i])[None]
                case _:
                    logits = heads.of_pieces(self._tensors, states)[None]
            finite([float(logits.sum())])
            found.append(logits.astype(np.float64))
        return found

    def tag(self, emissions: Sequence[Array]) -> list[Tags]:
        return [Tags(*each) for each in heads.tags_of(self._tensors, [e[0] for e in emissions])]

    def states(self, rows: Rows, between: Done) -> list[Array]:
        return [states.astype(np.float64) for states in self._body.states(rows, between=between)]

    def masked(self, rows: Rows, between: Done) -> list[Array]:
        found: list[Array] = []
        for row, states in zip(rows, self._body.states(rows, between=between), strict=True):
            here = states[np.asarray(row) == self._tokenizer.mask_id]
            logits = heads.of_masked(
                self._tensors, here, activation=self._built.activation, norm_eps=self._built.norm_eps
            )
            found.append(heads.softmax(logits))
        return found

    def follows(self, rows: Rows, between: Done) -> Array:
        firsts = np.stack([states[0] for states in self._body.states(rows, between=between)])
        return heads.softmax(heads.of_next_sentence(self._tensors, firsts, pooling=self._built.pooling))[:, 0]
