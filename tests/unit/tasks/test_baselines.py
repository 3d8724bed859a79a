"""Baselines of every task: by words, so that they depend on the data alone; and a model against the best of them."""

from math import log2

import numpy as np
import pytest

from jumok.examples.choices import Choice
from jumok.examples.pairs import Pair
from jumok.examples.questions import Question
from jumok.examples.relations import Related
from jumok.examples.spans import Spans
from jumok.score.classification import accuracy_from, share_statistics
from jumok.score.significance import Metric, Metrics
from jumok.score.translation import translation_metrics
from jumok.tasks.answering.baselines import nearest_sentence, score_baselines
from jumok.tasks.baseline import beside, is_better
from jumok.tasks.choice.baselines import learn_baselines as learn_choices
from jumok.tasks.choice.predictor import choice_metrics
from jumok.tasks.language_model.baselines import Bytes
from jumok.tasks.relation.baselines import learn_baselines as learn_relations
from jumok.tasks.relation.predictor import scoring_rule
from jumok.tasks.tagging.baselines import learn_names, learn_tags
from jumok.tasks.translation.baselines import learn_baselines as learn_translations
from jumok.text.span import Span


def tagged(line):
    words, tags = zip(*(word.rsplit("/", 1) for word in line.split()), strict=True)
    return Spans.of_words([*words], [*tags])


def test_known_names_get_their_type_and_the_longest_wins():
    train = [
        tagged("New/B-LOC York/I-LOC is/O big/O"),
        tagged("York/B-LOC is/O old/O"),
        tagged("May/B-PER sings/O"),
        *[tagged("may/O May/O June/O")] * 3,  # more often a month
    ]
    asked = [tagged("New/B-LOC York/I-LOC and/O York/B-LOC"), tagged("May/O comes/O Yorker/O"), tagged("Rome/B-LOC")]
    found = learn_names(train)(asked)["known_names"].values()
    assert (found["precision"], round(found["recall"], 2)) == (100, 66.67)


def test_names_may_end_inside_words_if_they_do_in_training():
    def spans(text, *marked):
        return Spans(text, [Span(text.index(name), text.index(name) + len(name), "LOC") for name in marked])

    train = [spans("서울은 크다", "서울"), spans("부산에서 왔다", "부산")]
    assert learn_names(train)([spans("서울에서 부산으로", "서울", "부산")])["known_names"].values()["span_f1"] == 100
    plain = [spans("Ulm is old", "Ulm")]
    assert learn_names(plain)([spans("Ulmer here")])["known_names"].values()["precision"] == 0
    assert learn_names(plain)([spans("Ulm, here", "Ulm")])["known_names"].values()["span_f1"] == 100


def test_words_get_their_most_frequent_tag():
    train = [tagged("the/D run/N"), tagged("run/V"), tagged("I/P run/V"), tagged("a/D dog/N cat/N")]
    found = learn_tags(train)([tagged("the/D run/V new/N"), tagged("new/V")])
    assert found["most_frequent_tag"].values() == {"tag_accuracy": 75.0}  # an unknown word is a noun


def test_the_words_between_two_entities_know_their_order():
    def related(text, head, tail, label):
        at = [Span(text.index(name), text.index(name) + len(name)) for name in (head, tail)]
        return Related(text, *at, label)

    train = [related("A beats B", "A", "B", "wins(e1,e2)"), related("A beats B", "B", "A", "wins(e2,e1)")] * 3
    labels = ["wins(e1,e2)", "wins(e2,e1)"]
    found = learn_relations(labels, scoring_rule(labels, None), train)(train)
    assert found["words_between"].values()["accuracy"] == 100
    assert found["bag_of_words"].values()["accuracy"] == 50


def test_the_sentence_that_shares_most_with_the_question():
    context = "The dog sleeps here. The cat sat on the old mat. It rains."
    asked = Question("1", "Where did the cat sit on?", context, [("the old mat", context.index("the old"))])
    assert nearest_sentence(asked) == "The cat sat on the old mat."
    found = score_baselines([asked], no_answer=True)
    assert found["sentence_in_common"].values()["answer_f1"] == pytest.approx(100 * 2 * 2 / (2 + 5))
    assert found["no_answer"].values()["answer_f1"] == 0
    assert list(score_baselines([asked], no_answer=False)) == ["sentence_in_common"]


def test_the_ending_that_repeats_its_context_and_the_usual_place():
    train = [Choice("a", ["b", "c"], 1)] * 3 + [Choice("a", ["b", "c"], 0)]
    asked = [Choice("the cat sat", ["the cat slept", "it rained"], 0), Choice("x", ["y", "z"], 0)]
    found = learn_choices(train, choice_metrics)(asked)
    assert (found["majority"].values()["accuracy"], found["overlap"].values()["accuracy"]) == (0, 100)


def test_the_translation_of_the_nearest_source():
    train = [Pair("the red house", "das rote Haus"), Pair("the dog sleeps", "der Hund schläft"), Pair("the", "der")]
    measure = learn_translations(train, translation_metrics)
    found = measure([Pair("a dog sleeps", "der Hund schläft"), Pair("zebra", "Zebra"), Pair("OK", "OK")])
    assert found["translation_memory"].values()["exact_match"] == pytest.approx(100 / 3)
    assert found["copy"].values()["exact_match"] == pytest.approx(100 / 3)


def test_bytes_are_told_by_the_five_before_them():
    rng = np.random.default_rng(1)
    texts = ["".join(rng.choice([*"abcd"], size=200)) for _ in range(60)]
    assert 2.0 < Bytes(texts[:40]).bits_per_byte(texts[40:]) < 2.4  # they were drawn with 2 bits a byte
    assert Bytes(["abcdefgh 가나다"] * 30).bits_per_byte(["abcdefgh 가나다"]) < 0.2
    assert Bytes([]).bits_per_byte(["ab"]) == pytest.approx(log2(256))
    (row,) = Bytes(texts).statistics(["가 b"])
    assert row[2:4].tolist() == [6, 3]


@pytest.mark.parametrize("known", [[], ["ab"], ["abab", "가"]])
def test_the_probabilities_of_the_next_byte_add_up(known):
    """Of single bytes, each of which ends its text, the losses of the first byte are those of all 256."""
    model = Bytes(known)
    start = [float(np.exp(-model.losses(chr(code))[0])) for code in range(128)]
    assert 0.4 < sum(start) <= 1.0


def accuracy(*right):
    return Metrics((Metric("accuracy", share_statistics([*right]), accuracy_from),))


def test_a_model_is_compared_with_the_best_baseline():
    model, poor, good = (accuracy(*[1] * n, *[0] * (100 - n)) for n in (90, 30, 60))
    found = beside(model, {"majority": poor, "bag_of_words": good})
    assert found["baselines"] == {"majority": {"accuracy": 30.0}, "bag_of_words": {"accuracy": 60.0}}
    against = found["against_baseline"]
    assert (against["baseline"], against["a"], against["b"], against["n"]) == ("bag_of_words", 60.0, 90.0, 100)
    assert (against["p_value"] < 0.01, against["low"] > 0, is_better(against)) == (True, True, True)
    assert not is_better(beside(good, {"bag_of_words": model})["against_baseline"])
    close = beside(accuracy(*[1] * 61, *[0] * 39), {"bag_of_words": good})["against_baseline"]
    assert not is_better(close)
    assert beside(model, {}) == {}


def test_of_bits_fewer_are_better():
    def bits(*values):
        statistics = np.array([[value, 1.0] for value in values])
        return Metrics((Metric("bits_per_byte", statistics, lambda s: s[..., 0] / s[..., 1]),))

    low, high = bits(*[1.0, 1.2] * 30), bits(*[2.0, 2.1] * 30)
    assert is_better(beside(low, {"five_bytes_before": high})["against_baseline"])
    assert not is_better(beside(high, {"five_bytes_before": low})["against_baseline"])
    assert beside(low, {"one": high, "other": low})["against_baseline"]["baseline"] == "other"
