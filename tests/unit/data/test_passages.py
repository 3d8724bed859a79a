"""Passages keep documents apart and sentences whole; pairs follow or do not, half and half."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.passages import Pairs, Passages, passages
from jumok.data.passages import _shorten as shorten

ROOM = 20
documents = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=8), min_size=1, max_size=8)


def corpus(sizes: list[list[int]]) -> list[tuple[list[int], bool]]:
    """Sentences of so many pieces; every piece has an id of its own, in the order of the text."""
    found, n = [], 0
    for document in sizes:
        for k, size in enumerate(document):
            found.append((list(range(n, n + size)), k == 0))
            n += size
    return found


@given(documents)
def test_passages_are_the_text_in_order(sizes: list[list[int]]) -> None:
    sentences = corpus(sizes)
    found = list(passages(sentences, ROOM))
    assert [i for text, _, _ in found for i in text] == [i for ids, _ in sentences for i in ids]
    assert all(0 < len(text) <= ROOM for text, _, _ in found)
    assert all(ends[-1] == len(text) and ends == sorted(set(ends)) for text, ends, _ in found)
    assert sum(first for _, _, (first,) in found) == len(sizes)
    # a document begins where a passage begins
    starts = {ids[0] for ids, first in sentences if first}
    assert {text[0] for text, _, (first,) in found if first} == starts


@given(documents)
def test_sentences_are_cut_only_when_they_must(sizes: list[list[int]]) -> None:
    inside = {ids[-1] for ids, _ in corpus(sizes)}
    whole = {ids[-1] for ids, _ in corpus(sizes) if len(ids) <= ROOM}
    ends = {text[end - 1] for text, marks, _ in passages(corpus(sizes), ROOM) for end in marks}
    assert inside <= ends
    assert {ids[k] for ids, _ in corpus(sizes) if len(ids) <= ROOM for k in range(len(ids) - 1)}.isdisjoint(ends)
    assert whole <= ends


@given(st.integers(0, 60), st.integers(0, 60))
def test_what_is_too_long_is_shortened_at_its_outer_ends(n_a: int, n_b: int) -> None:
    a, b = shorten(list(range(n_a)), list(range(n_b)), ROOM)
    assert len(a) + len(b) == min(n_a + n_b, ROOM) if min(n_a, n_b) else len(a) + len(b) <= ROOM
    assert a == list(range(n_a))[n_a - len(a) :]
    assert b == list(range(n_b))[: len(b)]
    assert bool(a) == bool(n_a)
    assert bool(b) == bool(n_b)


def test_as_many_follow_as_do_not_and_nothing_is_asked_of_what_stands_alone() -> None:
    rng = np.random.default_rng(1)
    sizes = [[15] if rng.random() < 0.6 else [5, 5, 5] for _ in range(4000)]
    pairs = Pairs(Passages.of(passages(corpus(sizes), ROOM)), room=ROOM, seed=1, next_sentence=True)
    found = [pairs.make(i, epoch=0) for i in range(4000)]
    asked = [pair.follows for pair in found if pair.follows is not None]
    assert abs(np.mean(asked) - 0.5) < 0.05  # standard error 0.0125
    for pair, size in zip(found, sizes, strict=True):
        assert (pair.follows is None) == (pair.b is None) == (len(size) == 1)


def test_the_second_halves_of_both_kinds_are_alike() -> None:
    rng = np.random.default_rng(2)
    sizes = [rng.integers(2, 6, int(rng.integers(2, 4))).tolist() for _ in range(6000)]
    pairs = Pairs(Passages.of(passages(corpus(sizes), 40)), room=40, seed=1, next_sentence=True)
    lengths: dict[bool | None, list[int]] = {True: [], False: []}
    for i in range(len(sizes)):
        pair = pairs.make(i, epoch=0)
        lengths[pair.follows].append(len(pair.b or []))
    assert abs(np.mean(lengths[True]) - np.mean(lengths[False])) < 0.2  # standard error 0.06


def test_what_follows_follows_and_a_stranger_is_of_another_document() -> None:
    sizes = [[3, 4, 3, 4] for _ in range(200)]
    found = Passages.of(passages(corpus(sizes), ROOM))
    pairs = Pairs(found, room=ROOM, seed=1, next_sentence=True)
    cuts = set()
    for i in range(200):
        pair = pairs.make(i, epoch=3)
        assert pair.b
        assert len(pair.a) + len(pair.b) <= ROOM
        if pair.follows:
            assert pair.a + pair.b == found.text[i].tolist()
            cuts.add(len(pair.a))
        else:
            assert pair.a[0] // 14 == i
            assert pair.b[0] // 14 != i
    assert cuts == {3, 7, 10}


def test_pairs_are_a_function_of_seed_epoch_and_number() -> None:
    found = Passages.of(passages(corpus([[3, 4, 5]] * 50), ROOM))
    one, two, other = (Pairs(found, room=ROOM, seed=s, next_sentence=True) for s in (1, 1, 2))
    first = [one.make(i, epoch=0) for i in range(50)]
    assert first == [two.make(i, epoch=0) for i in reversed(range(50))][::-1]
    assert first != [one.make(i, epoch=1) for i in range(50)]
    assert first != [other.make(i, epoch=0) for i in range(50)]


def test_without_next_sentence_a_passage_is_read_whole() -> None:
    found = Passages.of(passages(corpus([[3, 4, 5]] * 5), ROOM))
    pairs = Pairs(found, room=ROOM, seed=1, next_sentence=False)
    for i in range(5):
        pair = pairs.make(i, epoch=0)
        assert (pair.a, pair.b, pair.follows) == (found.text[i].tolist(), None, None)


def test_one_document_is_all_there_is() -> None:
    found = Passages.of(passages(corpus([[9, 9] * 20]), ROOM))
    pairs = Pairs(found, room=ROOM, seed=1, next_sentence=True)
    for i in range(len(found)):
        pair = pairs.make(i, epoch=0)
        if pair.follows is False:
            assert pair.b is not None
            assert pair.b[0] not in found.text[i]


def test_nothing_is_asked_of_the_only_passage_that_can_be_cut() -> None:
    """Its own second half would be called a stranger to its first."""
    found = Passages.of(passages(corpus([[3, 3], *[[15]] * 50]), ROOM))
    pairs = Pairs(found, room=ROOM, seed=1, next_sentence=True)
    made = [pairs.make(i, epoch=epoch) for i in range(len(found)) for epoch in range(20)]
    assert all(pair.b is None and pair.follows is None for pair in made)
