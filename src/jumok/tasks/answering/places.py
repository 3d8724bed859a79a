"""Candidate answers: a question beside the windows of its context, and the best spans of each window."""

from dataclasses import dataclass

import numpy as np

from jumok.engines import Array
from jumok.examples.questions import Question
from jumok.tasks.windows import Beside, LongTexts, owners
from jumok.text.normalise import whole_characters
from jumok.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Window:
    """A question with a part of its context, as model input."""

    row: list[int]
    first: int
    """position in the row where the context starts"""
    offsets: list[tuple[int, int]]
    """characters of each token of the context"""
    best: list[bool]
    """for each token, whether this is the window with the most text around it"""

    def place(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last position in the row of the tokens with these characters; None if some are not in it."""
        inside = [i for i, (a, b) in enumerate(self.offsets) if a < end and b > start]
        if not inside or self.offsets[inside[0]][0] > start or self.offsets[inside[-1]][1] < end:
            return None
        return self.first + inside[0], self.first + inside[-1]


def encode_question(tokenizer: Tokenizer, example: Question, long_texts: LongTexts) -> Beside[Window]:
    """Encode the whole question beside each part of the context.

    A question that would take more than half of the room is truncated.
    """
    room = long_texts.max_len - len(tokenizer.frame([], []))
    asked = tokenizer.encode(example.question)
    cut = len(asked) > room // 2
    if cut:
        (_, end), *_ = long_texts.parts(len(asked), room // 2, where=example.where)
        asked = asked[:end]
    encoded = tokenizer.encode_with_offsets(example.context)
    offsets = whole_characters(example.context, encoded.offsets)
    parts = long_texts.parts(len(encoded.ids), room - len(asked), where=example.where)
    owner = owners(parts, range(len(encoded.ids)))
    first = tokenizer.second_at(len(asked))
    windows = [
        Window(
            tokenizer.frame(asked, encoded.ids[start:end]),
            first,
            offsets[start:end],
            (owner[start:end] == number).tolist(),
        )
        for number, (start, end) in enumerate(parts)
    ]
    return Beside(windows, len(encoded.ids) > room - len(asked), cut)


def best_spans(logits: Array, window: Window, longest: int, n: int) -> dict[tuple[int, int], float]:
    """The n best answers in a window by the sum of the two logits [S, 2], among starts in `window.best`."""
    size = len(window.offsets)
    if not size:
        return {}
    seen = np.array([a < b for a, b in window.offsets])  # the others cover no character
    start, end = (np.where(seen, logits[window.first : window.first + size, k], -np.inf) for k in (0, 1))
    start, longest = np.where(window.best, start, -np.inf), min(longest, size)
    after = np.append(end, np.full(longest - 1, -np.inf))
    both = start[:, None] + np.lib.stride_tricks.sliding_window_view(after, longest)  # first token, number that follow
    found: dict[tuple[int, int], float] = {}
    for flat in np.argsort(both, axis=None)[::-1]:
        first, more = divmod(int(flat), longest)
        if len(found) == n or not np.isfinite(both[first, more]):
            break
        found.setdefault((window.offsets[first][0], window.offsets[first + more][1]), float(both[first, more]))
    return found
