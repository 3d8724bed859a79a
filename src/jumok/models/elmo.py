"""Peters et al. 2018, ELMo: a forward and a backward language model whose layers are features of a word.

Section 3.1. Forward and backward LSTMs predict the same words; they share the embeddings x and the softmax, and nothing
in between:

    sum_k log p(w_k | w_1 .. w_{k-1})  +  log p(w_k | w_{k+1} .. w_N)

Section 3.2. A task uses a mixture (features.py) of L + 1 layers, h_{k,0} = [x_k ; x_k], h_{k,j} = [forward ; backward].

The paper builds x from characters so that no word is unknown; sub-word tokens cover all words anyway.

The words are between two start tokens. When w_k is predicted, neither direction has read it; in its features both have:

    position         0        1     ...   k     ...   N       N + 1
                     <pad>    w_1   ...   w_k   ...   </s>    <pad>
    predicting w_k   forward has read 0 .. k - 1, backward N + 1 .. k + 1
    features of w_k  forward has read 0 .. k,     backward N + 1 .. k

B batch, S positions, H d_hidden, V vocabulary, L n_layers. Masks are bool, True = a real position.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.config import Depth, Share, Width
from jumok.nn.dropout import Dropout
from jumok.nn.linear import linear
from jumok.nn.recurrent import Packing, RecurrentLayer, State


@dataclass(frozen=True, kw_only=True, slots=True)
class ElmoConfig:
    """Two LSTM language models, one per direction, as wide as the paper's after projection."""

    kind: Literal["elmo"] = "elmo"
    d_embedding: Width = 512
    d_hidden: Width = 512
    """state width of each direction"""
    n_layers: Depth = 2
    """layers per direction"""
    dropout: Share = 0.1
    """on each layer's input, and before the output projection"""

    def __post_init__(self) -> None:
        if self.d_embedding != self.d_hidden:
            raise ValueError("d_embedding must equal d_hidden: embeddings mix with states and are tied to the softmax")

    @property
    def d_model(self) -> int:
        """The width, named as the Transformer's learning-rate schedule expects."""
        return self.d_hidden

    @property
    def attends(self) -> bool:
        return False

    @property
    def longest(self) -> None:
        return None


class Direction(nn.Module):
    """LSTM layers in one direction, with a residual connection from the second layer on (section 3.4)."""

    def __init__(self, c: ElmoConfig, *, backward: bool) -> None:
        super().__init__()
        self.backward = backward
        self.layers = nn.ModuleList(RecurrentLayer("lstm", c.d_hidden, c.d_hidden) for _ in range(c.n_layers))
        self.dropout = Dropout(c.dropout)

    def zeros(self, rows: int) -> list[State]:
        return [layer.zeros(rows) for layer in self._layers()]

    def forward(self, x: Tensor, sizes: list[int]) -> list[Tensor]:
        """x [N, H], packed; returns each layer's output for all words, [N, H]."""
        outputs = []
        for i, layer in enumerate(self._layers()):
            h, _ = layer.unroll(self.dropout(x), sizes, layer.zeros(sizes[0]), backward=self.backward)
            x = x + h if i else h
            outputs.append(x)
        return outputs

    def step(self, x: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
        """Read one more word, x [B, H]."""
        after = []
        for i, layer in enumerate(self._layers()):
            after.append(layer.step(x, states[i]))
            x = x + after[-1][0] if i else after[-1][0]
        return x, after

    def _layers(self) -> list[RecurrentLayer]:
        return list(self.layers)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ElmoState:
    """State of the forward language model; rows can be selected, dropped and repeated."""

    layers: list[State]

    def select(self, rows: Tensor) -> "ElmoState":
        return ElmoState([tuple(part.index_select(0, rows) for part in state) for state in self.layers])


class Elmo(nn.Module):
    """Embeddings, the layers of both directions, and the embeddings again as the output layer of both.

    The last id of the vocabulary is `<pad>`, also the start token; its embedding stays zero, and it is never predicted.
    """

    def __init__(self, c: ElmoConfig, *, vocab: int) -> None:
        super().__init__()
        self.config = c
        self.start_id = vocab - 1
        self.embedding = nn.Embedding(vocab, c.d_embedding, padding_idx=vocab - 1)
        nn.init.normal_(self.embedding.weight, std=0.1)
        with torch.no_grad():
            self.embedding.weight[-1].zero_()
        self.forwards = Direction(c, backward=False)
        self.backwards = Direction(c, backward=True)
        self.dropout = Dropout(c.dropout)

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """ids [B, S] with their ends; returns each direction's states [B, S, H], from which these ids are predicted."""
        x, packing = self._between_starts(ids, mask), Packing.of(mask.sum(dim=1), ids.shape[1])
        before = self.forwards(packing.pack(x[:, :-2]), packing.sizes)[-1]
        after = self.backwards(packing.pack(x[:, 2:]), packing.sizes)[-1]
        return packing.unpack(self.dropout(before), ids.shape), packing.unpack(self.dropout(after), ids.shape)

    def layers(self, ids: Tensor, mask: Tensor) -> list[Tensor]:
        """h_0 .. h_L of every position, [B, S, 2 H] each, zero at padding."""
        x, packing = self._between_starts(ids, mask), Packing.of(mask.sum(dim=1) + 1, ids.shape[1] + 1)
        forwards = self.forwards(packing.pack(x[:, :-1]), packing.sizes)
        backwards = self.backwards(packing.pack(x[:, 1:]), packing.sizes)
        h, shape = [torch.cat([x[:, 1:-1], x[:, 1:-1]], dim=-1)], x[:, 1:].shape
        for before, after in zip(forwards, backwards, strict=True):
            ways = packing.unpack(before, shape)[:, 1:], packing.unpack(after, shape)[:, :-1]
            h.append(torch.cat(ways, dim=-1) * mask[..., None])  # the start after the end has a state too
        return h

    def start(self, rows: int) -> ElmoState:
        return ElmoState(self.forwards.zeros(rows))

    def step(
        self, tokens: Tensor, state: ElmoState, *, attention: list[Tensor] | None = None
    ) -> tuple[Tensor, ElmoState]:
        """Map tokens [B] to logits [B, V - 1] of the next token, with the forward language model."""
        hidden, layers = self.forwards.step(self.embedding(tokens), state.layers)
        return self.logits(hidden), ElmoState(layers)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    @property
    def projection(self) -> Tensor:
        """[V - 1, H]: the output matrix of both directions, the embeddings without `<pad>`."""
        return self.embedding.weight[:-1]

    def logits(self, hidden: Tensor) -> Tensor:
        return linear(hidden, self.projection)

    def _between_starts(self, ids: Tensor, mask: Tensor) -> Tensor:
        """[B, S + 2, H]: the embeddings, with one start before the words and only starts after them."""
        x: Tensor = self.embedding(F.pad(ids.masked_fill(~mask, self.start_id), (1, 1), value=self.start_id))
        return x
