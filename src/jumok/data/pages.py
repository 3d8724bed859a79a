"""Rows of ids as a model reads them: padded, with their segments and the mask of what is there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jumok.data.batching import Indices, sorted_batches
from jumok.data.packing import Packed
from jumok.text.tokenizer import Tokenizer


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    padded = np.full((len(rows), max(map(len, rows))), value, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded)


PREDICT_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Page:
    """Rows [B, S] side by side."""

    ids: Tensor
    segments: Tensor
    mask: Tensor

    def to(self, device: torch.device) -> "Page":
        return Page(self.ids.to(device), self.segments.to(device), self.mask.to(device))


class OnPage:
    """A batch that reads a page."""

    __slots__ = ()
    page: Page

    @property
    def tokens(self) -> int:
        return int(self.page.mask.sum())


def make_page(rows: Sequence[Sequence[int]], tokenizer: Tokenizer) -> Page:
    """Rows as `Tokenizer.frame` made them: what follows the end of the first text is of the second segment."""
    ids = pad(rows, tokenizer.pad_id)
    ends = (ids == tokenizer.end_id).long()
    return Page(ids, (ends.cumsum(dim=1) - ends).clamp(max=1), ids != tokenizer.pad_id)


def pages(
    rows: Sequence[Sequence[int]], tokenizer: Tokenizer, device: torch.device, *, tokens: int = PREDICT_TOKENS
) -> Iterator[tuple[Indices, Page]]:
    """All rows, those of a length together: which they are, and what the model reads."""
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    for some in sorted_batches(sizes, tokens) if len(rows) else ():
        yield some, make_page([rows[i] for i in some], tokenizer).to(device)


def packed_states(encoder: Callable[..., Tensor], packed: Packed, device: torch.device) -> Tensor:
    """The hidden states [R * W, D] of packed rows, in which a position sees those of its own text."""
    arrays = (packed.ids, packed.segments, packed.positions, packed.text)
    ids, segments, positions, text = (torch.from_numpy(array).to(device) for array in arrays)
    sees = text[:, :, None] == text[:, None]  # [R, W, W]
    return encoder(ids, segments, sees, positions=positions).flatten(0, 1)
