"""Batches: every example once, within the budget, in an order that (seed, epoch) alone decides."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.batching import Indices, epoch_batches, permute, sorted_batches

Lengths = npt.NDArray[np.int64]
quick = settings(max_examples=80, deadline=None)
size_lists = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=120)


def plan(lengths: Lengths, *, batch_tokens: int = 64, seed: int = 1, epoch: int = 0, **options: int) -> list[Indices]:
    return list(
        epoch_batches(
            len(lengths),
            lengths=lambda examples: lengths[examples],
            batch_tokens=batch_tokens,
            seed=seed,
            epoch=epoch,
            **options,
        )
    )


def as_array(sizes: list[tuple[int, int]]) -> Lengths:
    return np.array(sizes, dtype=np.int64).reshape(-1, 2)


def as_lists(batches: list[Indices]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


def captions(n: int = 20_000) -> Lengths:
    """Pairs with the moments of Multi30k's English and German: 12.6 +- 3.7 and 11.9 +- 3.7 words, correlation 0.87."""
    rng = np.random.default_rng(7)
    source = rng.gamma((12.6 / 3.7) ** 2, 3.7**2 / 12.6, n)
    target = 11.9 + 0.88 * (source - 12.6) + rng.normal(0, 1.83, n)
    return np.clip(np.stack([source, target], axis=1).round(), 2, 100).astype(np.int64)


def long_tailed(n: int = 20_000) -> Lengths:
    """Sentences from three words to two hundred, and translations a tenth longer, give or take a tenth."""
    rng = np.random.default_rng(7)
    source = np.clip(rng.lognormal(3.0, 0.6, n), 3, 200)
    return np.stack([source, source * rng.normal(1.1, 0.1, n)], axis=1).astype(np.int64) + 1


# permute


@quick
@given(n=st.one_of(st.integers(1, 300), st.integers(300, 5000)), seed=st.integers(0, 2**40), epoch=st.integers(0, 99))
def test_permute_is_a_bijection(n: int, seed: int, epoch: int) -> None:
    permuted = permute(np.arange(n), n, seed=seed, epoch=epoch)
    assert sorted(permuted.tolist()) == list(range(n))


def test_permute_is_a_bijection_at_every_small_size() -> None:
    for n in range(1, 130):
        assert sorted(permute(np.arange(n), n, seed=3, epoch=2).tolist()) == list(range(n))


@quick
@given(n=st.integers(1, 2000), cut=st.integers(0, 2000), seed=st.integers(0, 999))
def test_permute_works_element_by_element(n: int, cut: int, seed: int) -> None:
    cut = min(cut, n)
    parts = [permute(np.arange(0, cut), n, seed=seed, epoch=0), permute(np.arange(cut, n), n, seed=seed, epoch=0)]
    assert np.concatenate(parts).tolist() == permute(np.arange(n), n, seed=seed, epoch=0).tolist()


def test_permute_differs_by_seed_and_epoch() -> None:
    orders = {
        (seed, epoch): tuple(permute(np.arange(1000), 1000, seed=seed, epoch=epoch).tolist())
        for seed in range(5)
        for epoch in range(5)
    }
    assert len(set(orders.values())) == 25


def test_permute_scatters() -> None:
    n = 10_000
    permuted = permute(np.arange(n), n, seed=1, epoch=0)
    # Neighbours of a random order are n / 3 apart on average, and no place is preferred.
    assert abs(np.abs(np.diff(permuted)).mean() / (n / 3) - 1) < 0.05
    assert abs(np.corrcoef(np.arange(n), permuted)[0, 1]) < 0.05
    quarters = np.histogram(permuted[: n // 4], bins=4, range=(0, n))[0]
    assert (abs(quarters - n / 16) < 150).all()


def test_permute_of_a_huge_corpus_needs_no_array_of_its_size() -> None:
    n = 10**12
    permuted = permute(np.arange(1000), n, seed=1, epoch=0)
    assert len(set(permuted.tolist())) == 1000
    assert permuted.min() >= 0
    assert n // 2 < permuted.max() < n


# epoch_batches


@quick
@given(sizes=size_lists, seed=st.integers(0, 99), pool=st.integers(1, 200), batch_tokens=st.integers(1, 100))
def test_each_example_once_and_within_the_budget(
    sizes: list[tuple[int, int]], seed: int, pool: int, batch_tokens: int
) -> None:
    lengths = as_array(sizes)
    batches = plan(lengths, seed=seed, pool=pool, batch_tokens=batch_tokens)
    assert sorted(i for batch in batches for i in batch) == list(range(len(sizes)))
    for batch in batches:
        assert len(batch) * lengths[batch].max() <= batch_tokens or len(batch) == 1


def test_an_example_over_the_budget_stands_alone() -> None:
    lengths = as_array([(3, 3), (100, 2), (3, 4), (2, 100), (1, 1)])
    batches = plan(lengths, batch_tokens=20)
    assert sorted(map(sorted, as_lists(batches))) == [[0, 2, 4], [1], [3]]


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    lengths = long_tailed(500)
    plans = {(seed, epoch): as_lists(plan(lengths, seed=seed, epoch=epoch)) for seed in (1, 2) for epoch in (0, 1, 2)}
    for (seed, epoch), batches in plans.items():
        np.random.seed(epoch)  # a global generator has no part in it
        assert as_lists(plan(lengths, seed=seed, epoch=epoch)) == batches
    assert len({str(batches) for batches in plans.values()}) == len(plans)
    members = {str(sorted(map(sorted, batches))) for batches in plans.values()}
    assert len(members) == len(plans)  # not only the order of the batches, but who is with whom


def test_batches_do_not_come_by_length() -> None:
    lengths = long_tailed(5000)
    longest = [lengths[batch].max() for batch in plan(lengths, batch_tokens=512)]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.15


@pytest.mark.parametrize("lengths_of", [captions, long_tailed])
def test_padding_is_small(lengths_of: Callable[[], Lengths]) -> None:
    lengths = lengths_of()
    batches = plan(lengths, batch_tokens=4096)
    real = lengths.sum()
    padded = sum(len(batch) * lengths[batch].max(axis=0).sum() for batch in batches)
    assert 0 < 1 - real / padded < 0.06


def test_batches_are_full() -> None:
    lengths = long_tailed()
    batches = plan(lengths, batch_tokens=4096)
    filled = sum(len(batch) * lengths[batch].max() for batch in batches) / (4096 * len(batches))
    assert filled > 0.95


def test_a_pool_smaller_than_the_corpus() -> None:
    lengths = long_tailed(3000)
    asked: list[int] = []

    def counted(examples: Indices) -> Lengths:
        asked.append(len(examples))
        return lengths[examples]

    batches = list(epoch_batches(3000, lengths=counted, batch_tokens=1024, seed=1, epoch=0, pool=256))
    assert sorted(i for batch in batches for i in batch) == list(range(3000))
    assert max(asked) == 256
    assert sum(asked) == 3000
    # A pool is a random part of the corpus, not a stretch of it.
    first = np.concatenate(batches[:5])
    assert first.max() - first.min() > 2000


def test_the_plan_is_made_as_it_is_taken() -> None:
    asked: list[int] = []

    def counted(examples: Indices) -> Lengths:
        asked.append(len(examples))
        return np.ones((len(examples), 2), dtype=np.int64)

    batches = epoch_batches(10**9, lengths=counted, batch_tokens=10, seed=1, epoch=0, pool=100)
    assert len(next(batches)) == 10
    assert asked == [100]


def test_no_examples_no_batches() -> None:
    assert plan(as_array([])) == []


# sorted_batches


@quick
@given(sizes=st.lists(st.integers(1, 40), max_size=60), batch_tokens=st.integers(1, 100))
def test_sorted_batches(sizes: list[int], batch_tokens: int) -> None:
    array = np.array(sizes, dtype=np.int64)
    batches = sorted_batches(array, batch_tokens)
    assert sorted(i for batch in batches for i in batch) == list(range(len(sizes)))
    assert all(len(batch) * array[batch].max() <= batch_tokens or len(batch) == 1 for batch in batches)
    longest = [array[batch].max() for batch in batches]
    assert longest == sorted(longest, reverse=True)
    assert as_lists(sorted_batches(array, batch_tokens)) == as_lists(batches)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sorted_batches_of_one_size_keep_their_order(dtype: type) -> None:
    assert as_lists(sorted_batches(np.full(6, 5, dtype=dtype), 10)) == [[4, 5], [2, 3], [0, 1]]
