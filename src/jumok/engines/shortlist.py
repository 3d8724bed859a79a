"""A lexical shortlist: the target tokens that a source token is usually translated by (Jean et al. 2015, section 3.3).

The output layer then computes the tokens of a batch's shortlists and the most frequent ones, not the whole vocabulary.
Translation probabilities are those of IBM model 1 (Brown et al. 1993), learned by EM from tokenized training pairs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VOCABULARY_MAP = "vmap.txt"
"""the file's name in a folder of CTranslate2"""
FREQUENT = 100
"""target tokens that are in every shortlist"""
OCCURRENCES = 20_000_000
"""pairs of tokens that EM goes through: more take long, and change little"""
ITERATIONS = 4

Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Target tokens by source token, and those of every text."""

    always: list[int]
    by_source: dict[int, list[int]]
    """likeliest first"""

    def first(self, n: int) -> "Shortlist":
        """The n likeliest of each source token."""
        return Shortlist(self.always, {s: targets[:n] for s, targets in self.by_source.items()})

    def write(self, path: Path, source: Sequence[str], target: Sequence[str]) -> None:
        """In CTranslate2's format: source token, tab, target tokens; the empty source token is for every text."""
        rows = [("", self.always), *((source[s], targets) for s, targets in self.by_source.items())]
        lines = [f"{piece}\t{' '.join(target[t] for t in targets)}\n" for piece, targets in rows]
        path.write_text("".join(lines), "utf-8")


def learn_shortlist(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]], n: int, *, target_vocab: int, always: Sequence[int] = ()
) -> Shortlist:
    """The n likeliest target tokens of each source token that occurs; those `always` allowed come with every text."""
    source, target, sentence_of_target, counts = _occurrences(pairs)
    pair, place = np.unique(source * target_vocab + target, return_inverse=True)
    probability = np.ones(len(pair))
    for _ in range(ITERATIONS):
        # E: each target token is divided among the source tokens of its sentence; M: normalised by source token.
        weight = probability[place]
        share = weight / np.bincount(sentence_of_target, weight)[sentence_of_target]
        expected = np.bincount(place, share, minlength=len(pair))
        totals = np.bincount(pair // target_vocab, expected)
        probability = expected / totals[pair // target_vocab]
    order = np.lexsort((-probability, pair // target_vocab))
    sources, targets = pair[order] // target_vocab, pair[order] % target_vocab
    starts = np.flatnonzero(np.diff(sources, prepend=-1))
    rank = np.arange(len(sources)) - np.repeat(starts, np.diff(starts, append=len(sources)))
    kept = rank < n
    by_source: dict[int, list[int]] = {}
    for s, t in zip(sources[kept].tolist(), targets[kept].tolist(), strict=True):
        by_source.setdefault(s, []).append(t)
    frequent = np.argsort(-counts, kind="stable")[:FREQUENT].tolist()
    return Shortlist([*dict.fromkeys([*frequent, *always])], by_source)


def _occurrences(pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> tuple[Array, Array, Array, Array]:
    """Each target token beside each source token of its sentence; the number of the target token; token counts."""
    sources: list[Array] = []
    targets: list[Array] = []
    owners: list[Array] = []
    read, words = 0, 0
    for one, other in pairs:
        s, t = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
        sources.append(np.tile(s, len(t)))
        targets.append(np.repeat(t, len(s)))
        owners.append(words + np.repeat(np.arange(len(t)), len(s)))
        words += len(t)
        read += len(s) * len(t)
        if read > OCCURRENCES:
            break
    target, owner = np.concatenate(targets), np.concatenate(owners)
    firsts = np.unique(owner, return_index=True)[1]
    return np.concatenate(sources), target, owner, np.bincount(target[firsts])
