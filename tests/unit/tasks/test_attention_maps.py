"""One head of an attention map, of models of every kind."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from jumok.cli import app
from jumok.errors import InputError
from jumok.tasks.attention import Attention, one_head

RELATION = '{"text": "Ada beats Bo", "head": {"start": 0, "end": 3}, "tail": {"start": 10, "end": 12}}'
MAPS = {
    "translation": ("the dog", {"encoder": 1, "decoder": 1, "cross": 1}),
    "verbal": ("the sun", {"self": 2}),
    "relation": (RELATION, {"self": 2}),
    "pretraining": ("the [MASK] runs", {"self": 2}),
    "korean": ("나는 오늘", {"self": 2}),
    "classification": ("the sun", {"pool": 1}),
}


def drawn(run: Path, text: str, *options: Any) -> dict[str, Any]:
    said = CliRunner().invoke(app, ["attention", str(run), text, "--json", *map(str, options)])
    if said.exception is not None:
        raise said.exception
    found: dict[str, Any] = json.loads(said.stdout)
    return found


@pytest.mark.parametrize("task", MAPS)
def test_every_map_layer_and_head_can_be_drawn(runs: Any, task: str, tmp_path: Path) -> None:
    text, maps = MAPS[task]
    own = runs(task).predictor.attention(text)
    assert {name: found.weights.shape[0] for name, found in own.items()} == maps
    for name, found in own.items():
        layers, heads = found.weights.shape[:2]
        picture = tmp_path / f"{name}.svg"
        told = drawn(runs(task).folder, text, "--map", name, "--layer", layers, "--head", heads, "--out", picture)
        assert (told["map"], told["layer"], told["head"]) == (name, layers, str(heads))
        assert (told["source"], told["target"]) == (found.columns, found.rows)
        assert np.array(told["weights"]) == pytest.approx(found.weights[-1, -1], abs=1e-4)
        assert "svg" in picture.read_text()[:400]


def test_defaults_are_the_mean_of_the_last_layer_and_the_attention_to_the_source(runs: Any, tmp_path: Path) -> None:
    own = runs("translation").predictor.attention("the dog")["cross"]
    told = drawn(runs("translation").folder, "the dog", "--layer", 1, "--out", tmp_path / "a.png")
    assert (told["map"], told["layer"], told["head"]) == ("cross", 1, "mean")
    assert np.array(told["weights"]) == pytest.approx(own.weights[-1].mean(axis=0), abs=1e-4)
    own = runs("translation").predictor.attention("the dog", "a cat")["cross"]
    options = ("--head", "max", "--output", "a cat", "--out", tmp_path / "b.png")
    told = drawn(runs("translation").folder, "the dog", *options)
    assert np.array(told["weights"]) == pytest.approx(own.weights[-1].max(axis=0), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "where", "range_"),
    [
        ({"name": "crosss"}, "--map", "cross"),
        ({"name": "pool"}, "--map", "encoder or cross"),
        ({"layer": 0}, "--layer", "1 to 3"),
        ({"layer": 4}, "--layer", "1 to 3"),
        ({"head": "0"}, "--head", "1 to 2"),
        ({"head": "3"}, "--head", "1 to 2"),
        ({"head": "-1"}, "--head", "1 to 2"),
        ({"head": "median"}, "--head", "mean"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(options: dict[str, Any], where: str, range_: str) -> None:
    found = Attention(["a"], ["b", "c"], np.full((3, 2, 1, 2), 0.5))
    with pytest.raises(InputError) as caught:
        one_head({"encoder": found, "cross": found}, **options)
    assert (caught.value.code, caught.value.where) == ("input.no_such_part", where)
    assert range_ in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("task", "options", "code"),
    [
        ("tagging", ["--layer", 1], "input.no_attention"),
        ("classification", ["--layer", 1, "--output", "good"], "input.no_output"),
        ("translation", ["--layer", 2], "input.no_such_part"),
    ],
)
def test_models_without_it_are_named(runs: Any, task: str, options: list[Any], code: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        drawn(runs(task).folder, "the sun", *options, "--out", tmp_path / "a.png")
    assert caught.value.code == code
    assert not (tmp_path / "a.png").exists()
