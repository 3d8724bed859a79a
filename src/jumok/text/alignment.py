"""Alignment of the lines of two files, judged by their lengths."""

from itertools import pairwise
from math import log

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

_PRICE_OF_CHANGE = 20.0  # in nats: far more than chance gains over a million lines


def aligned_stretches(source: Values, target: Values) -> tuple[float, list[tuple[int, int, int | None]]]:
    """Return the correlation of the lengths and the likeliest stretches (first, end, shift); shift is None for no fit.

    For correlated Gaussians the log-odds that two lines belong together have a closed form. The stretches are the
    best path through the odds of all lines and shifts, where each change of shift costs a fixed price.
    """
    n = len(source)
    if min(n, len(target)) < 20 or not source.std() or not target.std():
        return 1.0, []
    shifts = sorted({*range(-3, 4), len(target) - n}, key=abs)
    x, y = (np.clip((v - v.mean()) / v.std(), -3, 3) for v in (np.log1p(source), np.log1p(target)))
    shifted = np.full((len(shifts), n), np.nan)
    for row, shift in zip(shifted, shifts, strict=True):
        first, end = max(0, -shift), min(n, len(target) - shift)
        row[first:end] = y[first + shift : end + shift]
    known = np.nan_to_num(shifted)
    window = min(50, n)
    whole = n // window * window
    in_windows = _correlation(x[:whole].reshape(-1, window), known[:, :whole].reshape(len(shifts), -1, window))
    # Files sorted by length correlate as a whole, but not within a window.
    fit = float(max(np.median(in_windows.max(axis=0)), _correlation(x, known).max()))
    r = min(max(fit, 0.0), 0.9)  # a higher r is overconfident where a chapter has its own style
    odds = (2 * r * x * shifted - r * r * (x * x + shifted**2)) / (2 * (1 - r * r)) - 0.5 * log(1 - r * r)
    changes = _best_path(np.vstack([np.clip(np.nan_to_num(odds), -4, 4), np.zeros(n)]))
    stretches: list[tuple[int, int, int | None]] = []
    for (first, state), (end, _) in pairwise([*changes, (n, 0)]):
        fits = state < len(shifts) or _correlation(x[first:end], known[:, first:end]).max() > fit / 2
        # Lines that correlate without fitting merely have an unusual length ratio.
        stretches.append((first, end, (*shifts, 0)[state] if fits else None))
    return fit, stretches


def _correlation(x: Values, y: Values) -> Values:
    x, y = (values - values.mean(axis=-1, keepdims=True) for values in (x, y))
    spread = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    return np.asarray((x * y).sum(axis=-1) / np.maximum(spread, 1e-9))


def _best_path(odds: Values) -> list[tuple[int, int]]:
    """Viterbi path through [states, lines] as (line, new state) at each change, starting with line 0."""
    states = np.arange(len(odds), dtype=np.int8)
    came_from = np.zeros(odds.shape[::-1], dtype=np.int8)
    best = -_PRICE_OF_CHANGE * (states != 0)
    for line, gain in enumerate(odds.T):
        top = best.argmax()
        stay = best >= best[top] - _PRICE_OF_CHANGE
        came_from[line] = np.where(stay, states, top)
        best = np.where(stay, best, best[top] - _PRICE_OF_CHANGE) + gain
    path = [int(best.argmax())]
    for back in came_from[:0:-1]:
        path.append(int(back[path[-1]]))
    path.reverse()
    return [(0, path[0])] + [(line, new) for line, (old, new) in enumerate(pairwise(path), start=1) if old != new]
