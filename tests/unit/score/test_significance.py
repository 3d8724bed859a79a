import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.errors import DataError
from jumok.score import significance
from jumok.score.significance import Metric, Metrics, bootstrap, compare, require_pairs


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def f1(sums):
    true_positive, false_positive, false_negative = (sums[..., part] for part in range(3))
    return 200 * true_positive / np.maximum(2 * true_positive + false_positive + false_negative, 1)


def successes(draws):
    return np.column_stack([draws, np.ones_like(draws)])


def coin(probability, n, seed):
    return successes((np.random.default_rng(seed).random(n) < probability).astype(np.int64))


def test_interval_of_a_mean_agrees_with_the_normal_approximation():
    n, probability = 2000, 0.3
    statistics = coin(probability, n, seed=1)
    low, high = bootstrap(statistics, mean)
    value = statistics[:, 0].mean()
    half_width = 1.96 * np.sqrt(value * (1 - value) / n)
    assert low < value < high
    assert high - low == pytest.approx(2 * half_width, rel=0.1)


def test_interval_covers_the_true_value_about_as_often_as_its_level_says():
    intervals = [bootstrap(coin(0.4, 150, seed), mean, samples=300, seed=seed) for seed in range(200)]
    assert 0.90 <= np.mean([low <= 0.4 <= high for low, high in intervals]) <= 0.99
    narrow = [bootstrap(coin(0.4, 150, seed), mean, samples=300, level=0.5) for seed in range(200)]
    assert 0.38 <= np.mean([low <= 0.4 <= high for low, high in narrow]) <= 0.62


def test_interval_equals_a_plain_loop_over_resamples():
    statistics = np.random.default_rng(3).integers(0, 9, size=(37, 3))
    rng = np.random.default_rng(12345)
    values = [float(f1(statistics[rng.integers(37, size=37)].sum(axis=0))) for _ in range(200)]
    assert bootstrap(statistics, f1, samples=200) == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=1e-9)


def test_interval_does_not_depend_on_how_many_weights_are_drawn_at_once(monkeypatch):
    statistics = coin(0.5, 101, seed=4)
    at_once = bootstrap(statistics, mean, samples=50)
    for weights in (1, 101, 750):
        monkeypatch.setattr(significance, "_WEIGHTS_AT_ONCE", weights)
        assert bootstrap(statistics, mean, samples=50) == at_once


def test_the_seed_decides_the_interval():
    statistics = coin(0.5, 200, seed=5)
    assert bootstrap(statistics, mean, seed=1) == bootstrap(statistics, mean, seed=1)
    assert bootstrap(statistics, mean, seed=1) != bootstrap(statistics, mean, seed=2)


def test_one_example_has_an_interval_of_no_width():
    assert bootstrap(np.array([[1, 3]]), mean) == pytest.approx((1 / 3, 1 / 3))


@given(st.lists(st.tuples(*[st.integers(0, 20)] * 3), min_size=1, max_size=30), st.randoms())
@settings(max_examples=50, deadline=None)
def test_the_value_does_not_depend_on_the_order_of_the_examples(rows, random):
    shuffled = random.sample(rows, len(rows))
    metrics = [Metrics((Metric("f1", np.array(order), f1),)) for order in (rows, shuffled)]
    (one,), (other,) = (each.scores(samples=20) for each in metrics)
    assert one.value == other.value == float(f1(np.array(rows).sum(axis=0)))
    assert metrics[0].values() == metrics[1].values() == {"f1": one.value}


def test_score_carries_its_name_interval_and_signature():
    statistics = coin(0.6, 300, seed=6)
    (score,) = Metrics((Metric("accuracy", statistics, mean),), rule="rule").scores(samples=100, seed=9)
    assert (score.name, score.n) == ("accuracy", 300)
    assert score.signature == "rule, bootstrap 100, seed 9, 95%"
    assert (score.low, score.high) == bootstrap(statistics, mean, samples=100, seed=9)
    assert score.low <= score.value <= score.high
    own = Metric("accuracy", statistics, mean, "own|bs:{samples}|seed:{seed}")
    assert Metrics((own,), rule="{not filled in}").scores(samples=7, seed=3)[0].signature == "own|bs:7|seed:3"


def test_a_system_does_not_differ_from_itself():
    statistics = np.random.default_rng(7).integers(0, 9, size=(80, 3))
    same = compare(statistics, statistics, f1, metric="f1")
    assert (same.difference, same.low, same.high, same.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_a_clear_difference_is_significant_and_changes_sign_with_the_order():
    worse, better = coin(0.3, 400, seed=8), coin(0.6, 400, seed=9)
    forward = compare(worse, better, mean, metric="accuracy")
    backward = compare(better, worse, mean, metric="accuracy")
    assert forward.difference == -backward.difference == pytest.approx(0.3, abs=0.1)
    assert 0 < forward.low < forward.difference < forward.high
    assert forward.p_value == backward.p_value == 1 / 1001
    assert (forward.metric, forward.n) == ("accuracy", 400)
    assert "randomization 1000" in forward.test
    assert "bootstrap 1000" in forward.test
    assert "seed 12345" in forward.test


def test_p_value_agrees_with_counting_every_exchange():
    # Six differences of one sign: of the 64 exchanges only none and all are as large, so p = 2/64.
    a, b = np.full(6, 0.1), np.array([0.3, 0.7, 0.2, 0.9, 0.4, 0.6])
    result = compare(successes(a), successes(b), mean, metric="mean", samples=20_000)
    assert result.p_value == pytest.approx(2 / 64, abs=0.005)


def test_p_values_of_equal_systems_are_spread_evenly():
    comparisons = [
        compare(coin(0.5, 120, 2 * seed), coin(0.5, 120, 2 * seed + 1), mean, metric="accuracy", samples=200)
        for seed in range(200)
    ]
    below = np.mean([comparison.p_value <= 0.1 for comparison in comparisons])
    assert 0.03 <= below <= 0.17


def test_comparison_is_reproducible():
    a, b = coin(0.5, 90, seed=10), coin(0.55, 90, seed=11)
    assert compare(a, b, mean, metric="m", seed=3) == compare(a, b, mean, metric="m", seed=3)
    assert compare(a, b, mean, metric="m", seed=3) != compare(a, b, mean, metric="m", seed=4)


@pytest.mark.parametrize("statistics", [np.zeros((0, 2)), np.zeros(3)], ids=["no examples", "no second axis"])
def test_statistics_that_cannot_be_scored_are_refused(statistics):
    for call in (
        lambda: bootstrap(statistics, mean),
        lambda: compare(statistics, statistics, mean, metric="m"),
    ):
        with pytest.raises(DataError) as caught:
            call()
        assert caught.value.code == "data.shape"
        assert f"{statistics.shape}" in caught.value.what


def test_systems_of_different_size_are_refused():
    a, b = coin(0.5, 4, 1), coin(0.5, 5, 1)
    with pytest.raises(DataError) as caught:
        compare(a, b, mean, metric="m")
    assert caught.value.code == "data.shape"
    assert f"{a.shape} and {b.shape}" in caught.value.what


def test_metrics_are_scored_and_compared_one_by_one():
    a, b = (
        Metrics(
            (Metric("share", coin(0.4, 60, seed), mean), Metric("share_of_half", coin(0.6, 30, seed), mean)), "coins"
        )
        for seed in (12, 13)
    )
    scores = a.scores(samples=50, seed=3)
    assert [(score.name, score.n) for score in scores] == [("share", 60), ("share_of_half", 30)]
    assert [(score.low, score.high) for score in scores] == [
        bootstrap(metric.statistics, mean, samples=50, seed=3) for metric in a.metrics
    ]
    assert {score.signature for score in scores} == {"coins, bootstrap 50, seed 3, 95%"}
    assert a.values() == {score.name: score.value for score in scores}
    assert a.values("share_of_half") == a.only(["share_of_half"]).values() == {"share_of_half": scores[1].value}
    assert a.against(b, samples=50, seed=3) == [
        compare(ours.statistics, theirs.statistics, mean, metric=ours.name, samples=50, seed=3)
        for ours, theirs in zip(a.metrics, b.metrics, strict=True)
    ]


def test_systems_with_different_metrics_are_refused():
    one, other = (Metric(name, coin(0.5, 4, 1), mean) for name in ("share", "half"))
    for theirs in ((other,), (one, other), (other, one), ()):
        with pytest.raises(DataError) as caught:
            Metrics((one,)).against(Metrics(theirs))
        assert caught.value.code == "data.shape"
        assert "share" in caught.value.what
    with pytest.raises(DataError) as caught:
        Metrics((one,)).against(Metrics((one._replace(statistics=coin(0.5, 5, 1)),)))
    assert caught.value.code == "data.shape"


@pytest.mark.parametrize(("predicted", "gold", "code"), [("ab", "a", "data.counts"), ("", "", "data.empty")])
def test_predictions_that_do_not_pair_up_are_refused(predicted, gold, code):
    require_pairs("a", "b")
    with pytest.raises(DataError) as caught:
        require_pairs(predicted, gold, what="guesses", of="riddles")
    assert caught.value.code == code
    assert f"{len(predicted)} guesses" in caught.value.what
    assert f"{len(gold)} riddles" in caught.value.what
