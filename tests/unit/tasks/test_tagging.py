"""Tagging: capitalised words are learned as names, whatever the pieces that a word is cut into."""

import numpy as np
import pytest
import torch
from seqeval.metrics import accuracy_score, f1_score

from jumok.errors import DataError
from jumok.models import RnnConfig, RnnTagger
from jumok.tasks.tagging import TaggedText, Tagger, collect_tags, encode_words, tag_words
from jumok.text.labelled import Tagged
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import UNK_ID, TokenizerConfig

LETTERS = Tokenizer.train(TokenizerConfig(kind="character", vocab_size=300), ["abc def 가나"])
WORDS = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=20), ["a b c d e"])


class Sentences(list):
    name = "file.conll"


def sentences(*tags):
    return Sentences(Tagged(["w"] * len(row), list(row), f"file.conll:{i}") for i, row in enumerate(tags, 1))


def untrained(seed=1):
    torch.manual_seed(seed)
    config = RnnConfig(cell="gru", bidirectional=True, d_embedding=8, d_hidden=8)
    return RnnTagger(config, vocab=LETTERS.vocab_size, n_labels=3).eval()


# a rule


def test_capitalised_words_are_learned(runs, held_out):
    predictor = runs("tagging").predictor
    scores = predictor.score(held_out("tagging"))[0]["scores"]
    assert scores["span_f1"]["value"] > 95
    assert scores["tag_accuracy"]["value"] > 95
    assert scores.keys() == {"span_f1", "precision", "recall", "tag_accuracy", "f1_NAME"}
    assert predictor.predict(["ab Cd Ef a"])[0] == TaggedText(
        ["ab", "Cd", "Ef", "a"],
        ["O", "B-NAME", "I-NAME", "O"],
        [pytest.approx(1, abs=0.4)] * 4,
        [("NAME", 1, 3)],
    )
    assert predictor(["ab Cd Ef a"]) == ["ab/O Cd/B-NAME Ef/I-NAME a/O"]


def test_scores_are_those_of_seqeval(runs, held_out):
    found = held_out("tagging")
    predictor = runs("tagging").predictor
    result, outputs = predictor.score(found)
    gold = [example.tags for example in found]
    said = [tagged.tags for tagged in predictor.predict([" ".join(example.words) for example in found])]
    values = {name: score["value"] for name, score in result["scores"].items()}
    assert values["span_f1"] == pytest.approx(100 * f1_score(gold, said), abs=1e-3)
    assert values["tag_accuracy"] == pytest.approx(100 * accuracy_score(gold, said), abs=1e-3)
    words = [
        " ".join(f"{word}/{tag}" for word, tag in zip(example.words, tags, strict=True))
        for example, tags in zip(found, said, strict=True)
    ]
    assert outputs == words


def test_words_are_what_white_space_separates(runs):
    predictor = runs("tagging").predictor
    (tagged,) = predictor.predict(["  ab\u3000Cd  a "])
    assert tagged.words == ["ab", "Cd", "a"]
    assert tagged == predictor.predict(["ab Cd a"])[0]


def test_a_tag_that_was_never_trained_on_is_an_error_of_the_model(tree, train, tmp_path):
    """It cannot be predicted, and counts as wrong: published test sets have such tags."""
    dev = tmp_path / "dev"
    dev.write_text("ab O\nCd B-PLACE\n\nab O\n\n", "utf-8")
    wanted = tree("tagging", data={"dev": [str(dev)], "test": [str(dev)]}, train={"steps": 1})
    _, events = train(wanted, tmp_path / "run")
    scores = next(event.scores for event in events if hasattr(event, "scores"))
    assert np.isfinite(scores["perplexity"])
    assert scores["span_f1"] == 0


def test_a_dev_set_with_nothing_but_unknown_tags_is_refused(tree, train, tmp_path):
    dev = tmp_path / "dev"
    dev.write_text("\nab X\nCd Y\n", "utf-8")
    with pytest.raises(DataError, match="no tag of dev occurs in the training data") as caught:
        train(tree("tagging", data={"dev": [str(dev)]}), tmp_path / "run")
    assert caught.value.where == f"{dev}:2"
    assert "O, B-NAME, I-NAME" in (caught.value.right or "")


# words and tags as numbers


@pytest.mark.parametrize("words", [["ab", "c", "가나"], ["a"], []])
def test_the_first_piece_carries_the_tag(words):
    ids, firsts = encode_words(LETTERS, words)
    pieces = [LETTERS.encode(word) for word in words]
    assert ids == [piece for word in pieces for piece in word]
    assert firsts == [sum(map(len, pieces[:i])) for i in range(len(words))]
    assert ids == LETTERS.encode(" ".join(words))  # as in a text


def test_every_word_has_a_piece():
    ids, firsts = encode_words(WORDS, ["a", "\u3000", "nobody", "b"])  # one that is nothing but space, one unknown
    assert firsts == [0, 1, 2, 3]
    assert ids[1:3] == [UNK_ID, UNK_ID]


def test_tags_stand_in_an_order_that_does_not_follow_the_file():
    assert collect_tags(sentences(["I-X", "B-X"], ["O", "A"])) == ["O", "A", "B-X", "I-X"]
    assert collect_tags(sentences(["O", "A"], ["B-X", "I-X"])) == ["O", "A", "B-X", "I-X"]


@pytest.mark.parametrize("tags", [[], [["O", "O"], ["O"]]])
def test_one_tag_is_nothing_to_learn(tags):
    with pytest.raises(DataError, match="tag in the training data") as caught:
        collect_tags(sentences(*tags))
    assert caught.value.where == "file.conll"


# probabilities


def test_probabilities_are_those_of_the_first_pieces():
    model, words = untrained(), ["ab", "c", "fed"]
    ids, firsts = encode_words(LETTERS, words)
    with torch.no_grad():
        logits = model(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.bool))[0]
    (found,) = tag_words([model], LETTERS, [words])
    assert found == pytest.approx(logits.softmax(dim=-1)[firsts].numpy(), abs=1e-6)


def test_sentences_without_a_word_stand_among_others():
    batch = [["ab"], [], ["c", "fed"], []]
    told = []
    found = tag_words([untrained()], LETTERS, batch, done=told.append)
    assert [len(rows) for rows in found] == [1, 0, 2, 0]
    assert sum(told) == 4
    assert found[2] == pytest.approx(tag_words([untrained()], LETTERS, [["c", "fed"]])[0], abs=1e-6)
    assert [len(rows) for rows in tag_words([untrained()], LETTERS, [[], []])] == [0, 0]


def test_many_sentences_make_many_batches(monkeypatch):
    batch = [["ab"] * (1 + i % 5) for i in range(20)]
    together = tag_words([untrained()], LETTERS, batch)
    monkeypatch.setattr("jumok.tasks.tagging.PREDICT_TOKENS", 20)
    for a, b in zip(together, tag_words([untrained()], LETTERS, batch), strict=True):
        assert a == pytest.approx(b, abs=1e-6)


def test_an_ensemble_is_the_mean_of_its_models():
    words = [["ab", "c"], ["fed"]]
    one, other = (tag_words([untrained(seed)], LETTERS, words) for seed in (1, 2))
    both = tag_words([untrained(1), untrained(2)], LETTERS, words)
    for a, b, mean in zip(one, other, both, strict=True):
        assert mean == pytest.approx((a + b) / 2, abs=1e-6)
        assert not np.allclose(a, b, atol=1e-3)


def test_spans_and_certainties_belong_to_the_tags():
    tagger = Tagger([untrained()], LETTERS, {"labels": ["O", "B-X", "I-X"]})
    (tagged,) = tagger.predict(["ab c fed de a b"])
    (rows,) = tag_words(tagger.models, LETTERS, [tagged.words])
    assert tagged.tags == [tagger.labels[i] for i in rows.argmax(axis=1)]
    assert tagged.probabilities == pytest.approx(rows.max(axis=1).tolist(), abs=1e-6)
