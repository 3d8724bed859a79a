"""Passages keep documents apart and sentences whole; pairs follow or do not, half and half."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier

from jumok.data.passages import Pairs, Passages, SecondParts, passages

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


def test_as_many_follow_as_do_not_and_nothing_is_asked_of_what_stands_alone() -> None:
    rng = np.random.default_rng(1)
    sizes = [[15] if rng.random() < 0.6 else [5, 5, 5] for _ in range(4000)]
    pairs = Pairs(Passages.of(passages(corpus(sizes), ROOM)), seed=1, next_sentence=True)
    found = [pairs.make(i, epoch=0) for i in range(4000)]
    asked = [pair.follows for pair in found if pair.follows is not None]
    assert abs(np.mean(asked) - 0.5) < 0.05  # standard error 0.0125
    for pair, size in zip(found, sizes, strict=True):
        assert (pair.follows is None) == (pair.b is None) == (len(size) == 1)


def test_lengths_tell_nothing_of_what_follows() -> None:
    """Passages of all lengths, most of which fill the room: what a pair looks like from afar is its answer's secret."""
    rng = np.random.default_rng(2)
    sizes = [rng.integers(1, 9, int(rng.integers(2, 30))).tolist() for _ in range(1500)]
    sentence_ends = {ids[-1] for ids, _ in corpus(sizes)}
    pairs = Pairs(Passages.of(passages(corpus(sizes), 40)), seed=1, next_sentence=True)
    made = [pairs.make(i, epoch=epoch) for i in range(len(pairs.passages)) for epoch in range(3)]
    asked = [pair for pair in made if pair.b is not None]
    assert len(asked) > 0.9 * len(made)
    assert all(pair.b and pair.b[-1] in sentence_ends for pair in asked)  # neither kind is cut within a sentence
    shapes = np.array([(len(pair.a), len(pair.b or []), len(sentence_ends & {*(pair.b or [])})) for pair in asked])
    shapes = np.column_stack([shapes, shapes[:, 0] + shapes[:, 1]])
    follows = np.array([pair.follows for pair in asked])
    half = len(asked) // 2
    judge = HistGradientBoostingClassifier(max_iter=50, random_state=1).fit(shapes[:half], follows[:half])
    right = (judge.predict(shapes[half:]) == follows[half:]).mean()
    assert right < 0.5 + 4 * (0.25 / (len(asked) - half)) ** 0.5  # four standard errors above chance


def test_a_second_part_is_drawn_as_often_as_it_is_cut() -> None:
    """A passage of many sentences has more places to be cut, of which each is as much rarer."""
    found = Passages.of(passages(corpus([[4, 6], [1, 3, 2, 4], [9, 6]]), ROOM))
    seconds, rng = SecondParts(found), np.random.default_rng(1)
    drawn = Counter(seconds.draw(6, rng) for _ in range(7000))
    assert drawn.keys() == {(0, 4), (1, 4), (2, 9)}
    assert abs(drawn[1, 4] - 1000) < 150  # a third as likely as each of the others; standard error 29
    assert seconds.draw(5, rng) is None
    assert seconds.draw(100, rng) is None


def test_what_follows_follows_and_a_stranger_is_of_another_document() -> None:
    sizes = [[3, 4, 3, 4] for _ in range(200)]
    found = Passages.of(passages(corpus(sizes), ROOM))
    pairs = Pairs(found, seed=1, next_sentence=True)
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
    one, two, other = (Pairs(found, seed=s, next_sentence=True) for s in (1, 1, 2))
    first = [one.make(i, epoch=0) for i in range(50)]
    assert first == [two.make(i, epoch=0) for i in reversed(range(50))][::-1]
    assert first != [one.make(i, epoch=1) for i in range(50)]
    assert first != [other.make(i, epoch=0) for i in range(50)]


def test_without_next_sentence_a_passage_is_read_whole() -> None:
    found = Passages.of(passages(corpus([[3, 4, 5]] * 5), ROOM))
    pairs = Pairs(found, seed=1, next_sentence=False)
    for i in range(5):
        pair = pairs.make(i, epoch=0)
        assert (pair.a, pair.b, pair.follows) == (found.text[i].tolist(), None, None)


def test_one_document_is_all_there_is() -> None:
    found = Passages.of(passages(corpus([[9, 9] * 20]), ROOM))
    pairs = Pairs(found, seed=1, next_sentence=True)
    for i in range(len(found)):
        pair = pairs.make(i, epoch=0)
        if pair.follows is False:
            assert pair.b is not None
            assert pair.b[0] not in found.text[i]


def test_nothing_is_asked_of_the_only_passage_that_can_be_cut() -> None:
    """Its own second half would be called a stranger to its first."""
    found = Passages.of(passages(corpus([[3, 3], *[[15]] * 50]), ROOM))
    pairs = Pairs(found, seed=1, next_sentence=True)
    made = [pairs.make(i, epoch=epoch) for i in range(len(found)) for epoch in range(20)]
    assert all(pair.b is None and pair.follows is None for pair in made)
    assert not pairs.possible


def test_nothing_is_asked_where_no_stranger_is_as_long() -> None:
    found = Passages.of(passages(corpus([[3, 4], [3, 5], [3, 5]]), ROOM))
    pairs = Pairs(found, seed=1, next_sentence=True)
    assert pairs.possible
    asked = {i for i in range(3) for epoch in range(20) if pairs.make(i, epoch=epoch).follows is not None}
    assert asked == {1, 2}
