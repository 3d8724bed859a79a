"""Position encodings.

PE(pos, 2i) = sin(pos / 10000^(2i/D))      PE(pos, 2i+1) = cos(pos / 10000^(2i/D))
"""

import torch
from torch import Tensor, nn


def sinusoids(start: int, stop: int, d_model: int, *, device: torch.device | None = None) -> Tensor:
    """Vaswani et al. 2017, section 3.5: rows `start` to `stop`, sine and cosine interleaved."""
    pos = torch.arange(start, stop, dtype=torch.float64, device=device)[:, None]
    rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64, device=device) / d_model)
    angles = pos * rates
    pe = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    return pe[:, :d_model].float()


class SinusoidalPositions(nn.Module):
    """Sinusoids for sequences of any length: rows beyond the table are computed on demand."""

    ROWS = 512

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        table = torch.empty(self.ROWS, d_model)
        if not table.is_meta:  # there, only shapes count, and torch would import its compiler to compute them
            table = sinusoids(0, self.ROWS, d_model)
        self.table: Tensor
        self.register_buffer("table", table, persistent=False)

    def forward(self, start: int, stop: int) -> Tensor:
        if stop <= self.ROWS:
            return self.table[start:stop]
        return sinusoids(start, stop, self.d_model, device=self.table.device).to(self.table.dtype)


class LearnedPositions(nn.Module):
    """One trained vector per position (Table 3, row E), up to `max_len`."""

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.embedding = nn.Embedding(max_len, d_model)

    def forward(self, start: int, stop: int) -> Tensor:
        if stop > self.max_len:
            raise ValueError(f"position {stop} is beyond the {self.max_len} learned positions")
        return self.embedding.weight[start:stop]
