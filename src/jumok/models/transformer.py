"""Vaswani et al. 2017, "Attention Is All You Need": the encoder-decoder of Figure 1.

B batch, S source positions, T target positions, D d_model, V vocabulary. Masks are bool, True = may be attended to.
"""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

import torch
from torch import Tensor, nn

from jumok.config import Depth, Share, Width
from jumok.nn.attention import KeysValues, causal_mask, neighbourhood_mask
from jumok.nn.dropout import Dropout
from jumok.nn.linear import Activation, Linear, linear
from jumok.nn.positions import LearnedPositions, SinusoidalPositions
from jumok.nn.sharing import Past
from jumok.nn.transformer import NormOrder, Stack, StackConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class TransformerConfig:
    """The paper's base model; `big` and the rows of Table 3 change some of these."""

    kind: Literal["transformer"] = "transformer"
    d_model: Width = 512
    d_ff: Width = 2048
    n_heads: Depth = 8
    n_layers: Depth = 6
    """layers of the encoder and of the decoder, each"""
    d_k: Width | None = None
    """width of a head's queries and keys; default d_model / n_heads"""
    d_v: Width | None = None
    """width of a head's values; default d_model / n_heads"""
    dropout: Share = 0.1
    """on each sub-layer's output, and on the sum of embedding and position"""
    activation: Activation = "relu"
    """in the feed-forward networks; the paper has relu"""
    norm: NormOrder = "post"
    """LayerNorm after the residual sum (the paper) or before the sub-layer"""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    max_len: Width = 512
    """maximum number of learned positions; sinusoidal ones are unlimited"""
    neighbourhood: Width | None = None
    """self-attention restricted to this many positions on either side"""
    tie_embeddings: Literal["all", "target", "none"] = "all"
    """share one matrix among source, target and output; between target and output; or not at all"""

    def __post_init__(self) -> None:
        if self.d_model % self.n_heads and (self.d_k is None or self.d_v is None):
            raise ValueError("d_model must be divisible by n_heads unless d_k and d_v are given")

    @property
    def attends(self) -> bool:
        return True

    @property
    def longest(self) -> int | None:
        """Maximum sequence length; None: unlimited."""
        return self.max_len if self.positions == "learned" else None

    def stack(self, *, cross: bool) -> StackConfig:
        return StackConfig(
            n_layers=self.n_layers,
            d_model=self.d_model,
            d_ff=self.d_ff,
            n_heads=self.n_heads,
            d_k=self.d_k or self.d_model // self.n_heads,
            d_v=self.d_v or self.d_model // self.n_heads,
            dropout=self.dropout,
            norm=self.norm,
            cross=cross,
            activation=self.activation,
        )


@dataclass(frozen=True, slots=True)
class TransformerState:
    """The decoder's state between two steps; rows can be selected, dropped and repeated."""

    memories: list[KeysValues]
    memory_mask: Tensor
    past: list[KeysValues] | None = None
    written: Past = Past()

    def select(self, rows: Tensor) -> "TransformerState":
        picked, written = self.written.pick(rows, len(self.memory_mask))
        if picked is None:
            return replace(self, written=written)
        return TransformerState(
            [kv.select(picked) for kv in self.memories],
            self.memory_mask.index_select(0, picked),
            None if self.past is None else [kv.select(picked) for kv in self.past],
            written,
        )


@dataclass(slots=True)
class AttentionMaps:
    """Every layer's attention weights, [B, H, T, S] each."""

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


class Transformer(nn.Module):
    """Encoder and decoder over token ids.

    The last id of a vocabulary is `<pad>`: its embedding stays zero, decoding starts from it, and it is never
    predicted, so there are V - 1 logits.
    """

    def __init__(self, c: TransformerConfig, *, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        if c.tie_embeddings == "all" and source_vocab != target_vocab:
            raise ValueError('tie_embeddings = "all" needs one vocabulary for source and target')
        self.config = c
        self.start_id = target_vocab - 1
        self.target_embedding = nn.Embedding(target_vocab, c.d_model, padding_idx=target_vocab - 1)
        self.source_embedding = self.target_embedding
        if c.tie_embeddings != "all":
            self.source_embedding = nn.Embedding(source_vocab, c.d_model, padding_idx=source_vocab - 1)
        self.output = None
        if c.tie_embeddings == "none":
            self.output = Linear(c.d_model, target_vocab - 1, bias=False)
        self.source_positions = self._positions()
        self.target_positions = self._positions()
        self.dropout = Dropout(c.dropout)
        self.encoder = Stack(c.stack(cross=False))
        self.decoder = Stack(c.stack(cross=True))
        self.apply(self._initialise)

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """Teacher forcing: source [B, S], target [B, T] starting with `<pad>`; returns hidden states [B, T, D]."""
        memory = self.encode(source, source_mask)
        return self.decode(memory, source_mask, target)

    def encode(self, source: Tensor, source_mask: Tensor, *, maps: AttentionMaps | None = None) -> Tensor:
        x = self._embed(self.source_embedding, self.source_positions, source)
        mask = self._restrict(source_mask[:, None, None, :], source.shape[1])
        memory: Tensor = self.encoder(x, mask, self_weights=maps.encoder if maps else None)[0]
        return memory

    def decode(
        self, memory: Tensor, source_mask: Tensor, target: Tensor, *, maps: AttentionMaps | None = None
    ) -> Tensor:
        t = target.shape[1]
        x = self._embed(self.target_embedding, self.target_positions, target)
        # Padding is to the right of all real tokens, so the causal mask hides it from them too.
        hidden: Tensor = self.decoder(
            x,
            self._restrict(causal_mask(t, t, device=target.device)[None, None], t),
            memories=self.decoder.memories(memory),
            memory_mask=source_mask[:, None, None, :],
            self_weights=maps.decoder if maps else None,
            cross_weights=maps.cross if maps else None,
        )[0]
        return hidden

    def start(self, source: Tensor, source_mask: Tensor) -> TransformerState:
        memory = self.encode(source, source_mask)
        return TransformerState(self.decoder.memories(memory), source_mask[:, None, None, :])

    def step(
        self, tokens: Tensor, state: TransformerState, *, attention: list[Tensor] | None = None
    ) -> tuple[Tensor, TransformerState]:
        """Map tokens [B] to logits [B, V - 1] of the next token.

        If a list is given, the attention to the source [B, S], mean over layers and heads, is appended to it.
        """
        position, written = len(state.written.steps), state.written.grow()
        # The rows that share a memory are its queries, side by side.
        x = self._embed(self.target_embedding, self.target_positions, written.split(tokens), position)
        weights: list[Tensor] | None = None if attention is None else []
        x, past = self.decoder(
            x,
            written.mask(self.config.neighbourhood, device=tokens.device),
            past=state.past,
            memories=state.memories,
            memory_mask=state.memory_mask,
            cross_weights=weights,
        )
        if attention is not None and weights:
            attention.append(torch.stack(weights).mean(dim=(0, 2)).flatten(0, 1))
        return self.logits(x.flatten(0, 1)), TransformerState(state.memories, state.memory_mask, past, written)

    def alignment(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """[B, T, S]: attention to the source at every step, mean over layers and heads."""
        maps = AttentionMaps([], [], [])
        self.decode(self.encode(source, source_mask), source_mask, target, maps=maps)
        return torch.stack(maps.cross).mean(dim=(0, 2))

    @property
    def device(self) -> torch.device:
        return self.target_embedding.weight.device

    @property
    def projection(self) -> Tensor:
        """[V - 1, D]: the output matrix, without `<pad>`."""
        return self.target_embedding.weight[:-1] if self.output is None else self.output.weight

    def logits(self, hidden: Tensor) -> Tensor:
        return linear(hidden, self.projection)

    def _positions(self) -> SinusoidalPositions | LearnedPositions:
        if self.config.positions == "learned":
            return LearnedPositions(self.config.d_model, self.config.max_len)
        return SinusoidalPositions(self.config.d_model)

    def _embed(
        self,
        embedding: nn.Embedding,
        positions: SinusoidalPositions | LearnedPositions,
        ids: Tensor,
        at: int | None = None,
    ) -> Tensor:
        """Embed ids in positions 0, 1, ..., or all at position `at`."""
        where = (0, ids.shape[1]) if at is None else (at, at + 1)
        x = embedding(ids) * sqrt(self.config.d_model) + positions(*where)
        dropped: Tensor = self.dropout(x)
        return dropped

    def _restrict(self, mask: Tensor, n: int) -> Tensor:
        r = self.config.neighbourhood
        return mask if r is None else mask & neighbourhood_mask(n, n, r, device=mask.device)

    def _initialise(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.d_model**-0.5)
            if module.padding_idx is not None:
                with torch.no_grad():
                    module.weight[module.padding_idx].zero_()
