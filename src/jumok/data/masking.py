"""Masked words (Devlin et al. 2019, section 3.1): which are hidden, and behind what.

15 % of the pieces are to be predicted. Of these 80 % are replaced by `[MASK]`, 10 % by a random piece, and 10 % stay
as they are. With whole words, 15 % of the words are chosen and all their pieces are to be predicted: each piece is
then chosen with probability 15 % too, however many pieces its word has.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Masking:
    """The rates, and what of the vocabulary they need to know."""

    share: float
    mask_id: int
    ordinary: Ids
    """ids of all pieces that are not special: what random ones are drawn from"""
    goes_on: Flags | None = None
    """of every id whether its piece goes on with a word; whole words are chosen if this is given"""
    masked: float = 0.8
    random: float = 0.1

    def hide(self, ids: Ids, *, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """The ids with some of them hidden, and the positions of those; special pieces are left alone."""
        candidates = np.flatnonzero(self._is_ordinary(ids))
        if self.goes_on is None:
            units = np.arange(len(candidates))
        else:
            starts = ~self.goes_on[ids[candidates]]
            starts[np.diff(candidates, prepend=-2) > 1] = True  # a special piece ends a word
            units = np.cumsum(starts) - 1
        n = int(units[-1]) + 1 if len(units) else 0
        # Rounded up or down at random, so that the rate is the share itself and not what short texts make of it.
        k = int(self.share * n + rng.random())
        chosen = np.zeros(n, dtype=bool)
        chosen[rng.permutation(n)[:k]] = True
        positions = candidates[chosen[units]]
        fate = rng.random(len(positions))
        others = self.ordinary[rng.integers(0, len(self.ordinary), len(positions))]
        hidden = ids.copy()
        hidden[positions] = np.where(
            fate < self.masked, self.mask_id, np.where(fate < self.masked + self.random, others, ids[positions])
        )
        return hidden, positions

    def _is_ordinary(self, ids: Ids) -> Flags:
        # `ordinary` is sorted: an id is in it if it stands where it would be inserted.
        places = np.searchsorted(self.ordinary, ids).clip(max=len(self.ordinary) - 1)
        flags: Flags = self.ordinary[places] == ids
        return flags


def pack(lengths: npt.NDArray[np.int64], width: int) -> list[list[int]]:
    """Which texts share a row of `width` positions: longest first, each into the first row that has room for it."""
    rows: list[list[int]] = []
    room: list[int] = []
    for i in np.argsort(-lengths, kind="stable"):
        n = int(lengths[i])
        for row, free in enumerate(room):
            if free >= n:
                rows[row].append(int(i))
                room[row] -= n
                break
        else:
            rows.append([int(i)])
            room.append(width - n)
    return rows
