"""The layers of a frozen BERT as features (those of ELMo are in test_elmo.py): its own states, mixed."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from jumok.cli import app
from jumok.errors import RecipeError
from jumok.hub.folder import ModelFolder
from jumok.models.bert import Bert, BertConfig, BertPretraining
from jumok.models.rnn import RnnClassifier, RnnConfig, RnnTagger
from jumok.models.weights import unique_tensors
from jumok.predictor import load
from jumok.recipe import load_recipe
from jumok.tasks.stored import write_model
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig
from jumok.train.layers import depths
from jumok.transfer import give_features

CONFIG = BertConfig(d_model=8, d_ff=12, n_heads=2, n_layers=2, max_len=32, dropout=0.3)
TASK = RnnConfig(d_embedding=6, d_hidden=10, bidirectional=True, dropout=0.0, features=CONFIG)
IDS = torch.tensor([[5, 9, 3, 7, 2], [5, 4, 3, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    lines = ["the dog sees a cat in the garden", "a good film", "a bad film"] * 3
    return Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=60), lines, BERT)


def trained(model: torch.nn.Module, tokenizer: Tokenizer) -> ModelFolder:
    torch.manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return ModelFolder(CONFIG, unique_tensors(model), Tokenizers(tokenizer, tokenizer), {})


@pytest.mark.parametrize("head", [Bert, BertPretraining])
@pytest.mark.parametrize("task", [RnnClassifier, RnnTagger])
def test_the_features_are_the_states_of_the_body_that_was_given(head, task, tokenizer):
    bert = head(CONFIG, vocab=tokenizer.vocab_size)
    start = trained(bert, tokenizer)
    model = task(TASK, vocab=tokenizer.vocab_size, n_labels=3).train()
    give_features(model, start)
    body, states, mask = (bert if head is Bert else bert.bert).eval(), [], IDS != 0
    body(IDS, SEGMENTS, mask, states=states)
    with torch.no_grad():
        model.reader.features.mix.s.copy_(torch.tensor([0.3, -1.0, 0.8]))
        found = model.reader.features(IDS, SEGMENTS, mask)
        expected = sum(w * h for w, h in zip(torch.tensor([0.3, -1.0, 0.8]).softmax(0), states, strict=True))
        assert len(states) == 3
        torch.testing.assert_close(found[mask], expected[mask])
        other = model.reader.features(IDS, torch.zeros_like(IDS), mask)
        assert not torch.allclose(found[0], other[0])  # the segments are seen
        assert torch.equal(found[1], other[1])


def test_the_layers_of_the_body_are_none_of_the_models_own(tokenizer):
    found = depths(RnnTagger(TASK, vocab=tokenizer.vocab_size, n_labels=3))
    recurrent = {depth for name, depth in found.items() if name.startswith("reader.layers.")}
    assert recurrent == {1}
    assert found["output.weight"] == 2


def test_padding_changes_nothing(tokenizer):
    model = RnnClassifier(TASK, vocab=tokenizer.vocab_size, n_labels=3).eval()
    give_features(model, trained(Bert(CONFIG, vocab=tokenizer.vocab_size), tokenizer))
    both = model(IDS, SEGMENTS, IDS != 0)
    alone = model(IDS[1:, :3], SEGMENTS[1:, :3], IDS[1:, :3] != 0)
    torch.testing.assert_close(both[1:], alone, rtol=0, atol=1e-6)


RECIPE = """
features = "{start}"
task = {{ kind = "classification" }}
data = {{ kind = "labelled", train = ["{table}"], dev = ["{table}"], max_len = {max_len} }}
model = {{ kind = "rnn", d_embedding = 8, d_hidden = 8, bidirectional = true }}
train = {{ steps = 3, batch_tokens = 64, evaluate_every = 3, save_every = 3 }}
"""


def written_recipe(folder: Path, tokenizer: Tokenizer, max_len: int) -> Path:
    start, table = trained(Bert(CONFIG, vocab=tokenizer.vocab_size), tokenizer), folder / "table.tsv"
    start.facts.update(version="0.1.0", task={"kind": "embedding", "pooler": True}, max_len=32)
    (folder / "start").mkdir()
    write_model(folder / "start", start, card="")
    table.write_text("text\tlabel\n" + "a good film\tgood\na bad film\tbad\n" * 8)
    (folder / "recipe.toml").write_text(RECIPE.format(start=folder / "start", table=table, max_len=max_len))
    return folder / "recipe.toml"


def test_a_run_with_features_of_bert_is_whole(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    recipe = written_recipe(tmp_path, tokenizer, 32)
    result = CliRunner().invoke(app, ["train", str(recipe), "--out", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "run").engine.models[0]
    assert model.config.features == CONFIG
    given = load(tmp_path / "start").engine.models[0].state_dict()
    for name, tensor in model.reader.features.body.state_dict().items():
        assert torch.equal(tensor, given[name]), name
    assert load(tmp_path / "run").predict(["a good film"])[0].text in ("good", "bad")


def test_a_text_longer_than_the_positions_of_the_features_is_refused(tmp_path, tokenizer):
    path = written_recipe(tmp_path, tokenizer, 64)
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    (found,) = caught.value.mistakes
    assert (found.code, found.key, found.where) == ("recipe.mismatch", "data.max_len", f"{path}:4")
    assert all(fact in found.what for fact in ("64", "model.features.max_len", "32"))
