"""Answers score by the rule of SQuAD: done by hand, and by somebody else's program."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumok.errors import DataError
from jumok.score.answers import answer_metrics, normalised, threshold_for

WORDS = ["the", "A", "cat", "Cat.", "sat", "an", "on", "U.S.", "mat", "고양이가", "매트", "(1,000)"]
answer = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
questions = st.lists(st.tuples(answer, st.lists(answer, max_size=3)), min_size=1, max_size=10)


def values(predicted, gold):
    return answer_metrics(predicted, gold).values("exact_match", "answer_f1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("a  cat\tand\nan owl", "cat and owl"),
        ("U.S.A.", "usa"),
        ("another theatre", "another theatre"),  # articles are whole words
        ("the-cat", "thecat"),  # punctuation goes first, and makes one word
        ("the, the.", ""),
        ("1,000 (m²)", "1000 m²"),
        ("“quoted”", "“quoted”"),  # only ASCII punctuation
        ("서울특별시, 대한민국!", "서울특별시 대한민국"),
        ("a는 그 사과", "a는 그 사과"),
        ("the 한국 전쟁", "한국 전쟁"),
        ("", ""),
    ],
)
def test_normalised_by_hand(text, expected):
    assert normalised(text) == expected


@given(st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_hangul_survives(text):
    assert normalised(text) == text
    assert values([text], [[text]]) == {"exact_match": 100, "answer_f1": 100}


@pytest.mark.parametrize(
    ("predicted", "gold", "exact", "f1"),
    [
        ("the Denver Broncos!", ["Denver Broncos"], 100, 100),
        ("Broncos", ["Denver Broncos"], 0, 200 / 3),  # P 1, R 1/2
        ("Denver Broncos of Colorado", ["Denver Broncos"], 0, 200 / 3),  # P 1/2, R 1
        ("Panthers", ["Denver Broncos"], 0, 0),
        ("Broncos", ["Denver Broncos", "broncos", "The team"], 100, 100),  # the best of them
        ("red team", ["blue team", "red fast team"], 0, 80),
        ("to be to be", ["to be or not to be"], 0, 80),  # as often as in both: 4 common, 4 and 6 words
        ("new new new", ["new york"], 0, 40),
        ("서울 특별시", ["서울"], 0, 200 / 3),
        ("", ["Denver"], 0, 0),
        ("", ["the", "Denver"], 0, 0),  # an answer of articles only is none
        ("", [], 100, 100),
        ("Denver", [], 0, 0),
        ("the", [], 100, 100),  # nothing is left of it, as in the official script
        ("the", ["Denver"], 0, 0),
    ],
)
def test_scores_by_hand(predicted, gold, exact, f1):
    assert values([predicted], [gold]) == pytest.approx({"exact_match": exact, "answer_f1": f1})


def test_scores_are_those_of_torchmetrics():
    """400 random answers: what `torchmetrics.functional.text.squad` (1.9.0) said of each, exact match and F1."""
    path = Path(__file__).parents[2] / "golden" / "answers.json"
    rows = json.loads(path.read_text("utf-8"))
    assert len(rows) == 400
    for said, gold, exact, f1 in rows:
        assert values([said], [gold]) == pytest.approx({"exact_match": exact, "answer_f1": f1}, abs=1e-3)
    mean = {"exact_match": sum(row[2] for row in rows) / 400, "answer_f1": sum(row[3] for row in rows) / 400}
    assert values(*zip(*(row[:2] for row in rows), strict=True)) == pytest.approx(mean, abs=1e-3)


def test_questions_with_and_without_answer():
    predicted = ["cat", "", "a dog", ""]
    gold = [["the cat"], ["mouse"], [], []]
    scores = {score.name: score for score in answer_metrics(predicted, gold).scores()}
    assert {name: (score.value, score.n) for name, score in scores.items()} == {
        "exact_match": (50, 4),
        "answer_f1": (50, 4),
        "answer_f1_has_answer": (50, 2),
        "answer_f1_no_answer": (50, 2),
    }
    for kind in (slice(0, 2), slice(2, 4)):
        names = [score.name for score in answer_metrics(predicted[kind], gold[kind]).scores()]
        assert names == ["exact_match", "answer_f1"]


@given(questions, st.randoms())
@settings(max_examples=150, deadline=None)
def test_scores_are_shares_whole_is_their_mean_and_order_changes_nothing(rows, shuffle):
    predicted, gold = map(list, zip(*rows, strict=True))
    found = values(predicted, gold)
    assert 0 <= found["exact_match"] <= found["answer_f1"] <= 100 + 1e-9
    shuffled = shuffle.sample(rows, len(rows))
    assert values(*map(list, zip(*shuffled, strict=True))) == pytest.approx(found)
    scores = {score.name: score for score in answer_metrics(predicted, gold).scores(samples=5)}
    parts = [scores[name] for name in ("answer_f1_has_answer", "answer_f1_no_answer") if name in scores]
    assert len(parts) == (2 if {bool(answers) for answers in gold} == {True, False} else 0)
    if parts:
        assert sum(part.n * part.value for part in parts) / len(gold) == pytest.approx(found["answer_f1"])


@given(st.lists(st.lists(answer, max_size=3), min_size=1, max_size=10), st.randoms())
@settings(max_examples=100, deadline=None)
def test_any_of_the_gold_answers_is_perfect(gold, choose):
    answerable = [[text for text in answers if normalised(text)] for answers in gold]
    predicted = [choose.choice(answers) if answers else "" for answers in answerable]
    assert values(predicted, answerable) == {"exact_match": 100, "answer_f1": 100}


def corrupted(rate, n, seed):
    rng = random.Random(seed)
    gold = [[" ".join(rng.choices("abcdefgh", k=5)) + f" w{i}" for _ in range(2)] for i in range(n)]
    return [" ".join(w for w in answers[0].split() if rng.random() > rate) for answers in gold], gold


def test_intervals_contain_the_value_and_the_signature_says_how():
    scores = answer_metrics(*corrupted(0.2, 200, seed=1)).scores(samples=400, seed=9)
    assert all(0 < score.low < score.value < score.high < 100 for score in scores)
    assert {score.signature for score in scores} == {"SQuAD answers, bootstrap 400, seed 9, 95%"}


def test_a_better_system_is_better_and_no_better_than_itself():
    predicted, gold = corrupted(0.4, 100, seed=2)
    found = answer_metrics(predicted, gold).against(answer_metrics([answers[1] for answers in gold], gold))
    assert {c.metric: c.a for c in found} == values(predicted, gold)
    assert all(c.b == 100 and c.low > 0 and c.p_value < 0.01 for c in found)
    same = answer_metrics(predicted, gold).against(answer_metrics(predicted, gold))
    assert all((c.difference, c.low, c.high, c.p_value) == (0, 0, 0, 1) for c in same)


def test_as_many_answers_as_questions():
    with pytest.raises(DataError) as caught:
        answer_metrics(["a"], [["a"], []])
    assert (caught.value.code, re.findall(r"\d+", caught.value.what)) == ("data.counts", ["1", "2"])
    with pytest.raises(DataError) as caught:
        answer_metrics([], [])
    assert caught.value.code == "data.empty"


@given(st.lists(st.tuples(st.integers(-5, 5), st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0])), min_size=1, max_size=12))
@example([(3, -1.0)])
@example([(-3, 1.0), (-3, -1.0)])
@settings(max_examples=200, deadline=None)
def test_no_threshold_is_better_than_the_one_that_is_found(case):
    gaps, gains = zip(*case, strict=True)

    def total(threshold):
        return sum(gain for gap, gain in case if gap > threshold)

    found = threshold_for(gaps, gains)
    best = max(total(threshold) for threshold in np.arange(-7, 7, 0.25))
    assert total(found) == pytest.approx(best)
    assert found == 0 or total(0) < best  # nothing is moved without a gain
