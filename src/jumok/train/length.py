"""How long a run trains: the steps that were planned for it at first, and whenever its owner changed their number.

recipe.json keeps them, because a run that resumes has to end where it was planned to, however fast the machine is now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from jumok.errors import RecipeError

FEW = 10
"""steps; a training of fewer is no training"""
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
class Stretch:
    """From the step after `since` on, the run is to end at `steps`."""

    since: int
    steps: int


def stretches(stored: Mapping[str, Any]) -> list[Stretch]:
    """What recipe.json says was planned; nothing before the first plan, or in a run of an earlier version."""
    return [Stretch(int(one["since"]), int(one["steps"])) for one in stored.get("plan", [])]


def with_plan(stored: Mapping[str, Any], plan: Sequence[Stretch]) -> dict[str, Any]:
    return {**stored, "plan": [asdict(stretch) for stretch in plan]}


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
            f"train.minutes = {minutes:g} is too short: a step takes {pace.step:.2g} s, an evaluation"
            f" {pace.evaluation:.2g} s and the final scores {pace.scoring:.2g} s, which leaves fewer than {FEW} steps",
            where="train.minutes",
            hint=f"use at least train.minutes = {ceil(needed / 6) / 10:g}, a smaller model, or smaller batches",
            code="recipe.minutes",
        )
    return int(steps)


def seconds_of(steps: int, pace: Pace, evaluate_every: float) -> float:
    """How long so many steps take, with their evaluations and the final scores."""
    evaluations = 1 / evaluate_every if evaluate_every < 1 else steps / evaluate_every
    return steps * pace.step + ceil(evaluations) * pace.evaluation + pace.scoring
