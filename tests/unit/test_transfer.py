"""Weights to begin with: what fits is taken over whatever the heads, new pieces begin as the mean of their parts."""

from pathlib import Path

import pytest
import torch

from jumok.errors import CheckpointError, RecipeError
from jumok.files import write_folder
from jumok.hub.folder import ModelFolder
from jumok.models.bert import Bert, BertConfig, BertPretraining
from jumok.models.bert_heads import BertClassifier, BertRelation, BertTagger
from jumok.models.rnn import RnnClassifier, RnnConfig, RnnLanguageModel
from jumok.models.weights import unique_tensors
from jumok.recipe import load_recipe
from jumok.tasks.stored import read_start
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig
from jumok.transfer import begin_with

CONFIG = BertConfig(d_model=8, d_ff=12, n_heads=2, n_layers=1, max_len=16)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    lines = ["the dog sees a cat in the garden"] * 3
    return Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=60), lines, BERT)


def folder(model: torch.nn.Module, tokenizer: Tokenizer) -> ModelFolder:
    torch.manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return ModelFolder(CONFIG, unique_tensors(model), Tokenizers(tokenizer, tokenizer), {})


def names_in(note: str) -> list[str]:
    """The tensors that a note is of."""
    return note.rpartition(": ")[2].split(", ")


def test_an_encoder_becomes_the_body_of_any_head(tokenizer: Tokenizer) -> None:
    n = tokenizer.vocab_size
    start = folder(Bert(CONFIG, vocab=n), tokenizer)
    for model in (
        BertPretraining(CONFIG, vocab=n),
        BertClassifier(CONFIG, vocab=n, n_labels=3),
        BertTagger(CONFIG, vocab=n, n_labels=5),
    ):
        notes = begin_with(model, start, tokenizer)
        for name, tensor in start.tensors.items():
            if hasattr(model.bert, "pooler") and model.bert.pooler is None and name.startswith("pooler"):
                continue
            assert torch.equal(dict(model.bert.named_parameters())[name], tensor), name
        heads = {name for name, _ in model.named_parameters() if not name.startswith("bert.")}
        assert heads
        assert heads <= set(names_in(notes[0]))
    anew, unused = map(names_in, notes)  # a tagger has no pooler
    assert anew == ["output.bias", "output.weight"]
    assert all(name.startswith("bert.pooler") for name in unused)


def test_a_pretrained_model_gives_its_body_and_its_heads_to_the_same_kind(tokenizer: Tokenizer) -> None:
    n = tokenizer.vocab_size
    start = folder(BertPretraining(CONFIG, vocab=n), tokenizer)
    again = BertPretraining(CONFIG, vocab=n)
    assert begin_with(again, start, tokenizer) == []
    assert all(torch.equal(tensor, start.tensors[name]) for name, tensor in unique_tensors(again).items())
    alone = Bert(CONFIG, vocab=n)
    begin_with(alone, start, tokenizer)
    assert torch.equal(alone.embedding.weight, start.tensors["bert.embedding.weight"])


def test_new_pieces_begin_as_the_mean_of_what_they_were(tokenizer: Tokenizer) -> None:
    grown, cut = tokenizer.extended(["gardens seeing gardens seeing"], 2)
    start = folder(BertPretraining(CONFIG, vocab=tokenizer.vocab_size), tokenizer)
    model = BertPretraining(CONFIG, vocab=grown.vocab_size)
    assert begin_with(model, start, grown) == []
    old = start.tensors["bert.embedding.weight"]
    assert torch.equal(model.projection[: len(old)], old)
    for k, ids in enumerate(cut):
        torch.testing.assert_close(model.projection[len(old) + k], old[ids].mean(dim=0))
        torch.testing.assert_close(model.bias[len(old) + k], start.tensors["bias"][ids].mean())


def test_another_size_is_refused_by_name(tokenizer: Tokenizer) -> None:
    start = folder(Bert(CONFIG, vocab=tokenizer.vocab_size), tokenizer)
    wide = BertConfig(d_model=16, d_ff=12, n_heads=2, n_layers=1, max_len=16)
    n = tokenizer.vocab_size
    with pytest.raises(RecipeError) as caught:
        begin_with(BertPretraining(wide, vocab=n), start, tokenizer)
    assert (caught.value.code, caught.value.where) == ("recipe.init_shape", "init")
    name, *_ = caught.value.what.split()
    shapes = [
        list(tensors[name].shape)
        for tensors in (
            {f"bert.{name}": tensor for name, tensor in start.tensors.items()},
            dict(BertPretraining(wide, vocab=n).named_parameters()),
        )
    ]
    assert [str(shape) in caught.value.what for shape in shapes] == [True, True]
    assert shapes[0] != shapes[1]


def test_a_vocabulary_size_beside_other_weights_is_not_used(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = folder(Bert(CONFIG, vocab=tokenizer.vocab_size), tokenizer)
    monkeypatch.setattr("jumok.recipe.read_start", lambda where: start)
    (tmp_path / "weights").mkdir()
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('init = "weights"\n[task]\nkind = "pretraining"\n[data]\nkind = "documents"\nmax_len = 16\n')
    n = tokenizer.vocab_size
    for overrides in [], [f"tokenizer.vocab_size={n}"]:
        assert load_recipe(recipe, overrides, find_data=False).tokenizer.vocab_size == n
    with pytest.warns(UserWarning, match=rf"tokenizer\.vocab_size = {n + 1} .*weights\b.* {n} "):
        assert load_recipe(recipe, [f"tokenizer.vocab_size={n + 1}"], find_data=False).tokenizer.vocab_size == n


@pytest.mark.parametrize("labels", ["ab", "abc", "abd"])
def test_a_head_of_other_labels_begins_anew(tokenizer: Tokenizer, labels: str) -> None:
    """A judge of three labels goes on as one of two, or of three others: its body is kept, its last layer is not."""
    start = folder(BertClassifier(CONFIG, vocab=tokenizer.vocab_size, n_labels=3), tokenizer)
    start.facts.update(task={"kind": "classification"}, labels=["a", "b", "c"])
    model = BertClassifier(CONFIG, vocab=tokenizer.vocab_size, n_labels=len(labels))
    notes = begin_with(model, start, tokenizer, {"kind": "classification"}, list(labels))
    assert all(torch.equal(t, start.tensors[f"bert.{name}"]) for name, t in model.bert.named_parameters())
    if labels == "abc":
        assert notes == []
        assert torch.equal(model.output.weight, start.tensors["output.weight"])
    else:
        assert [*map(names_in, notes)] == [["output.bias", "output.weight"]]
        assert torch.equal(model.output.bias, torch.zeros(len(labels)))


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        ({"kind": "answering"}, {"kind": "answering"}, True),
        ({"kind": "classification", "predicts": "number"}, {"kind": "choice"}, False),
        ({"kind": "classification", "predicts": "number"}, {"kind": "classification", "predicts": "number"}, False),
    ],
)
def test_a_head_without_labels_is_kept_by_its_own_task(tokenizer: Tokenizer, before, now, kept: bool) -> None:
    """Two numbers are never the same: each data has a scale of its own, which is folded into the head."""
    start = folder(BertClassifier(CONFIG, vocab=tokenizer.vocab_size, n_labels=2), tokenizer)
    start.facts.update(task=before, labels=[])
    model = BertClassifier(CONFIG, vocab=tokenizer.vocab_size, n_labels=2)
    begin_with(model, start, tokenizer, now, [])
    assert torch.equal(model.output.weight, start.tensors["output.weight"]) is kept


def test_a_head_of_another_task_begins_anew(tokenizer: Tokenizer) -> None:
    start = folder(BertTagger(CONFIG, vocab=tokenizer.vocab_size, n_labels=5, crf=True), tokenizer)
    model = BertRelation(CONFIG, vocab=tokenizer.vocab_size, n_labels=4)
    notes = begin_with(model, start, tokenizer)
    assert torch.equal(model.bert.embedding.weight, start.tensors["bert.embedding.weight"])
    anew, unused = map(names_in, notes)
    assert ("w_0.bias" in anew, "w_0.bias" in unused) == (True, False)
    assert ("crf.ends" in unused, "crf.ends" in anew) == (True, False)


def test_a_recurrent_language_model_gives_its_reader() -> None:
    words = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=20), ["the dog sees a cat"])
    config = RnnConfig(d_embedding=4, d_hidden=6, n_layers=2)
    start = folder(RnnLanguageModel(config, vocab=words.vocab_size), words)
    model = RnnClassifier(config, vocab=words.vocab_size, n_labels=3)
    notes = begin_with(model, start, words)
    assert all(torch.equal(t, start.tensors[f"reader.{name}"]) for name, t in model.reader.named_parameters())
    assert [*map(names_in, notes)] == [["output.bias", "output.weight"]]


def test_weights_of_a_run_that_has_not_finished(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        read_start(str(tmp_path))
    assert (caught.value.code, caught.value.where) == ("checkpoint.no_model", str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(CheckpointError) as caught:
        read_start(str(tmp_path))
    assert (caught.value.code, caught.value.where) == ("checkpoint.unfinished", str(tmp_path))


def test_weights_that_were_altered(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", lambda folder: (folder / "config.json").write_text("{}", "utf-8"))
    (tmp_path / "model" / "config.json").write_text("[]", "utf-8")
    with pytest.raises(CheckpointError) as caught:
        read_start(str(tmp_path))
    assert (caught.value.code, caught.value.where) == ("checkpoint.altered", str(tmp_path / "model/config.json"))
