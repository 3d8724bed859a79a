"""Recurrent networks over one text: a label for the text, a label for every word, or every next word.

Elman 1990 and its descendants (nn/recurrent.py), pooled by the last state, the mean of all states, or the attention of
Yang et al. 2016, section 2.2, which shows which words decided. Embeddings can be extended with features of a trained
ELMo (Peters et al. 2018, section 3.3) or BERT.

B batch, S positions, H d_hidden, L labels. Masks are bool, True = a real position.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from jumok.config import Depth, Share, Width
from jumok.models.features import Features, FeaturesConfig
from jumok.nn.attention import AdditiveScore, attend
from jumok.nn.crf import Crf
from jumok.nn.dropout import Dropout
from jumok.nn.linear import Linear, linear
from jumok.nn.recurrent import Cell, Recurrent, State


@dataclass(frozen=True, kw_only=True, slots=True)
class RnnConfig:
    """A recurrent network over one text."""

    kind: Literal["rnn"] = "rnn"
    cell: Cell = "lstm"
    d_embedding: Width = 128
    d_hidden: Width = 128
    """state width; if bidirectional, half of it in each direction"""
    n_layers: Depth = 1
    bidirectional: bool = False
    dropout: Share = 0.3
    """on embeddings, between layers, and before the output layer"""
    pool: Literal["last", "mean", "attention"] = "last"
    """classification: represent the text by the last state, the mean of all, or their attention-weighted sum"""
    features: Annotated[FeaturesConfig, Field(discriminator="kind")] | None = None
    """config of a trained ELMo or BERT whose layers extend the embeddings; filled in from the run that the recipe's
    `features` names"""

    def __post_init__(self) -> None:
        if self.bidirectional and self.d_hidden % 2:
            raise ValueError("d_hidden must be even when the text is read in both directions: each gets half")

    @property
    def d_model(self) -> int:
        """The width, named as the Transformer's learning-rate schedule expects."""
        return self.d_hidden


class RnnReader(nn.Module):
    """Embeddings and recurrent layers; the last id of the vocabulary is `<pad>`, whose embedding stays zero.

    With features of a trained model of the same vocabulary, the input is [embedding ; features]: that model is part of
    this one and frozen, the mixture of its layers is learned. Features depend on the whole text, so a language model
    cannot use them.
    """

    def __init__(self, c: RnnConfig, *, vocab: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, c.d_embedding, padding_idx=vocab - 1)
        nn.init.normal_(self.embedding.weight, std=0.1)
        with torch.no_grad():
            self.embedding.weight[-1].zero_()
        self.dropout = Dropout(c.dropout)
        self.features = None if c.features is None else Features(c.features, vocab=vocab, dropout=c.dropout)
        d_in = c.d_embedding + (0 if self.features is None else self.features.width)
        self.layers = Recurrent(
            c.cell, d_in, c.d_hidden, n_layers=c.n_layers, both_ways=c.bidirectional, dropout=c.dropout
        )

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states of all positions [B, S, H], zero at padding, and the last ones [B, H]; only BERT's
        features use `segments`."""
        x = self.dropout(self.embedding(ids))
        if self.features is not None:
            x = torch.cat([x, self.features(ids, segments, mask)], dim=-1)
        states, last = self.layers(x, mask.sum(dim=1))
        return states, last[-1][0]


class RnnClassifier(nn.Module):
    """Many to one: a label for the text."""

    def __init__(self, c: RnnConfig, *, vocab: int, n_labels: int) -> None:
        super().__init__()
        self.config = c
        self.reader = RnnReader(c, vocab=vocab)
        self.score = AdditiveScore(c.d_hidden, c.d_hidden, c.d_hidden) if c.pool == "attention" else None
        self.dropout = Dropout(c.dropout)
        self.output = Linear(c.d_hidden, n_labels)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor, *, weights: list[Tensor] | None = None) -> Tensor:
        """ids [B, S] to logits [B, L]; attention pooling appends its weights [B, S] if a list is given.

        In a pair of texts, the end token between them marks the boundary.
        """
        states, last = self.reader(ids, segments, mask)
        match self.config.pool:
            case "last":
                pooled = last
            case "mean":
                pooled = states.sum(dim=1) / mask.sum(dim=1, keepdim=True)
            case "attention":
                # u_j = tanh(U h_j + b) is compared with one learned vector: the query is zero.
                assert self.score is not None
                no_query = states.new_zeros(len(ids), 1, states.shape[-1])
                attended = attend(self.score(no_query, self.score.keys(states)), states, mask[:, None])
                pooled = attended.context[:, 0]
                if weights is not None:
                    weights.append(attended.weights[:, 0])
        logits: Tensor = self.output(self.dropout(pooled))
        return logits

    @property
    def device(self) -> torch.device:
        return self.output.weight.device


class RnnTagger(nn.Module):
    """Many to many: a label for every word; with a CRF (Huang et al. 2015) the logits are its emissions."""

    def __init__(self, c: RnnConfig, *, vocab: int, n_labels: int, crf: bool = False) -> None:
        super().__init__()
        self.config = c
        self.reader = RnnReader(c, vocab=vocab)
        self.dropout = Dropout(c.dropout)
        self.output = Linear(c.d_hidden, n_labels)
        self.crf = Crf(n_labels) if crf else None

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> Tensor:
        """ids [B, S]; logits [B, S, L]."""
        states, _ = self.reader(ids, segments, mask)
        logits: Tensor = self.output(self.dropout(states))
        return logits

    @property
    def device(self) -> torch.device:
        return self.output.weight.device


@dataclass(frozen=True, slots=True)
class RnnState:
    """State after the tokens read so far; rows can be selected, dropped and repeated."""

    layers: list[State]

    def select(self, rows: Tensor) -> "RnnState":
        return RnnState([tuple(part.index_select(0, rows) for part in state) for state in self.layers])


class RnnLanguageModel(nn.Module):
    """Many to many: every next word (Mikolov et al. 2010); input and output share a matrix if the widths agree."""

    def __init__(self, c: RnnConfig, *, vocab: int) -> None:
        super().__init__()
        self.config = c
        self.start_id = vocab - 1
        self.reader = RnnReader(c, vocab=vocab)
        self.output = None if c.d_embedding == c.d_hidden else Linear(c.d_hidden, vocab - 1, bias=False)
        self.dropout = Dropout(c.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, S] starting with `<pad>`; returns hidden states [B, S, H]."""
        # Padding is to the right of the words; the start token in first position has the same id.
        mask = ids != self.start_id
        mask[:, 0] = True
        hidden: Tensor = self.dropout(self.reader(ids, torch.zeros_like(ids), mask)[0])
        return hidden

    def start(self, rows: int) -> RnnState:
        return RnnState(self.reader.layers.zeros(rows))

    def step(
        self, tokens: Tensor, state: RnnState, *, attention: list[Tensor] | None = None
    ) -> tuple[Tensor, RnnState]:
        """Map tokens [B] to logits [B, V - 1] of the next token."""
        hidden, layers = self.reader.layers.step(self.reader.embedding(tokens), state.layers)
        return self.logits(hidden), RnnState(layers)

    @property
    def device(self) -> torch.device:
        return self.reader.embedding.weight.device

    @property
    def projection(self) -> Tensor:
        """[V - 1, H]: the output matrix, without `<pad>`."""
        return self.reader.embedding.weight[:-1] if self.output is None else self.output.weight

    def logits(self, hidden: Tensor) -> Tensor:
        return linear(hidden, self.projection)
