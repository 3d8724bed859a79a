"""A recurrent network over one text: many words to one label, a label for every word, or every next word.

Elman 1990 and its descendants (nn/recurrent.py) below; above them the last state, the mean of all states, or the
attention of Yang et al. 2016, section 2.2, which tells which words decided. Words may come with features of a trained
ELMo beside their embeddings (Peters et al. 2018, section 3.3).

B batch, S positions, H d_hidden, L labels. Masks are bool, True = a real position.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from jumok.config import Count, Share
from jumok.models.features import Features, FeaturesConfig
from jumok.nn.attention import AdditiveScore, attend
from jumok.nn.crf import Crf
from jumok.nn.dropout import Dropout
from jumok.nn.recurrent import Cell, Recurrent, State


@dataclass(frozen=True, kw_only=True, slots=True)
class RnnConfig:
    """A recurrent reader of one text."""

    kind: Literal["rnn"] = "rnn"
    cell: Cell = "lstm"
    d_embedding: Count = 128
    d_hidden: Count = 128
    """width of the state; reading both ways, half of it in each direction"""
    n_layers: Count = 1
    bidirectional: bool = False
    dropout: Share = 0.3
    """on embeddings, between layers, and on what is classified"""
    pool: Literal["last", "mean", "attention"] = "last"
    """classification: what stands for the text: the last state, the mean of all, or their sum weighted by attention"""
    features: Annotated[FeaturesConfig, Field(discriminator="kind")] | None = None
    """of a trained ELMo or BERT whose layers are read beside the embeddings; the recipe's `features` names its run, and
    fills this in"""

    def __post_init__(self) -> None:
        if self.bidirectional and self.d_hidden % 2:
            raise ValueError("d_hidden must be even when the text is read both ways: half of it in each direction")

    @property
    def d_model(self) -> int:
        """The width, under the name that the schedules of the Transformer know it by."""
        return self.d_hidden


class RnnReader(nn.Module):
    """Embeddings and recurrent layers; the last id of the vocabulary is `<pad>`, whose embedding stays zero.

    With the features of a trained model of the same vocabulary, what is read is [embedding ; features]: that model is
    frozen and part of this one, the mixture of its layers is learned. It has seen the whole text: nothing for a
    language model.
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
        """The states of all positions [B, S, H], zero at padding, and the last ones [B, H]; segments are for BERT's
        features, and not looked at otherwise."""
        x = self.dropout(self.embedding(ids))
        if self.features is not None:
            x = torch.cat([x, self.features(ids, segments, mask)], dim=-1)
        states, last = self.layers(x, mask.sum(dim=1))
        return states, last[-1][0]


class RnnClassifier(nn.Module):
    """Many to one."""

    def __init__(self, c: RnnConfig, *, vocab: int, n_labels: int) -> None:
        super().__init__()
        self.config = c
        self.reader = RnnReader(c, vocab=vocab)
        self.score = AdditiveScore(c.d_hidden, c.d_hidden, c.d_hidden) if c.pool == "attention" else None
        self.dropout = Dropout(c.dropout)
        self.output = nn.Linear(c.d_hidden, n_labels)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor, *, weights: list[Tensor] | None = None) -> Tensor:
        """ids [B, S]; logits [B, L]. Given a list, the attention over the words [B, S] is appended, if there is any.

        Of two texts, the end between them says which is which.
        """
        states, last = self.reader(ids, segments, mask)
        match self.config.pool:
            case "last":
                pooled = last
            case "mean":
                pooled = states.sum(dim=1) / mask.sum(dim=1, keepdim=True)
            case "attention":
                # u_j = tanh(U h_j + b) is compared with one learned vector: nothing asks but the score itself.
                assert self.score is not None
                nobody = states.new_zeros(len(ids), 1, states.shape[-1])
                attended = attend(self.score(nobody, self.score.keys(states)), states, mask[:, None])
                pooled = attended.context[:, 0]
                if weights is not None:
                    weights.append(attended.weights[:, 0])
        logits: Tensor = self.output(self.dropout(pooled))
        return logits

    @property
    def device(self) -> torch.device:
        return self.output.weight.device


class RnnTagger(nn.Module):
    """Many to many, word by word; with a CRF (Huang et al. 2015) the logits are its emissions."""

    def __init__(self, c: RnnConfig, *, vocab: int, n_labels: int, crf: bool = False) -> None:
        super().__init__()
        self.config = c
        self.reader = RnnReader(c, vocab=vocab)
        self.dropout = Dropout(c.dropout)
        self.output = nn.Linear(c.d_hidden, n_labels)
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
    """What has been read so far, as a value: rows can be picked, dropped and repeated."""

    layers: list[State]

    def select(self, rows: Tensor) -> "RnnState":
        return RnnState([tuple(part.index_select(0, rows) for part in state) for state in self.layers])


class RnnLanguageModel(nn.Module):
    """Many to many, one step ahead (Mikolov et al. 2010); input and output share their matrix if the widths agree."""

    def __init__(self, c: RnnConfig, *, vocab: int) -> None:
        super().__init__()
        self.config = c
        self.start_id = vocab - 1
        self.reader = RnnReader(c, vocab=vocab)
        self.output = None if c.d_embedding == c.d_hidden else nn.Linear(c.d_hidden, vocab - 1, bias=False)
        self.dropout = Dropout(c.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, S] beginning with `<pad>`; hidden states [B, S, H]."""
        # Padding stands to the right of the words; the first position is the start, which looks like padding.
        mask = ids != self.start_id
        mask[:, 0] = True
        hidden: Tensor = self.dropout(self.reader(ids, torch.zeros_like(ids), mask)[0])
        return hidden

    def start(self, rows: int) -> RnnState:
        return RnnState(self.reader.layers.zeros(rows))

    def step(
        self, tokens: Tensor, state: RnnState, *, attention: list[Tensor] | None = None
    ) -> tuple[Tensor, RnnState]:
        """tokens [B] in, logits [B, V - 1] of the next one out."""
        hidden, layers = self.reader.layers.step(self.reader.embedding(tokens), state.layers)
        return self.logits(hidden), RnnState(layers)

    @property
    def device(self) -> torch.device:
        return self.reader.embedding.weight.device

    @property
    def projection(self) -> Tensor:
        """[V - 1, H]: the output matrix, `<pad>` left out."""
        return self.reader.embedding.weight[:-1] if self.output is None else self.output.weight

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden @ self.projection.T
