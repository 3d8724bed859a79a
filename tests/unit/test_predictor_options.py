"""Options of a prediction: what a user may ask beside the recipe's [decode], and how a wrong wish is refused."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from jumok.cli import main
from jumok.decode.search import DecodeConfig
from jumok.errors import CheckpointError, RecipeError
from jumok.hub.folder import ModelFolder, write_model
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.predictor import Predictor, load
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import TokenizerConfig
from jumok.train.checkpoint import unique_tensors


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
def predictor(folder: Path) -> Predictor:
    return load(folder, device="cpu")


def test_options_replace_what_the_recipe_says(predictor: Predictor) -> None:
    (prediction,) = predictor.predict(["a b"], n_best=5)  # more than the default beam, not than this model's
    assert len(prediction.alternatives) == 4
    assert predictor.predict(["a b"], temperature=1, beam=6) == predictor.predict(["a b"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": "abc"}, r"decode\.beam: must be a whole number \(got 'abc'\)"),
        ({"beam": 1.5}, r"decode\.beam: must be a whole number \(got 1\.5\)"),
        ({"beam": True}, r"decode\.beam: must be a whole number \(got True\)"),
        ({"nothing": 1}, r"decode\.nothing: there is no such key"),
        ({"temperature": 0}, r"decode\.temperature: must be over 0 \(got 0\)"),
        ({"temperature": float("inf")}, r"decode\.temperature: must be a finite number"),
        ({"method": "best"}, r"decode\.method: must be 'beam', 'greedy' or 'sample' \(got 'best'\)"),
        ({"n_best": 7}, "decode: n_best can be at most beam"),
        ({"beam": 0, "top_k": -1}, r"2 errors\n.*decode\.beam: .*\n.*decode\.top_k: "),
    ],
)
def test_wrong_options_are_named(predictor: Predictor, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        predictor.predict(["a b"], **options)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("beam=abc", "decode.beam: must be a whole number (got 'abc')"),
        ("decode.beam=1.5", "decode.beam: must be a whole number (got 1.5)"),
        ("nothing=1", "there is no such key: decode.nothing"),
        ("done=1", "there is no such key: decode.done"),
        ("temperature=0", "decode.temperature: must be over 0 (got 0)"),
        ("temperature=1", ""),
    ],
)
def test_options_on_the_command_line(
    folder: Path,
    tmp_path: Path,
    option: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "text").write_text("a b\n", "utf-8")
    monkeypatch.setattr("sys.argv", ["jumok", "predict", str(folder), str(tmp_path / "text"), "--set", option])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == (2 if message else 0)
    assert message in capsys.readouterr().err


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
    with pytest.raises(CheckpointError, match=f"{key}: must be") as caught:
        load(tmp_path)
    assert caught.value.where == str(tmp_path / "config.json")
