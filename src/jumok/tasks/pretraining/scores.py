"""Scores of masked tokens and next sentences: statistics of each passage, and the metrics made of them."""

from math import exp
from typing import Any, Protocol

import numpy as np

from jumok.data.packing import Packed, Reader
from jumok.data.passages import FRAME_OF_PAIR
from jumok.engines import Done, nobody
from jumok.score.significance import Metric, Metrics, ScoreFunction, Values

DEV_SEED = 12345  # every run masks dev and test the same way
STATISTICS = ("masked_loss", "masked_right", "masked", "pairs_right", "pairs", "pairs_strange")


class Guesses(Protocol):
    """The part of an engine that is judged."""

    def guess(self, batch: Packed) -> Any: ...


def judge(engine: Guesses, reader: Reader, batch_tokens: int, *, done: Done = nobody) -> Values:
    """[passages, 6]: the STATISTICS of every passage."""
    rows = np.zeros((len(reader.passages), len(STATISTICS)))
    sizes = reader.passages.text.lengths(np.arange(len(rows))) + FRAME_OF_PAIR
    bounds = np.cumsum(sizes) // batch_tokens
    for b in np.unique(bounds):
        numbers = np.flatnonzero(bounds == b)
        batch = reader.read((int(i), 0) for i in numbers)
        guessed = engine.guess(batch)
        of = numbers[batch.text_of_masked]
        for column, values in enumerate((guessed.loss, guessed.right, np.ones(len(of)))):
            np.add.at(rows[:, column], of, values)
        predicted, gold = guessed.follows_said, batch.follows
        rows[numbers[batch.text_of_pair], 3:] = np.stack([predicted == gold, np.ones_like(gold), gold], axis=1)
        done(len(numbers))
    return rows


def pretraining_metrics(statistics: Values, signature: str = "") -> Metrics:
    """`masked_accuracy`, `masked_loss` and `perplexity`, and `next_sentence_accuracy` if there are pairs."""
    metrics = [Metric(name, statistics, function, signature) for name, function in MASKED.items()]
    pairs = statistics[statistics[:, 4] > 0]  # a passage of one sentence makes no pair
    if len(pairs):
        metrics.append(Metric("next_sentence_accuracy", pairs, _mean(3, 4, 100.0), signature))
    return Metrics(tuple(metrics))


def majority_accuracy(statistics: Values) -> float | None:
    """Accuracy of always giving the more frequent answer in next-sentence prediction; None without pairs."""
    pairs, strange = statistics[:, 4:].sum(axis=0).tolist()
    return 100 * max(strange, pairs - strange) / pairs if pairs else None


def dev_scores(statistics: Values) -> dict[str, float]:
    """Scores without intervals, for evaluation on dev during training."""
    scores = pretraining_metrics(statistics).values("masked_loss", "masked_accuracy", "next_sentence_accuracy")
    majority = majority_accuracy(statistics)
    more = {} if majority is None else {"next_sentence_majority": majority}
    return {"perplexity": exp(min(scores["masked_loss"], 50.0)), **scores, **more}


def _mean(part: int, whole: int, scale: float = 1.0) -> ScoreFunction:
    def mean(statistics: Values) -> Values:
        found: Values = scale * statistics[..., part] / np.maximum(statistics[..., whole], 1)
        return found

    return mean


MASKED: dict[str, ScoreFunction] = {
    "masked_accuracy": _mean(1, 2, 100.0),
    "masked_loss": _mean(0, 2),
    "perplexity": lambda statistics: np.exp(np.minimum(_mean(0, 2)(statistics), 50.0)),
}
