"""Exact match and F1 of answers by the official rule of SQuAD (Rajpurkar et al. 2016; 2.0: 2018), with intervals."""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

from jumok.score.classification import accuracy_from
from jumok.score.significance import (
    Comparison,
    Metric,
    Score,
    Values,
    comparisons_of,
    require_pairs,
    scores_of,
    values_of,
)

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalised(answer: str) -> str:
    """Lower case, without (ASCII) punctuation, then without English articles, white space folded."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def token_f1(predicted: str, gold: str) -> float:
    """2 common / (predicted + gold) words of normalised answers; no answer agrees with no answer only."""
    said, true = predicted.split(), gold.split()
    if not said or not true:
        return float(said == true)
    return 2 * (Counter(said) & Counter(true)).total() / (len(said) + len(true))


def answer_statistics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> Values:
    """[n, 3]: exact match and F1 with the best of the gold answers, one; without gold answers, "" is the answer."""
    rows = []
    for said, answers in zip(map(normalised, predicted), gold, strict=True):
        # As in SQuAD 2.0, an answer of articles and punctuation is none.
        true = [answer for answer in map(normalised, answers) if answer] or [""]
        rows.append([float(said in true), max(token_f1(said, answer) for answer in true), 1])
    return np.array(rows, dtype=np.float64)


def score_answers(
    predicted: Sequence[str], gold: Sequence[Sequence[str]], *, samples: int = 1000, seed: int = 12345
) -> list[Score]:
    """`exact_match` and `answer_f1`; if only some questions have an answer, its F1 with and without one too."""
    metrics = _metrics(predicted, gold)
    has = np.array([len(answers) > 0 for answers in gold])
    if has.any() and not has.all():
        _, f1 = metrics
        for name, rows in (("has_answer", has), ("no_answer", ~has)):
            metrics.append(Metric(f"answer_f1_{name}", f1.statistics[rows], f1.score))
    return scores_of(metrics, rule="SQuAD answers", samples=samples, seed=seed)


def threshold_for(gaps: Sequence[float], gains: Sequence[float]) -> float:
    """How far the best answer has to be above "no answer" to be given, so that F1 over all questions is highest.

    `gaps` say how far it is above, `gains` by how much F1 is better if it is given (Devlin et al. 2019, section 4.3).
    Nothing is moved without a gain.
    """
    gap, gain = np.asarray(gaps, dtype=np.float64), np.asarray(gains, dtype=np.float64)
    found = np.unique(gap)  # rising; what is given are all answers above a threshold
    between = (found[1:] + found[:-1]) / 2
    thresholds = np.concatenate([[0.0], between, [found[0] - 1, found[-1] + 1]])
    order = np.argsort(gap)
    above = np.append(np.cumsum(gain[order][::-1])[::-1], 0.0)  # the gains from each place on
    totals = above[np.searchsorted(gap[order], thresholds, side="right")]
    return float(thresholds[int((totals > totals.max() - 1e-9).argmax())])  # the first: nothing is moved if need not be


def quick_answers(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> dict[str, float]:
    """`exact_match` and `answer_f1` without intervals: for a look during training."""
    return values_of(_metrics(predicted, gold))


def compare_answers(
    a: Sequence[str], b: Sequence[str], gold: Sequence[Sequence[str]], *, samples: int = 1000, seed: int = 12345
) -> list[Comparison]:
    """System b against system a."""
    return comparisons_of(_metrics(a, gold), _metrics(b, gold), samples=samples, seed=seed)


def _metrics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> list[Metric]:
    require_pairs(predicted, gold, what="answers", of="questions")
    statistics = answer_statistics(predicted, gold)
    return [
        Metric("exact_match", statistics[:, [0, 2]], accuracy_from),
        Metric("answer_f1", statistics[:, [1, 2]], accuracy_from),
    ]
