"""Rows of ids as one padded tensor."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    padded = np.full((len(rows), max(map(len, rows))), value, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded)
