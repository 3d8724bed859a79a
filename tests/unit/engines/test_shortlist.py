"""IBM model 1 on sentences whose translations are known."""

import numpy as np
import pytest

from jumok.engines.shortlist import FREQUENT, learn_shortlist


def pairs(n, seed=0, vocabulary=400):
    """Token s is translated by s + 1, in another order."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        source = rng.integers(0, vocabulary, size=rng.integers(1, 9))
        yield source.tolist(), rng.permutation(source + 1).tolist()


def test_the_translation_of_a_token_comes_first():
    found = learn_shortlist(pairs(4000), 3, target_vocab=401)
    assert len(found.by_source) == 400
    assert all(targets[0] == s + 1 for s, targets in found.by_source.items())
    assert max(map(len, found.by_source.values())) == 3


def test_probabilities_are_those_of_two_rounds_of_em_by_hand(monkeypatch):
    """das Haus / the house, das Buch / the book: after two rounds of EM, "das" is "the"."""
    monkeypatch.setattr("jumok.engines.shortlist.ITERATIONS", 2)
    das, haus, buch = 0, 1, 2
    the, house, book = 0, 1, 2
    found = learn_shortlist([([das, haus], [the, house]), ([das, buch], [the, book])], 2, target_vocab=3)
    assert found.by_source == {das: [the, house], haus: [house, the], buch: [book, the]}


def test_the_most_frequent_tokens_are_in_every_shortlist():
    rare = [([s], [s]) for s in range(1, 2 * FREQUENT)]
    common = [([0], [500, 501, 501, 501])] * 3
    found = learn_shortlist(rare + common, 2, target_vocab=600)
    assert found.always[:2] == [501, 500]
    assert len(found.always) == FREQUENT


def test_fewer_are_the_first_of_more():
    more, fewer = (learn_shortlist(pairs(500), n, target_vocab=401) for n in (8, 3))
    assert more.first(3).by_source == fewer.by_source


@pytest.mark.parametrize("empty", [([], [1, 2]), ([1, 2], []), ([], [])])
def test_empty_texts_are_no_occurrences(empty):
    one = [([1], [2]), ([3, 1], [4, 2])]
    assert (
        learn_shortlist([*one, empty], 2, target_vocab=9).by_source == learn_shortlist(one, 2, target_vocab=9).by_source
    )


def test_the_file_is_the_librarys(tmp_path):
    found = learn_shortlist([([0, 1], [1, 0])], 1, target_vocab=2)
    found.write(tmp_path / "vmap.txt", ["▁das", "▁Haus"], ["▁the", "▁house"])
    lines = (tmp_path / "vmap.txt").read_text("utf-8").splitlines()
    assert lines[0].startswith("\t")
    assert {line.split("\t")[0] for line in lines[1:]} == {"▁das", "▁Haus"}
