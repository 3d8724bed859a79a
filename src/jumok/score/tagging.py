"""Span F1 by the rule of conlleval (CoNLL-2000): a span counts if its type and both its ends are right."""

from collections.abc import Sequence

import numpy as np

from jumok.errors import DataError
from jumok.score.classification import accuracy_from
from jumok.score.significance import Comparison, Score, Values, compare, score_with_interval

Span = tuple[str, int, int]
"""type, first word, word after the last"""


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans that IOB, IOB2 or IOBES tags mark; one that begins with I- is a span all the same, as in conlleval."""
    found: list[Span] = []
    start, before, kind = 0, "O", ""
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, now = tag.partition("-")
        if prefix not in ("B", "I", "E", "S"):
            prefix, now = "O", ""
        goes_on = before in ("B", "I") and prefix in ("I", "E") and now == kind
        if before != "O" and not goes_on:
            found.append((kind, start, i))
        if prefix != "O" and not goes_on:
            start = i
        before, kind = prefix, now
    return found


def span_statistics(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> Values:
    """[n, 3]: spans that are right, predicted, and in the gold, of each sentence."""
    rows = []
    for said, true in zip(predicted, gold, strict=True):
        a, b = set(spans(said)), set(spans(true))
        rows.append([len(a & b), len(a), len(b)])
    return np.array(rows, dtype=np.float64)


def f1_from(statistics: Values) -> Values:
    """Micro-averaged over all spans: 2 right / (predicted + gold)."""
    right, said, true = (statistics[..., k] for k in range(3))
    f1: Values = 2 * right / np.maximum(said + true, 1)
    return 100 * f1


def precision_from(statistics: Values) -> Values:
    share: Values = statistics[..., 0] / np.maximum(statistics[..., 1], 1)
    return 100 * share


def recall_from(statistics: Values) -> Values:
    share: Values = statistics[..., 0] / np.maximum(statistics[..., 2], 1)
    return 100 * share


def tag_statistics(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> Values:
    """[n, 2]: words whose tag is right, words."""
    rows = [[sum(a == b for a, b in zip(p, g, strict=True)), len(g)] for p, g in zip(predicted, gold, strict=True)]
    return np.array(rows, dtype=np.float64)


_METRICS = (
    ("span_f1", span_statistics, f1_from),
    ("precision", span_statistics, precision_from),
    ("recall", span_statistics, recall_from),
    ("tag_accuracy", tag_statistics, accuracy_from),
)


def score_tags(
    predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]], *, samples: int = 1000, seed: int = 12345
) -> list[Score]:
    """`span_f1`, `precision`, `recall` and `tag_accuracy`, then `f1_TYPE` of every type in the gold."""
    _require(predicted, gold)
    signature = f"conlleval spans, bootstrap {samples}, seed {seed}, 95%"
    options = {"samples": samples, "seed": seed}
    scores = [
        score_with_interval(name, count(predicted, gold), score, signature=signature, **options)
        for name, count, score in _METRICS
    ]
    for kind in sorted({span[0] for tags in gold for span in spans(tags)}):
        ours, theirs = ([_only(tags, kind) for tags in side] for side in (predicted, gold))
        statistics = span_statistics(ours, theirs)
        scores.append(score_with_interval(f"f1_{kind}", statistics, f1_from, signature=signature, **options))
    return scores


def quick_scores(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> dict[str, float]:
    """The first and the last of them without intervals: for a look during training."""
    _require(predicted, gold)
    return {
        name: float(score(count(predicted, gold).sum(axis=0)))
        for name, count, score in _METRICS
        if name in ("span_f1", "tag_accuracy")
    }


def compare_tags(
    a: Sequence[Sequence[str]],
    b: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    *,
    samples: int = 1000,
    seed: int = 12345,
) -> list[Comparison]:
    """System b against system a."""
    _require(a, gold)
    _require(b, gold)
    return [
        compare(count(a, gold), count(b, gold), score, metric=name, samples=samples, seed=seed)
        for name, count, score in _METRICS
    ]


def _only(tags: Sequence[str], kind: str) -> list[str]:
    return [tag if tag.partition("-")[2] == kind else "O" for tag in tags]


def _require(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
    if len(predicted) != len(gold) or not gold:
        raise DataError(f"{len(predicted)} tagged sentences for {len(gold)}", right="one for each, and at least one")
