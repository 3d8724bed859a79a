"""docs/python.md: its code runs from top to bottom, against runs that were trained in seconds."""

import re
import shutil
from pathlib import Path

import pytest

import jumok
from jumok.tasks import TASKS
from jumok.training import train

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/python.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHORT = ["train.steps=12", "train.evaluate_every=4", "train.save_every=4", "train.device=cpu"]
QUICKSTART = [*SHORT, "data.n_train=3000", "data.n_dev=20", "data.n_test=30", "model.d_model=32", "model.d_ff=64"]


def shortened(recipe: str) -> str:
    """The same recipe, with fewer steps and examples."""
    for key, value in {"steps": 30, "evaluate_every": 10, "save_every": 10, "n_train": 500, "n_test": 40}.items():
        recipe, found = re.subn(rf"^{key} = \d+$", f"{key} = {value}", recipe, flags=re.MULTILINE)
        assert found == 1, key
    return recipe


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder like a checkout after `make demo`, with recipes that take seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    toy = tmp_path / "recipes/toy/classifier-attention.toml"
    toy.write_text(shortened(toy.read_text("utf-8")), "utf-8")
    for _ in train("recipes/quickstart.toml", "runs/quickstart", overrides=QUICKSTART):
        pass
    return tmp_path


def test_the_code_runs_from_top_to_bottom(checkout, capsys):
    names: dict[str, object] = {"__name__": "page"}
    for block in BLOCKS:
        line = PAGE[: PAGE.index(block)].count("\n")
        exec(compile("\n" * line + block, str(ROOT / "docs/python.md"), "exec"), names)
    said = capsys.readouterr().out
    assert "input.unknown_option did you mean beam?" in said
    assert "30 steps" in said.splitlines()
    assert [folder.name for folder in sorted((checkout / "runs").iterdir())] == ["again", "opinions", "quickstart"]


def test_every_predictor_is_in_the_table():
    rows = dict(re.findall(r"^\| ([a-z_, ]+) \| `jumok\.(\w+)` \|$", PAGE, re.MULTILINE))
    told = {task: predictor for tasks, predictor in rows.items() for task in tasks.split(", ")}
    assert told.keys() == {task.name for task in TASKS}
    for task, predictor in told.items():
        assert getattr(jumok, predictor).kind in (task, "pretraining")


def test_train_can_be_called_whatever_was_imported_first():
    from jumok.train import loop  # noqa: F401 - makes `jumok.train` the package

    with pytest.raises(jumok.JumokError) as caught:
        next(iter(jumok.train("nowhere.toml", out="nowhere")))
    assert caught.value.code == "recipe.unreadable"
