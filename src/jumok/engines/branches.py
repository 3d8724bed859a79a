"""Several endings of one text scored together: the text is read once, and the endings branch off in parallel."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from jumok.data.batching import sorted_batches
from jumok.data.pages import PREDICT_TOKENS
from jumok.engines import Array, Rows
from jumok.models.gpt import Gpt
from jumok.nn.attention import causal_mask

AT_ONCE = 128
"""tokens of endings read after a text in one pass"""
STATES = 1024  # projected at once: each has as many logits as the vocabulary


def continuations(model: Gpt, prompts: Rows, endings: Rows, start_id: int) -> Array:
    """[n, endings]: log-probability of each ending after each prompt."""
    found = np.zeros((len(prompts), len(endings)))
    for handful in _handfuls(endings):
        branches = Branches.of({i: endings[i] for i in handful})
        sizes = np.array([1 + len(prompt) + len(branches.read) for prompt in prompts], dtype=np.int64)
        for some in sorted_batches(sizes, PREDICT_TOKENS) if len(prompts) else ():
            grown = branches.grow(model, [prompts[i] for i in some], start_id)
            np.add.at(found, (some[:, None], branches.ending), grown)
    return found


@dataclass(frozen=True, slots=True)
class Branches:
    """Endings of one text, and which state predicts each of their tokens, counted from the text's last state."""

    ending: NDArray[np.int64]
    """[K]: the ending that each of K tokens belongs to"""
    piece: NDArray[np.int64]
    state: NDArray[np.int64]
    read: NDArray[np.int64]
    """[R]: tokens read after the text: all but the last of each ending"""
    place: NDArray[np.int64]
    """[R]: their positions in their endings, from 1"""
    owner: NDArray[np.int64]
    """[R]: their endings, from 1"""

    @staticmethod
    def of(endings: Mapping[int, Sequence[int]]) -> "Branches":
        """From endings by number."""
        ending: list[int] = []
        piece: list[int] = []
        state: list[int] = []
        read: list[tuple[int, int, int]] = []
        for number, ids in endings.items():
            ending += [number] * len(ids)
            piece += ids
            state += [0, *range(len(read) + 1, len(read) + len(ids))]  # all start from the text's last state
            read += [(one, place, number + 1) for place, one in enumerate(ids[:-1], start=1)]
        columns = np.array(read, dtype=np.int64).reshape(-1, 3).T
        return Branches(*(np.array(column, dtype=np.int64) for column in (ending, piece, state, *columns)))

    def grow(self, model: Gpt, prompts: Sequence[Sequence[int]], start_id: int) -> Array:
        """[B, K]: log p of each token after each text. Endings see the text but not each other."""
        ends = np.array([len(prompt) for prompt in prompts])
        width = 1 + int(ends.max()) + len(self.read)
        ids, positions, owner = (np.zeros((len(prompts), width), dtype=np.int64) for _ in range(3))
        ids += start_id
        for row, prompt in enumerate(prompts):
            end = 1 + len(prompt)
            ids[row, 1:end] = prompt
            positions[row, :end] = np.arange(end)
            after = slice(end, end + len(self.read))
            ids[row, after], positions[row, after], owner[row, after] = self.read, len(prompt) + self.place, self.owner
        of, device = torch.from_numpy(owner), model.device
        sees = ((of[:, None] == 0) | (of[:, None] == of[..., None])) & causal_mask(width, width, device=of.device)
        hidden = model(
            torch.from_numpy(ids).to(device), positions=torch.from_numpy(positions).to(device), sees=sees.to(device)
        )
        places = torch.from_numpy(ends[:, None] + np.arange(1 + len(self.read))).to(device)
        states = hidden[torch.arange(len(prompts), device=device)[:, None], places]
        some = states.flatten(0, 1).split(STATES)
        all_words = torch.cat([model.logits(part).logsumexp(dim=-1) for part in some]).view(places.shape)
        state, piece = self.state.tolist(), self.piece.tolist()
        this_word = (states[:, state] * model.projection[piece]).sum(dim=-1)
        found: Array = (this_word - all_words[:, state]).double().cpu().numpy()
        return found


def _handfuls(endings: Rows) -> Iterator[range]:
    """Ranges of endings to read together: few enough to take no more time than a text."""
    first, pieces = 0, 0
    for number, ids in enumerate(endings):
        pieces += len(ids)
        if pieces > AT_ONCE and number > first:
            yield range(first, number)
            first, pieces = number, len(ids)
    yield range(first, len(endings))
