"""`jumok import` and `jumok export`: models in and out, and what is refused."""

import json
import re
import sys
import warnings
from dataclasses import replace

import pytest
import torch
from transformers import BertConfig as TheirBertConfig
from transformers import BertForTokenClassification
from typer.testing import CliRunner

from jumok.cli import app, main
from jumok.errors import CheckpointError
from jumok.exchange import export_folder, import_folder
from jumok.hub.folder import ModelFolder
from jumok.models.rnn import RnnConfig, RnnTagger
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.models.weights import unique_tensors
from jumok.tasks.stored import obstacle, read_model, write_model
from jumok.tasks.tagging.units import Units
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

LINES = ["the quick brown fox jumps over the lazy dog", "나는 학교에 갑니다"] * 3


@pytest.fixture
def foreign(tmp_path):
    folder = tmp_path / "foreign"
    tokenizer = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=150), LINES, BERT)
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 4, "num_hidden_layers": 1}
    names = {"id2label": {0: "O", 1: "B"}, "label2id": {"O": 0, "B": 1}}
    BertForTokenClassification(TheirBertConfig(vocab_size=tokenizer.vocab_size, **sizes, **names)).save_pretrained(
        folder
    )
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), "utf-8")
    return folder


def run_of(path, config, model, kind, *, two_vocabularies=False):
    """A run folder with an untrained model in it."""
    tokenizer = Tokenizer.train(TokenizerConfig(vocab_size=300), LINES)
    other = Tokenizer.train(TokenizerConfig(vocab_size=300), LINES) if two_vocabularies else tokenizer
    facts = {"version": "1", "task": {"kind": kind}, "source": "en", "target": "ko", "labels": ["a", "b"], "decode": {}}
    (path / "model").mkdir(parents=True)
    folder = ModelFolder(config, unique_tensors(model(tokenizer.vocab_size)), Tokenizers(tokenizer, other), facts)
    write_model(path / "model", folder, card="# the card\n")
    return path


def transformer(path, *, two_vocabularies=False, **changes):
    config = TransformerConfig(d_model=12, d_ff=20, n_heads=2, n_layers=1, **changes)
    build = lambda vocab: Transformer(config, source_vocab=vocab, target_vocab=vocab)  # noqa: E731
    return run_of(path, config, build, "translation", two_vocabularies=two_vocabularies)


def test_import_makes_a_run(foreign, tmp_path):
    run = tmp_path / "runs" / "ner"
    assert import_folder(foreign, run).startswith(f"{run}: bert, tagging, ")
    assert (run / "model" / "manifest.json").exists()
    assert "imported by jumok" in (run / "model" / "README.md").read_text("utf-8")
    before, after = read_model(foreign), read_model(run / "model")
    assert after.facts["labels"] == ["O", "B"]
    assert after.config == before.config
    assert all(torch.equal(after.tensors[name], tensor) for name, tensor in before.tensors.items())


def test_show_counts_what_was_imported(foreign, tmp_path):
    run = tmp_path / "ner"
    import_folder(foreign, run)
    shown = CliRunner().invoke(app, ["show", str(run), "--json"])
    found = json.loads(shown.stdout)
    weights = BertForTokenClassification.from_pretrained(foreign).parameters()
    assert found["parameters"]["total"] == sum(weight.numel() for weight in weights)
    assert (found["task"]["kind"], found["model"]["d_model"]) == ("tagging", 24)
    assert f"{found['parameters']['total']:,}" in CliRunner().invoke(app, ["show", str(run)]).stdout


def test_import_of_half_precision_says_so(foreign, tmp_path, monkeypatch, capsys):
    BertForTokenClassification.from_pretrained(foreign).half().save_pretrained(foreign)
    monkeypatch.setattr(sys, "argv", ["jumok", "import", str(foreign), str(tmp_path / "run")])
    with warnings.catch_warnings(action="always"), pytest.raises(SystemExit):
        main()
    said = capsys.readouterr()
    (note,) = re.findall(rf"^note: {re.escape(str(foreign))}: (.*)", said.err, re.MULTILINE)
    assert "float16" in note
    assert "bert, tagging" in said.out


def test_import_never_overwrites(foreign, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    import_folder(foreign, run)  # an empty folder is as good as none
    written = (run / "model" / "config.json").read_bytes()
    with pytest.raises(CheckpointError) as caught:
        import_folder(foreign, run)
    assert (caught.value.code, caught.value.where) == ("checkpoint.not_empty", str(run))
    assert (run / "model" / "config.json").read_bytes() == written


def test_import_of_nothing(tmp_path):
    with pytest.raises(CheckpointError) as caught:
        import_folder(tmp_path / "nothing", tmp_path / "run")
    assert (caught.value.code, caught.value.where) == ("checkpoint.no_folder", str(tmp_path / "nothing"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("beams", ["four", -1])
def test_decoding_that_makes_no_sense_is_refused_at_once(beams, tmp_path):
    run = transformer(tmp_path / "run")
    folder = tmp_path / "foreign"
    export_folder(run, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    del config["jumok"]
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    (folder / "generation_config.json").write_text(json.dumps({"num_beams": beams}), "utf-8")
    with pytest.raises(CheckpointError) as caught:
        import_folder(folder, tmp_path / "again")
    assert (caught.value.code, caught.value.where) == ("checkpoint.value", str(folder / "generation_config.json"))
    assert "decode.beam" in str(caught.value)
    assert str(beams) in str(caught.value)


def test_a_folder_that_is_refused_leaves_no_run(foreign, tmp_path):
    (foreign / "model.safetensors").rename(foreign / "pytorch_model.bin")
    with pytest.raises(CheckpointError) as caught:
        import_folder(foreign, tmp_path / "run")
    assert caught.value.where == str(foreign)
    assert "pytorch_model.bin" in caught.value.what
    assert not (tmp_path / "run").exists()


def test_export_of_a_marian(tmp_path):
    run = transformer(tmp_path / "run")
    out = tmp_path / "deep" / "out"
    assert export_folder(run, out).startswith(f"{out}: transformer, translation, ")
    assert json.loads((out / "config.json").read_text("utf-8"))["architectures"] == ["MarianMTModel"]
    assert (out / "README.md").read_text("utf-8") == "# the card\n"
    assert not (out / "manifest.json").exists()


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"norm": "pre"}, ['norm = "pre"']),
        ({"positions": "learned", "neighbourhood": 2}, ['positions = "learned"', "neighbourhood"]),
        ({"tie_embeddings": "none", "two_vocabularies": True}, ['tie_embeddings = "none"']),
        ({"two_vocabularies": True}, ["two vocabularies"]),
    ],
    ids=str,
)
def test_a_transformer_that_marian_has_not_is_refused_with_the_reason(changes, facts, tmp_path):
    run = transformer(tmp_path / "run", **changes)
    with pytest.raises(CheckpointError) as caught:
        export_folder(run, tmp_path / "out")
    assert (caught.value.code, caught.value.where) == ("checkpoint.no_layout", str(run / "model"))
    assert [fact for fact in facts if fact not in caught.value.what] == []
    assert not (tmp_path / "out").exists()


def test_a_tagger_that_reads_marks_of_capitals_is_refused_with_the_reason(foreign, tmp_path):
    model = read_model(foreign)
    assert obstacle(model) is None
    assert "marks of capitals" in obstacle(replace(model, facts={**model.facts, "units": Units(capitals=True).plain()}))


def test_a_recurrent_network_is_refused_with_the_reason(tmp_path):
    config = RnnConfig(d_embedding=8, d_hidden=8)
    run = run_of(tmp_path / "run", config, lambda vocab: RnnTagger(config, vocab=vocab, n_labels=2), "tagging")
    with pytest.raises(CheckpointError) as caught:
        export_folder(run, tmp_path / "out")
    assert (caught.value.code, caught.value.where) == ("checkpoint.no_layout", str(run / "model"))
    assert "recurrent" in caught.value.what


def test_export_never_overwrites(foreign, tmp_path):
    import_folder(foreign, tmp_path / "run")
    with pytest.raises(CheckpointError) as caught:
        export_folder(tmp_path / "run", foreign)
    assert (caught.value.code, caught.value.where) == ("checkpoint.not_empty", str(foreign))


def test_export_of_an_altered_run_is_refused(foreign, tmp_path):
    import_folder(foreign, tmp_path / "run")
    config = tmp_path / "run/model/config.json"
    config.write_text(config.read_text("utf-8") + " ", "utf-8")
    with pytest.raises(CheckpointError) as caught:
        export_folder(tmp_path / "run", tmp_path / "out")
    assert (caught.value.code, caught.value.where) == ("checkpoint.altered", str(config))
    assert not (tmp_path / "out").exists()


def test_a_model_card_may_be_edited(foreign, tmp_path):
    import_folder(foreign, tmp_path / "run")
    (tmp_path / "run/model/README.md").write_text("# Ours", "utf-8")
    export_folder(tmp_path / "run", tmp_path / "out")
    assert (tmp_path / "out/README.md").read_text("utf-8") == "# Ours"
