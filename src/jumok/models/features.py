"""The feature-based approach: a frozen trained model supplies the states of its layers to another.

Peters et al. 2018, section 3.2, Eq. 1, for ELMo; Devlin et al. 2019, section 5.3, for BERT. Each task learns its own
mixture of L + 1 layers, including the embeddings h_{k,0}:

    features of word k = gamma sum_j softmax(s)_j h_{k,j}

B batch, S positions, L n_layers. Masks are bool, True = a real position.
"""

from typing import Self

import torch
from torch import Tensor, nn

from jumok.models.bert import Bert, BertConfig
from jumok.models.elmo import Elmo, ElmoConfig
from jumok.nn.dropout import Dropout

FeaturesConfig = ElmoConfig | BertConfig


class LayerMix(nn.Module):
    """Eq. 1: the task's own mixture of the layers."""

    def __init__(self, n_layers: int, *, dropout: float) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.zeros(n_layers + 1))
        self.gamma = nn.Parameter(torch.ones(()))
        self.dropout = Dropout(dropout)

    def forward(self, h: list[Tensor]) -> Tensor:
        mixed: Tensor = self.dropout(self.gamma * torch.tensordot(self.s.softmax(dim=0), torch.stack(h), dims=1))
        return mixed


class Features(nn.Module):
    """The body, frozen and without dropout, and the learned mixture of its layers."""

    def __init__(self, c: FeaturesConfig, *, vocab: int, dropout: float) -> None:
        super().__init__()
        self.body: Elmo | Bert = (
            Bert(c, vocab=vocab, pooler=False) if isinstance(c, BertConfig) else Elmo(c, vocab=vocab)
        )
        self.body.requires_grad_(False).eval()
        self.width = c.d_model if isinstance(c, BertConfig) else 2 * c.d_hidden
        self.mix = LayerMix(c.n_layers, dropout=dropout)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> Tensor:
        """Features [B, S, width]; ELMo ignores `segments`."""
        with torch.no_grad():
            if isinstance(self.body, Bert):
                h: list[Tensor] = []
                self.body(ids, segments, mask, states=h)
            else:
                h = self.body.layers(ids, mask)
        mixed: Tensor = self.mix(h)
        return mixed
