"""A whole run, small, in this process: what it leaves, what it refuses, and how it goes on."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from jumok.assemble import Run
from jumok.errors import CheckpointError, DataError, InputError
from jumok.predictor import load
from jumok.recipe import Recipe, parse_recipe
from jumok.tasks.predict import LongTextWarning
from jumok.train.folder import RunFolder
from jumok.train.loop import Event, Saved, Step
from jumok.training import Outcome, run_training

TREE: dict[str, Any] = {
    "data": {"kind": "synthetic", "problem": "copy", "n_train": 60, "n_dev": 8, "n_test": 8, "length": 5},
    "tokenizer": {"kind": "character", "vocab_size": 300},
    "model": {"d_model": 8, "d_ff": 16, "n_heads": 2, "n_layers": 1},
    "train": {"steps": 6, "batch_tokens": 64, "evaluate_every": 4, "save_every": 2, "keep_last": 2},
    "decode": {"method": "greedy", "max_extra": 3},
}


class Silent:
    """A watcher that remembers, and may speak up at an event."""

    def __init__(self, at: Callable[[Event], None] = lambda event: None) -> None:
        self.at = at
        self.events: list[Event] = []
        self.scored: list[str] = []
        self.warnings: list[str] = []

    def began(self, run: Run) -> None:
        self.warnings = run.warnings

    def watch(self, event: Event) -> None:
        self.events.append(event)
        self.at(event)

    def stopping(self) -> None:
        pass

    @contextmanager
    def scoring(self, split: str, sentences: int) -> Iterator[Callable[[int], None]]:
        self.scored.append(split)
        yield lambda n: None

    @property
    def steps(self) -> list[int]:
        return [event.step for event in self.events if isinstance(event, Step)]


def recipe(**sections: Any) -> Recipe:
    tree = {**TREE, **{name: {**TREE.get(name, {}), **keys} for name, keys in sections.items()}}
    return parse_recipe(tree, where="test")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    os.environ["JUMOK_CACHE"] = str(folder / "cache")
    run_training(recipe(), folder / "run", Silent())
    return folder / "run"


@pytest.fixture
def finished(trained: Path, tmp_path: Path) -> Path:
    """A finished run that a test may damage."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def again(out: Path, wanted: Recipe | None = None) -> tuple[Outcome, Silent]:
    watcher = Silent()
    return run_training(wanted or recipe(), out, watcher), watcher


def test_a_run_leaves_what_the_design_says(trained: Path) -> None:
    assert {"recipe.json", "events.jsonl", "checkpoints", "model", "scores.json"} <= {p.name for p in trained.iterdir()}
    assert json.loads((trained / "scores.json").read_text()).keys() == {"dev", "test"}
    card = (trained / "model/README.md").read_text()
    assert "A Transformer of" in card
    assert "| test | exact_match |" in card


def test_a_finished_run_is_left_alone(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / "model").iterdir()}
    _, watcher = again(finished)
    assert watcher.steps == []
    assert watcher.scored == []
    assert {path: path.stat().st_mtime_ns for path in (finished / "model").iterdir()} == before


@pytest.mark.parametrize("damage", ["model gone", "model altered", "scores gone", "scores torn"])
def test_a_damaged_end_is_made_again(finished: Path, trained: Path, damage: str) -> None:
    match damage:
        case "model gone":
            shutil.rmtree(finished / "model")
        case "model altered":
            (finished / "model/model.safetensors").write_bytes(b"no")
        case "scores gone":
            (finished / "scores.json").unlink()
        case "scores torn":
            (finished / "scores.json").write_text("{")
    _, watcher = again(finished)
    assert watcher.steps == []
    assert watcher.scored == ["dev", "test"]
    for name in ("model/model.safetensors", "scores.json"):
        assert (finished / name).read_bytes() == (trained / name).read_bytes()


def test_harmless_changes_do_not_stop_a_run(finished: Path) -> None:
    changed = replace(recipe(decode={"method": "beam", "beam": 2}, train={"threads": 1}), description="another")
    _, watcher = again(finished, changed)
    assert watcher.steps == []
    assert watcher.scored == ["dev", "test"]
    assert load(finished).decode.beam == 2
    assert json.loads((finished / "recipe.json").read_text())["recipe"]["description"] == "another"


@pytest.mark.parametrize("key", ["model.d_ff", "train.batch_tokens", "data.n_train"])
def test_other_changes_do(finished: Path, key: str) -> None:
    section, name = key.split(".")
    with pytest.raises(CheckpointError, match=f"{key} was .* and is 32"):
        again(finished, recipe(**{section: {name: 32}}))


def test_a_run_without_its_checkpoints_is_not_trained_over(finished: Path) -> None:
    shutil.rmtree(finished / "checkpoints")
    with pytest.raises(CheckpointError, match="checkpoints are gone"):
        again(finished)
    assert load(finished)(["1 2"]) != []


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.txt").write_text("mine")
    with pytest.raises(CheckpointError, match=r"not empty: it has chapter.txt"):
        again(tmp_path / "thesis")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.txt"]


@pytest.mark.parametrize("text", ["[]", "{}", '{"recipe": 1, "data": {}}', '{"recipe": {}}', "half"])
def test_a_recipe_json_that_is_none_is_named(finished: Path, text: str) -> None:
    (finished / "recipe.json").write_text(text)
    with pytest.raises(CheckpointError) as caught:
        again(finished)
    assert caught.value.where == str(finished / "recipe.json")


@pytest.mark.parametrize("text", ["[]", "1", "half"])
def test_a_manifest_that_is_none_is_named(finished: Path, text: str) -> None:
    (finished / "checkpoints/step-6/manifest.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"step-6 is torn") as caught:
        again(finished)
    assert "step 4, which is good" in str(caught.value)


def test_an_altered_checkpoint_of_the_average_can_be_left_out(finished: Path) -> None:
    shutil.rmtree(finished / "model")
    (finished / "checkpoints/step-4/weights.safetensors").write_bytes(b"no")
    with pytest.raises(CheckpointError, match="step-4, one of 2 that are averaged, is altered") as caught:
        again(finished)
    assert str(finished / "checkpoints/step-4") in (caught.value.right or "")
    shutil.rmtree(finished / "checkpoints/step-4")
    assert again(finished)[1].scored == ["dev", "test"]


def test_a_failed_start_unlocks_the_folder(tmp_path: Path) -> None:
    class Failing(Silent):
        def began(self, run: Run) -> None:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        run_training(recipe(), tmp_path / "run", Failing())
    assert again(tmp_path / "run")[1].steps == [1, 2, 3, 4, 5, 6]


def test_the_best_checkpoint_is_there_at_any_step(tmp_path: Path) -> None:
    wanted = recipe(train={"evaluate_every": 3, "save_every": 4, "final": "best"})
    _, watcher = again(tmp_path / "run", wanted)
    assert 3 in [event.step for event in watcher.events if isinstance(event, Saved)]
    assert (tmp_path / "run/scores.json").exists()


@pytest.mark.parametrize("final", ["best", "last"])
def test_another_model_is_made_of_the_same_checkpoints(finished: Path, final: str) -> None:
    """A finished run need not train again to be its best or its last checkpoint, and not their mean."""
    progress = json.loads((finished / "checkpoints/step-6/progress.json").read_text())
    step = progress["best_step"] if final == "best" else 6
    weights = RunFolder(finished).checkpoints.weights(step)
    before = load(finished).models[0].state_dict()
    assert not all(torch.equal(before[name], tensor) for name, tensor in weights.items())
    _, watcher = again(finished, recipe(train={"final": final}))
    assert watcher.steps == []
    after = load(finished).models[0].state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in weights.items())


def test_a_held_out_text_beyond_the_learned_positions_is_refused_before_training(tmp_path: Path) -> None:
    wanted = recipe(model={"positions": "learned", "max_len": 8}, data={"max_len": 7, "length": 9})
    with pytest.raises(DataError, match=r"pieces; the model learns 8 positions"):
        again(tmp_path / "run", wanted)


def test_a_cache_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="JUMOK_CACHE"):
        again(tmp_path / "run")


@pytest.mark.filterwarnings("ignore::jumok.tasks.predict.LongTextWarning")  # dev has longer texts too
def test_what_is_left_out_is_said_in_words(tmp_path: Path) -> None:
    _, watcher = again(tmp_path / "run", recipe(data={"max_len": 7}))
    assert [w for w in watcher.warnings if "longer than data.max_len" in w and "{" not in w]


def test_a_text_longer_than_all_of_training_works_and_warns_once(trained: Path) -> None:
    predictor = load(trained)
    with pytest.warns(LongTextWarning, match="31 pieces is longer than all that the model was trained on"):
        assert len(predictor(["1 " * 15])) == 1
    assert len(predictor(["1 " * 25])) == 1  # a second warning would be an error
