"""The stack of Vaswani et al. 2017, Figure 1, shared by encoder, decoder, BERT and GPT.

They differ in the mask and in whether there is a memory to attend to, not in code.
"""

from collections.abc import MutableSequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from jumok.config import Depth, Positive, Share, Width
from jumok.nn.attention import KeysValues, MultiHeadAttention
from jumok.nn.dropout import Dropout
from jumok.nn.linear import Activation, Linear, linear

NormOrder = Literal["post", "pre"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StackConfig:
    """Sizes of one stack, in the paper's notation."""

    n_layers: int
    d_model: int
    d_ff: int
    n_heads: int
    d_k: int
    d_v: int
    dropout: float
    norm: NormOrder
    cross: bool
    """whether each layer also attends to a memory"""
    activation: Activation = "relu"
    norm_eps: float = 1e-5
    attention_dropout: float = 0.0
    """on the attention weights, as in BERT and GPT"""


@dataclass(frozen=True, kw_only=True, slots=True)
class BodyConfig:
    """One stack over one text, as in BERT and GPT; heads split d_model evenly, and positions are learned."""

    d_model: Width = 768
    d_ff: Width = 3072
    n_heads: Depth = 12
    n_layers: Depth = 12
    dropout: Share = 0.1
    """on each sub-layer's output, and on the sum of the embeddings"""
    attention_dropout: Share = 0.1
    """on the attention weights; any value over 0 disables the fused kernel on the CPU"""
    max_len: Width
    """maximum number of positions"""
    activation: Activation
    norm_eps: Positive

    def __post_init__(self) -> None:
        if self.d_model % self.n_heads:
            raise ValueError("d_model must be divisible by n_heads")

    @property
    def longest(self) -> int:
        return self.max_len

    def stack(self, norm: NormOrder) -> StackConfig:
        return StackConfig(
            n_layers=self.n_layers,
            d_model=self.d_model,
            d_ff=self.d_ff,
            n_heads=self.n_heads,
            d_k=self.d_model // self.n_heads,
            d_v=self.d_model // self.n_heads,
            dropout=self.dropout,
            norm=norm,
            cross=False,
            activation=self.activation,
            norm_eps=self.norm_eps,
            attention_dropout=self.attention_dropout,
        )


class FeedForward(nn.Module):
    """Eq. 2: FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, or another activation instead of the maximum."""

    def __init__(self, d_model: int, d_ff: int, activation: Activation = "relu") -> None:
        super().__init__()
        self.activation: Activation = activation
        self.w_1 = Linear(d_model, d_ff)
        self.w_2 = Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w_2(linear(x, self.w_1.weight, self.w_1.bias, self.activation))
        return out


class Block(nn.Module):
    """Self-attention, cross-attention if there is a memory, and a feed-forward network.

    post-norm (the paper):  x = LayerNorm(x + Dropout(Sublayer(x)))
    pre-norm (optional):    x = x + Dropout(Sublayer(LayerNorm(x)))
    """

    def __init__(self, c: StackConfig) -> None:
        super().__init__()
        self.pre_norm = c.norm == "pre"
        self.self_attention = _attention(c)
        self.self_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps)
        if c.cross:
            self.cross_attention = _attention(c)
            self.cross_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps)
        self.feed_forward = FeedForward(c.d_model, c.d_ff, c.activation)
        self.feed_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps)
        self.dropout = Dropout(c.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        *,
        past: KeysValues | None = None,
        memory: KeysValues | None = None,
        memory_mask: Tensor | None = None,
        self_weights: list[Tensor] | None = None,
        cross_weights: list[Tensor] | None = None,
        first_only: bool = False,
    ) -> tuple[Tensor, KeysValues]:
        """Process x [B, T, D], which follows `past`; return the layer's output and its keys and values.

        With `first_only`, only the first position's output [B, 1, D] is computed; it still attends to all positions.
        """
        y = self._before(self.self_norm, x)
        present = self.self_attention.keys_values(y)
        if past is not None:
            present = past.then(present)
        if first_only:
            x, y = x[:, :1], y[:, :1]
        y = self.self_attention(y, present, mask, weights=self_weights)
        x = self._after(self.self_norm, x, y)
        if memory is not None:
            y = self._before(self.cross_norm, x)
            y = self.cross_attention(y, memory, memory_mask, weights=cross_weights)
            x = self._after(self.cross_norm, x, y)
        y = self.feed_forward(self._before(self.feed_norm, x))
        return self._after(self.feed_norm, x, y), present

    def remember(self, memory: Tensor) -> KeysValues:
        """This layer's keys and values for an encoder's output."""
        return self.cross_attention.keys_values(memory)

    def _before(self, norm: nn.LayerNorm, x: Tensor) -> Tensor:
        return norm(x) if self.pre_norm else x

    def _after(self, norm: nn.LayerNorm, x: Tensor, y: Tensor) -> Tensor:
        x = x + self.dropout(y)
        return x if self.pre_norm else norm(x)


def _attention(c: StackConfig) -> MultiHeadAttention:
    return MultiHeadAttention(c.d_model, c.n_heads, d_k=c.d_k, d_v=c.d_v, dropout=c.attention_dropout)


class Stack(nn.Module):
    """N layers with separate weights; pre-norm adds a final LayerNorm, which post-norm already has."""

    def __init__(self, c: StackConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(c) for _ in range(c.n_layers))
        self.final_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps) if c.norm == "pre" else nn.Identity()

    def memories(self, x: Tensor) -> list[KeysValues]:
        """Each layer's keys and values for an encoder's output, projected once."""
        return [layer.remember(x) for layer in self.layers]  # type: ignore[operator]

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        *,
        past: list[KeysValues] | None = None,
        memories: list[KeysValues] | None = None,
        memory_mask: Tensor | None = None,
        self_weights: list[Tensor] | None = None,
        cross_weights: list[Tensor] | None = None,
        states: MutableSequence[Tensor] | None = None,
        first_only: bool = False,
    ) -> tuple[Tensor, list[KeysValues]]:
        """Run all layers; append the input [B, T, D] and each layer's output to `states` if given.

        With `first_only`, the last layer computes the first position alone.
        """
        present = []
        for i, layer in enumerate(self.layers):
            if states is not None:
                states.append(x)
            x, kv = layer(
                x,
                mask,
                past=past[i] if past else None,
                memory=memories[i] if memories else None,
                memory_mask=memory_mask,
                self_weights=self_weights,
                cross_weights=cross_weights,
                first_only=first_only and i == len(self.layers) - 1,
            )
            present.append(kv)
        x = self.final_norm(x)
        if states is not None:
            states.append(x)
        return x, present
