"""Span F1 by the rule of conlleval (CoNLL-2000): a span is right if its type and both ends are."""

from collections.abc import Sequence

import numpy as np

from jumok.score.classification import accuracy_from, micro_f1_from
from jumok.score.significance import Metric, Metrics, Values, require_pairs
from jumok.text.tags import Place, spans

Spans = Sequence[Sequence[Place]]
Tags = Sequence[Sequence[str]]


def span_statistics(predicted: Spans, gold: Spans) -> Values:
    """[n, 3]: number of right, predicted and gold spans of each sentence; duplicates count once."""
    sets = [(set(ours), set(true)) for ours, true in zip(predicted, gold, strict=True)]
    return np.array([[len(ours & true), len(ours), len(true)] for ours, true in sets], dtype=np.float64)


def precision_from(statistics: Values) -> Values:
    share: Values = statistics[..., 0] / np.maximum(statistics[..., 1], 1)
    return 100 * share


def recall_from(statistics: Values) -> Values:
    share: Values = statistics[..., 0] / np.maximum(statistics[..., 2], 1)
    return 100 * share


def tag_statistics(predicted: Tags, gold: Tags) -> Values:
    """[n, 2]: number of words with the right tag, and of words."""
    rows = [[sum(a == b for a, b in zip(p, g, strict=True)), len(g)] for p, g in zip(predicted, gold, strict=True)]
    return np.array(rows, dtype=np.float64)


def tag_metrics(predicted: Tags, gold: Tags) -> Metrics:
    """`span_f1`, `precision`, `recall` and `tag_accuracy`, then `f1_TYPE` of every type in the gold."""
    require_pairs(predicted, gold, what="tagged sentences", of="sentences")
    ours, true = ([spans(tags) for tags in side] for side in (predicted, gold))
    accuracy = Metric("tag_accuracy", tag_statistics(predicted, gold), accuracy_from)
    return Metrics((*_overall(ours, true), accuracy, *_by_type(ours, true)), rule="conlleval spans")


def span_metrics(predicted: Spans, gold: Spans) -> Metrics:
    """The same without `tag_accuracy`, for spans that do not come from tags, such as spans of characters."""
    require_pairs(predicted, gold, what="sentences with spans", of="sentences")
    metrics = (*_overall(predicted, gold), *_by_type(predicted, gold))
    return Metrics(metrics, rule="spans with type and both ends")


def _overall(predicted: Spans, gold: Spans) -> list[Metric]:
    statistics = span_statistics(predicted, gold)
    functions = {"span_f1": micro_f1_from, "precision": precision_from, "recall": recall_from}
    return [Metric(name, statistics, function) for name, function in functions.items()]


def _by_type(predicted: Spans, gold: Spans) -> list[Metric]:
    def only(kind: str, side: Spans) -> Spans:
        return [[span for span in sentence if span[0] == kind] for sentence in side]

    kinds = sorted({span[0] for sentence in gold for span in sentence})
    return [Metric(f"f1_{k}", span_statistics(only(k, predicted), only(k, gold)), micro_f1_from) for k in kinds]
