"""Texts longer than a model reads: nothing is lost, nothing is longer than the room, and each piece has one owner."""

import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.pages import make_page
from jumok.errors import DataError
from jumok.tasks.notes import NoteCounter
from jumok.tasks.windows import NO_LIMIT, Beside, LongTexts, WindowedFacts, owners
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT, TokenizerConfig

LINES = ["a b c d e f g h i j"] * 3
WORDS = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=20), LINES)
PIECES = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=60), LINES, BERT)
sizes, rooms, strides = st.integers(0, 300), st.integers(1, 40), st.integers(0, 60)


# parts


@given(n=sizes, room=rooms, stride=strides)
def test_windows_cover_the_text_and_neighbours_share_the_stride(n, room, stride):
    parts = LongTexts(0, "windows", stride).parts(n, room)
    assert {i for part in parts for i in range(*part)} == set(range(n))
    assert (parts[0][0], parts[-1][1]) == (0, n)
    if n <= room:
        assert parts == [(0, n)]
        return
    assert {end - start for start, end in parts} == {room}
    shared = [before[1] - after[0] for before, after in pairwise(parts)]
    assert shared[:-1] == [min(stride, room // 2)] * (len(parts) - 2)
    assert min(stride, room // 2) <= shared[-1] < room  # the last one ends with the text, and adds something


@pytest.mark.parametrize("rule", ["windows", "truncate", "refuse"])
@pytest.mark.parametrize("n", [0, 1, 9, 10])
def test_a_text_that_fits_is_read_whole(rule, n):
    assert LongTexts(12, rule, 4).parts(n, 10) == [(0, n)]


def test_a_stride_of_more_than_half_the_room_is_half_of_it():
    assert LongTexts(0, "windows", 100).parts(25, 10) == LongTexts(0, "windows", 5).parts(25, 10)
    assert LongTexts(0, "windows", 5).parts(25, 10) == [(0, 10), (5, 15), (10, 20), (15, 25)]


def test_one_piece_more_than_the_room_is_one_window_more():
    assert LongTexts(0, "windows", 2).parts(11, 10) == [(0, 10), (1, 11)]


@given(n=sizes, room=rooms, stride=strides)
def test_truncation_keeps_the_beginning(n, room, stride):
    assert LongTexts(0, "truncate", stride).parts(n, room) == [(0, min(n, room))]


def test_a_refusal_says_how_long_and_where():
    with pytest.raises(DataError) as caught:
        LongTexts(0, "refuse").parts(11, 10, where="train.tsv:7")
    assert (caught.value.code, caught.value.where) == ("data.too_long", "train.tsv:7")
    assert re.findall(r"\d+", caught.value.what) == ["11", "10"]
    assert "data.long_texts" in (caught.value.hint or "")


@pytest.mark.parametrize("rule", ["windows", "truncate", "refuse"])
@pytest.mark.parametrize("room", [0, -3])
def test_without_room_there_is_nothing_to_read_but_an_empty_text(rule, room):
    with pytest.raises(DataError) as caught:
        LongTexts(3, rule).parts(1, room, where="train.tsv:7")
    assert (caught.value.code, caught.value.where) == ("data.no_room", "train.tsv:7")
    assert re.findall(r"\d+", caught.value.what) == ["3"]
    assert "data.max_len" in (caught.value.hint or "")
    assert LongTexts(3, rule).parts(0, 0) == [(0, 0)]


# pairs


@given(a=sizes, b=sizes, room=st.integers(2, 40), stride=strides)
def test_pairs_share_the_room_and_lose_nothing(a, b, room, stride):
    parts = LongTexts(0, "windows", stride).pair_parts(a, b, room)
    for side, n in ((0, a), (1, b)):
        assert {i for both in parts for i in range(*both[side])} == set(range(n))
    assert all(first[1] - first[0] + second[1] - second[0] <= room for first, second in parts)
    shorter = 0 if a < b else 1
    if min(a, b) <= room // 2:
        assert {both[shorter] for both in parts} == {(0, min(a, b))}  # whole in every window
    else:
        assert all(0 < both[0][1] - both[0][0] <= room // 2 for both in parts)


@pytest.mark.parametrize(
    ("a", "b", "parts"),
    [
        (4, 6, [((0, 4), (0, 6))]),
        (4, 9, [((0, 4), (0, 6)), ((0, 4), (3, 9))]),
        (9, 4, [((0, 6), (0, 4)), ((3, 9), (0, 4))]),
        (5, 9, [((0, 5), (0, 5)), ((0, 5), (3, 8)), ((0, 5), (4, 9))]),
        (6, 11, [((0, 5), (0, 5)), ((1, 6), (3, 8)), ((1, 6), (6, 11))]),
        (0, 11, [((0, 0), (0, 10)), ((0, 0), (1, 11))]),
    ],
)
def test_the_longer_of_two_texts_slides_beside_the_other(a, b, parts):
    assert LongTexts(0, "windows", 2).pair_parts(a, b, 10) == parts


def test_two_long_texts_are_cut_or_refused_on_either_side():
    assert LongTexts(0, "truncate").pair_parts(6, 20, 10) == [((0, 5), (0, 5))]
    assert LongTexts(0, "truncate").pair_parts(3, 20, 10) == [((0, 3), (0, 7))]
    for a, b in ((6, 20), (3, 20), (20, 3), (6, 6)):
        with pytest.raises(DataError) as caught:
            LongTexts(0, "refuse").pair_parts(a, b, 10, where="x:1")
        assert (caught.value.code, caught.value.where) == ("data.too_long", "x:1")


# rows


@pytest.mark.parametrize("tokenizer", [WORDS, PIECES])
@given(a=st.integers(0, 60), b=st.none() | st.integers(0, 60), size=st.integers(5, 20), stride=st.integers(0, 12))
def test_rows_are_framed_and_never_longer_than_said(tokenizer, a, b, size, stride):
    text, pair = tokenizer.encode("a b c d e " * 12)[:a], b if b is None else tokenizer.encode("f g h i j " * 12)[:b]
    framed = LongTexts(size, "windows", stride).framed(tokenizer, text, pair)
    whole = tokenizer.frame(text, pair)
    assert framed.long == (len(whole) > size)
    assert all(len(row) <= size for row in framed.rows)
    if not framed.long:
        assert framed.rows == [whole]
    page = make_page(framed.rows, tokenizer)
    second = set(tokenizer.encode("f g h i j"))
    for row, segments, mask in zip(framed.rows, page.segments.tolist(), page.mask.tolist(), strict=True):
        assert row[-1] == tokenizer.end_id
        assert sum(mask) == len(row)
        assert mask == sorted(mask, reverse=True)
        assert [s for i, s in zip(row, segments, strict=False) if i in second] == [1] * sum(i in second for i in row)
        assert segments[: row.index(tokenizer.end_id) + 1] == [0] * (row.index(tokenizer.end_id) + 1)


# owners


@given(n=st.integers(1, 200), room=rooms, stride=strides)
def test_a_piece_belongs_where_it_has_most_text_on_its_shorter_side(n, room, stride):
    parts = LongTexts(0, "windows", stride).parts(n, room)
    for piece, owner in enumerate(owners(parts, range(n)).tolist()):
        around = [min(piece - start, end - 1 - piece) for start, end in parts]
        assert around[owner] == max(around) >= 0
        assert owner == around.index(max(around))  # the earlier of two that are as good


def test_what_is_cut_off_belongs_nowhere():
    assert owners([(0, 3)], range(5)).tolist() == [0, 0, 0, -1, -1]
    assert owners([(0, 0)], []).tolist() == []


def test_a_text_of_a_million_pieces_has_its_owners_at_once():
    parts = LongTexts(0).parts(1_000_000, 126)
    found = owners(parts, range(1_000_000))
    assert len(parts) > 10_000
    assert np.bincount(found).min() > 0
    assert (np.diff(found) >= 0).all()


# what is said


def test_the_rule_of_training_is_kept_and_a_model_from_elsewhere_has_the_usual_one():
    rule = LongTexts(128, "truncate", 7)
    assert WindowedFacts(max_len=128, long_texts=rule.as_fact).rule(512) == rule
    assert WindowedFacts().rule(512) == LongTexts(512, "windows", 64)
    assert WindowedFacts().rule(None).max_len == NO_LIMIT


@pytest.mark.parametrize(("rule", "code"), [("windows", "text.windows"), ("truncate", "text.cut")])
def test_a_long_text_has_a_note_and_many_are_counted(rule, code):
    long_texts = LongTexts(64, rule)
    (note,) = long_texts.notes(True)
    assert (note.code, "64" in note.text) == (code, True)
    assert long_texts.notes(False) == []
    counter = NoteCounter()
    for i in range(1000):
        counter.add(SimpleNamespace(notes=long_texts.notes(i in (3, 999))))
    assert counter.told() == [f"2 of 1,000: {note.text}"]


def test_a_text_that_is_read_near_something_is_not_said_to_be_read_at_its_beginning():
    (near,), (cut,) = (LongTexts(64, "truncate").notes(True, how) for how in ("near their entities only", None))
    assert "near their entities only" in near.text
    assert near.code != cut.code


@pytest.mark.parametrize(("long", "cut"), [(False, False), (True, False), (False, True), (True, True)])
def test_what_is_cut_beside_a_context_has_a_note_of_its_own(long, cut):
    notes = LongTexts(64).notes_beside(Beside([[1]], long, cut), "endings")
    wanted = ["text.windows"] * long + ["text.question_cut"] * cut
    assert [note.code for note in notes] == wanted
    assert all(("endings" in note.text) == (note.code == "text.question_cut") for note in notes)
