"""RUN/engine: built from a run, measured on dev, and never trusted when it is damaged or stale."""

import json
import shutil
from dataclasses import replace

import ctranslate2
import pytest
from typer.testing import CliRunner

import jumok
from jumok import building
from jumok.building import build_engine, engine_of
from jumok.cli import app
from jumok.engines import fast_folder
from jumok.engines.fast import FastEngine
from jumok.engines.fast_folder import read_engine
from jumok.engines.fast_work import WIDTH, Layout, this_machine
from jumok.engines.torch import TorchEngine
from jumok.errors import CheckpointError
from jumok.files import write_folder
from jumok.tasks.stored import read_model, write_model

TEXT = "the cat sits"


def without_engine(run, tmp_path):
    return shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("engine", "checkpoints"))


@pytest.fixture
def run(runs, tmp_path):
    """A run that was never asked to predict."""
    return without_engine(runs("translation").folder, tmp_path)


def command(*arguments, stdin=f"{TEXT}\n"):
    return CliRunner().invoke(app, list(map(str, arguments)), input=stdin)


def test_training_builds_the_engine_and_the_card_says_so(runs):
    run = runs("translation").folder
    built, _ = read_engine(run / "engine", run / "model")
    assert f"Engine: {built}." in (run / "model" / "README.md").read_text("utf-8")
    assert isinstance(jumok.load(run).engine, FastEngine)
    assert built.examples > 0
    assert [trial.compute for trial in built.trials] == ["int8"]


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_int8_is_kept_only_if_it_loses_little(run, monkeypatch, loss):
    """float32 scores 50, int8 a little less; a loss of up to 0.2 is allowed."""
    monkeypatch.setattr(building._Trials, "score", measured(50.0, 50.0 - loss))
    built = build_engine(run)
    assert built.compute == ("int8" if loss < 0.2 else "float32")
    assert built.trials[0].loss == pytest.approx(loss)
    assert read_engine(run / "engine", run / "model")[0] == built
    assert jumok.load(run, engine="fast")([TEXT])


def measured(exact, rounded):
    """What scoring gives instead, once it has stored what it scores."""
    score = building._Trials.score

    def told(self, form):
        score(self, form)
        return exact if form.compute == "float32" else rounded

    return told


def test_how_many_outputs_differ_is_told(run, monkeypatch):
    assert building.share_of_differing(["a", "b", "c", "d"], ["a", "x", "c", "y"]) == 0.5
    assert building.share_of_differing([], []) == 0
    monkeypatch.setattr(building, "share_of_differing", lambda exact, others: len(exact) == len(others) > 0)
    built = build_engine(run)
    assert [trial.differ for trial in built.trials] == [1.0]
    if built.compute == "int8":
        assert "100.0% of its outputs differ" in engine_of(run)


def test_a_loss_of_perplexity_is_in_per_cent(runs, tmp_path, monkeypatch):
    run = without_engine(runs("korean").folder, tmp_path)
    monkeypatch.setattr(building._Trials, "score", measured(40.0, 40.2))
    built = build_engine(run)
    assert [(trial.metric, trial.loss, trial.kept) for trial in built.trials] == [("perplexity", 0.5, False)]


def test_without_dev_data_only_float32_is_built(run):
    recipe = json.loads((run / "recipe.json").read_text("utf-8"))
    recipe["recipe"]["data"]["dev"] = ["gone.tsv"]
    (run / "recipe.json").write_text(json.dumps(recipe), "utf-8")
    built = build_engine(run)
    assert (built.compute, built.trials, built.examples) == ("float32", [], 0)
    reference = jumok.load(run, engine="torch").predict([TEXT])
    assert jumok.load(run, engine="fast").predict([TEXT])[0].ids == reference[0].ids


def test_predict_builds_what_is_missing_once(run):
    first = command("predict", run)
    assert first.exit_code == 0
    assert "building the fast engine" in first.stderr
    again = command("predict", run)
    assert again.stdout == first.stdout
    assert again.stderr == ""


def damage_weights(run):
    weights = run / "engine" / "model.bin"
    raw = bytearray(weights.read_bytes())
    raw[-5] ^= 1
    weights.write_bytes(raw)


def remove_a_file(run):
    (run / "engine" / "shared_vocabulary.json").unlink()


def train_on(run):
    """Another model stands in RUN/model."""
    model = read_model(run / "model")
    name = next(iter(model.tensors))
    model.tensors[name] = model.tensors[name] * 1.01
    write_folder(run / "model", lambda folder: write_model(folder, model, card=""))


@pytest.mark.parametrize("spoil", [damage_weights, remove_a_file, train_on])
def test_an_engine_that_cannot_be_trusted_is_not_used_and_built_again(run, spoil):
    build_engine(run)
    spoil(run)
    with pytest.raises(CheckpointError):
        jumok.load(run, engine="fast")
    assert isinstance(jumok.load(run).engine, TorchEngine)
    assert command("predict", run).exit_code == 0
    assert isinstance(jumok.load(run).engine, FastEngine)


def test_an_engine_of_another_version_is_named_and_built_again(run, monkeypatch):
    built = build_engine(run)
    monkeypatch.setattr(fast_folder, "library_version", lambda kind: "ctranslate2 9.0.0")
    with pytest.raises(CheckpointError) as refused:
        read_engine(run / "engine", run / "model")
    assert refused.value.code == "engine.stale"
    assert built.library in refused.value.what
    assert "9.0.0" in refused.value.what
    assert "building the fast engine" in command("predict", run).stderr


def test_a_link_in_the_engine_is_refused(run, tmp_path):
    build_engine(run)
    (tmp_path / "elsewhere").write_bytes((run / "engine" / "model.bin").read_bytes())
    (run / "engine" / "model.bin").unlink()
    (run / "engine" / "model.bin").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError) as refused:
        jumok.load(run, engine="fast")
    assert refused.value.code == "checkpoint.link"


def test_a_disk_without_room_leaves_the_reference(run, monkeypatch):
    def full(folder, *rest):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(building, "store_engine", full)
    found = command("predict", run)
    assert found.exit_code == 0
    assert found.stdout.strip()
    assert "No space left" in found.stderr
    assert [path.name for path in run.iterdir() if path.name.startswith(".")] == []


def test_without_the_extra_the_reference_predicts_and_says_what_to_install(run, monkeypatch):
    monkeypatch.setattr("jumok.predictor.find_spec", lambda name: None)
    found = command("predict", run)
    assert found.exit_code == 0
    assert found.stderr.count("jumok[fast]") == 1
    assert isinstance(jumok.load(run).engine, TorchEngine)
    with pytest.raises(CheckpointError) as refused:
        jumok.load(run, engine="fast")
    assert "jumok[fast]" in refused.value.what


def test_show_names_the_engine_and_why(run, runs):
    assert "not built" in engine_of(run)
    built = build_engine(run)
    assert engine_of(run) == str(built)
    assert str(built) in command("show", run).stdout.replace("\n", " ")
    assert engine_of(runs("tagging").folder).startswith("torch: ")


@pytest.mark.parametrize("engine", ["torch", "fast"])
def test_an_option_chooses_the_engine(run, engine):
    build_engine(run)
    found = command("predict", run, "--engine", engine)
    assert found.exit_code == 0
    kinds = {"torch": TorchEngine, "fast": FastEngine}
    assert isinstance(jumok.load(run, engine=engine).engine, kinds[engine])


def test_an_ensemble_needs_the_reference(run):
    build_engine(run)
    assert isinstance(jumok.load(run, run).engine, TorchEngine)
    with pytest.raises(CheckpointError) as refused:
        jumok.load(run, run, engine="fast")
    assert "ensemble" in refused.value.what


def test_a_machine_that_was_not_measured_has_the_usual_batches(run):
    built = replace(build_engine(run), width=77, machine="another, 2 cores")
    assert Layout.of(built).width == WIDTH[built.compute]
    assert Layout.of(replace(built, machine=this_machine())).width == 77


def test_an_export_opens_in_the_library(run, tmp_path):
    assert command("export", run, tmp_path / "out", "--to", "ctranslate2").exit_code == 0
    predictor = jumok.load(run, engine="torch")
    source = predictor.tokenizers.source
    pieces = source.pieces(predictor.tokenizers.encode_source(TEXT))
    found = ctranslate2.Translator(str(tmp_path / "out")).translate_batch([pieces], beam_size=1)[0].hypotheses[0]
    [output] = predictor.predict([TEXT], method="greedy", length_penalty=0.0)
    assert found == predictor.tokenizers.target.pieces(output.ids)
