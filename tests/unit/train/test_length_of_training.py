"""How many steps fit into minutes, and what recipe.json keeps of it."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from jumok.errors import CheckpointError, RecipeError
from jumok.train.length import FEW, SPARE, Pace, Stretch, pace_of, seconds_of, steps_within, stretches, with_plan

PACE = Pace(step=0.5, evaluation=4.0, scoring=20.0)


@pytest.mark.parametrize("evaluate_every", [0.05, 0.3, 100, 7, 100_000])
@pytest.mark.parametrize("minutes", [5, 30, 600])
def test_the_steps_fill_the_time_and_do_not_exceed_it(minutes: float, evaluate_every: float) -> None:
    steps = steps_within(60 * minutes, PACE, evaluate_every, minutes)
    every = evaluate_every if evaluate_every >= 1 else max(round(evaluate_every * steps), 1)
    evaluations = len({step for step in range(1, steps + 1) if step % every == 0} | {steps})
    taken = steps * PACE.step + evaluations * PACE.evaluation + PACE.scoring
    most = 60 * minutes * (1 - SPARE)
    assert most - 2 * PACE.evaluation - PACE.step <= taken <= most + PACE.evaluation


def test_half_an_hour_by_hand() -> None:
    # 1800 s, of which 3 % are spare: 1746 - 20 for the scores - 20 * 4 for the evaluations = 1646 s, of 0.5 s each
    assert steps_within(1800, PACE, 0.05, 30) == 3292
    # 1746 - 20 - 4 = 1722 s, of which 100 steps and an evaluation take 54
    assert steps_within(1800, PACE, 100, 30) == 3188
    assert seconds_of(3188, PACE, 100) == pytest.approx(3188 * 0.5 + 32 * 4 + 20)


def test_minutes_that_are_too_short_say_what_would_do() -> None:
    with pytest.raises(RecipeError) as caught:
        steps_within(20, PACE, 100, 0.5)  # ten seconds have passed
    assert (caught.value.code, caught.value.where) == ("recipe.minutes", "train.minutes")
    enough = float(str(caught.value.hint).partition("train.minutes = ")[2].partition(",")[0])
    assert steps_within(60 * enough - 10, PACE, 100, enough) >= FEW
    with pytest.raises(RecipeError):
        steps_within(60 * (enough - 0.11) - 10, PACE, 100, enough)


def test_a_plan_is_kept_beside_the_recipe() -> None:
    plan = [Stretch(0, 100), Stretch(60, 300)]
    stored = json.loads(json.dumps(with_plan({"recipe": {}}, plan)))
    assert (stored["recipe"], stretches(stored)) == ({}, plan)
    assert stretches({"recipe": {}}) == []


@pytest.mark.parametrize(
    "plan", ["edited", [1], [{"since": 0}], [{"since": 9, "steps": 9}], [{"since": 0, "steps": "x"}], 3]
)
def test_a_plan_that_somebody_edited_is_refused(plan: object) -> None:
    with pytest.raises(CheckpointError) as caught:
        stretches({"plan": plan})
    assert caught.value.code == "checkpoint.unreadable"


def test_the_pace_of_a_run_is_in_its_events() -> None:
    def step(number: int, seconds: float, time: float) -> dict[str, Any]:
        return {"event": "step", "step": number, "seconds": seconds, "time": time}

    events = [
        {"event": "planned", "seconds_of_scoring": 7.0, "time": 0.0},
        step(1, 2.0, 2.0),
        step(2, 4.0, 6.0),
        {"event": "evaluated", "time": 11.0},
        step(3, 3.0, 20.0),
        {"event": "evaluated", "time": 21.0},
    ]
    found = pace_of(events)
    assert found is not None
    assert (asdict(found[0]), found[1]) == ({"step": 3.0, "evaluation": 3.0, "scoring": 7.0}, 15.0)
    without = pace_of(events[1:])
    assert without is not None
    assert without[0].scoring == 6.0
    assert pace_of(events[:1]) is None
