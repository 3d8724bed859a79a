"""Correlations equal scipy's."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, rankdata, spearmanr

from jumok.errors import DataError
from jumok.score.numbers import number_metrics, ranks

number = st.integers(-50, 50).map(lambda n: n / 8) | st.sampled_from([0.1, 0.2, 0.3, 3.14])
pairs = st.lists(st.tuples(number, number), min_size=1, max_size=20).map(lambda rows: tuple(zip(*rows, strict=True)))


def noisy(noise, n, seed):
    rng = np.random.default_rng(seed)
    gold = rng.uniform(0, 5, size=n).round(1)
    return gold + noise * rng.normal(size=n), gold


@given(pairs)
@example(((1.0, 2.0), (1.0, 2.0)))
@example(((1e6, 1e6 + 1, 1e6 + 2), (0.0, 1.0, 5.0)))
@settings(max_examples=300, deadline=None)
def test_scores_are_those_of_scipy(case):
    predicted, gold = case
    assume(len(set(predicted)) > 1 and len(set(gold)) > 1)
    theirs = {
        "pearson": 100 * pearsonr(predicted, gold).statistic,
        "spearman": 100 * spearmanr(predicted, gold).statistic,
        "mean_absolute_error": np.mean(np.abs(np.subtract(predicted, gold))),
    }
    assert number_metrics(predicted, gold).values() == pytest.approx(theirs, abs=1e-7)
    scores = number_metrics(predicted, gold).scores(samples=5)
    assert {score.name: score.value for score in scores} == pytest.approx(theirs, abs=1e-7)
    assert all(score.n == len(gold) for score in scores)
    assert all(-100 <= score.low <= score.high <= 100 for score in scores[:2])


@given(st.lists(number, min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_ranks_are_those_of_scipy(numbers):
    assert ranks(np.array(numbers)).tolist() == rankdata(numbers).tolist()


@given(number, st.lists(number, min_size=1, max_size=30))
@example(0.1, [0.1, 0.2, 0.3])
@settings(max_examples=200, deadline=None)
def test_a_constant_side_correlates_with_nothing(constant, numbers):
    for case in ((numbers, [constant] * len(numbers)), ([constant] * len(numbers), numbers)):
        scores = number_metrics(*case).scores(samples=10)
        assert [(s.value, s.low, s.high) for s in scores[:2]] == [(0, 0, 0)] * 2


@given(st.lists(number, min_size=2, max_size=30))
@settings(max_examples=100, deadline=None)
def test_what_is_perfect_up_to_scale_correlates_fully(gold):
    assume(len(set(gold)) > 1)
    perfect = number_metrics(gold, gold).values()
    assert perfect == pytest.approx({"pearson": 100, "spearman": 100, "mean_absolute_error": 0}, abs=1e-9)
    scaled = number_metrics([3 * x - 7 for x in gold], gold).values()
    assert (scaled["pearson"], scaled["spearman"]) == pytest.approx((100, 100))
    upside_down = number_metrics([-x for x in gold], gold).values()
    assert (upside_down["pearson"], upside_down["spearman"]) == pytest.approx((-100, -100))


@given(pairs, st.randoms())
@settings(max_examples=100, deadline=None)
def test_the_order_of_examples_changes_nothing(case, random):
    order = random.sample(range(len(case[0])), len(case[0]))
    shuffled = number_metrics(*([side[i] for i in order] for side in case)).values()
    assert shuffled == pytest.approx(number_metrics(*case).values(), abs=1e-7)


def test_by_hand():
    predicted, gold = [1.0, 2.0, 2.0, 5.0], [1.0, 2.0, 3.0, 4.0]
    # deviations -1.5 -0.5 -0.5 2.5 and -1.5 -0.5 0.5 1.5: 6 / sqrt(9 · 5)
    # ranks 1 2.5 2.5 4 and 1 2 3 4: 4.5 / sqrt(4.5 · 5)
    expected = {"pearson": 600 / np.sqrt(45), "spearman": 450 / np.sqrt(22.5), "mean_absolute_error": 0.5}
    assert number_metrics(predicted, gold).values() == pytest.approx(expected)


def test_intervals_contain_the_value_and_the_signature_says_how():
    scores = number_metrics(*noisy(1.5, 300, seed=1)).scores(samples=400, seed=9)
    assert [score.name for score in scores] == ["pearson", "spearman", "mean_absolute_error"]
    assert all(0 < score.low < score.value < score.high < 100 for score in scores)
    assert {score.signature for score in scores} == {"ranks of the whole set, bootstrap 400, seed 9, 95%"}


def test_the_interval_is_that_of_a_plain_loop_over_resamples():
    predicted, gold = noisy(1.5, 40, seed=2)
    rng = np.random.default_rng(12345)
    drawn = [rng.integers(40, size=40) for _ in range(300)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_scipy = [100 * pearsonr(predicted[d], gold[d]).statistic for d in drawn]
        by_rank = [100 * pearsonr(rankdata(predicted)[d], rankdata(gold)[d]).statistic for d in drawn]
    found = number_metrics(predicted, gold).scores(samples=300)
    for score, values in zip(found[:2], (by_scipy, by_rank), strict=True):
        assert (score.low, score.high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=1e-9)


def test_a_better_system_is_better_and_no_better_than_itself():
    predicted, gold = noisy(2.0, 200, seed=3)
    ours = number_metrics(predicted, gold)
    found = ours.against(number_metrics(gold, gold))
    assert {c.metric: c.a for c in found} == pytest.approx(ours.values())
    assert all(c.b == pytest.approx(100) and c.low > 0 and c.p_value < 0.01 for c in found[:2])
    assert found[2].b == 0 > found[2].high  # an error is better if it is lower
    assert all((c.difference, c.low, c.high, c.p_value) == (0, 0, 0, 1) for c in ours.against(ours))


def test_a_system_on_another_scale_correlates_no_worse_and_no_better():
    predicted, gold = noisy(1.0, 100, seed=4)
    pearson, spearman, error = number_metrics(predicted, gold).against(number_metrics(40 + predicted / 5, gold))
    for c in (pearson, spearman):
        assert c.difference == pytest.approx(0, abs=1e-9)
        assert c.p_value == 1
    assert error.difference > 30
    assert error.p_value < 0.01


@pytest.mark.parametrize("predicted", [[1.0], [1.0, 2.0, 3.0]])
def test_as_many_predictions_as_numbers(predicted):
    with pytest.raises(DataError) as caught:
        number_metrics(predicted, [1.0, 2.0])
    assert (caught.value.code, re.findall(r"\d+", caught.value.what)) == ("data.counts", [str(len(predicted)), "2"])


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused(wrong):
    with pytest.raises(DataError) as caught:
        number_metrics([1.0, wrong], [1.0, 2.0])
    assert caught.value.code == "data.not_finite"
    with pytest.raises(DataError) as caught:
        number_metrics([1.0, 2.0], [1.0, wrong])
    assert caught.value.code == "data.not_finite"
