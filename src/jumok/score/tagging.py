"""Span F1 by the rule of conlleval (CoNLL-2000): a span counts if its type and both its ends are right."""

from collections.abc import Sequence

import numpy as np

from jumok.score.classification import accuracy_from, micro_f1_from
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
from jumok.text.tags import Place, spans

Spans = Sequence[Sequence[Place]]
Tags = Sequence[Sequence[str]]


def span_statistics(predicted: Spans, gold: Spans) -> Values:
    """[n, 3]: spans that are right, predicted, and in the gold, of each sentence; one said twice counts once."""
    sets = [(set(said), set(true)) for said, true in zip(predicted, gold, strict=True)]
    return np.array([[len(said & true), len(said), len(true)] for said, true in sets], dtype=np.float64)


def precision_from(statistics: Values) -> Values:
    share: Values = statistics[..., 0] / np.maximum(statistics[..., 1], 1)
    return 100 * share


def recall_from(statistics: Values) -> Values:
    share: Values = statistics[..., 0] / np.maximum(statistics[..., 2], 1)
    return 100 * share


def tag_statistics(predicted: Tags, gold: Tags) -> Values:
    """[n, 2]: words whose tag is right, words."""
    rows = [[sum(a == b for a, b in zip(p, g, strict=True)), len(g)] for p, g in zip(predicted, gold, strict=True)]
    return np.array(rows, dtype=np.float64)


def score_tags(predicted: Tags, gold: Tags, *, samples: int = 1000, seed: int = 12345) -> list[Score]:
    """`span_f1`, `precision`, `recall` and `tag_accuracy`, then `f1_TYPE` of every type in the gold."""
    return scores_of(_all_of_tags(predicted, gold), rule="conlleval spans", samples=samples, seed=seed)


def quick_scores(predicted: Tags, gold: Tags) -> dict[str, float]:
    """`span_f1` and `tag_accuracy` without intervals: for a look during training."""
    return values_of(metric for metric in _of_tags(predicted, gold) if metric.name in ("span_f1", "tag_accuracy"))


def compare_tags(a: Tags, b: Tags, gold: Tags, *, samples: int = 1000, seed: int = 12345) -> list[Comparison]:
    """System b against system a in every metric of `score_tags`."""
    return comparisons_of(_all_of_tags(a, gold), _all_of_tags(b, gold), samples=samples, seed=seed)


def score_spans(predicted: Spans, gold: Spans, *, samples: int = 1000, seed: int = 12345) -> list[Score]:
    """The same of spans that no tags mark, as those of characters: `span_f1`, `precision`, `recall`, `f1_TYPE` …"""
    rule = "spans with type and both ends"
    return scores_of(_all_of_spans(predicted, gold), rule=rule, samples=samples, seed=seed)


def quick_spans(predicted: Spans, gold: Spans) -> dict[str, float]:
    """`span_f1`, `precision` and `recall` without intervals."""
    return values_of(_of_spans(predicted, gold))


def compare_spans(a: Spans, b: Spans, gold: Spans, *, samples: int = 1000, seed: int = 12345) -> list[Comparison]:
    """System b against system a in every metric of `score_spans`."""
    return comparisons_of(_all_of_spans(a, gold), _all_of_spans(b, gold), samples=samples, seed=seed)


def _marked(tags: Tags) -> Spans:
    return [spans(sentence) for sentence in tags]


def _all_of_tags(predicted: Tags, gold: Tags) -> list[Metric]:
    return _of_tags(predicted, gold) + _of_types(_marked(predicted), _marked(gold))


def _all_of_spans(predicted: Spans, gold: Spans) -> list[Metric]:
    return _of_spans(predicted, gold) + _of_types(predicted, gold)


def _of_spans(predicted: Spans, gold: Spans) -> list[Metric]:
    require_pairs(predicted, gold, what="sentences with spans", of="sentences")
    statistics = span_statistics(predicted, gold)
    return [
        Metric("span_f1", statistics, micro_f1_from),
        Metric("precision", statistics, precision_from),
        Metric("recall", statistics, recall_from),
    ]


def _of_tags(predicted: Tags, gold: Tags) -> list[Metric]:
    require_pairs(predicted, gold, what="tagged sentences", of="sentences")
    accuracy = Metric("tag_accuracy", tag_statistics(predicted, gold), accuracy_from)
    return [*_of_spans(_marked(predicted), _marked(gold)), accuracy]


def _of_types(predicted: Spans, gold: Spans) -> list[Metric]:
    def only(kind: str, side: Spans) -> Spans:
        return [[span for span in sentence if span[0] == kind] for sentence in side]

    kinds = sorted({span[0] for sentence in gold for span in sentence})
    return [Metric(f"f1_{k}", span_statistics(only(k, predicted), only(k, gold)), micro_f1_from) for k in kinds]
