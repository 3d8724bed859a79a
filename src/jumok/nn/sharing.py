"""Rows of a decoder's state that share what they have read: the beams of a sentence share its source and their past.

M memories, K rows for each of them, S positions of a memory.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Sharing:
    """Each memory belongs to K consecutive rows, so nothing is copied when the beams of a sentence change places."""

    k: int = 1

    def pick(self, rows: Tensor, memories: int) -> "tuple[Tensor | None, Sharing]":
        """The memories of these rows, None if all stay where they are, and how rows share them from now on."""
        owners = rows // self.k
        found, counts = torch.unique_consecutive(owners, return_counts=True)
        sizes = set(counts.tolist())
        if len(sizes) != 1:  # a memory for each row, if it must be
            return owners, Sharing()
        stay = len(found) == memories and torch.equal(found, torch.arange(memories, device=found.device))
        return None if stay else found, Sharing(sizes.pop())

    def split(self, rows: Tensor) -> Tensor:
        """[M * K, ...] as [M, K, ...]."""
        return rows.view(-1, self.k, *rows.shape[1:])


@dataclass(frozen=True, slots=True)
class Past:
    """Which of a memory's S positions each row has written itself, or took over from the row it continues."""

    sharing: Sharing = Sharing()
    own: Tensor | None = None
    """[M * K, S]; None: all"""
    steps: tuple[int, ...] = ()
    """positions written at each step: the K of that time"""

    @property
    def size(self) -> int:
        return sum(self.steps)

    def pick(self, rows: Tensor, memories: int) -> "tuple[Tensor | None, Past]":
        picked, sharing = self.sharing.pick(rows, memories)
        own = self.own
        if own is not None:
            own = own.index_select(0, rows)
        elif sharing.k > 1:
            own = torch.ones(len(rows), self.size, dtype=torch.bool, device=rows.device)
        return picked, Past(sharing, own, self.steps)

    def grow(self) -> "Past":
        """One more step: every row writes a position that its brothers do not see."""
        k, own = self.sharing.k, self.own
        if own is not None:
            here = torch.eye(k, dtype=torch.bool, device=own.device).repeat(len(own) // k, 1)
            own = torch.cat([own, here], dim=1)
        return replace(self, own=own, steps=(*self.steps, k))

    def split(self, rows: Tensor) -> Tensor:
        return self.sharing.split(rows)

    def mask(self, neighbourhood: int | None = None, *, device: torch.device) -> Tensor | None:
        """[M, 1, K, S] for attention: a row's own positions, and of these perhaps only those of the last steps."""
        own = self.own
        if neighbourhood is not None:
            times = torch.tensor([t for t, k in enumerate(self.steps) for _ in range(k)], device=device)
            near = times >= len(self.steps) - 1 - neighbourhood
            own = near[None] if own is None else own & near
        return None if own is None else self.split(own)[:, None]
