"""Spans and their F1 equal seqeval's, whose default mode equals conlleval."""

import random
import re

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, classification_report, f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities

from jumok.errors import DataError
from jumok.score.tagging import (
    span_metrics,
    tag_metrics,
)
from jumok.text.tags import spans

KINDS = ["PER", "LOC", "B-I"]
PREFIXES = {"IOB": "BI", "IOBES": "BIES", "IOE": "IE"}


def encoded(kinds, scheme):
    """Tags of a scheme for words that belong to a span, each [kind, is the span's first], or None."""
    tags = []
    for i, word in enumerate(kinds):
        if word is None:
            tags.append("O")
            continue
        kind, first = word
        before, after = kinds[i - 1] if i else None, kinds[i + 1] if i + 1 < len(kinds) else None
        begins = first or before is None or before[0] != kind
        ends = after is None or after[1] or after[0] != kind
        touches = before is not None and before[0] == kind
        match scheme:
            case "IOB":
                prefix = "B" if begins and touches else "I"
            case "IOB2":
                prefix = "B" if begins else "I"
            case "IOBES":
                prefix = {(True, True): "S", (True, False): "B", (False, True): "E"}.get((begins, ends), "I")
        tags.append(f"{prefix}-{kind}")
    return tags


words = st.none() | st.tuples(st.sampled_from(KINDS[:2]), st.booleans())
valid = st.lists(words, min_size=1, max_size=9)


def any_tags(prefixes):
    return st.sampled_from(["O"] + [f"{prefix}-{kind}" for prefix in prefixes for kind in KINDS])


@st.composite
def tagged(draw):
    """Sentences as they were tagged and as they should be, valid in their scheme or not, wrong in a few places.

    Some may be empty, but not all: seqeval divides by the number of words.
    """
    prefixes = draw(st.sampled_from(list(PREFIXES.values())))
    gold = draw(st.lists(st.lists(any_tags(prefixes), max_size=8), min_size=1, max_size=5).filter(any))
    predicted = [[draw(any_tags(prefixes)) if draw(st.integers(0, 3)) == 0 else tag for tag in tags] for tags in gold]
    return predicted, gold


def noisy(rate, n, seed):
    rng = random.Random(seed)
    tags = ["O", "O", "B-PER", "I-PER", "B-LOC"]
    gold = [[rng.choice(tags) for _ in range(rng.randint(1, 8))] for _ in range(n)]
    return [[rng.choice(tags) if rng.random() < rate else tag for tag in sentence] for sentence in gold], gold


def theirs(tags):
    return [(kind, first, last + 1) for kind, first, last in get_entities(tags)]


@given(st.lists(any_tags("BIES"), max_size=12))
@settings(max_examples=400, deadline=None)
def test_spans_are_seqevals_whatever_the_transitions(tags):
    assert spans(tags) == theirs(tags)


@given(valid, st.sampled_from(["IOB", "IOB2", "IOBES"]))
@settings(max_examples=200, deadline=None)
def test_all_schemes_mark_the_same_spans(kinds, scheme):
    marked = spans(encoded(kinds, scheme))
    assert marked == theirs(encoded(kinds, scheme)) == spans(encoded(kinds, "IOB2"))
    assert sum(end - start for _, start, end in marked) == sum(word is not None for word in kinds)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O B-X I-X O", [("X", 1, 3)]),
        ("I-X I-X O I-X", [("X", 0, 2), ("X", 3, 4)]),  # begins with I-
        ("B-X B-X I-X", [("X", 0, 1), ("X", 1, 3)]),
        ("B-X I-Y", [("X", 0, 1), ("Y", 1, 2)]),  # the type changes inside
        ("S-X B-X I-X E-X S-Y", [("X", 0, 1), ("X", 1, 4), ("Y", 4, 5)]),
        ("B-X E-X I-X", [("X", 0, 2), ("X", 2, 3)]),
        ("E-X O", [("X", 0, 1)]),
        ("O O", []),
        ("", []),
        ("B-X", [("X", 0, 1)]),
        ("B-X-Y I-X-Y", [("X-Y", 0, 2)]),
        ("B I O", [("", 0, 2)]),
        ("I-X", [("X", 0, 1)]),
        ("O I-X I-Y I-Y", [("X", 1, 2), ("Y", 2, 4)]),
        ("B-X B-X B-X", [("X", 0, 1), ("X", 1, 2), ("X", 2, 3)]),
    ],
)
def test_spans_by_hand(tags, expected):
    assert spans(tags.split()) == expected


@given(tagged())
@example(([["O"]], [["O"]]))
@example(([["B-PER"]], [["O"]]))
@example(([["O"]], [["B-PER"]]))
@example(([["O", "I-PER"]], [["O", "B-PER"]]))
@example(([["I-PER"]], [["I-PER"]]))
@example(([["B-PER", "I-LOC", "I-LOC"]], [["B-PER", "I-PER", "I-LOC"]]))
@example(([["B-PER", "B-PER"], []], [["B-PER", "I-PER"], []]))
@example(([["O", "O"], ["O"]], [["O", "O"], ["O"]]))
@settings(max_examples=200, deadline=None)
def test_scores_are_those_of_seqeval(case):
    predicted, gold = case
    expected = {
        "span_f1": 100 * f1_score(gold, predicted, zero_division=0),
        "precision": 100 * precision_score(gold, predicted, zero_division=0),
        "recall": 100 * recall_score(gold, predicted, zero_division=0),
        "tag_accuracy": 100 * accuracy_score(gold, predicted),
    }
    found = {score.name: score.value for score in tag_metrics(predicted, gold).scores(samples=2)}
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-9)
    quick = tag_metrics(predicted, gold).values("span_f1", "tag_accuracy")
    assert quick == pytest.approx({name: expected[name] for name in ("span_f1", "tag_accuracy")}, abs=1e-9)


@given(tagged())
@settings(max_examples=200, deadline=None)
def test_the_f1_of_every_type_is_that_of_seqevals_report(case):
    predicted, gold = case
    kinds = {kind for tags in gold for kind, _, _ in theirs(tags)}
    assume(kinds)
    report = classification_report(gold, predicted, output_dict=True, zero_division=0)
    found = {score.name: score.value for score in tag_metrics(predicted, gold).scores(samples=2)[4:]}
    assert found == pytest.approx({f"f1_{kind}": 100 * report[kind]["f1-score"] for kind in kinds}, abs=1e-9)


def test_intervals_contain_the_value():
    predicted, gold = noisy(0.3, 300, seed=1)
    scores = tag_metrics(predicted, gold).scores()
    assert [score.name for score in scores] == ["span_f1", "precision", "recall", "tag_accuracy", "f1_LOC", "f1_PER"]
    for score in scores:
        assert 0 < score.low < score.value < score.high < 100
        assert (score.n, score.signature) == (300, "conlleval spans, bootstrap 1000, seed 12345, 95%")


def test_sentences_are_what_is_drawn_again():
    """The interval of one sentence has no width, however many spans it has."""
    predicted, gold = noisy(0.3, 1, seed=2)
    assert all(score.low == score.value == score.high for score in tag_metrics(predicted, gold).scores())


def test_a_system_is_not_better_than_itself():
    predicted, gold = noisy(0.3, 60, seed=3)
    metrics = tag_metrics(predicted, gold)
    found = metrics.against(metrics)
    each = sorted({f"f1_{kind}" for tags in gold for kind, *_ in spans(tags)})
    assert [c.metric for c in found] == ["span_f1", "precision", "recall", "tag_accuracy", *each]
    assert each
    assert all((c.difference, c.low, c.high, c.p_value) == (0, 0, 0, 1) for c in found)


def test_a_better_system_is_better():
    predicted, gold = noisy(0.5, 200, seed=4)
    ours = tag_metrics(predicted, gold)
    found = ours.against(tag_metrics(gold, gold))
    assert all(c.b == 100 and c.low > 0 and c.p_value < 0.01 for c in found)
    values = [score.value for score in ours.scores()]
    assert [c.a for c in found] == pytest.approx(values, abs=1e-9)
    assert np.all(np.array([c.difference for c in found]) > 10)


def test_as_many_sentences_on_both_sides():
    with pytest.raises(DataError) as caught:
        tag_metrics([["O"]], [["O"], ["O"]])
    assert (caught.value.code, re.findall(r"\d+", caught.value.what)) == ("data.counts", ["1", "2"])
    with pytest.raises(DataError) as caught:
        tag_metrics([], [])
    assert caught.value.code == "data.empty"


def test_sentences_without_words_score_nothing():
    assert {score.value for score in tag_metrics([[], []], [[], []]).scores(samples=5)} == {0}


# spans that no tags mark

span = st.tuples(st.sampled_from(KINDS), st.integers(0, 6), st.integers(7, 12))
marked = st.lists(st.lists(span, max_size=5), min_size=1, max_size=6)


def span_values(predicted, gold):
    return span_metrics(predicted, gold).values("span_f1", "precision", "recall")


@given(tagged())
@settings(max_examples=100, deadline=None)
def test_spans_score_as_the_tags_that_mark_them(case):
    by_tags = tag_metrics(*case).scores(samples=5)
    by_spans = span_metrics(*([spans(tags) for tags in side] for side in case)).scores(samples=5)
    expected = [score for score in by_tags if score.name != "tag_accuracy"]
    assert [(s.name, s.value, s.low, s.high, s.n) for s in by_spans] == [
        (s.name, s.value, s.low, s.high, s.n) for s in expected
    ]


def test_scores_of_spans_by_hand():
    gold = [[("PER", 0, 4), ("LOC", 9, 12)], [("PER", 3, 8), ("PER", 5, 8)], []]
    predicted = [
        [("PER", 0, 4), ("PER", 0, 4), ("LOC", 9, 13)],  # said twice counts once; an end is wrong
        [("LOC", 3, 8), ("PER", 5, 8)],  # the type is wrong; spans may overlap
        [("LOC", 0, 1)],
    ]
    scores = span_metrics(predicted, gold).scores(samples=7, seed=3)
    assert {score.name: score.value for score in scores} == pytest.approx(
        {"span_f1": 400 / 9, "precision": 40, "recall": 50, "f1_LOC": 0, "f1_PER": 80}
    )
    assert {score.signature for score in scores} == {"spans with type and both ends, bootstrap 7, seed 3, 95%"}
    assert span_values(predicted, gold) == {score.name: score.value for score in scores[:3]}


@given(marked, st.randoms())
@settings(max_examples=100, deadline=None)
def test_perfect_spans_score_100_in_any_order(gold, random):
    assume(any(gold))
    shuffled = [random.sample(sentence, len(sentence)) for sentence in gold]
    assert set(span_values(shuffled, gold).values()) == {100}


@given(marked, marked, st.randoms())
@settings(max_examples=100, deadline=None)
def test_the_order_of_sentences_changes_nothing(predicted, gold, random):
    pairs = list(zip(predicted, gold, strict=False))
    straight, shuffled = (
        span_values(*map(list, zip(*order, strict=True))) for order in (pairs, random.sample(pairs, len(pairs)))
    )
    assert straight == shuffled
    assert all(0 <= value <= 100 for value in straight.values())


def test_systems_that_mark_spans_are_compared():
    predicted, gold = ([spans(tags) for tags in side] for side in noisy(0.5, 200, seed=5))
    ours = span_metrics(predicted, gold)
    found = ours.against(span_metrics(gold, gold))
    scores = {score.name: score.value for score in ours.scores(samples=5)}
    assert {c.metric: c.a for c in found} == pytest.approx(scores)
    assert {"span_f1", "precision", "recall"} < scores.keys()
    assert all(c.b == 100 and c.low > 0 and c.p_value < 0.01 for c in found)


def test_as_many_sentences_with_spans_on_both_sides():
    with pytest.raises(DataError) as caught:
        span_metrics([[]], [[], []])
    assert (caught.value.code, re.findall(r"\d+", caught.value.what)) == ("data.counts", ["1", "2"])
