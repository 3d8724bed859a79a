"""What a training says while it runs."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from jumok.cli import report
from jumok.recipe import load_recipe
from jumok.train.length import Extended, Planned
from jumok.train.loop import Evaluated, Finished, Resumed, Step
from jumok.training import Began, Scored, Scoring

ROOT = Path(__file__).parents[3]


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
    assert re.findall(r"(\S+) tokens/s", said.getvalue()) == ["100", "100"]


def test_every_event_has_a_line_and_what_is_noted_is_said() -> None:
    said = io.StringIO()
    recipe = load_recipe(ROOT / "recipes" / "toy" / "tagger.toml")
    with report.TrainingReport(recipe, Path("out"), Console(file=said, width=120), asked := list[int]()) as watching:
        watching.watch(Began("out/seed-1", 12345, 100, 10, 50, 7, ["3 of 100: texts that are long"]))
        watching.watch(Resumed(2))
        asked.append(15)
        for step in (3, 4):
            watching.watch(Step(step, 0, 1.0, 1e-4, 1.0, tokens=500, seconds=5.0))
        watching.watch(Scoring("test", 9))
        watching.scored(9)
        watching.watch(Scored("test", {}))
        watching.watch(Finished(4, "interrupted"))
    lines = said.getvalue().splitlines()
    assert lines[0].startswith("out: ")
    assert lines[1].startswith("out/seed-1: 12,345 parameters, 100 ")
    assert lines[2:4] == ["note: 3 of 100: texts that are long", "resuming from step 2"]
    stopping, scoring, saved = lines[4:]
    assert (stopping.partition(":")[0], scoring.split()[:3]) == ("stopping", ["scoring", "test:", "9"])
    assert "step 4" in saved


def test_a_log_has_the_time_left_evaluations_included(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(report, "perf_counter", lambda: now[0])
    recipe = load_recipe(ROOT / "recipes" / "toy" / "tagger.toml")
    watching = report.TrainingReport(recipe, Path("out"), Console(file=(said := io.StringIO()), width=120))
    watching.watch(Began("out", 12345, 100, 10, 50, 100, []))
    watching.watch(Resumed(40))
    for step in range(41, 51):  # each takes two seconds, and an evaluation in their middle ten
        now[0] += 12.0 if step == 45 else 2.0
        watching.watch(Step(step, 0, 1.0, 1e-4, 1.0, tokens=500, seconds=2.0))
    assert re.findall(r"step (\d+)/100.*?  (\S+) left", said.getvalue())[-1] == ("45", "3:40")


def test_a_plan_and_an_extension_are_said() -> None:
    recipe = load_recipe(ROOT / "recipes" / "toy" / "tagger.toml")
    watching = report.TrainingReport(recipe, Path("out"), Console(file=(said := io.StringIO()), width=400))
    watching.watch(Planned(2400, 30, 0.7, 95.0, 12.0))
    watching.watch(Extended(10_000, 10_000, 20_000, 0.0, 5e-4))
    planned, extended = said.getvalue().splitlines()
    assert planned.startswith("30 minutes: 2,400 steps at 0.7 s")
    assert "1:35" in planned
    assert all(fact in extended for fact in ("10,000", "20,000", "0.00e+00", "5.00e-04"))
