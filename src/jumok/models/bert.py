"""Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers": the encoder and its pre-training.

B batch, S positions, D d_model, V vocabulary. Masks are bool, True = may be attended to. A row may hold several texts
one after the other, each with its own positions, if the mask keeps them apart.
"""

from collections.abc import MutableSequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from jumok.config import Positive, Width
from jumok.nn.dropout import Dropout
from jumok.nn.linear import Activation, Linear, activate, linear
from jumok.nn.transformer import Block, BodyConfig, Stack

Family = Literal["bert", "roberta", "xlm-roberta", "electra", "distilbert"]
ROBERTAS = ("roberta", "xlm-roberta")


@dataclass(frozen=True, kw_only=True, slots=True)
class BertConfig(BodyConfig):
    """The paper's BASE; LARGE has 24 layers, d_model 1024, d_ff 4096 and 16 heads."""

    kind: Literal["bert"] = "bert"
    max_len: Width = 512
    """maximum number of positions"""
    n_segments: Annotated[int, Field(ge=0, le=1000)] = 2
    """RoBERTa (Liu et al. 2019) has one, DistilBERT (Sanh et al. 2019) none"""
    activation: Activation = "gelu"
    norm_eps: Positive = 1e-12
    family: Family = "bert"
    """whose names and heads the model has when it is exported, the paper's or those of a successor"""
    d_embedding: Width | None = None
    """ELECTRA (Clark et al. 2020, section 3.3): width of the embeddings if it is not d_model"""
    first_position: Annotated[int, Field(ge=0, le=2**20)] = 0
    """RoBERTa: row of the first token in the table of positions, whose earlier rows are not read"""

    def __post_init__(self) -> None:
        BodyConfig.__post_init__(self)
        wrong = []
        if (self.n_segments == 0) != (self.family == "distilbert"):
            wrong.append("n_segments must be 0 for DistilBERT, and at least 1 for the others")
        if (self.first_position > 0) != (self.family in ROBERTAS):
            wrong.append("first_position must be at least 1 for RoBERTa, and 0 for the others")
        if self.d_embedding not in (None, self.d_model) and self.family != "electra":
            wrong.append("d_embedding must be d_model, except for ELECTRA")
        if wrong:
            raise ValueError("\n".join(wrong))

    @property
    def width(self) -> int:
        """Of the embeddings."""
        return self.d_embedding or self.d_model

    @property
    def pooling(self) -> Activation | Literal["tanh"]:
        """The non-linearity of the pooler, in the authors' code of each paper."""
        match self.family:
            case "electra":
                return "gelu"
            case "distilbert":
                return "relu"
            case _:
                return "tanh"

    @property
    def attends(self) -> bool:
        return True


class Bert(nn.Module):
    """The sum of token, segment and position embeddings, a self-attention stack, and a pooler over `[CLS]`.

    Embeddings that are narrower or wider than the stack are mapped to its width.
    """

    def __init__(self, c: BertConfig, *, vocab: int, pooler: bool = True) -> None:
        super().__init__()
        self.config = c
        self.embedding = nn.Embedding(vocab, c.width)
        self.positions = nn.Embedding(c.first_position + c.max_len, c.width)
        self.segments = nn.Embedding(c.n_segments, c.width) if c.n_segments else None
        self.norm = nn.LayerNorm(c.width, eps=c.norm_eps)
        self.dropout = Dropout(c.dropout)
        self.widen = Linear(c.width, c.d_model) if c.width != c.d_model else None
        self.stack = Stack(c.stack("post"))
        self.pooler = Linear(c.d_model, c.d_model) if pooler else None
        self.apply(initialise)

    def forward(
        self,
        ids: Tensor,
        segments: Tensor,
        mask: Tensor,
        *,
        positions: Tensor | None = None,
        weights: list[Tensor] | None = None,
        states: MutableSequence[Tensor] | None = None,
        first_only: bool = False,
    ) -> Tensor:
        """ids and segments [B, S], mask [B, S] or, for each position, [B, S, S]; returns hidden states [B, S, D].

        If given, `weights` gets every layer's attention [B, H, S, S], `states` the embeddings and every layer's output.
        With `first_only`, only the state of `[CLS]` is returned [B, 1, D], and the mask must be [B, S].
        """
        if positions is None:
            positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.embedding(ids) + self.positions(positions + self.config.first_position)
        if self.segments is not None:
            x = x + self.segments(segments.clamp(max=self.config.n_segments - 1))  # some models have only one
        sees = mask[:, None, None] if mask.ndim == 2 else mask[:, None]
        x = self.dropout(self.norm(x))
        if self.widen is not None:
            x = self.widen(x)
        hidden: Tensor = self.stack(x, sees, self_weights=weights, states=states, first_only=first_only)[0]
        return hidden

    def pool(self, first: Tensor) -> Tensor:
        """Pool the states of `[CLS]` [., D] for a decision on the whole text: tanh(W h + b), or see `pooling`."""
        assert self.pooler is not None
        pooled: Tensor = self.pooler(first)
        return pooled.tanh() if self.config.pooling == "tanh" else activate(pooled, self.config.pooling)

    def first_looks(self, x: Tensor, mask: Tensor) -> Tensor:
        """[B, S]: attention of `[CLS]` in the last layer, whose input is x [B, S, D]; mean over heads; mask [B, S]."""
        last, found = self.stack.layers[-1], list[Tensor]()
        assert isinstance(last, Block)
        keys_values = last.self_attention.keys_values(x)
        last.self_attention(x[:, :1], keys_values, mask[:, None, None], weights=found)
        return found[0][:, :, 0].mean(dim=1)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device


class BertPretraining(nn.Module):
    """Section 3.1: predict masked words, and whether B follows A."""

    def __init__(self, c: BertConfig, *, vocab: int, next_sentence: bool = True) -> None:
        super().__init__()
        self.config = c
        self.bert = Bert(c, vocab=vocab, pooler=next_sentence)
        self.transform = Linear(c.d_model, c.width)
        self.transform_norm = nn.LayerNorm(c.width, eps=c.norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.next_sentence = Linear(c.d_model, 2) if next_sentence else None
        self.apply(initialise)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor, *, positions: Tensor | None = None) -> Tensor:
        hidden: Tensor = self.bert(ids, segments, mask, positions=positions)
        return hidden

    def transformed(self, hidden: Tensor) -> Tensor:
        """The output projection's input, from the states [M, D] of masked positions only."""
        out: Tensor = self.transform_norm(activate(self.transform(hidden), self.config.activation))
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        return linear(self.transformed(hidden), self.projection, self.bias)

    def follows(self, first: Tensor) -> Tensor:
        """Logits [., 2] from the states of `[CLS]`: B follows A (0), or comes from elsewhere (1)."""
        assert self.next_sentence is not None
        logits: Tensor = self.next_sentence(self.bert.pool(first))
        return logits

    @property
    def projection(self) -> Tensor:
        """[V, D]: the embeddings themselves."""
        return self.bert.embedding.weight

    @property
    def device(self) -> torch.device:
        return self.bias.device


def initialise(module: nn.Module) -> None:
    """Section A.2 and the released code: normal with standard deviation 0.02, biases zero."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
