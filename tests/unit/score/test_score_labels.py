"""Scores of any number of labels equal scikit-learn's."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, f1_score

from jumok.errors import DataError
from jumok.score.labels import label_metrics

shapes = st.tuples(st.integers(1, 12), st.integers(2, 5))  # scikit-learn takes one column for single labels
labels = shapes.flatmap(lambda shape: arrays(np.bool_, shape))
pairs = shapes.flatmap(lambda shape: st.tuples(arrays(np.bool_, shape), arrays(np.bool_, shape)))


def noisy(rate, n, seed, n_labels=4):
    rng = np.random.default_rng(seed)
    gold = rng.random((n, n_labels)) < 0.4
    return gold ^ (rng.random(gold.shape) < rate), gold


@given(pairs)
@example((np.zeros((2, 2), dtype=bool), np.zeros((2, 2), dtype=bool)))
@settings(max_examples=200, deadline=None)
def test_scores_are_those_of_scikit_learn(case):
    predicted, gold = case
    theirs = {
        "micro_f1": 100 * f1_score(gold, predicted, average="micro", zero_division=0),
        "macro_f1": 100 * f1_score(gold, predicted, average="macro", zero_division=0),
        "exact_match": 100 * accuracy_score(gold, predicted),
    }
    assert label_metrics(predicted, gold).values() == pytest.approx(theirs, abs=1e-9)
    scores = label_metrics(predicted, gold).scores(samples=5)
    assert {score.name: score.value for score in scores} == pytest.approx(theirs, abs=1e-9)
    named = label_metrics(predicted, gold, names=[f"l{k}" for k in range(gold.shape[1])]).scores(samples=5)[3:]
    each = f1_score(gold, predicted, average=None, zero_division=0)
    assert {score.name: score.value for score in named} == pytest.approx(
        {f"f1_l{k}": 100 * value for k, value in enumerate(each)}, abs=1e-9
    )
    assert all(score.n == len(gold) and 0 <= score.low <= score.high <= 100 for score in scores)


@given(labels)
@settings(max_examples=100, deadline=None)
def test_perfect_labels_score_100(gold):
    gold[0] = True  # a label that never occurs counts zero
    assert set(label_metrics(gold, gold).values().values()) == {100}


@given(pairs, st.randoms())
@settings(max_examples=100, deadline=None)
def test_the_order_of_examples_changes_nothing(case, random):
    predicted, gold = case
    order = random.sample(range(len(gold)), len(gold))
    assert label_metrics(predicted[order], gold[order]).values() == label_metrics(predicted, gold).values()


def test_by_hand():
    gold = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]], dtype=bool)
    predicted = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]], dtype=bool)
    # hits 1 1 0, predicted 1 2 0, gold 1 1 1
    expected = {"micro_f1": 400 / 6, "macro_f1": (100 + 200 / 3 + 0) / 3, "exact_match": 100 / 3}
    assert label_metrics(predicted, gold).values() == pytest.approx(expected)


def test_intervals_contain_the_value_and_the_signature_says_how():
    scores = label_metrics(*noisy(0.2, 300, seed=1)).scores(samples=400, seed=9)
    assert [score.name for score in scores] == ["micro_f1", "macro_f1", "exact_match"]
    assert all(0 < score.low < score.value < score.high < 100 for score in scores)
    assert {score.signature for score in scores} == {"any of 4 labels, bootstrap 400, seed 9, 95%"}


def test_a_better_system_is_better_and_no_better_than_itself():
    predicted, gold = noisy(0.3, 200, seed=2)
    ours = label_metrics(predicted, gold)
    found = ours.against(label_metrics(gold, gold))
    assert all(c.b == 100 and c.low > 0 and c.p_value < 0.01 for c in found)
    assert {c.metric: c.a for c in found} == ours.values()
    names = [f"l{k}" for k in range(gold.shape[1])]
    named = label_metrics(predicted, gold, names=names).against(label_metrics(gold, gold, names=names))
    scores = label_metrics(predicted, gold, names=names).scores(samples=5)
    assert {c.metric: c.a for c in named} == pytest.approx({score.name: score.value for score in scores})
    assert all((c.difference, c.low, c.high, c.p_value) == (0, 0, 0, 1) for c in ours.against(ours))


@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (2,), (0, 3)])
def test_labels_of_another_shape_are_refused(shape):
    wrong, gold = np.zeros(shape, dtype=bool), np.zeros((2, 3), dtype=bool)
    with pytest.raises(DataError) as caught:
        label_metrics(wrong, gold)
    assert caught.value.code == "data.shape"
    assert f"{shape}" in caught.value.what


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,)])
def test_nothing_cannot_be_scored(shape):
    nothing = np.zeros(shape, dtype=bool)
    with pytest.raises(DataError) as caught:
        label_metrics(nothing, nothing)
    assert caught.value.code == "data.shape"
    assert f"{shape}" in caught.value.what
