"""A language model that classifies: the label is what it would write after the text."""

import numpy as np
import pytest
import torch

from jumok.data.cache import Cache
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError, RecipeError
from jumok.examples.labelled import Labelled
from jumok.models.gpt import Gpt, GptConfig
from jumok.recipe import load_recipe, parse_recipe
from jumok.tasks.classification import ClassificationFacts
from jumok.tasks.classification.predictor import Classifier, encode_prompt, label_ids
from jumok.tasks.classification.task import prepare
from jumok.tasks.stored import obstacle, read_model
from jumok.tasks.targets import Classes
from jumok.tasks.windows import LongTexts, WindowRule
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import GPT, TokenizerConfig

LINES = ["the sun is good", "the rain is bad"] * 5
BYTES = Tokenizer.train(TokenizerConfig(kind="byte_bpe", vocab_size=280), LINES, GPT)
LABELS = ["1", "10", "good 햇빛"]
CONFIG = GptConfig(d_model=16, d_ff=16, n_heads=2, n_layers=2, max_len=48)


def untrained(seed=1):
    torch.manual_seed(seed)
    model = Gpt(CONFIG, vocab=BYTES.vocab_size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)  # far from even
    return model


def classifier(*models, labels=LABELS, max_len=48, **facts):
    tokenizers = Tokenizers(BYTES, BYTES)
    known = ClassificationFacts(labels=labels, max_len=max_len, **facts)
    return Classifier(TorchEngine(models, tokenizers), tokenizers, Classes(labels), known)


def log_probability(model, prompt, label):
    """log p(label | prompt), piece by piece."""
    total, read = 0.0, [BYTES.start_id, *prompt]
    with torch.no_grad():
        for piece in label:
            logits = model.logits(model(torch.tensor([read]))[0, -1]).double()
            total += float(logits.log_softmax(-1)[piece])
            read.append(piece)
    return total


def labelled(text, pair=None, label="good", where=""):
    return Labelled(text, pair, label, where)


# what a label is


def test_a_label_stands_on_a_line_of_its_own_and_ends():
    found = label_ids(BYTES, LABELS)
    assert [BYTES.decode(ids) for ids in found] == [f"\n{label}" for label in LABELS]
    assert all(ids[-1] == BYTES.end_id for ids in found)
    assert all(a[: len(b)] != b for a in found for b in found if a is not b)  # none begins another


def test_the_second_text_of_a_pair_stands_on_a_line_of_its_own():
    found = encode_prompt(BYTES, labelled("the sun", "is good"), label_ids(BYTES, LABELS), LongTexts(48))
    assert BYTES.decode(found.rows[0]) == "the sun\nis good"
    assert not found.long


@pytest.mark.parametrize("n", [0, 30, 36, 37, 60, 200])
def test_there_is_always_room_for_the_longest_label(n):
    labels = label_ids(BYTES, LABELS)
    found = encode_prompt(BYTES, labelled("x" * n), labels, LongTexts(48, "windows", 8))
    room = 48 - max(map(len, labels))
    assert all(len(row) <= room for row in found.rows)
    assert found.long == (n > room)
    assert (len(found.rows) > 1) == found.long


def test_labels_that_leave_no_room_are_refused(tree, tmp_path):
    wanted = tree("verbal", data={"max_len": 5})
    with pytest.raises(DataError) as caught:
        prepare(parse_recipe(wanted, where="test"), Cache(tmp_path))
    assert caught.value.code == "data.no_room"
    assert "5" in caught.value.what
    assert "data.max_len" in caught.value.hint


# what is believed


@pytest.mark.parametrize("n_models", [1, 2])
def test_probabilities_are_those_of_the_labels_given_the_text(n_models):
    models = [untrained(seed) for seed in range(n_models)]
    labels = label_ids(BYTES, LABELS)
    texts = ["the sun", "", "the rain is bad and more of it"]
    prompts = [BYTES.encode(text) for text in texts]
    believed = classifier(*models).believed([labelled(text) for text in texts])
    assert believed.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-9)
    for row, prompt in zip(believed, prompts, strict=True):
        logs = np.array([[log_probability(model, prompt, label) for label in labels] for model in models])
        shares = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
        assert row == pytest.approx(shares.mean(axis=0), abs=1e-5)
    assert np.ptp(believed, axis=0).max() > 1e-4


def test_a_text_is_read_once_for_many_labels(monkeypatch):
    """Which it would be for each of them, if they did not stand after it side by side; all of forty are a handful."""
    model, read = untrained(), []
    monkeypatch.setattr("jumok.engines.branches.AT_ONCE", 400)
    model.register_forward_pre_hook(lambda _, given: read.append(given[0].numel()))
    labels, text = [str(n) for n in range(40)], labelled("the rain is bad")
    prompt = BYTES.encode(text.text)
    found = classifier(model, labels=labels).believed([text])
    assert read == [1 + len(prompt) + sum(len(ids) - 1 for ids in label_ids(BYTES, labels))]
    for at_once in (1, 10):
        monkeypatch.setattr("jumok.engines.branches.AT_ONCE", at_once)
        apart = classifier(model, labels=labels).believed([text])
        assert apart == pytest.approx(found, abs=1e-6)
    assert len(read) > 40


def test_windows_are_merged_before_they_become_probabilities():
    found, told = classifier(untrained(), long_texts=WindowRule(stride=8)), []
    text = labelled("the sun is good, and the rain is bad " * 3)
    windows = [BYTES.decode(row) for row in found.encode(text, None).rows]
    assert len(windows) > 1
    both = found.believed([text, labelled(windows[0])], done=told.append)
    alone = found.believed([labelled(window) for window in windows])
    together = np.exp(np.log(alone).mean(axis=0))
    assert both[0] == pytest.approx(together / together.sum(), abs=1e-6)
    assert both[1] == pytest.approx(alone[0], abs=1e-6)
    assert sum(told) == 2


def test_a_text_longer_than_the_model_reads_is_read_in_windows():
    (found,) = classifier(untrained()).predict(["the sun is good 해 " * 40])
    assert [note.code for note in found.notes] == ["text.windows"]
    assert "48" in found.notes[0].text
    assert found.windows > 5
    assert sum(found.probabilities.values()) == pytest.approx(1, abs=1e-5)


def test_labels_that_are_read_alike_are_refused():
    folding = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=40, lowercase=True), ["good bad"])
    with pytest.raises(DataError) as caught:
        label_ids(folding, ["Good", "bad", "good"])
    assert caught.value.code == "data.same_labels"
    assert "'Good' and 'good'" in caught.value.what


def test_attention_is_that_of_the_text_after_its_start():
    found = classifier(untrained()).attention("the sun")["self"]
    pieces = BYTES.pieces([BYTES.start_id, *BYTES.encode("the sun")])
    assert found.rows == found.columns == pieces
    assert found.weights.shape == (2, 2, len(pieces), len(pieces))


# training


def test_a_keyword_is_learned(runs, held_out):
    run = runs("verbal")
    scores = run.predictor.score(held_out("verbal"))[0]["scores"]
    assert scores["accuracy"]["value"] > 95
    assert run.predictor(["the cat runs", "the sun runs"]) == ["bad", "good"]


def test_shards_hold_the_text_and_the_label_after_it(tree, tmp_path):
    found = prepare(parse_recipe(tree("verbal"), where="test"), Cache(tmp_path))
    first = next(iter(parse_recipe(tree("verbal"), where="test").data.read("train", seed=1)))
    decode = found.tokenizer.decode
    assert decode(found.train.fields["text"][0].tolist()) == first.text
    assert found.train.fields["label"][0].tolist() == label_ids(found.tokenizer, [first.label])[0]


def test_the_loss_is_that_of_the_label_and_a_share_of_the_text(tree, tmp_path):
    found = prepare(parse_recipe(tree("verbal", task={"text_loss": 0.25}), where="test"), Cache(tmp_path))
    torch.manual_seed(1)
    model = Gpt(CONFIG, vocab=found.tokenizer.vocab_size).eval()
    examples = np.arange(5)
    batch = found.batch(examples)
    with torch.no_grad():
        label, text = found.loss(model, batch, done=0.0).total.tolist()
    by_hand, n = np.zeros(2), np.zeros(2)
    for i in examples:
        pieces = [found.train.fields[name][i].tolist() for name in ("text", "label")]
        row = [found.tokenizer.start_id, *pieces[0], *pieces[1]]
        with torch.no_grad():
            logs = model.logits(model(torch.tensor([row[:-1]]))[0]).log_softmax(-1)
        each = [-float(logs[at, piece]) for at, piece in enumerate(row[1:])]
        by_hand += sum(each[len(pieces[0]) :]), sum(each[: len(pieces[0])])
        n += len(pieces[1]), len(pieces[0])
    assert batch.count == tuple(n)
    assert batch.tokens == n.sum()
    assert [label, text] == pytest.approx([by_hand[0], 0.25 * by_hand[1]], rel=1e-4)


def test_empty_texts_are_left_out_and_counted(tree, tmp_path):
    file = tmp_path / "train.tsv"
    file.write_text("text\tlabel\n\tgood\nthe sun\tgood\na dog\tbad\n", "utf-8")
    found = prepare(parse_recipe(tree("verbal", data={"train": [str(file)]}), where="test"), Cache(tmp_path))
    assert (found.train.facts["read"], found.train.facts["empty"], len(found.train)) == (3, 1, 2)


def test_the_folder_opens_as_a_language_model_in_transformers(runs):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, predictor = runs("verbal").folder / "model", runs("verbal").predictor
    assert obstacle(read_model(folder)) is None
    theirs, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    for text in ("the sun runs", "the cat runs"):
        logs = []
        for label in predictor.labels:
            prompt = tokenizer(text).input_ids
            assert prompt[0] == predictor.tokenizer.start_id
            end = [*tokenizer(f"\n{label}", add_special_tokens=False).input_ids, predictor.tokenizer.end_id]
            with torch.no_grad():
                said = theirs(torch.tensor([[*prompt, *end]])).logits[0].log_softmax(-1)
            logs.append(sum(float(said[len(prompt) + k - 1, piece]) for k, piece in enumerate(end)))
        shares = np.exp(logs) / np.exp(logs).sum()
        (found,) = predictor.predict([text])
        assert list(found.probabilities.values()) == pytest.approx(shares.tolist(), abs=1e-4)


def test_weights_of_another_kind_of_model_are_refused_before_training(runs, tmp_path):
    """Else the vocabulary would be GPT's, and the model one that nobody can open."""
    task = '[task]\nkind = "classification"\n[data]\nkind = "toy_reviews"\nmax_len = 16\n'
    path = tmp_path / "recipe.toml"
    begin = f'init = "{runs("verbal").folder}"\n{task}'
    path.write_text(begin, "utf-8")
    assert load_recipe(path).model.kind == "gpt"
    path.write_text(f'{begin}[model]\nkind = "bert"\n', "utf-8")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert (caught.value.code, caught.value.where) == ("recipe.weights", f"{path}:1, {path}:8")
    assert all(f'model.kind = "{kind}"' in caught.value.what for kind in ("gpt", "bert"))


def test_a_body_that_learned_nothing_and_never_will_is_noted(tmp_path):
    path = tmp_path / "recipe.toml"
    text = '[task]\nkind = "classification"\n[data]\nkind = "toy_reviews"\n[model]\nkind = "rnn"\n'
    path.write_text(f'{text}[train]\ntransfer = {{ mode = "frozen" }}\n', "utf-8")
    with pytest.warns(UserWarning, match="frozen.* without init"):
        load_recipe(path)
