"""What a training says while it runs."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from jumok import report
from jumok.recipe import load_recipe
from jumok.train.loop import Evaluated, Step

ROOT = Path(__file__).parents[2]


def test_speed_is_that_of_the_steps_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluation between two lines takes a minute and does not make the second one slow."""
    now = [0.0]
    monkeypatch.setattr(report, "perf_counter", lambda: now[0])
    said = io.StringIO()
    recipe = load_recipe(ROOT / "recipes" / "toy" / "tagger.toml")
    watching = report.TrainingReport(recipe, Path("out"), Console(file=said, width=120))
    for step in range(1, 4):
        now[0] += 5.0
        watching.watch(Step(step, 0, 1.0, 1e-4, 1.0, tokens=500, seconds=5.0))
    now[0] += 60.0
    watching.watch(Evaluated(3, {"span_f1": 50.0}, best=True))
    now[0] += 5.0
    watching.watch(Step(4, 0, 1.0, 1e-4, 1.0, tokens=500, seconds=5.0))
    speeds = [line.split()[-2] for line in said.getvalue().splitlines() if "tokens/s" in line]
    assert speeds == ["100", "100"]
