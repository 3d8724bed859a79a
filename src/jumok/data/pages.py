"""Model inputs: padded rows of ids with segments and a padding mask."""

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
    """A batch of padded rows [B, S]."""

    ids: Tensor
    segments: Tensor
    mask: Tensor

    def to(self, device: torch.device) -> "Page":
        return Page(self.ids.to(device), self.segments.to(device), self.mask.to(device))


class OnPage:
    """Mixin for batches that have a page."""

    __slots__ = ()
    page: Page

    @property
    def tokens(self) -> int:
        return int(self.page.mask.sum())


def make_page(rows: Sequence[Sequence[int]], tokenizer: Tokenizer) -> Page:
    """Make a page of rows from `Tokenizer.frame`; tokens after the end of the first text are of `second_segment`."""
    ids = pad(rows, tokenizer.pad_id)
    ends = (ids == tokenizer.end_id).long()
    return Page(ids, (ends.cumsum(dim=1) - ends).clamp(max=tokenizer.second_segment), ids != tokenizer.pad_id)


def pages(
    rows: Sequence[Sequence[int]], tokenizer: Tokenizer, device: torch.device, *, tokens: int = PREDICT_TOKENS
) -> Iterator[tuple[Indices, Page]]:
    """Yield all rows in pages of similar length, with their indices."""
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    for some in sorted_batches(sizes, tokens) if len(rows) else ():
        yield some, make_page([rows[i] for i in some], tokenizer).to(device)


def packed_states(encoder: Callable[..., Tensor], packed: Packed, device: torch.device) -> Tensor:
    """Hidden states [R * W, D] of packed rows; each position attends only to its own text."""
    arrays = (packed.ids, packed.segments, packed.positions, packed.text)
    ids, segments, positions, text = (torch.from_numpy(array).to(device) for array in arrays)
    sees = text[:, :, None] == text[:, None]  # [R, W, W]
    return encoder(ids, segments, sees, positions=positions).flatten(0, 1)
