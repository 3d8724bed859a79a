"""Accuracy and macro-F1 equal scikit-learn's; calibration on cases that can be done by hand."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from jumok.errors import DataError
from jumok.score.classification import calibration_error, compare_classes, quick_scores, score_classes


@st.composite
def answers(draw):
    """How many labels there are, what was said and what is right; some labels may never occur."""
    n_labels = draw(st.integers(2, 6))
    label = st.integers(0, n_labels - 1)
    rows = draw(st.lists(st.tuples(label, label) | label.map(lambda same: (same, same)), min_size=1, max_size=30))
    predicted, gold = zip(*rows, strict=True)
    return n_labels, list(predicted), list(gold)


def right_at(rate, n, seed, n_labels=3):
    rng = np.random.default_rng(seed)
    gold = rng.integers(n_labels, size=n)
    predicted = np.where(rng.random(n) < rate, gold, (gold + 1) % n_labels)
    return predicted.tolist(), gold.tolist()


@given(answers())
@example((2, [0], [1]))
@example((6, [0, 0, 0], [0, 0, 0]))
@settings(max_examples=200, deadline=None)
def test_scores_are_those_of_scikit_learn(case):
    n_labels, predicted, gold = case
    theirs = {
        "accuracy": 100 * accuracy_score(gold, predicted),
        "macro_f1": 100 * f1_score(gold, predicted, labels=list(range(n_labels)), average="macro", zero_division=0),
    }
    assert quick_scores(predicted, gold, n_labels=n_labels) == pytest.approx(theirs, abs=1e-9)
    scores = score_classes(predicted, gold, n_labels=n_labels, samples=5)
    assert {score.name: score.value for score in scores} == pytest.approx(theirs, abs=1e-9)
    assert all(score.n == len(gold) and 0 <= score.low <= score.high <= 100 for score in scores)


@pytest.mark.parametrize("rate", [0.2, 0.7, 0.95])
def test_intervals_contain_the_value_and_narrow_with_more_examples(rate):
    widths = []
    for n in (200, 3200):
        predicted, gold = right_at(rate, n, seed=1)
        scores = score_classes(predicted, gold, n_labels=3)
        assert all(score.low < score.value < score.high for score in scores)
        widths.append([score.high - score.low for score in scores])
    assert np.divide(*widths) == pytest.approx([4, 4], rel=0.25)  # as the root of 16


def test_the_signature_says_how():
    predicted, gold = right_at(0.5, 20, seed=2)
    assert {score.signature for score in score_classes(predicted, gold, n_labels=3, samples=7, seed=9)} == {
        "3 labels, bootstrap 7, seed 9, 95%"
    }


def test_a_system_is_not_better_than_itself():
    predicted, gold = right_at(0.6, 80, seed=3)
    found = compare_classes(predicted, predicted, gold, n_labels=3)
    assert [comparison.metric for comparison in found] == ["accuracy", "macro_f1"]
    assert all((c.difference, c.low, c.high, c.p_value) == (0, 0, 0, 1) for c in found)


def test_a_better_system_is_better():
    predicted, gold = right_at(0.5, 300, seed=4)
    found = compare_classes(predicted, gold, gold, n_labels=3)
    assert all(c.b == 100 and c.difference > 30 and c.low > 0 and c.p_value < 0.01 for c in found)
    assert [c.a for c in found] == list(quick_scores(predicted, gold, n_labels=3).values())


@pytest.mark.parametrize("predicted", [[0], [0, 1, 1]])
def test_as_many_predictions_as_labels(predicted):
    for score in (score_classes, quick_scores):
        with pytest.raises(DataError, match=f"{len(predicted)} predictions for 2 labels"):
            score(predicted, [0, 1], n_labels=2)
    for a, b in ((predicted, [0, 1]), ([0, 1], predicted)):
        with pytest.raises(DataError, match=f"{len(predicted)} predictions for 2 labels"):
            compare_classes(a, b, [0, 1], n_labels=2)


def test_nothing_cannot_be_scored():
    with pytest.raises(DataError, match="0 predictions for 0 labels"):
        score_classes([], [], n_labels=2)


# calibration


@pytest.mark.parametrize(
    ("confidence", "right", "error"),
    [
        ([1.0] * 4, [True] * 4, 0),
        ([1.0] * 4, [False] * 4, 100),
        ([0.75] * 4, [True, True, True, False], 0),
        ([0.9] * 10, [True] * 5 + [False] * 5, 40),
        ([0.5, 0.5, 0.5, 0.5], [True] * 4, 50),  # not sure enough is as wrong as too sure
        ([0.55, 0.95], [True, False], (0.45 + 0.95) / 2 * 100),  # each bin for itself: gaps do not cancel
        ([0.61, 0.69], [True, False], 15),  # one bin: sure 0.65, right 0.5
        ([0.2, 0.95, 0.95, 0.95], [False, True, True, True], (0.2 + 3 * 0.05) / 4 * 100),  # bins weigh as they are full
    ],
)
def test_calibration_by_hand(confidence, right, error):
    assert calibration_error(confidence, right) == pytest.approx(error, abs=1e-9)


def test_bins_may_be_fewer():
    assert calibration_error([0.55, 0.95], [True, False], bins=2) == pytest.approx(25)


def test_a_model_that_means_what_it_says_is_calibrated():
    rng = np.random.default_rng(5)
    sure = rng.uniform(0.3, 1.0, size=40_000)
    assert calibration_error(sure, rng.random(40_000) < sure) < 1
    assert calibration_error(sure, rng.random(40_000) < sure - 0.2) == pytest.approx(20, abs=1)
