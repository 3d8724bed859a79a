"""Dropout (Srivastava et al. 2014) with cheap random numbers.

The CPU's own dropout draws one Bernoulli number per element and takes longer than the matrix product before it.
Here one 64-bit draw serves four elements: a unit is dropped if its 16 bits are below p, so the rate is exact to
2^-16, and the masks are still a function of the generator's seed.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def dropout_mask(shape: torch.Size, p: float, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """0 with probability p, else 1 / (1 - p), on the CPU."""
    n = shape.numel()
    bits = torch.randint(-(2**63), 2**63 - 1, ((n + 3) // 4,)).view(torch.int16)[:n]
    threshold = min(round(p * 2**16), 2**16 - 1) - 2**15
    return (bits >= threshold).to(dtype).mul_(1 / (1 - p)).view(shape)


class Dropout(nn.Module):
    """x * mask while training, x otherwise."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        return x * dropout_mask(x.shape, self.p, dtype=x.dtype)
