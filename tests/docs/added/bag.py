"""A bag of words: the mean of the embeddings of a text, and a linear layer (Iyyer et al. 2015, with no hidden layer).

B batch, S positions, D d_model, L labels. Masks are bool, True = a real position.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from jumok.config import Width


@dataclass(frozen=True, kw_only=True, slots=True)
class BagConfig:
    """A bag of words."""

    kind: Literal["bag"] = "bag"
    d_model: Width = 64


class BagClassifier(nn.Module):
    """Many to one."""

    def __init__(self, c: BagConfig, *, vocab: int, n_labels: int) -> None:
        super().__init__()
        self.config = c
        self.embedding = nn.Embedding(vocab, c.d_model, padding_idx=vocab - 1)
        self.output = nn.Linear(c.d_model, n_labels)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> Tensor:
        """ids [B, S]; logits [B, L]."""
        x = self.embedding(ids) * mask[..., None]
        logits: Tensor = self.output(x.sum(dim=1) / mask.sum(dim=1, keepdim=True))
        return logits

    @property
    def device(self) -> torch.device:
        return self.output.weight.device
