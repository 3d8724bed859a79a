"""Multiple choice: the ending that fits, whatever the order of the endings."""

import json
import re
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from jumok.data.cache import Cache
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.choices import Choice
from jumok.models.bert import BertConfig
from jumok.models.bert_heads import BertClassifier
from jumok.recipe import parse_recipe
from jumok.tasks.choice import ChoiceKind
from jumok.tasks.choice.predictor import Chooser, encode_choice
from jumok.tasks.choice.task import encode_choices
from jumok.tasks.protocol import Failure
from jumok.tasks.windows import LongTexts, WindowedFacts, WindowRule
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

LINES = ["a b c d e f g h i j"] * 3
WORDS = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=40), LINES)
PIECES = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=60), LINES, BERT)
LONG = LongTexts(60)


def untrained(seed=1):
    torch.manual_seed(seed)
    config = BertConfig(d_model=16, d_ff=16, n_heads=2, n_layers=2, max_len=60)
    model = BertClassifier(config, vocab=PIECES.vocab_size, n_labels=1).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)
    return model


def chooser(*models, **facts):
    tokenizers = Tokenizers(PIECES, PIECES)
    return Chooser(TorchEngine(models or [untrained()], tokenizers), tokenizers, WindowedFacts(**facts))


@pytest.fixture
def prepare(tree, tmp_path):
    def prepared(**sections):
        recipe = parse_recipe(tree("choice", **sections), where="test")
        return recipe.kind.prepare(recipe, Cache(tmp_path))

    return prepared


# rows


@pytest.mark.parametrize("tokenizer", [WORDS, PIECES], ids=["word", "wordpiece"])
@settings(max_examples=50)
@given(
    context=st.integers(0, 50),
    endings=st.lists(st.integers(0, 20), min_size=2, max_size=4),
    size=st.integers(8, 40),
    stride=st.integers(0, 20),
)
def test_endings_stay_whole_and_the_context_slides(tokenizer, context, endings, size, stride):
    words = ["a", "b", "c", "d", "e"] * 20
    example = Choice(" ".join(words[:context]), [" ".join(["j"] * n) for n in endings], 0, "")
    found = encode_choice(tokenizer, example, LongTexts(size, "windows", stride))
    room = size - len(tokenizer.frame([], []))
    kept = [min(n, room // 2) for n in endings]
    ids = tokenizer.encode(example.context)
    covered = set()
    for rows in found.windows:
        assert len(rows) == len(endings)
        assert all(len(row) <= size for row in rows)
        parts = [row[: row.index(tokenizer.end_id)] for row in rows]
        assert all(part == parts[0] for part in parts)  # the same part of the context before every ending
        assert [row.count(tokenizer.encode("j")[0]) for row in rows] == kept
        part = parts[0][len(tokenizer.frame([])) - 1 :]
        covered |= {
            start + k for start in range(context) if ids[start : start + len(part)] == part for k in range(len(part))
        }
    assert covered >= set(range(context))
    assert found.long == (len(found.windows) > 1)
    assert found.cut == found.truncated == (kept != endings)


def test_a_long_context_may_be_cut_or_refused():
    example = Choice("a " * 30, ["b", "c"], 0, "x:3")
    found = encode_choice(PIECES, example, LongTexts(20, "truncate"))
    (rows,) = found.windows
    assert (found.long, found.cut, found.truncated) == (True, False, True)
    assert [len(row) for row in rows] == [20, 20]
    for refused, room in ((example, 16), (Choice("a", ["b " * 30, "c"], 0, "x:3"), 8)):
        with pytest.raises(DataError) as caught:
            encode_choice(PIECES, refused, LongTexts(20, "refuse"))
        assert (caught.value.code, caught.value.where) == ("data.too_long", "x:3")
        assert re.findall(r"\d+", caught.value.what) == ["30", str(room)]


def test_every_window_of_training_has_the_label():
    examples = [Choice("a " * 30, ["b", "c"], 1, "x:1"), Choice("a", ["b", "c"], 0, "x:2")]
    facts = {}
    rows = list(encode_choices(examples, PIECES, LongTexts(20), facts))
    assert [row[-1] for row in rows] == [[1]] * (len(rows) - 1) + [[0]]
    assert len(rows) > 3
    assert (facts["read"], facts["long"]) == (2, 1)


def test_examples_with_another_number_of_endings_are_refused():
    examples = [Choice("a", ["b", "c"], 1, "x:1"), Choice("a", ["b", "c", "d"], 0, "y:1")]
    with pytest.raises(DataError) as caught:
        list(encode_choices(examples, PIECES, LONG, {}))
    assert (caught.value.code, caught.value.where) == ("data.endings", "y:1")
    assert "3" in caught.value.what
    assert "2" in (caught.value.hint or "")


def test_an_empty_corpus_is_refused(prepare, tmp_path, monkeypatch):
    empty = tmp_path / "train.jsonl"
    empty.write_text("", "utf-8")
    known = prepare().tokenizer
    monkeypatch.setattr("jumok.tasks.prepare.text_tokenizer", lambda *_: known)  # as with weights to begin with
    with pytest.raises(DataError) as caught:
        prepare(data={"train": [str(empty)]})
    assert (caught.value.code, caught.value.where) == ("data.empty", str(empty))


# what is believed


def test_the_order_of_the_endings_does_not_matter():
    endings = ["b c", "d", "e f g"]
    (straight,) = chooser().predict(["\t".join(["a b", *endings])])
    assert sum(straight.probabilities) == pytest.approx(1, abs=1e-5)
    assert np.ptp(straight.probabilities) > 0.01
    for order in permutations(range(3)):
        (found,) = chooser().predict(["\t".join(["a b", *(endings[i] for i in order)])])
        assert found.probabilities == pytest.approx([straight.probabilities[i] for i in order], abs=2e-6)
        assert found.text == straight.text
        assert found.label == list(order).index(straight.label)


def test_probabilities_are_a_softmax_over_the_endings():
    model, example = untrained(), Choice("a b", ["c", "d e", "f"], 0, "")
    (rows,) = encode_choice(PIECES, example, LONG).windows
    with torch.no_grad():
        scores = []
        for row in rows:
            segments = [int(at > row.index(PIECES.end_id)) for at in range(len(row))]
            ids = torch.tensor([row])
            scores.append(model(ids, torch.tensor([segments]), torch.ones_like(ids, dtype=torch.bool))[0, 0])
    (found,) = chooser(model).believed([[rows]])
    assert found == pytest.approx(torch.stack(scores).softmax(0).numpy(), abs=1e-5)


def test_windows_are_merged_before_they_become_probabilities_and_models_after():
    models = [untrained(1), untrained(2)]
    texts = [Choice(text, ["c", "d e"], 0, "") for text in ("a b", "f g h")]
    windows = [encode_choice(PIECES, text, LONG).windows[0] for text in texts]
    alone = [np.mean([np.log(chooser(model).believed([[rows]])[0]) for rows in windows], axis=0) for model in models]
    (both, _) = chooser(*models).believed([windows, windows[:1]])
    assert both == pytest.approx(np.mean([np.exp(a) / np.exp(a).sum() for a in alone], axis=0), abs=1e-6)
    told = []
    chooser(*models).predict(texts, done=told.append)
    assert sum(told) == 2


def test_a_context_may_begin_like_json():
    assert chooser()(["{ a\tb\tc"])[0] in {"b", "c"}
    (failed,) = chooser().predict(["{ a"])
    assert (failed.code, failed.where) == ("data.not_json", "line 1")


def test_examples_may_have_different_numbers_of_endings():
    found = chooser().predict(["a\tb\tc", "a\tb\tc\td", "a\tb\tc"])
    assert [len(output.probabilities) for output in found] == [2, 3, 2]
    assert found[0] == found[2]


def test_a_long_context_is_read_in_windows_and_said():
    narrow = chooser(max_len=20, long_texts=WindowRule(rule="windows", stride=6))
    long, short = narrow.predict(["a b c " * 20 + "\td\te", "a\td\te"])
    assert ([note.code for note in long.notes], short.notes) == (["text.windows"], [])
    assert "20" in long.notes[0].text
    assert (long.windows > 1, short.windows) == (True, 1)
    assert sum(long.probabilities) == pytest.approx(1, abs=1e-5)


# a run


def test_the_loss_is_a_cross_entropy_over_the_endings(prepare):
    found = prepare()
    assert found.n_endings == 3
    assert ChoiceKind().head({}, found.facts).n_labels == 1  # one score, whatever the number of endings

    class Fake:
        device = torch.device("cpu")

        def __call__(self, ids, segments, mask):
            return (ids * mask).sum(dim=1, keepdim=True).float() / 100

    examples, total = np.arange(5), 0.0
    for i in examples:
        rows = [found.train.fields[f"ending{k}"][i].tolist() for k in range(3)]
        scores = torch.tensor([[sum(row) / 100 for row in rows]])
        total += float(F.cross_entropy(scores, torch.tensor(found.train.fields["label"][i].tolist())))
    loss = found.loss(Fake(), found.batch(examples), done=0.0)
    assert (float(loss.total), loss.count) == (pytest.approx(total, rel=1e-5), 5)


def test_a_batch_has_room_for_all_endings(prepare):
    found = prepare(train={"batch_tokens": 120})
    for examples in found.batches(0):
        page = found.batch(examples).page
        assert page.ids.shape[0] == 3 * len(examples)
        assert page.ids.numel() <= 120 or len(examples) == 1


def test_the_sun_is_learned(runs, held_out):
    predictor = runs("choice").predictor
    result, outputs = predictor.score(held_out("choice"))
    assert result["scores"]["accuracy"]["value"] > 95
    right = [e.endings[e.label] == output for e, output in zip(held_out("choice"), outputs, strict=True)]
    assert result["scores"]["accuracy"]["value"] == pytest.approx(100 * np.mean(right), abs=1e-3)
    (found,) = predictor.predict(["a dog\tthe cat\tthe sun\tit runs"])
    assert (found.text, found.label) == ("the sun", 1)
    line = json.dumps({"context": "a dog", "endings": ["the sun", "the cat"]})
    assert predictor([line]) == ["the sun"]


@pytest.mark.parametrize("line", ["a dog", "a dog\tthe cat", ""])
def test_without_two_endings_there_is_nothing_to_choose(runs, line):
    good, failed = runs("choice").predictor.predict(["a\tb\tc", line])
    assert good.text in {"b", "c"}
    assert isinstance(failed, Failure)
    assert (failed.code, failed.where) == ("data.endings", "line 2")
    assert str(line.count("\t")) in failed.what


@pytest.mark.parametrize("text", ["", " ", "😀", "\u0301", "\x00\x1f", "</s>", "{"])
def test_no_string_is_too_strange(runs, text):
    if text != "{":  # which begins an object
        (found,) = runs("choice").predictor.predict([f"{text}\t{text}\tthe sun"])
        assert np.isfinite(found.probabilities).all()
    (found,) = runs("choice").predictor.predict([f"a\t{text}\tthe sun"])
    assert sum(found.probabilities) == pytest.approx(1, abs=1e-5)
