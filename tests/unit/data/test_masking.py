"""Masking hides what it says at the rates that it says; packing loses nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.masking import Masking, pack

SPECIAL, MASK, V = 5, 4, 200
ORDINARY = np.arange(SPECIAL, V)
GOES_ON = np.arange(V) >= 120  # pieces 120.. continue a word


def masking(*, whole_words: bool = False, share: float = 0.15) -> Masking:
    return Masking(share, MASK, ORDINARY, GOES_ON if whole_words else None)


def text(words: list[int], rng: np.random.Generator) -> np.ndarray:
    """[CLS], words of so many pieces each, [SEP]."""
    ids = [2]
    for n in words:
        ids += [int(rng.integers(SPECIAL, 120)), *rng.integers(120, V, n - 1).tolist()]
    return np.array([*ids, 3])


@pytest.mark.parametrize("whole_words", [False, True])
def test_rates_are_exact_for_words_of_every_length(whole_words: bool) -> None:
    rng = np.random.default_rng(1)
    hits, seen = np.zeros(5), np.zeros(5)
    kinds = np.zeros(3)
    for _ in range(4000):
        words = rng.integers(1, 5, int(rng.integers(2, 25))).tolist()
        ids = text(words, rng)
        hidden, positions = masking(whole_words=whole_words).hide(ids, rng=rng)
        sizes = np.array([0, *np.repeat(words, words), 0])
        for size in range(1, 5):
            seen[size] += (sizes == size).sum()
            hits[size] += (sizes[positions] == size).sum()
        new, old = hidden[positions], ids[positions]
        kinds += [(new == MASK).sum(), ((new != MASK) & (new != old)).sum(), (new == old).sum()]
    # standard errors: about 0.0015 of 30,000 words' pieces, 0.003 of 18,000 fates
    np.testing.assert_allclose(hits[1:] / seen[1:], 0.15, atol=0.008)
    np.testing.assert_allclose(kinds / kinds.sum(), [0.8, 0.1, 0.1], atol=0.01)


def test_whole_words_are_hidden_whole() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        words = rng.integers(1, 5, 20).tolist()
        ids = text(words, rng)
        _, positions = masking(whole_words=True).hide(ids, rng=rng)
        word_of = np.array([-1, *np.repeat(np.arange(20), words), -1])
        for word in set(word_of[positions].tolist()):
            assert set(np.flatnonzero(word_of == word)) <= set(positions.tolist())


def test_special_pieces_are_never_hidden_and_never_drawn() -> None:
    rng = np.random.default_rng(3)
    ids = np.array([2, *rng.integers(SPECIAL, V, 50), 3, *rng.integers(SPECIAL, V, 50), 3])
    for _ in range(200):
        hidden, positions = masking(share=0.5).hide(ids, rng=rng)
        assert not set(positions.tolist()) & {0, 51, 102}
        assert set(hidden[positions].tolist()) - {MASK} <= set(ORDINARY.tolist())
        untouched = np.setdiff1d(np.arange(len(ids)), positions)
        np.testing.assert_array_equal(hidden[untouched], ids[untouched])


def test_a_word_does_not_go_on_over_a_special_piece() -> None:
    ids = np.array([2, 10, 3, 130, 131, 3])
    found = {
        tuple(masking(whole_words=True, share=0.5).hide(ids, rng=np.random.default_rng(seed))[1].tolist())
        for seed in range(60)
    }
    assert found == {(1,), (3, 4)}


def test_nothing_to_hide() -> None:
    ids = np.array([2, 3])
    hidden, positions = masking().hide(ids, rng=np.random.default_rng(1))
    assert hidden.tolist() == [2, 3]
    assert positions.tolist() == []


@given(st.lists(st.integers(1, 16), max_size=60))
def test_packing_places_each_text_once_and_never_overfills(lengths: list[int]) -> None:
    rows = pack(np.array(lengths, dtype=np.int64), 16)
    assert sorted(i for row in rows for i in row) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in row) <= 16 for row in rows)
    # first fit: at most one row can be half empty
    assert sum(2 * sum(lengths[i] for i in row) <= 16 for row in rows) <= 1
