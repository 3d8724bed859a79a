"""A baseline for pre-training: the most frequent token at every mask, and the more frequent answer for every pair.

Masks are over tokens, so this one depends on the vocabulary, as the scores that it stands beside do.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from jumok.data.packing import Packed, Reader
from jumok.engines import Array
from jumok.examples.documents import Sentence
from jumok.score.significance import Metrics
from jumok.tasks.pretraining.scores import judge, pretraining_metrics
from jumok.text.tokenizer import Tokenizer

ENOUGH = 20_000
"""sentences that the frequencies are counted in, the first ones"""


def most_frequent(train: Iterable[Sentence], tokenizer: Tokenizer) -> int:
    counts: Counter[int] = Counter()
    for ids in tokenizer.encode_batch([sentence.text for sentence in islice(train, ENOUGH)]):
        counts.update(ids)
    return min(counts, key=lambda token: (-counts[token], token), default=tokenizer.unk_id)


def score_baseline(reader: Reader, token: int, batch_tokens: int) -> Metrics:
    statistics = judge(_Always(token), reader, batch_tokens)
    pairs, strange = statistics[:, 4], statistics[:, 5]
    says_strange = 2 * strange.sum() > pairs.sum()
    statistics[:, 3] = strange if says_strange else pairs - strange
    return pretraining_metrics(statistics).only(["masked_accuracy", "next_sentence_accuracy"])


@dataclass(frozen=True, slots=True)
class _Guessed:
    loss: Array
    right: Array
    follows_said: Array


@dataclass(frozen=True, slots=True)
class _Always:
    """Guesses one token everywhere; in place of an engine."""

    token: int

    def guess(self, batch: Packed) -> Any:
        right = (batch.targets == self.token).astype(float)
        return _Guessed(np.zeros(len(right)), right, np.zeros_like(batch.follows))
