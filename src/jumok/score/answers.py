"""Exact match and F1 of answers by the official rule of SQuAD (Rajpurkar et al. 2016; 2.0: 2018)."""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

from jumok.score.classification import accuracy_from
from jumok.score.significance import Metric, Metrics, Values, require_pairs

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalised(answer: str) -> str:
    """Lower-case an answer, drop ASCII punctuation, then English articles, and collapse white space."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def token_f1(predicted: str, gold: str) -> float:
    """2 common / (predicted + gold) words of normalised answers; an empty answer only matches an empty one."""
    ours, true = predicted.split(), gold.split()
    if not ours or not true:
        return float(ours == true)
    return 2 * (Counter(ours) & Counter(true)).total() / (len(ours) + len(true))


def answer_statistics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> Values:
    """[n, 3]: exact match, F1 with the closest gold answer, and 1; without gold answers, "" is the answer."""
    rows = []
    for ours, answers in zip(map(normalised, predicted), gold, strict=True):
        # As in SQuAD 2.0, an answer of articles and punctuation alone is no answer.
        true = [answer for answer in map(normalised, answers) if answer] or [""]
        rows.append([float(ours in true), max(token_f1(ours, answer) for answer in true), 1])
    return np.array(rows, dtype=np.float64)


def answer_metrics(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> Metrics:
    """`exact_match` and `answer_f1`; if only some questions have answers, also F1 with and without one."""
    require_pairs(predicted, gold, what="answers", of="questions")
    statistics = answer_statistics(predicted, gold)
    f1 = Metric("answer_f1", statistics[:, [1, 2]], accuracy_from)
    metrics = [Metric("exact_match", statistics[:, [0, 2]], accuracy_from), f1]
    has = np.array([len(answers) > 0 for answers in gold])
    if has.any() and not has.all():
        for name, rows in (("has_answer", has), ("no_answer", ~has)):
            metrics.append(f1._replace(name=f"answer_f1_{name}", statistics=f1.statistics[rows]))
    return Metrics(tuple(metrics), rule="SQuAD answers")


def threshold_for(gaps: Sequence[float], gains: Sequence[float]) -> float:
    """The margin over "no answer" above which giving the best answer maximises F1 over all questions.

    `gaps` are the margins of the best answers, `gains` the changes in F1 from giving them (Devlin et al. 2019, section
    4.3). The threshold stays 0 unless another one gains F1.
    """
    gap, gain = np.asarray(gaps, dtype=np.float64), np.asarray(gains, dtype=np.float64)
    found = np.unique(gap)  # sorted
    between = (found[1:] + found[:-1]) / 2
    thresholds = np.concatenate([[0.0], between, [found[0] - 1, found[-1] + 1]])
    order = np.argsort(gap)
    above = np.append(np.cumsum(gain[order][::-1])[::-1], 0.0)  # total gain from each index on
    totals = above[np.searchsorted(gap[order], thresholds, side="right")]
    return float(thresholds[int((totals > totals.max() - 1e-9).argmax())])  # the first is 0
