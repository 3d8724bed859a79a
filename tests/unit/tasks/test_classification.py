"""Classification: rules that are learned, what is said of a text, and what the numbers mean."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from torch.nn import functional as F

from jumok.data.cache import Cache
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError, InputError, RecipeError
from jumok.examples.labelled import Labelled
from jumok.models.bert import BertConfig
from jumok.models.bert_heads import BertClassifier
from jumok.models.rnn import RnnClassifier, RnnConfig
from jumok.predictor import load
from jumok.recipe import parse_recipe
from jumok.score.classification import calibration_error
from jumok.tasks import task_named
from jumok.tasks.classification import ClassificationConfig, ClassificationKind
from jumok.tasks.classification.predictor import encode_text
from jumok.tasks.classification.task import label_weights, prepare, target_loss
from jumok.tasks.protocol import Failure, adapter, plain
from jumok.tasks.targets import Classes, Numbers, Several
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, EOS_ID, TokenizerConfig

LETTERS = Tokenizer.train(TokenizerConfig(kind="character", vocab_size=300), ["abc déf 가나"])
PIECES = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=60), ["abc déf 가나"] * 3, BERT)
HOSTILE = [
    "",
    "   ",
    "\t",
    "\t\t\t",
    "\n\r\n",
    "👩‍👩‍👧😀",
    "\u0301\u0302\u0323",
    "a\x00b",
    "\x01\x1f\x7f\ufeff\u200b",
    "\u202e abc \ufffd \U0010ffff",
    "[CLS] [SEP] </s> <pad> <unk>",
]


def classifier_of(models, tokenizer, labels=("x", "y", "z"), predicts="class", **facts):
    kind, tokenizers = ClassificationKind(), Tokenizers(tokenizer, tokenizer)
    known = kind.read_facts({"task": {"predicts": predicts}, "labels": list(labels), **facts})
    return kind.predictor(TorchEngine(models, tokenizers), tokenizers, {"predicts": predicts}, known)


def untrained(pool="attention", labels=("x", "y", "z"), predicts="class", **facts):
    torch.manual_seed(1)
    config = RnnConfig(cell="gru", pool=pool, d_embedding=8, d_hidden=8, bidirectional=True)
    model = RnnClassifier(config, vocab=LETTERS.vocab_size, n_labels=len(labels) or 1).eval()
    with torch.no_grad():
        model.reader.embedding.weight[:-1] *= 20
        if model.score is not None:
            model.score.v.weight *= 20  # far from even attention
    return classifier_of([model], LETTERS, labels, predicts, **facts)


def labelled(text, pair=None, label="x", where=""):
    return Labelled(text, pair, label, where)


# rules


def test_a_keyword_is_learned(runs, held_out):
    run = runs("classification")
    scores = run.predictor.score(held_out("classification"))[0]["scores"]
    assert scores["accuracy"]["value"] > 95
    assert scores["macro_f1"]["value"] > 95
    assert run.predictor(["the cat runs", "the sun runs"]) == ["bad", "good"]


def test_several_labels_are_learned(runs, held_out):
    predictor = runs("labels").predictor
    assert predictor.score(held_out("labels"))[0]["scores"]["micro_f1"]["value"] > 95
    found = predictor.predict(["a dog", "the rain and the sun", "snow"])
    assert [output.text for output in found] == ["", "rain|sun", "snow"]
    assert found[1].probabilities["snow"] < 0.5 < min(found[1].probabilities["rain"], found[1].probabilities["sun"])
    assert found[1].probability is None


def test_a_number_is_learned_and_said_as_it_is(runs, held_out):
    predictor, found = runs("number").predictor, held_out("number")
    result, outputs = predictor.score(found)
    assert result["scores"]["pearson"]["value"] > 90
    assert result["scores"]["mean_absolute_error"]["value"] < 0.5
    assert "calibration_error" not in result
    values = [output.value for output in predictor.predict([example.text for example in found])]
    assert outputs == [f"{value:.7g}" for value in values]
    assert all(9 < value < 14 for value in values)
    assert all(not output.probabilities for output in predictor.predict(["a"]))


def test_a_pair_is_learned_by_its_order(runs, held_out):
    predictor = runs("pair").predictor
    assert predictor.score(held_out("pair"))[0]["scores"]["mcc"]["value"] > 90
    assert predictor(["the sun\ta dog", "a dog\tthe sun"]) == ["first", "second"]


def test_scores_are_those_of_others(runs, held_out):
    found = held_out("classification")
    gold = [example.label for example in found]
    result, outputs = runs("classification").predictor.score(found)
    values = {name: score["value"] for name, score in result["scores"].items()}
    assert values["accuracy"] == pytest.approx(100 * accuracy_score(gold, outputs), abs=1e-3)
    assert values["macro_f1"] == pytest.approx(100 * f1_score(gold, outputs, average="macro"), abs=1e-3)
    assert values["mcc"] == pytest.approx(100 * matthews_corrcoef(gold, outputs), abs=1e-3)
    assert 0 <= result["calibration_error"] <= 100

    found, predictor = held_out("labels"), runs("labels").predictor
    names = predictor.labels
    result, outputs = predictor.score(found)
    said, gold = (
        [[n in row.split("|") for n in names] for row in rows] for rows in (outputs, [e.label for e in found])
    )
    values = {name: score["value"] for name, score in result["scores"].items()}
    assert values["micro_f1"] == pytest.approx(100 * f1_score(gold, said, average="micro"), abs=1e-3)
    assert values["exact_match"] == pytest.approx(100 * accuracy_score(gold, said), abs=1e-3)

    found, predictor = held_out("number"), runs("number").predictor
    said, gold = predictor.believed(found)[:, 0], [float(example.label) for example in found]
    values = {name: score["value"] for name, score in predictor.score(found)[0]["scores"].items()}
    assert values["pearson"] == pytest.approx(100 * stats.pearsonr(said, gold).statistic, abs=1e-3)
    assert values["spearman"] == pytest.approx(100 * stats.spearmanr(said, gold).statistic, abs=1e-3)


@pytest.mark.parametrize("task", ["classification", "pair"])
def test_the_label_is_the_likeliest_and_probabilities_sum_to_one(runs, task):
    predictor = runs(task).predictor
    for classified in predictor.predict([f"{text}\ta" for text in ("the sun", "a dog sits", "")]):
        assert list(classified.probabilities) == predictor.labels
        assert sum(classified.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert classified.text == max(classified.probabilities, key=classified.probabilities.get)
        assert classified.probability == pytest.approx(max(classified.probabilities.values()), abs=1e-6)


def test_runs_with_other_labels_are_not_compared(runs, held_out):
    predictor = runs("classification").predictor
    other = untrained(labels=["no", "yes"])
    with pytest.raises(InputError) as caught:
        predictor.compare(other, held_out("classification"))
    assert caught.value.code == "input.different_runs"
    assert "bad, good and no, yes" in caught.value.what
    several = untrained(labels=["bad", "good"], predicts="labels")
    with pytest.raises(InputError) as caught:
        predictor.compare(several, held_out("classification"))
    assert caught.value.code == "input.different_runs"
    assert "task.predicts" in caught.value.hint


def test_the_first_run_says_what_separates_the_labels_of_examples():
    one, other = (untrained(labels=["x", "y"], predicts="labels", separator=separator) for separator in "|,")
    found = one.compare(other, [labelled("abc", label="x|y"), labelled("def", label="y")])
    assert [c.difference for c in found] == [0] * len(found)
    with pytest.raises(DataError) as caught:
        other.score([labelled("abc", label="x|y")])
    assert caught.value.code == "data.unknown_label"


def test_a_label_that_was_never_trained_on_cannot_be_scored(runs):
    found = [Labelled("the sun", None, "good", "test.tsv:2"), Labelled("a dog", None, "ugly", "test.tsv:3")]
    with pytest.raises(DataError) as caught:
        runs("classification").predictor.score(found)
    assert (caught.value.code, caught.value.where) == ("data.unknown_label", "test.tsv:3")
    assert "'ugly'" in caught.value.what
    assert "bad, good" in caught.value.hint


@pytest.mark.parametrize(
    ("task", "row", "label", "code"),
    [
        ("classification", "a dog\tugly", "'ugly'", "data.unknown_label"),
        ("labels", "a dog\train|fog", "'fog'", "data.unknown_label"),
        ("number", "a dog\tmany", "'many'", "data.not_a_number"),
        ("number", "a dog\tinf", "'inf'", "data.not_a_number"),
        ("verbal", "a dog\tugly", "'ugly'", "data.unknown_label"),
    ],
)
@pytest.mark.parametrize("split", ["dev", "test"])
def test_an_unknown_label_is_named_before_the_training(tree, train, tmp_path, task, row, label, code, split):
    path = tmp_path / "held_out.tsv"
    good = {"labels": "rain", "number": "3"}.get(task, "good")
    path.write_text(f"text\tlabel\nthe sun\t{good}\n{row}\n", "utf-8")
    with pytest.raises(DataError) as caught:
        train(tree(task, data={split: [str(path)]}), tmp_path / "run", at=lambda _: pytest.fail("it trained"))
    assert (caught.value.code, caught.value.where) == (code, f"{path}:3")
    assert label in caught.value.what


# pairs


def test_a_judge_of_pairs_refuses_a_single_text(runs):
    predictor = runs("pair").predictor
    found, failed, of_mapping = predictor.predict(["a\tb", "the sun", {"text": "the sun"}])
    assert found.text in predictor.labels
    assert isinstance(failed, Failure)
    assert (failed.code, failed.where) == ("input.pair", "line 2")
    assert "'the sun'" in failed.what
    assert "tab" in failed.hint
    assert (of_mapping.code, of_mapping.where) == ("input.pair", "line 3")
    with pytest.raises(DataError) as refused:
        predictor.score([labelled("the sun", None, "first", "test.tsv:9")])
    assert (refused.value.code, refused.value.where) == ("input.pair", "test.tsv:9")
    assert "data.pair" in refused.value.hint


def test_a_judge_of_single_texts_refuses_a_pair(runs):
    """As a mapping; in a line nobody can tell."""
    found, failed = runs("classification").predictor.predict(["the sun", {"text": "the sun", "pair": "a dog"}])
    assert found.text == "good"
    assert (failed.code, failed.where) == ("input.pair", "line 2")


@pytest.mark.parametrize("task", ["classification", "pair", "verbal"])
def test_a_line_a_mapping_and_an_example_are_the_same(runs, task):
    text, pair = "the sun", "a dog" if task == "pair" else None
    mapping = {"text": text} if pair is None else {"text": text, "pair": pair}
    line = "\t".join(mapping.values())
    one, other, last = runs(task).predictor.predict([line, mapping, labelled(text, pair, "unheard of")])
    assert one == other == last


def test_a_tab_is_white_space_to_a_judge_of_single_texts(runs):
    predictor = runs("classification").predictor
    one, other = predictor.predict(["the\tsun", "the sun"], words=True)
    assert one.probabilities == other.probabilities
    assert [word for word, _ in one.words] == ["the", "sun"]


def test_a_table_is_no_list_of_pairs(runs):
    """Its other columns would be read as a part of the second text, the label among them."""
    found, failed = runs("pair").predictor.predict(["the sun\tthe moon", "7\tthe sun\tthe moon\tx"])
    assert found.text in ("first", "second")
    assert (failed.code, failed.where) == ("input.columns", "line 2")
    assert failed.what.startswith("4 ")
    assert "'7" in failed.what


def test_a_single_string_is_one_text(runs):
    for task in ("classification", "verbal"):
        predictor = runs(task).predictor
        assert predictor("the sun") == predictor(["the sun"]) == ["good"]


def test_a_text_has_an_end_and_a_pair_two():
    one, two = LETTERS.encode("ab"), LETTERS.encode("c")
    long = LongTexts(100)
    assert encode_text(LETTERS, labelled("ab"), long).rows == [[*one, EOS_ID]]
    assert encode_text(LETTERS, labelled("ab", "c"), long).rows == [[*one, EOS_ID, *two, EOS_ID]]
    assert encode_text(LETTERS, labelled(""), long).rows == [[EOS_ID]]
    assert encode_text(LETTERS, labelled("ab", ""), long).rows == [[*one, EOS_ID, EOS_ID]]


def test_a_pair_is_more_than_its_words():
    outputs = untrained().predict(["ab c", "ab\tc"])
    assert outputs[0].probabilities != outputs[1].probabilities
    assert untrained().score([labelled("ab", "c", outputs[1].text)])[1] == [outputs[1].text]


# attention


@pytest.mark.parametrize(
    "text", ["ab c가 de", "  ab\u3000c  ", "a\tb cd", "abc d\te f가 a", "\tab c", "ab\t", "de\u0301f a"]
)
def test_every_word_has_the_attention_of_its_pieces(text):
    classifier = untrained()
    first, tab, second = text.partition("\t")
    framed = encode_text(LETTERS, labelled(first, second if tab else None), LongTexts(100))
    (weights,) = classifier.engine.focus(framed.rows)
    assert sum(weights) == pytest.approx(1, abs=1e-5)
    expected, at = [], 0
    for part in [first, second] if tab else [first]:
        for word in part.split():
            pieces = len(LETTERS.encode(word))
            expected.append((word, pytest.approx(sum(weights[at : at + pieces]), abs=1e-4)))
            at += pieces
        at += 1  # the end
    assert at == len(weights)
    assert classifier.predict([text], words=True)[0].words == expected
    assert np.ptp(weights) > 0.1


def test_the_attention_of_bert_is_that_of_its_words():
    torch.manual_seed(2)
    config = BertConfig(d_model=8, d_ff=8, n_heads=2, n_layers=1, max_len=40)
    model = BertClassifier(config, vocab=PIECES.vocab_size, n_labels=2).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    classifier = classifier_of([model], PIECES, ["x", "y"])
    for text in ("abc 가나 abc", "abc\t가나 abc"):
        (found,) = classifier.predict([text], words=True)
        assert [word for word, _ in found.words] == text.split()
        first, _, second = text.partition("\t")
        framed = encode_text(PIECES, labelled(first, second or None), LongTexts(40))
        (weights,) = classifier.engine.focus(framed.rows)
        special = [w for i, w in zip(framed.rows[0], weights, strict=True) if i in (PIECES.start_id, PIECES.end_id)]
        assert sum(weight for _, weight in found.words) == pytest.approx(1 - sum(special), abs=1e-3)


@pytest.mark.parametrize("pool", ["last", "mean"])
def test_a_model_without_attention_says_nothing_of_words(pool):
    classifier = untrained(pool)
    assert classifier.predict(["ab c"], words=True)[0].words is None
    with pytest.raises(InputError) as caught:
        classifier.attention("ab c")
    assert caught.value.code == "input.no_attention"


def test_words_are_not_looked_at_unless_they_are_asked_for(monkeypatch):
    classifier = untrained()
    monkeypatch.setattr(classifier.engine, "focus", lambda rows: pytest.fail("it looked"))
    (found,) = classifier.predict(["ab c"])
    assert found.words is None
    assert "words" not in plain(found)
    with pytest.raises(InputError) as caught:
        classifier.predict(["ab c"], word=True)
    assert caught.value.code == "input.unknown_option"
    assert "words" in caught.value.hint


def test_attention_is_that_of_every_layer_and_head():
    torch.manual_seed(2)
    config = BertConfig(d_model=8, d_ff=8, n_heads=2, n_layers=3, max_len=40)
    model = BertClassifier(config, vocab=PIECES.vocab_size, n_labels=3).eval()
    found = classifier_of([model], PIECES).attention("abc\t가나")
    assert list(found) == ["self"]
    pieces = PIECES.pieces(PIECES.frame(PIECES.encode("abc"), PIECES.encode("가나")))
    assert found["self"].rows == found["self"].columns == pieces
    assert found["self"].weights.shape == (3, 2, len(pieces), len(pieces))
    assert found["self"].weights.sum(axis=-1) == pytest.approx(1, abs=1e-5)


def test_attention_of_a_recurrent_network_is_the_one_by_which_it_weighs_its_states():
    classifier = untrained()
    found = classifier.attention({"text": "ab c"})["pool"]
    row = LETTERS.frame(LETTERS.encode("ab c"))
    assert found.columns == LETTERS.pieces(row)
    assert (len(found.rows), found.weights.shape) == (1, (1, 1, 1, len(row)))
    assert found.weights[0, 0, 0] == pytest.approx(classifier.engine.focus([row])[0])


@pytest.mark.parametrize("text", ["", "  ", "\t"])
def test_no_words_have_no_attention(text):
    assert untrained().predict([text], words=True)[0].words == []


@pytest.mark.parametrize("rule", ["windows", "truncate"])
def test_a_text_that_is_too_long_has_no_attention_to_show(rule):
    classifier = untrained(max_len=12, long_texts={"rule": rule, "stride": 4})
    found = classifier.predict(["abc " * 9, "abc\t" + "de " * 9, "ab c"], words=True)
    code = {"windows": "text.windows", "truncate": "text.cut"}[rule]
    assert [[note.code for note in output.notes] for output in found] == [[code], [code], []]
    assert "12" in found[0].notes[0].text
    assert [output.truncated for output in found] == [rule == "truncate"] * 2 + [False]
    assert [output.words is None for output in found] == [True, True, False]
    assert [output.windows > 1 for output in found] == [rule == "windows"] * 2 + [False]


# long texts


@pytest.mark.parametrize("predicts", ["class", "labels", "number"])
def test_windows_are_merged_before_they_become_probabilities(predicts):
    labels = [] if predicts == "number" else ["x", "y", "z"]
    long = untrained(labels=labels, predicts=predicts, max_len=10, long_texts={"rule": "windows", "stride": 3})
    text = "abc def cab fed"
    framed = encode_text(LETTERS, labelled(text), long.long_texts)
    assert len(framed.rows) > 2
    with torch.no_grad():
        rows = [torch.tensor([row]) for row in framed.rows]
        outputs = [long.engine.models[0](row, torch.zeros_like(row), row >= 0).double() for row in rows]
    believe = {"class": lambda o: o.softmax(-1), "labels": torch.sigmoid, "number": lambda o: o}[predicts]
    expected = believe(torch.cat(outputs).mean(dim=0)).numpy()
    told = []
    found = long.believed([labelled("ab"), labelled(text), labelled("c")], done=told.append)
    assert found[1] == pytest.approx(expected, abs=1e-6)
    assert sum(told) == 3


@pytest.mark.parametrize("predicts", ["class", "labels"])
@pytest.mark.parametrize("temperature", [0.2, 5.0])
def test_a_temperature_changes_no_decision_about_a_long_text(predicts, temperature):
    """Sure in one window and unsure in two: whoever averages probabilities decides otherwise at another temperature."""
    rng = random.Random(1)
    texts = [labelled("".join(rng.choices("abcdef ", k=rng.randint(1, 40)))) for _ in range(60)]
    facts = {"max_len": 10, "long_texts": {"rule": "windows", "stride": 3}}
    model = untrained(labels=["x", "y", "z"], predicts=predicts, **facts)
    with torch.no_grad():
        model.engine.models[0].output.weight *= 30
    before = model.believed(texts)
    with torch.no_grad():
        for parameter in model.engine.models[0].output.parameters():
            parameter /= temperature
    after = model.believed(texts)
    assert (model.targets.decided(before) == model.targets.decided(after)).all()
    assert after == pytest.approx(model.targets.heated(before, temperature), abs=1e-4)


def test_a_text_that_is_too_long_may_be_refused():
    strict = untrained(max_len=10, long_texts={"rule": "refuse", "stride": 3})
    examples = [labelled("ab"), labelled("abc def cab fed a", where="test.tsv:3")]
    with pytest.raises(DataError) as caught:
        strict.believed(examples)
    assert (caught.value.code, caught.value.where) == ("data.too_long", "test.tsv:3")
    assert "18" in caught.value.what
    found, failed = strict.predict(examples)
    assert found.text in strict.labels
    assert (failed.code, failed.where) == ("data.too_long", "test.tsv:3")


@pytest.mark.parametrize(("shorter", "noted"), [(None, False), (1, True), (0, False)])
def test_a_text_longer_than_all_of_training_is_noted(shorter, noted):
    longest = None if shorter is None else len(LETTERS.frame(LETTERS.encode("abcd"))) - shorter
    long, short = untrained(longest=longest).predict(["abcd", "a"])
    assert [note.code for note in long.notes] == ["text.longer_than_training"] * noted
    assert all(str(longest) in note.text for note in long.notes)
    assert short.notes == []


def test_long_texts_of_training_are_windows_with_the_label_of_the_text(tree, tmp_path):
    file = tmp_path / "long.tsv"
    file.write_text(f"text\tlabel\n{'the dog ' * 20}\tbad\nsun\tgood\n", "utf-8")
    wanted = tree("classification", data={"train": [str(file)], "max_len": 10, "stride": 2})
    found = prepare(parse_recipe(wanted, where="test"), Cache(tmp_path))
    rows = [found.train.fields["text"][i].tolist() for i in range(len(found.train))]
    assert len(rows) > 5
    assert max(map(len, rows)) == 10
    labels = [found.train.fields["label"][i].tolist() for i in range(len(rows))]
    assert labels == [[0]] * (len(rows) - 1) + [[1]]
    assert (found.train.facts["long"], found.train.facts["read"]) == (1, 2)


# a run that goes on


@pytest.mark.parametrize("task", ["classification", "labels", "number", "verbal"])
def test_what_was_learned_of_the_labels_is_read_back(tree, tmp_path, monkeypatch, task):
    recipe = parse_recipe(tree(task), where="test")
    first = prepare(recipe, Cache(tmp_path))
    monkeypatch.setattr("jumok.tasks.classification.task.learn_targets", lambda *_, **__: pytest.fail("read again"))
    for fresh in (True, False):
        again = prepare(recipe, Cache(tmp_path), fresh=fresh)
        assert again.targets == first.targets
        assert again.facts == first.facts
        assert again.train.folder == first.train.folder
    assert first.labels == ([] if task == "number" else first.targets.labels)


# batches


@pytest.mark.parametrize("kind", ["rnn", "bert"])
def test_order_and_padding_change_nothing(kind):
    if kind == "rnn":
        classifier = untrained()
    else:
        torch.manual_seed(3)
        config = BertConfig(d_model=16, d_ff=16, n_heads=2, n_layers=2, max_len=64)
        model = BertClassifier(config, vocab=PIECES.vocab_size, n_labels=3).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(8)
        classifier = classifier_of([model], PIECES)
    examples = [labelled("abc " * n, "déf " * (n % 3) if n % 2 else None) for n in range(12)]
    together = classifier.believed(examples)
    assert np.ptp(together, axis=0).max() > 0.05
    order = np.random.default_rng(0).permutation(len(examples))
    assert classifier.believed([examples[i] for i in order]) == pytest.approx(together[order], abs=1e-5)
    alone = np.concatenate([classifier.believed([example]) for example in examples])
    assert alone == pytest.approx(together, abs=1e-5)


def test_no_texts_are_no_answers():
    classifier = untrained()
    assert classifier.predict([]) == []
    assert classifier.believed([]).shape == (0, 3)


def test_an_ensemble_is_the_mean_of_its_models():
    one, other = untrained(), untrained("mean")
    both = classifier_of([*one.engine.models, *other.engine.models], LETTERS, one.labels)
    texts = ["ab c", "", "fed cab"]
    said = (classifier.predict(texts, words=True) for classifier in (one, other, both))
    for a, b, mean in zip(*said, strict=True):
        assert mean.words == a.words
        for label, p in mean.probabilities.items():
            assert p == pytest.approx((a.probabilities[label] + b.probabilities[label]) / 2, abs=2e-6)


@pytest.mark.parametrize("task", ["classification", "labels", "number", "pair", "verbal"])
def test_no_string_is_too_strange(runs, task):
    texts = [f"{text.strip(chr(9))}\tthe sun" for text in HOSTILE] if task == "pair" else HOSTILE
    found = runs(task).predictor.predict(texts)
    assert len(found) == len(texts)
    for output in found:
        values = [output.value] if task == "number" else list(output.probabilities.values())
        assert np.isfinite(values).all()
        kind = runs(task).predictor.answers
        read = adapter(kind).validate_json(json.dumps(plain(output)))
        assert plain(read) == plain(output)  # numbers have six digits in JSON
        assert replace(read, value=None, probability=None, probabilities={}) == replace(
            output, value=None, probability=None, probabilities={}
        )


@pytest.mark.parametrize("task", ["classification", "verbal", "tagging", "marked", "answering", "choice"])
def test_what_is_no_text_is_refused(runs, task):
    found, failed = runs(task).predictor.predict(["a\tb\tc", "the\td \ud800\te"])
    assert not isinstance(found, Failure)
    assert isinstance(failed, Failure)
    assert "surrogate" in failed.what


@pytest.mark.parametrize("task", ["classification", "number"])
def test_a_text_of_a_hundred_thousand_characters_is_read(runs, task):
    text = "the sun 비 " * 11_000
    long, short = runs(task).predictor.predict([text, "a"])
    codes = [note.code for note in long.notes]
    assert codes == ["text.windows", "text.longer_than_training"]  # a window is, too
    assert short.notes == []
    assert long.windows > 100


# loss


def outputs_and(targets, n=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    outputs = torch.randn(n, 3, generator=generator)
    if isinstance(targets, Classes):
        return outputs, torch.randint(0, 3, (n,), generator=generator)
    return outputs, torch.randint(0, 2, (n, 3), generator=generator).float()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 4.0]])
def test_the_loss_of_classes_is_the_weighted_cross_entropy(smoothing, weights):
    targets = Classes(["a", "b", "c"])
    outputs, gold = outputs_and(targets)
    given = None if weights is None else torch.tensor(weights)
    total = target_loss(targets, outputs, gold, smoothing=smoothing, weights=given)
    mean = F.cross_entropy(outputs, gold, weight=given, label_smoothing=smoothing)
    weight = len(gold) if given is None else float(given[gold].sum())  # by which torch divides
    assert float(total) == pytest.approx(float(mean) * weight, rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 4.0]])
def test_the_loss_of_labels_is_a_binary_cross_entropy_of_each(smoothing, weights):
    targets = Several(["a", "b", "c"])
    outputs, gold = outputs_and(targets)
    p = outputs.sigmoid()
    soft = gold * (1 - smoothing) + (1 - gold) * 0 + smoothing / 2
    heavier = 1.0 if weights is None else torch.tensor(weights)  # what is said of the texts that have the label
    by_hand = -(heavier * soft * p.log() + (1 - soft) * (1 - p).log())
    given = None if weights is None else torch.tensor(weights)
    total = target_loss(targets, outputs, gold, smoothing=smoothing, weights=given)
    assert float(total) == pytest.approx(float(by_hand.sum()), rel=1e-5)


def test_the_loss_of_numbers_is_of_standard_deviations():
    examples = [labelled("", label=str(n)) for n in (1, 5, 9)]
    targets = Numbers.of(examples)
    assert (targets.mean, targets.deviation) == (5, pytest.approx(np.std([1, 5, 9])))
    stored = [targets.stored(example) for example in examples]
    gold = torch.from_numpy(targets.batch(stored))
    assert gold.tolist() == pytest.approx([(n - 5) / np.std([1, 5, 9]) for n in (1, 5, 9)], abs=1e-6)
    outputs = torch.tensor([[0.1], [0.2], [-3.0]])
    assert float(target_loss(targets, outputs, gold, smoothing=0.0, weights=None)) == pytest.approx(
        float((outputs[:, 0] - gold).square().sum())
    )
    assert targets.believed(gold[:, None].double().numpy())[:, 0] == pytest.approx([1, 5, 9], abs=1e-5)


@pytest.mark.parametrize("task", ["classification", "labels"])
def test_weights_and_smoothing_of_a_recipe_reach_the_loss(tree, tmp_path, task):
    """The mean loss of a task is torch's, times the mean weight of its examples."""
    rare = {"classification": "good", "labels": "sun"}[task]
    plain = prepare(parse_recipe(tree(task), where="test"), Cache(tmp_path))
    wanted = tree(task, task={"class_weights": {rare: 3.0}, "label_smoothing": 0.2})
    found = prepare(parse_recipe(wanted, where="test"), Cache(tmp_path))
    assert plain.weights is None
    assert found.weights == [3.0 if label == rare else 1.0 for label in found.labels]
    assert found.train.folder == plain.train.folder
    torch.manual_seed(1)
    config = RnnConfig(cell="gru", pool="mean", d_embedding=8, d_hidden=8)
    model = RnnClassifier(config, vocab=found.tokenizer.vocab_size, n_labels=found.width).eval()
    batch = found.batch(np.arange(30))
    with torch.no_grad():
        outputs = model(batch.page.ids, batch.page.segments, batch.page.mask)
        total = float(found.loss(model, batch, done=0.0).total)
    weights = torch.tensor(found.weights)
    expected = target_loss(found.targets, outputs, batch.targets, smoothing=0.2, weights=weights)
    assert total == pytest.approx(float(expected), rel=1e-6)
    with torch.no_grad():
        assert total != pytest.approx(float(plain.loss(model, batch, done=0.0).total), rel=1e-2)


def test_balanced_weights_make_rare_labels_as_heavy_as_frequent_ones(tree, tmp_path):
    file = tmp_path / "train.tsv"
    file.write_text("text\tlabel\n" + "a dog\tbad\n" * 9 + "sun\tgood\n" * 3, "utf-8")
    wanted = tree("classification", data={"train": [str(file)]}, task={"class_weights": "balanced"})
    found = prepare(parse_recipe(wanted, where="test"), Cache(tmp_path))
    assert found.weights == pytest.approx([12 / (2 * 9), 12 / (2 * 3)])  # as in scikit-learn
    assert 9 * found.weights[0] == pytest.approx(3 * found.weights[1])
    assert (9 * found.weights[0] + 3 * found.weights[1]) / 12 == pytest.approx(1)


def test_balanced_weights_find_a_rare_label_of_several():
    """Of a text that says nothing, the likeliest belief is the share of the label; balanced, it is a half."""
    targets = Several(["rare", "often"])
    gold = torch.tensor([[1.0, 1.0]] + [[0.0, 1.0]] * 11 + [[0.0, 0.0]] * 8)
    weights = torch.tensor(targets.balanced([1, 12], 20))
    for given, believed in ((None, [1 / 20, 12 / 20]), (weights, [0.5, 0.5])):
        outputs = torch.tensor(believed).logit().expand(20, 2).clone().requires_grad_()
        target_loss(targets, outputs, gold, smoothing=0.0, weights=given).backward()
        assert outputs.grad.sum(dim=0).tolist() == pytest.approx([0, 0], abs=1e-5)


def test_a_weight_for_a_label_that_is_not_there_is_refused(tree, tmp_path):
    wanted = tree("classification", task={"class_weights": {"ugly": 2.0, "good": 1.5}})
    with pytest.raises(DataError) as caught:
        prepare(parse_recipe(wanted, where="test"), Cache(tmp_path))
    assert (caught.value.code, caught.value.where) == ("data.unknown_label", "task.class_weights")
    assert "ugly" in caught.value.what
    assert "bad, good" in caught.value.hint
    assert label_weights(ClassificationConfig(class_weights={}), Classes(["a", "b"]), None) == [1.0, 1.0]


def test_numbers_have_no_weights(tree):
    with pytest.raises(RecipeError) as caught:
        parse_recipe(tree("number", task={"class_weights": "balanced"}), where="test")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [("task", "recipe.mismatch")]
    assert "class_weights" in caught.value.what


# how sure a model is


@pytest.fixture(scope="module")
def unsure(tree, train, tmp_path_factory):
    """A run that is often wrong, so that it has something to calibrate: some labels of its data are."""
    folder = tmp_path_factory.mktemp("unsure")
    data = {}
    for split in ("train", "dev", "test"):
        header, *rows = Path(tree("classification")["data"][split][0]).read_text("utf-8").splitlines()
        rows = [row[: row.index("\t")] + "\tgood" if i % 4 == 0 else row for i, row in enumerate(rows)]
        path = folder / f"{split}.tsv"
        path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
        data[split] = [str(path)]
    wanted = tree("classification", data=data, train={"steps": 40})
    train(wanted, folder / "run")
    return folder / "run", list(parse_recipe(wanted, where="test").data.read("test", seed=1))


def test_the_probabilities_that_are_written_are_the_calibrated_ones(unsure):
    folder, examples = unsure
    predictor = load(folder, device="cpu")
    temperature = json.loads((folder / "model/config.json").read_text())["jumok"]["temperature"]
    assert predictor.facts.temperature == temperature != 1.0
    raw = load(folder, device="cpu")
    with torch.no_grad():
        for parameter in (raw.engine.models[0].output.weight, raw.engine.models[0].output.bias):
            parameter *= temperature
    before, after = raw.believed(examples), predictor.believed(examples)
    logits = np.log(before) / temperature
    assert after == pytest.approx(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), abs=1e-5)
    gold = predictor.targets.gold(examples)
    result = predictor.score(examples)[0]
    for name, believed in (("calibration_error_before", before), ("calibration_error", after)):
        sure, right = believed.max(axis=1), believed.argmax(axis=1) == gold
        assert result[name] == pytest.approx(calibration_error(sure.tolist(), right.tolist()), abs=2e-3)
    assert result["calibration_error_before"] != result["calibration_error"]


def test_the_temperature_is_the_best_on_dev(unsure, tree):
    folder, _ = unsure
    recipe = parse_recipe(json.loads((folder / "recipe.json").read_text())["recipe"], where="test")
    dev = list(recipe.data.read("dev", seed=1))
    predictor = load(folder, device="cpu")
    targets, believed, gold = predictor.targets, predictor.believed(dev), predictor.targets.gold(dev)

    def cost(temperature):
        heated = targets.heated(believed, temperature)
        return -np.log(heated[np.arange(len(gold)), gold]).mean()

    assert cost(1.0) <= min(cost(t) for t in (0.5, 0.8, 0.95, 1.05, 1.25, 2.0)) + 1e-9


def test_a_few_texts_do_not_tell_how_sure_to_be(unsure, tmp_path):
    folder, examples = unsure
    predictor = load(folder, device="cpu")
    recipe = parse_recipe(json.loads((folder / "recipe.json").read_text())["recipe"], where="test")
    task = prepare(recipe, Cache(tmp_path))
    assert task.calibrated(predictor, examples[:30])["temperature"] > 0
    assert task.calibrated(predictor, examples[:29]) == {}


def test_temperature_and_scale_are_folded_into_the_output_layer(tree, tmp_path):
    weights = {"output.weight": torch.randn(2, 4), "output.bias": torch.randn(2), "other": torch.ones(1)}
    outputs = F.linear(torch.ones(4), weights["output.weight"], weights["output.bias"])
    kind, task = (
        task_named("classification"),
        prepare(parse_recipe(tree("classification"), where="test"), Cache(tmp_path)),
    )
    assert kind.final_weights(weights, task.facts) == weights
    cooled = kind.final_weights(weights, replace(task.facts, temperature=2.5))
    assert cooled["other"] is weights["other"]
    found = F.linear(torch.ones(4), cooled["output.weight"], cooled["output.bias"])
    assert torch.allclose(found, outputs / 2.5)
    task = prepare(parse_recipe(tree("number"), where="test"), Cache(tmp_path))
    scaled = kind.final_weights(weights, task.facts)
    found = F.linear(torch.ones(4), scaled["output.weight"], scaled["output.bias"])
    assert torch.allclose(found, outputs * task.targets.deviation + task.targets.mean)


def test_a_run_that_is_always_right_is_left_as_it_is(runs):
    stored = json.loads((runs("classification").folder / "scores.json").read_text())["dev"]
    assert stored["scores"]["accuracy"]["value"] == 100
    assert runs("classification").predictor.facts.temperature == 1.0
    assert "calibration_error" in stored
    assert "calibration_error_before" not in stored


@pytest.mark.parametrize("targets", [Classes(["a", "b", "c"]), Several(["a", "b", "c"])])
def test_heating_is_dividing_the_outputs(targets):
    outputs = np.random.default_rng(0).normal(size=(20, 3)) * 3
    heated = targets.heated(targets.believed(outputs), 2.5)
    assert heated == pytest.approx(targets.believed(outputs / 2.5), abs=1e-9)
    assert targets.heated(heated, 1 / 2.5) == pytest.approx(targets.believed(outputs), abs=1e-9)


# in transformers


@pytest.mark.parametrize("task", ["classification", "labels", "number"])
def test_a_fine_tuned_bert_says_the_same_in_transformers(tree, train, tmp_path, task):
    """Temperature and scale are in the output layer, so that others need not know of them."""
    from transformers import AutoModelForSequenceClassification

    bert = {"kind": "bert", "d_model": 16, "d_ff": 16, "n_heads": 2, "n_layers": 1, "max_len": 24}
    wanted = tree(task, tokenizer={"kind": "wordpiece", "vocab_size": 120}, train={"steps": 12})
    wanted = {**wanted, "model": bert, "data": {**wanted["data"], "max_len": 24}}
    train(wanted, tmp_path / "run")
    predictor = load(tmp_path / "run", device="cpu")
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run/model").eval()
    examples = list(parse_recipe(wanted, where="test").data.read("test", seed=1))[:10]
    ours = predictor.believed(examples)
    for example, row in zip(examples, ours, strict=True):
        ids = torch.tensor(encode_text(predictor.tokenizer, example, predictor.long_texts).rows)
        with torch.no_grad():
            logits = theirs(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0].double()
        said = {"classification": logits.softmax(-1), "labels": logits.sigmoid(), "number": logits}[task]
        assert row == pytest.approx(said.numpy(), abs=1e-4)
    if task == "number":
        assert ours.mean() == pytest.approx(11.4, abs=0.7)  # a number, no standard deviations
    else:
        assert list(theirs.config.id2label.values()) == predictor.labels


# kinds of labels


def test_labels_are_told_by_the_targets():
    examples = [labelled("", label=label, where=f"x:{i}") for i, label in enumerate(["b", "a", "b"])]
    assert Classes(["a", "b"]).gold(examples).tolist() == [1, 0, 1]
    with pytest.raises(DataError) as caught:
        Classes(["a", "c"]).gold(examples)
    assert (caught.value.code, caught.value.where) == ("data.unknown_label", "x:0")
    assert "'b'" in caught.value.what
    several = [replace(examples[0], label=label) for label in ("a|b", "|", " b ", "b||b")]
    assert Several(["a", "b"]).gold(several).tolist() == [[True, True], [False, False], [False, True], [False, True]]
    assert [Several(["a", "b"]).stored(example) for example in several] == [[0, 1], [], [1], [1]]
    assert Several(["a", "b"], ";").gold([labelled("", label="a; b")]).tolist() == [[True, True]]
    assert Numbers().gold([labelled("", label="-1.5e1")]).tolist() == [-15]


def test_a_separator_of_ones_own_is_remembered(tree, train, tmp_path):
    file = tmp_path / "train.tsv"
    file.write_text("text\tlabel\nsun rain\tsun;rain\nsun\tsun\nrain\train\n", "utf-8")
    files = {split: [str(file)] for split in ("train", "dev", "test")}
    train(tree("labels", data={**files, "separator": ";"}, train={"steps": 2}), tmp_path / "run")
    predictor = load(tmp_path / "run", device="cpu")
    assert predictor.labels == ["rain", "sun"]
    assert predictor.facts.separator == ";"
    with torch.no_grad():
        predictor.engine.models[0].output.bias += 50
    assert predictor(["sun rain"]) == ["rain;sun"]
