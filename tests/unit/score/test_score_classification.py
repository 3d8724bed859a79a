"""Accuracy, macro-F1 and Matthews correlation equal scikit-learn's; calibration by hand, temperature by scipy."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp
from scipy.special import softmax as scipy_softmax
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from jumok.errors import DataError
from jumok.score.classification import (
    COLDEST,
    HOTTEST,
    calibration_error,
    class_metrics,
    softmax,
    temperature_for,
    temperature_for_labels,
)


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


def matthews(gold, predicted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a single label makes scikit-learn warn, and answer zero
        return 100 * matthews_corrcoef(gold, predicted)


@given(answers())
@example((2, [0], [1]))
@example((6, [0, 0, 0], [0, 0, 0]))
@example((3, [1, 1, 1], [0, 1, 2]))
@example((3, [0, 1, 2], [1, 1, 1]))
@settings(max_examples=200, deadline=None)
def test_scores_are_those_of_scikit_learn(case):
    n_labels, predicted, gold = case
    theirs = {
        "accuracy": 100 * accuracy_score(gold, predicted),
        "macro_f1": 100 * f1_score(gold, predicted, labels=list(range(n_labels)), average="macro", zero_division=0),
        "mcc": matthews(gold, predicted),
    }
    assert class_metrics(predicted, gold, n_labels=n_labels).values() == pytest.approx(theirs, abs=1e-9)
    scores = class_metrics(predicted, gold, n_labels=n_labels).scores(samples=5)
    assert {score.name: score.value for score in scores} == pytest.approx(theirs, abs=1e-9)
    each = f1_score(gold, predicted, labels=list(range(n_labels)), average=None, zero_division=0)
    names = [f"label {k}" for k in range(n_labels)]
    named = class_metrics(predicted, gold, n_labels=n_labels, names=names).scores(samples=5)
    assert named[:3] == scores
    assert [score.name for score in named[3:]] == [f"f1_{name}" for name in names]
    assert [score.value for score in named[3:]] == pytest.approx((100 * each).tolist(), abs=1e-9)
    lowest = {"accuracy": 0, "macro_f1": 0, "mcc": -100}
    assert all(score.n == len(gold) and lowest[score.name] <= score.low <= score.high <= 100 for score in scores)


@given(answers(), st.randoms())
@settings(max_examples=100, deadline=None)
def test_the_order_of_examples_changes_nothing(case, random):
    n_labels, predicted, gold = case
    order = random.sample(range(len(gold)), len(gold))
    shuffled = class_metrics([predicted[i] for i in order], [gold[i] for i in order], n_labels=n_labels).values()
    assert shuffled == class_metrics(predicted, gold, n_labels=n_labels).values()


def test_matthews_correlation_by_hand():
    # tp 6, fn 2, fp 1, tn 3: (6·3 - 1·2) / sqrt(7·8·4·5)
    gold, predicted = [1] * 8 + [0] * 4, [1] * 6 + [0] * 2 + [1] + [0] * 3

    def mcc(predicted):
        return class_metrics(predicted, gold, n_labels=2).values("mcc")["mcc"]

    assert mcc(predicted) == pytest.approx(100 * 16 / np.sqrt(7 * 8 * 4 * 5))
    assert mcc(gold) == 100
    assert mcc([1 - label for label in gold]) == -100
    assert mcc([1] * 12) == 0  # always the same says nothing


@pytest.mark.parametrize("rate", [0.2, 0.7, 0.95])
def test_intervals_contain_the_value_and_narrow_with_more_examples(rate):
    widths = []
    for n in (200, 3200):
        predicted, gold = right_at(rate, n, seed=1)
        scores = class_metrics(predicted, gold, n_labels=3).scores()
        assert all(score.low < score.value < score.high for score in scores)
        widths.append([score.high - score.low for score in scores])
    assert np.divide(*widths) == pytest.approx([4, 4, 4], rel=0.25)  # as the root of 16


def test_the_signature_says_how():
    predicted, gold = right_at(0.5, 20, seed=2)
    assert {score.signature for score in class_metrics(predicted, gold, n_labels=3).scores(samples=7, seed=9)} == {
        "3 labels, bootstrap 7, seed 9, 95%"
    }


def test_a_system_is_not_better_than_itself():
    predicted, gold = right_at(0.6, 80, seed=3)
    metrics = class_metrics(predicted, gold, n_labels=3)
    found = metrics.against(metrics)
    assert [comparison.metric for comparison in found] == ["accuracy", "macro_f1", "mcc"]
    assert all((c.difference, c.low, c.high, c.p_value) == (0, 0, 0, 1) for c in found)


def test_a_better_system_is_better():
    predicted, gold = right_at(0.5, 300, seed=4)
    ours, perfect = (class_metrics(side, gold, n_labels=3) for side in (predicted, gold))
    found = ours.against(perfect)
    assert all(c.b == 100 and c.difference > 30 and c.low > 0 and c.p_value < 0.01 for c in found)
    assert {c.metric: c.a for c in found} == ours.values()
    ours, perfect = (class_metrics(side, gold, n_labels=3, names="abc") for side in (predicted, gold))
    scores = {score.name: score.value for score in ours.scores(samples=5)}
    assert {c.metric: c.a for c in ours.against(perfect)} == pytest.approx(scores)


@pytest.mark.parametrize("predicted", [[0], [0, 1, 1]])
def test_as_many_predictions_as_labels(predicted):
    with pytest.raises(DataError) as caught:
        class_metrics(predicted, [0, 1], n_labels=2)
    assert (caught.value.code, re.findall(r"\d+", caught.value.what)) == ("data.counts", [str(len(predicted)), "2"])


def test_nothing_cannot_be_scored():
    with pytest.raises(DataError) as caught:
        class_metrics([], [], n_labels=2)
    assert caught.value.code == "data.empty"


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


# temperature


def likelihood(logits, gold, temperature):
    """Mean log-likelihood, by scipy."""
    scaled = np.asarray(logits) / temperature
    return float(np.mean(scaled[np.arange(len(gold)), gold] - logsumexp(scaled, axis=1)))


@st.composite
def outputs(draw):
    n, n_labels = draw(st.integers(1, 12)), draw(st.integers(2, 5))
    logit = st.floats(-30, 30, width=32)
    row = st.lists(logit, min_size=n_labels, max_size=n_labels)
    label = st.integers(0, n_labels - 1)
    return draw(st.lists(row, min_size=n, max_size=n)), draw(st.lists(label, min_size=n, max_size=n))


@given(outputs(), st.floats(COLDEST, HOTTEST))
@settings(max_examples=300, deadline=None)
def test_no_other_temperature_is_likelier(case, other):
    logits, gold = case
    found = temperature_for(logits, gold)
    assert COLDEST <= found <= HOTTEST
    best = likelihood(logits, gold, found)
    for rival in (1.0, other, COLDEST, HOTTEST):
        assert best >= likelihood(logits, gold, rival) - 1e-9


@pytest.mark.parametrize(("scale", "seed"), [(0.5, 1), (3.0, 2), (8.0, 3)])
def test_the_temperature_is_the_one_scipy_finds_and_the_one_that_was_put_in(scale, seed):
    rng = np.random.default_rng(seed)
    honest = rng.normal(size=(4000, 4)) * 2
    gold = (honest + rng.gumbel(size=honest.shape)).argmax(axis=1)  # drawn from softmax(honest)
    logits = honest * scale
    theirs = minimize_scalar(
        lambda log_t: -likelihood(logits, gold, np.exp(log_t)), bounds=np.log([COLDEST, HOTTEST]), method="bounded"
    )
    found = temperature_for(logits, gold)
    assert found == pytest.approx(np.exp(theirs.x), rel=1e-4)
    assert found == pytest.approx(scale, rel=0.1)
    calibrated = [softmax(logits, t) for t in (1.0, found)]
    right = [(p.argmax(axis=1) == gold) for p in calibrated]
    before, after = (calibration_error(p.max(axis=1), hit) for p, hit in zip(calibrated, right, strict=True))
    assert after < 3 < before
    assert np.array_equal(right[0], right[1])  # the temperature changes no decision


@pytest.mark.parametrize(
    ("logits", "gold", "temperature"),
    [
        ([[3, 1], [0, 2]], [0, 1], COLDEST),  # all right
        ([[3000, 1], [0, 2000]], [0, 1], COLDEST),  # and surer than a float can say
        ([[3, 1], [0, 2]], [1, 0], HOTTEST),  # all wrong
        ([[1, 5, 2]], [1], COLDEST),
        ([[1, 5, 2]], [0], HOTTEST),
        ([[1, 1], [4, 4]], [0, 1], 1),  # undecided at every temperature
        # right 3 times of 4, always by 2: sigmoid(2 / T) = 3/4
        ([[2, 0]] * 4, [0, 0, 0, 1], 2 / np.log(3)),
    ],
)
def test_temperature_by_hand(logits, gold, temperature):
    assert temperature_for(logits, gold) == pytest.approx(temperature, rel=1e-9)


@given(st.lists(st.tuples(st.floats(-30, 30, width=32), st.booleans()), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_the_temperature_of_labels_is_at_least_as_likely_as_one(cells):
    logits, gold = (np.array(side)[:, None] for side in zip(*cells, strict=True))

    def loss(temperature):
        return -np.mean(np.log(np.maximum(expit(np.where(gold, logits, -logits) / temperature), 1e-300)))

    found = temperature_for_labels(logits, gold)
    assert COLDEST <= found <= HOTTEST
    assert loss(found) <= loss(1.0) + 1e-9


def test_the_temperature_of_labels_is_found_again():
    rng = np.random.default_rng(6)
    honest = rng.normal(size=(3000, 4)) * 2
    gold = rng.random(honest.shape) < expit(honest)
    assert temperature_for_labels(honest * 4, gold) == pytest.approx(4, rel=0.1)
    assert temperature_for_labels([[2.0, 2.0], [2.0, 2.0]], [[1, 1], [1, 0]]) == pytest.approx(2 / np.log(3))
    assert temperature_for_labels([[2.0, -1.0]], [[True, False]]) == COLDEST


def test_softmax_is_scipys():
    logits = np.array([[1.0, 2.0, -3.0], [900.0, 0.0, 900.0]])
    for temperature in (0.05, 1.0, 7.0):
        assert np.allclose(softmax(logits, temperature), scipy_softmax(logits / temperature, axis=1))
    assert np.array_equal(softmax(logits), softmax(logits, 1.0))


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: temperature_for([[1, 2]], [0, 1]), "data.counts"),
        (lambda: temperature_for([], []), "data.empty"),
        (lambda: temperature_for([[1, float("nan")]], [0]), "data.not_finite"),
        (lambda: temperature_for_labels([[1.0, 2.0]], [[True]]), "data.shape"),
    ],
)
def test_logits_without_a_temperature_are_refused(call, code):
    with pytest.raises(DataError) as caught:
        call()
    assert caught.value.code == code
