"""How long a run trains: the steps that were planned for it at first, and whenever its owner changed their number.

recipe.json keeps them, because a run that resumes has to end where it was planned to, however fast the machine is now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from jumok.errors import CheckpointError, RecipeError
from jumok.files import RECIPE
from jumok.train.loop import TrainConfig

FEW = 10
"""steps; a training of fewer is no training"""
RECENT = 200
"""steps that tell the present speed of a run"""
SPARE = 0.03
"""of the time, for what is not measured: checkpoints and samples"""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that the parts of a training take on this machine."""

    step: float
    evaluation: float
    scoring: float
    """of the finished model on dev and test"""


@dataclass(frozen=True, slots=True)
class Planned:
    """The minutes that a run may take were turned into steps."""

    steps: int
    minutes: float
    seconds_per_step: float
    seconds_per_evaluation: float
    seconds_of_scoring: float
    step: int = 0
    """from which on"""


@dataclass(frozen=True, slots=True)
class Extended:
    """A run that had ended, or was to end, at `before` goes on from a step to another end."""

    step: int
    before: int
    steps: int
    rate_before: float
    """learning rate of its last step"""
    learning_rate: float
    """of the next step"""


@dataclass(frozen=True, slots=True)
class Stretch:
    """From the step after `since` on, the run is to end at `steps`."""

    since: int
    steps: int


def stretches(stored: Mapping[str, Any]) -> list[Stretch]:
    """What recipe.json says was planned; nothing before the first plan, or in a run of an earlier version."""
    try:
        plan = [Stretch(int(one["since"]), int(one["steps"])) for one in stored.get("plan", [])]
        if not all(0 <= stretch.since < stretch.steps for stretch in plan):
            raise ValueError("it ends before it begins")
    except (LookupError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"cannot read the run's plan: {error}",
            where=RECIPE,
            hint="restore the recipe.json that the run was trained with, or choose another --out",
            code="checkpoint.unreadable",
        ) from error
    return plan


def with_plan(stored: Mapping[str, Any], plan: Sequence[Stretch]) -> dict[str, Any]:
    return {**stored, "plan": [asdict(stretch) for stretch in plan]}


def as_planned(config: TrainConfig, stored: Mapping[str, Any]) -> TrainConfig:
    """The config with the steps that recipe.json says were planned, if it does."""
    plan = stretches(stored)
    return config.resolved(plan[-1].steps, shares_of=plan[0].steps) if plan else config


def pace_of(history: Sequence[Mapping[str, Any]]) -> tuple[Pace, float] | None:
    """The pace of a run, as its events tell it, and the seconds that it has been trained for; None without steps."""
    told = [event for event in history if isinstance(event.get("time"), int | float)]
    steps = [float(event["seconds"]) for event in told if event.get("event") == "step" and event.get("seconds")]
    pairs = zip(told, told[1:], strict=False)
    evaluations = [
        float(event["time"] - before["time"]) for before, event in pairs if event.get("event") == "evaluated"
    ]
    if not steps:
        return None
    recent, evaluation = steps[-RECENT:], sum(evaluations) / max(len(evaluations), 1)
    planned = [event["seconds_of_scoring"] for event in told if event.get("seconds_of_scoring")]
    # Dev is scored once more at the end, and test is often as large.
    pace = Pace(sum(recent) / len(recent), evaluation, planned[-1] if planned else 2 * evaluation)
    return pace, sum(steps) + sum(evaluations)


def steps_within(seconds: float, pace: Pace, evaluate_every: float, minutes: float) -> int:
    """The most steps that end in time, with their evaluations and the final scores; `evaluate_every` as in a recipe."""
    left = seconds * (1 - SPARE) - pace.scoring
    if evaluate_every < 1:
        steps = (left - ceil(1 / evaluate_every) * pace.evaluation) / pace.step
    else:  # one more for the last step
        steps = (left - pace.evaluation) / (pace.step + pace.evaluation / evaluate_every)
    if steps < FEW:
        needed = seconds_of(FEW, pace, evaluate_every) / (1 - SPARE) + 60 * minutes - seconds
        raise RecipeError(
            f"train.minutes = {minutes:g} is too short: {minutes - seconds / 60:.1f} have passed, a step takes"
            f" {pace.step:.2g} s, an evaluation {pace.evaluation:.2g} s, the final scores {pace.scoring:.2g} s: this"
            f" leaves fewer than {FEW} steps",
            where="train.minutes",
            hint=f"use at least train.minutes = {ceil(needed / 6) / 10:g}, a smaller model, or smaller batches",
            code="recipe.minutes",
        )
    return int(steps)


def seconds_of(steps: int, pace: Pace, evaluate_every: float) -> float:
    """How long so many steps take, with their evaluations and the final scores."""
    evaluations = 1 / evaluate_every if evaluate_every < 1 else steps / evaluate_every
    return steps * pace.step + ceil(evaluations) * pace.evaluation + pace.scoring
