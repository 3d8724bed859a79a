"""BERT's pre-training batches: passages paired, framed, masked and packed.

Several texts share a row, each with its own positions, and a mask keeps them apart.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from jumok.data.masking import Masking, pack
from jumok.data.passages import Pairs, Passages
from jumok.errors import DataError
from jumok.text.tokenizer import Tokenizer

Ids = npt.NDArray[np.int64]


class Masks(Protocol):
    """The part of a task's config that controls pairs and masks."""

    @property
    def next_sentence(self) -> bool: ...
    @property
    def mask_share(self) -> float: ...
    @property
    def whole_words(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch of R rows and W positions."""

    ids: Ids
    """[R, W]"""
    segments: Ids
    positions: Ids
    """[R, W]: counted from zero in every text"""
    text: Ids
    """[R, W]: the number of the text in its row; -1 for padding"""
    masked: Ids
    """[M]: flat indices of the masked tokens"""
    targets: Ids
    """[M]: their original ids"""
    firsts: Ids
    """[P]: flat indices of the `[CLS]` of each pair"""
    follows: Ids
    """[P]: 0 if B follows A, 1 if it does not"""
    text_of_masked: Ids
    """[M]: the number in the batch of each masked token's text"""
    text_of_pair: Ids
    """[P]"""
    count: tuple[int, ...]
    """number of masked tokens, and of pairs if next sentences are predicted"""
    tokens: int


@dataclass(frozen=True, slots=True)
class _Text:
    """One text of a batch, with some tokens masked."""

    ids: Ids
    segments: Ids
    masked: Ids
    """positions of the masked tokens"""
    targets: Ids
    follows: bool | None
    """whether B follows A; None if there is no B"""


class Reader:
    """Makes batches of numbered passages."""

    def __init__(self, config: Masks, tokenizer: Tokenizer, found: Passages, *, max_len: int, seed: int) -> None:
        self.config, self.tokenizer, self.passages, self.max_len = config, tokenizer, found, max_len
        self.pairs = Pairs(found, seed=seed, next_sentence=config.next_sentence)
        ordinary = np.setdiff1d(np.arange(tokenizer.vocab_size), tokenizer.special_ids)
        if not len(ordinary):
            hint = "increase tokenizer.vocab_size: this one has no room for a single character"
            raise DataError("the vocabulary has only special tokens", hint=hint, code="data.vocabulary")
        goes_on = np.array(tokenizer.continues_word()) if config.whole_words else None
        assert tokenizer.mask_id is not None
        self.masking = Masking(config.mask_share, tokenizer.mask_id, ordinary, goes_on)

    def read(self, numbers: Iterable[tuple[int, int]]) -> Packed:
        """Make one batch of the passages with these (number, epoch)."""
        texts = [self._text(int(i), int(epoch)) for i, epoch in numbers]
        lengths = np.array([len(text.ids) for text in texts])
        rows = pack(lengths, self.max_len)
        width = max(int(lengths[row].sum()) for row in rows)
        ids = np.full((len(rows), width), self.tokenizer.pad_id)
        segments, positions = np.zeros_like(ids), np.zeros_like(ids)
        number = np.full_like(ids, -1)
        masked: list[Ids] = []
        firsts: list[int] = []
        for r, row in enumerate(rows):
            at = 0
            for k, i in enumerate(row):
                text, part = texts[i], slice(at, at + int(lengths[i]))
                ids[r, part], segments[r, part], number[r, part] = text.ids, text.segments, k
                positions[r, part] = np.arange(lengths[i])
                masked.append(text.masked + r * width + at)
                if text.follows is not None:
                    firsts.append(r * width + at)
                at += int(lengths[i])
        order = [i for row in rows for i in row]
        pairs = [i for i in order if texts[i].follows is not None]
        n = sum(map(len, masked))
        return Packed(
            ids,
            segments,
            positions,
            number,
            np.concatenate(masked),
            np.concatenate([texts[i].targets for i in order]),
            np.array(firsts, dtype=np.int64),
            np.array([int(not texts[i].follows) for i in pairs], dtype=np.int64),
            np.repeat(np.array(order), [len(texts[i].targets) for i in order]),
            np.array(pairs, dtype=np.int64),
            (n, len(pairs)) if self.config.next_sentence else (n,),
            int(lengths.sum()),
        )

    def _text(self, i: int, epoch: int) -> _Text:
        pair = self.pairs.make(i, epoch=epoch)
        ids = np.array(self.tokenizer.frame(pair.a, pair.b))
        second = np.arange(len(ids)) >= self.tokenizer.second_at(len(pair.a))
        segments = second.astype(np.int64) * self.tokenizer.second_segment
        rng = np.random.Generator(np.random.PCG64([self.pairs.seed, epoch, i, 1]))
        hidden, masked = self.masking.hide(ids, rng=rng)
        return _Text(hidden, segments, masked, ids[masked], pair.follows)
