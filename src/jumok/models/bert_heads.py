"""Heads on a pre-trained BERT (Devlin et al. 2019, section 4, Figure 4): one layer, fine-tuned with the body.

B batch, S positions, D d_model, L labels. Masks are bool, True = may be attended to.
"""

from collections import deque

import torch
from torch import Tensor, nn

from jumok.models.bert import Bert, BertConfig, initialise
from jumok.nn.crf import Crf
from jumok.nn.dropout import Dropout
from jumok.nn.linear import Linear


class BertClassifier(nn.Module):
    """A label for a text or a pair of texts, from the state of `[CLS]`; with one label, a number."""

    def __init__(self, c: BertConfig, *, vocab: int, n_labels: int) -> None:
        super().__init__()
        self.config = c
        self.bert = Bert(c, vocab=vocab)
        self.dropout = Dropout(c.dropout)
        self.output = Linear(c.d_model, n_labels)
        initialise(self.output)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor, *, weights: list[Tensor] | None = None) -> Tensor:
        """Logits [B, L]; if a list is given, the attention of `[CLS]` over the tokens [B, S] is appended."""
        # The last two: the last layer's input and output.
        states: deque[Tensor] | None = None if weights is None else deque(maxlen=2)
        hidden = self.bert(ids, segments, mask, states=states, first_only=True)
        if weights is not None and states is not None:
            weights.append(self.bert.first_looks(states[0], mask))
        logits: Tensor = self.output(self.dropout(self.bert.pool(hidden[:, 0])))
        return logits

    @property
    def device(self) -> torch.device:
        return self.output.weight.device


class BertTagger(nn.Module):
    """A label for every position; with two labels, the start and the end of an answer.

    With a CRF the logits are its emissions; only the task knows which positions have tags.
    """

    def __init__(self, c: BertConfig, *, vocab: int, n_labels: int, crf: bool = False) -> None:
        super().__init__()
        self.config = c
        self.bert = Bert(c, vocab=vocab, pooler=False)
        self.dropout = Dropout(c.dropout)
        self.output = Linear(c.d_model, n_labels)
        self.crf = Crf(n_labels) if crf else None
        initialise(self.output)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> Tensor:
        """Logits [B, S, L]."""
        logits: Tensor = self.output(self.dropout(self.bert(ids, segments, mask)))
        return logits

    @property
    def device(self) -> torch.device:
        return self.output.weight.device


class BertRelation(nn.Module):
    """Wu & He 2019, "Enriching Pre-trained Language Model with Entity Information for Relation Classification".

    From H_0, the state of `[CLS]`, and the states of two entities' tokens, which share weights, Eq. 1 to 5:

        H'_0 = W_0 tanh(H_0) + b_0      H'_k = W_1 tanh(mean of entity k's H_t) + b_1,  k = 1, 2
        logits = W_3 [H'_0 ; H'_1 ; H'_2] + b_3

    with dropout before each layer.
    """

    def __init__(self, c: BertConfig, *, vocab: int, n_labels: int) -> None:
        super().__init__()
        self.config = c
        self.bert = Bert(c, vocab=vocab, pooler=False)
        self.dropout = Dropout(c.dropout)
        self.w_0 = Linear(c.d_model, c.d_model)
        self.w_1 = Linear(c.d_model, c.d_model)
        self.w_3 = Linear(3 * c.d_model, n_labels)
        for layer in (self.w_0, self.w_1, self.w_3):
            initialise(layer)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor, head: Tensor, tail: Tensor) -> Tensor:
        """head and tail [B, S] are True at the tokens of an entity, at least one each; logits [B, L]."""
        h = self.bert(ids, segments, mask)
        pieces = torch.stack([head, tail], dim=1).to(h.dtype)
        means = pieces @ h / pieces.sum(dim=-1, keepdim=True)  # [B, 2, D]
        text, entities = self.w_0(self.dropout(h[:, 0].tanh())), self.w_1(self.dropout(means.tanh()))
        logits: Tensor = self.w_3(self.dropout(torch.cat([text, entities.flatten(1)], dim=-1)))
        return logits

    @property
    def device(self) -> torch.device:
        return self.w_3.weight.device
