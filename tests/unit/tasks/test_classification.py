"""Classification: a rule that is learned, and what is said of a text."""

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score

from jumok.errors import DataError, InputError
from jumok.models import RnnClassifier, RnnConfig
from jumok.tasks.classification import Classifier, classify, collect_labels, encode_text, label_numbers
from jumok.text.labelled import Labelled
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import EOS_ID, TokenizerConfig

LETTERS = Tokenizer.train(TokenizerConfig(kind="character", vocab_size=300), ["abc déf 가나"])


def untrained(pool="attention", labels=("x", "y", "z")):
    torch.manual_seed(1)
    config = RnnConfig(cell="gru", pool=pool, d_embedding=8, d_hidden=8, bidirectional=True)
    model = RnnClassifier(config, vocab=LETTERS.vocab_size, n_labels=len(labels)).eval()
    with torch.no_grad():
        model.reader.embedding.weight[:-1] *= 20
        if model.score is not None:
            model.score.v.weight *= 20  # far from even attention
    return Classifier([model], LETTERS, {"labels": list(labels)})


class Examples(list):
    name = "file.tsv"


def examples(*labels):
    return Examples(Labelled("text", None, label, f"file.tsv:{i}") for i, label in enumerate(labels, 2))


# a rule


def test_a_keyword_is_learned(runs, held_out):
    run = runs("classification")
    scores = run.predictor.score(held_out("classification"))[0]["scores"]
    assert scores["accuracy"]["value"] > 95
    assert scores["macro_f1"]["value"] > 95
    assert run.predictor(["the cat runs", "the sun runs"]) == ["bad", "good"]


def test_scores_are_those_of_scikit_learn(runs, held_out):
    found = held_out("classification")
    gold = [example.label for example in found]
    result, outputs = runs("classification").predictor.score(found)
    values = {name: score["value"] for name, score in result["scores"].items()}
    assert values["accuracy"] == pytest.approx(100 * accuracy_score(gold, outputs), abs=1e-3)
    assert values["macro_f1"] == pytest.approx(100 * f1_score(gold, outputs, average="macro"), abs=1e-3)
    assert 0 <= result["calibration_error"] <= 100


def test_the_label_is_the_likeliest_and_probabilities_sum_to_one(runs):
    for classified in runs("classification").predictor.predict(["the sun", "a dog sits", ""]):
        assert list(classified.probabilities) == ["bad", "good"]
        assert sum(classified.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert classified.text == max(classified.probabilities, key=classified.probabilities.get)
        assert classified.probability == pytest.approx(max(classified.probabilities.values()), abs=1e-6)


def test_runs_with_other_labels_are_not_compared(runs, held_out):
    predictor = runs("classification").predictor
    other = Classifier(predictor.models, predictor.tokenizer, {"labels": ["no", "yes"]})
    with pytest.raises(InputError, match="different labels: bad, good and no, yes"):
        predictor.compare(other, held_out("classification"))


def test_a_label_that_was_never_trained_on_cannot_be_scored(runs):
    found = [Labelled("the sun", None, "good", "test.tsv:2"), Labelled("a dog", None, "ugly", "test.tsv:3")]
    with pytest.raises(DataError, match="the label 'ugly' does not occur") as caught:
        runs("classification").predictor.score(found)
    assert (caught.value.where, caught.value.right) == ("test.tsv:3", "one of bad, good")


# texts and labels as numbers


def test_a_text_has_an_end_and_a_pair_two():
    one, two = LETTERS.encode("ab"), LETTERS.encode("c")
    assert encode_text(LETTERS, "ab") == [*one, EOS_ID]
    assert encode_text(LETTERS, "ab", "c") == [*one, EOS_ID, *two, EOS_ID]
    assert encode_text(LETTERS, "") == [EOS_ID]
    assert encode_text(LETTERS, "ab", "") == [*one, EOS_ID, EOS_ID]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (["10", "9", "1"], ["1", "9", "10"]),
        (["b", "10", "9", "a"], ["9", "10", "a", "b"]),
        (["1", "01", "-1"], ["01", "1", "-1"]),
    ],
)
def test_labels_stand_in_an_order_that_does_not_follow_the_file(given, expected):
    assert collect_labels(examples(*given)) == collect_labels(examples(*given[::-1])) == expected


@pytest.mark.parametrize("labels", [[], ["a", "a"]])
def test_one_label_is_nothing_to_learn(labels):
    with pytest.raises(DataError, match=f"{len(set(labels))} label in the training data") as caught:
        collect_labels(examples(*labels))
    assert caught.value.where == "file.tsv"


def test_labels_as_numbers():
    assert label_numbers(examples("b", "a", "b"), ["a", "b"]) == [1, 0, 1]
    with pytest.raises(DataError, match="'c'") as caught:
        label_numbers(examples("b", "c"), ["a", "b"])
    assert caught.value.where == "file.tsv:3"


# attention


@pytest.mark.parametrize(
    "text", ["ab c가 de", "  ab\u3000c  ", "a\tb cd", "abc d\te f가 a", "\tab c", "ab\t", "de\u0301f a"]
)
def test_every_word_has_the_attention_of_its_pieces(text):
    classifier = untrained()
    first, tab, second = text.partition("\t")
    _, (weights,) = classify(classifier.models, LETTERS, [encode_text(LETTERS, first, second if tab else None)])
    assert sum(weights) == pytest.approx(1, abs=1e-5)
    expected, at = [], 0
    for part in [first, second] if tab else [first]:
        for word in part.split():
            pieces = len(LETTERS.encode(word))
            expected.append((word, pytest.approx(sum(weights[at : at + pieces]), abs=1e-4)))
            at += pieces
        at += 1  # the end
    assert at == len(weights)
    assert classifier.predict([text])[0].words == expected
    assert np.ptp(weights) > 0.1


@pytest.mark.parametrize("pool", ["last", "mean"])
def test_a_model_without_attention_says_nothing_of_words(pool):
    assert untrained(pool).predict(["ab c"])[0].words is None


@pytest.mark.parametrize("text", ["", "  ", "\t"])
def test_no_words_have_no_attention(text):
    assert untrained().predict([text])[0].words == []


def test_a_pair_is_more_than_its_words():
    outputs = untrained().predict(["ab c", "ab\tc"])
    assert outputs[0].probabilities != outputs[1].probabilities
    assert untrained().score([Labelled("ab", "c", outputs[1].text, "")])[1] == [outputs[1].text]


# ensembles


def test_an_ensemble_is_the_mean_of_its_models():
    one, other = untrained(), untrained("mean")
    both = Classifier([*one.models, *other.models], LETTERS, {"labels": one.labels})
    texts = ["ab c", "", "fed cab"]
    for a, b, mean in zip(one.predict(texts), other.predict(texts), both.predict(texts), strict=True):
        assert mean.words == a.words
        for label, p in mean.probabilities.items():
            assert p == pytest.approx((a.probabilities[label] + b.probabilities[label]) / 2, abs=2e-6)
