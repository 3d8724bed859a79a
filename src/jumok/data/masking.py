"""Masked language modelling (Devlin et al. 2019, section 3.1): which tokens are masked, and what replaces them.

The model predicts 15 % of the tokens: 80 % of these are replaced by `[MASK]`, 10 % by a random token, and 10 % stay
unchanged. Whole-word masking chooses 15 % of the words and all their tokens, so each token is still chosen with a
probability of 15 %, however many its word has.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Masking:
    """Masking rates, and the ids they apply to."""

    share: float
    mask_id: int
    ordinary: Ids
    """ids of all tokens that are not special, sorted; random tokens are drawn from them"""
    goes_on: Flags | None = None
    """for every id, whether its token continues a word; if given, whole words are masked"""
    masked: float = 0.8
    random: float = 0.1

    def hide(self, ids: Ids, *, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Mask some of the ids; return the ids and the masked positions. Special tokens are never masked."""
        candidates = np.flatnonzero(self._is_ordinary(ids))
        if self.goes_on is None:
            units = np.arange(len(candidates))
        else:
            starts = ~self.goes_on[ids[candidates]]
            starts[np.diff(candidates, prepend=-2) > 1] = True  # a special token ends a word
            units = np.cumsum(starts) - 1
        n = int(units[-1]) + 1 if len(units) else 0
        # Round up or down at random, so that short texts are masked at the same rate as long ones.
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
        # `ordinary` is sorted, so it contains an id if the id is where it would be inserted.
        places = np.searchsorted(self.ordinary, ids).clip(max=len(self.ordinary) - 1)
        flags: Flags = self.ordinary[places] == ids
        return flags


def pack(lengths: npt.NDArray[np.int64], width: int) -> list[list[int]]:
    """Pack texts into rows of `width` positions: first fit, longest first."""
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
