"""Radford et al. 2018 and 2019, GPT: a left-to-right Transformer language model.

The decoder of Vaswani et al. 2017 without cross-attention, with LayerNorm before each sub-layer as in GPT-2.

B batch, S positions, D d_model, V vocabulary.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from jumok.config import Positive, Width
from jumok.models.bert import initialise
from jumok.nn.attention import KeysValues, causal_mask
from jumok.nn.dropout import Dropout
from jumok.nn.linear import Activation, linear
from jumok.nn.positions import LearnedPositions
from jumok.nn.sharing import Past
from jumok.nn.transformer import BodyConfig, Stack


@dataclass(frozen=True, kw_only=True, slots=True)
class GptConfig(BodyConfig):
    """The smallest GPT-2, the size of the first GPT."""

    kind: Literal["gpt"] = "gpt"
    max_len: Width = 1024
    """maximum number of positions"""
    activation: Activation = "gelu_tanh"
    norm_eps: Positive = 1e-5

    @property
    def attends(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class GptState:
    """State after the tokens read so far; rows can be selected, dropped and repeated."""

    past: list[KeysValues] | None = None
    written: Past = Past()
    read: int | Tensor = 0
    """tokens read: by all rows, or by each [N]"""

    def select(self, rows: Tensor) -> "GptState":
        if self.past is None:
            return self
        picked, written = self.written.pick(rows, len(self.past[0].k))
        past = self.past if picked is None else [kv.select(picked) for kv in self.past]
        return GptState(past, written, self.read if isinstance(self.read, int) else self.read.index_select(0, rows))


class Gpt(nn.Module):
    """Token and position embeddings, a causal stack, and the embeddings again as output layer."""

    def __init__(self, c: GptConfig, *, vocab: int) -> None:
        super().__init__()
        self.config = c
        self.start_id = vocab - 1
        self.embedding = nn.Embedding(vocab, c.d_model)
        self.positions = LearnedPositions(c.d_model, c.max_len)
        self.dropout = Dropout(c.dropout)
        self.stack = Stack(c.stack("pre"))
        self.apply(initialise)
        for name, weight in self.named_parameters():
            # Layers that write into the residual stream start smaller, by 1 / sqrt(their number) (GPT-2, section 2.3).
            if name.endswith(("w_o.weight", "w_2.weight")):
                nn.init.normal_(weight, std=0.02 * (2 * c.n_layers) ** -0.5)

    def forward(
        self,
        ids: Tensor,
        *,
        positions: Tensor | None = None,
        sees: Tensor | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """ids [B, S] beginning with the start; returns hidden states [B, S, D]. Padding is to the right, hidden by the
        causal mask. If `weights` is a list, every layer's attention [B, H, S, S] is appended.

        For several continuations of one text, `positions` [B, S] numbers each from the text on, and `sees` [B, S, S]
        keeps them apart.
        """
        s = ids.shape[1]
        x = self._embed(ids, self.positions(0, s) if positions is None else self.positions.embedding(positions))
        mask = causal_mask(s, s, device=ids.device) if sees is None else sees[:, None]
        hidden: Tensor = self.stack(x, mask, self_weights=weights)[0]
        return hidden

    def start(self, rows: int) -> GptState:
        return GptState()

    def read(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, GptState]:
        """Read texts at once: ids [B, S] beginning with the start, `lengths` [B] of them real and the others to the
        right of these; returns hidden states [B, S, D] and the state after the last real one."""
        s = ids.shape[1]
        hidden, past = self.stack(self._embed(ids, self.positions(0, s)), causal_mask(s, s, device=ids.device))
        real = torch.arange(s, device=ids.device) < lengths[:, None]
        if bool(real.all()):
            return hidden, GptState(past, Past(steps=(s,)), s)
        return hidden, GptState(past, Past(own=real, steps=(s,)), lengths)

    def step(
        self, tokens: Tensor, state: GptState, *, attention: list[Tensor] | None = None
    ) -> tuple[Tensor, GptState]:
        """Map tokens [B] to logits [B, V] of the next token."""
        read, written = state.read, state.written.grow()
        at = self.positions(read, read + 1) if isinstance(read, int) else self.positions.embedding(written.split(read))
        x = self._embed(written.split(tokens), at)
        hidden, past = self.stack(x, written.mask(device=tokens.device), past=state.past)
        return self.logits(hidden.flatten(0, 1)), GptState(past, written, read + 1)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    @property
    def projection(self) -> Tensor:
        """[V, D]: the embeddings themselves."""
        return self.embedding.weight

    def logits(self, hidden: Tensor) -> Tensor:
        return linear(hidden, self.projection)

    def _embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        x: Tensor = self.dropout(self.embedding(ids) + positions)
        return x
