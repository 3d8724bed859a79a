"""How well masked words and next sentences are guessed: statistics of each passage, and what is made of them."""

from math import exp
from typing import Any

import numpy as np

from jumok.data.packing import Reader
from jumok.data.passages import FRAME_OF_PAIR
from jumok.engines import Done, Engine, nobody
from jumok.score.significance import Values

DEV_SEED = 12345  # dev and test are masked the same way in every run
STATISTICS = ("masked_loss", "masked_right", "masked", "pairs_right", "pairs", "pairs_strange")


def judge(engine: Engine, reader: Reader, batch_tokens: int, *, done: Done = nobody) -> Values:
    """[passages, 6]: the STATISTICS of every passage, each read once."""
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
        said, gold = guessed.follows_said, batch.follows
        rows[numbers[batch.text_of_pair], 3:] = np.stack([said == gold, np.ones_like(gold), gold], axis=1)
        done(len(numbers))
    return rows


def summary(totals: Values) -> dict[str, float]:
    """Dev scores from the sums of the STATISTICS."""
    s = dict(zip(STATISTICS, totals.tolist(), strict=True))
    loss = s["masked_loss"] / max(s["masked"], 1)
    found = {
        "masked_loss": loss,
        "perplexity": exp(min(loss, 50.0)),
        "masked_accuracy": 100 * s["masked_right"] / max(s["masked"], 1),
    }
    if s["pairs"]:
        found["next_sentence_accuracy"] = 100 * s["pairs_right"] / s["pairs"]
        found["next_sentence_majority"] = 100 * max(s["pairs_strange"], s["pairs"] - s["pairs_strange"]) / s["pairs"]
    return found


def _mean(part: int, whole: int, scale: float = 1.0) -> Any:
    def value(statistics: Values) -> Values:
        found: Values = scale * statistics[..., part] / np.maximum(statistics[..., whole], 1)
        return found

    return value


METRICS = (
    ("masked_accuracy", _mean(1, 2, 100.0)),
    ("masked_loss", _mean(0, 2)),
    ("perplexity", lambda s: np.exp(np.minimum(_mean(0, 2)(s), 50.0))),
)
NEXT_SENTENCE = _mean(3, 4, 100.0)
