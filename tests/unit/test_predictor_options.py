"""Options of a prediction: what a user may ask beside the recipe's [decode], and how a wrong wish is refused."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from jumok.cli import main
from jumok.decode.options import DecodeConfig
from jumok.errors import CheckpointError, InputError, RecipeError
from jumok.hub.folder import ModelFolder
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.models.weights import unique_tensors
from jumok.predictor import load
from jumok.tasks.stored import write_model
from jumok.tasks.translation.predictor import Translation, Translator
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import TokenizerConfig


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=20), ["a b c d e f g"])
    torch.manual_seed(1)
    size = tokenizer.vocab_size
    model = Transformer(
        TransformerConfig(d_model=8, d_ff=8, n_heads=2, n_layers=1), source_vocab=size, target_vocab=size
    )
    facts = {"version": "0", "task": {"kind": "translation"}, "source": "en", "target": "ko"}
    facts["decode"] = asdict(DecodeConfig(beam=6, max_extra=2))
    path = tmp_path_factory.mktemp("model")
    write_model(
        path, ModelFolder(model.config, unique_tensors(model), Tokenizers(tokenizer, tokenizer), facts), card=""
    )
    return path


@pytest.fixture(scope="module")
def predictor(folder: Path) -> Translator:
    return load(folder, task=Translator, device="cpu")


def test_options_replace_what_the_recipe_says(predictor: Translator) -> None:
    (found,) = predictor.predict(["a b"], n_best=5)  # more than the default beam, not than this model's
    assert isinstance(found, Translation)
    assert len(found.alternatives) == 4
    assert predictor.predict(["a b"], temperature=1, beam=6) == predictor.predict(["a b"])


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"beam": "abc"}, ["beam: ", "'abc'"]),
        ({"beam": 1.5}, ["beam: ", "1.5"]),
        ({"beam": True}, ["beam: ", "True"]),
        ({"temperature": 0}, ["temperature: ", "got 0"]),
        ({"temperature": float("inf")}, ["temperature: ", "finite"]),
        ({"method": "best"}, ["method: ", "'beam', 'greedy' or 'sample'", "'best'"]),
        ({"n_best": 7}, ["n_best", "beam"]),
        ({"beam": 0, "top_k": -1}, ["beam: ", "top_k: "]),
        ({"prefix": 3}, ["prefix: ", "got 3"]),
        ({"alignment": "yes"}, ["alignment: ", "'yes'"]),
    ],
)
def test_wrong_values_are_named(predictor: Translator, options: dict[str, Any], facts: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        predictor.predict(["a b"], **options)
    assert caught.value.exit_code == 2
    assert [fact for fact in facts if fact not in str(caught.value)] == []


@pytest.mark.parametrize(("option", "near"), [("bean", "beam"), ("prefixes", "prefix"), ("nothing", "one of")])
def test_unknown_options_are_named_with_the_nearest(predictor: Translator, option: str, near: str) -> None:
    with pytest.raises(InputError) as caught:
        predictor.predict(["a b"], **{option: 1})
    assert caught.value.code == "input.unknown_option"
    assert option in caught.value.what
    assert near in str(caught.value.hint)


@pytest.mark.parametrize(
    ("option", "facts"),
    [
        ("beam=abc", ["beam: ", "'abc'"]),
        ("decode.beam=1.5", ["beam: ", "1.5"]),
        ("nothing=1", ["unknown option nothing"]),
        ("done=1", ["unknown option done"]),
        ("temperature=0", ["temperature: ", "got 0"]),
        ("temperature=1", []),
    ],
)
def test_options_on_the_command_line(
    folder: Path,
    tmp_path: Path,
    option: str,
    facts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "text").write_text("a b\n", "utf-8")
    monkeypatch.setattr("sys.argv", ["jumok", "predict", str(folder), str(tmp_path / "text"), "--set", option])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == (2 if facts else 0)
    said = capsys.readouterr().err
    assert [fact for fact in facts if fact not in said] == []


@pytest.mark.parametrize(
    ("section", "value", "key"),
    [
        ("decode", {"beam": 0}, "jumok.decode.beam"),
        ("decode", None, "jumok.decode"),
        ("model", {"kind": "transformer", "n_heads": 0}, "jumok.model.n_heads"),
        ("model", {"kind": "transformer", "d_model": "8"}, "jumok.model.d_model"),
    ],
)
def test_a_model_folder_with_an_impossible_config(
    folder: Path, tmp_path: Path, section: str, value: object, key: str
) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["jumok"][section] = value
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path)
    assert [mistake.key for mistake in caught.value.mistakes] == [key]
    assert caught.value.where == str(tmp_path / "config.json")
