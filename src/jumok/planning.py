"""How many steps a run takes: as many as fit into its minutes, and more where its owner asks for more."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from jumok.data.corpus import Corpus
from jumok.engines.torch import TorchEngine
from jumok.errors import CheckpointError
from jumok.models.build import Model
from jumok.recipe import Recipe
from jumok.train import rehearsal
from jumok.train.distributed import Group
from jumok.train.folder import RunFolder
from jumok.train.length import Extended, Pace, Planned, Stretch, pace_of, steps_within, stretches
from jumok.train.loop import TrainConfig
from jumok.train.optimizer import learning_rate, peak_rate
from jumok.train.rehearsal import Rehearsal

EpochLengths = Callable[[int], int]

SHARE, LONGEST = 0.02, 10.0
"""of the time, and seconds, that steps are rehearsed for"""


def plan_minutes(
    recipe: Recipe,
    minutes: float,
    *,
    task: Any,
    model: Model,
    optimizer: torch.optim.Optimizer,
    group: Group,
    poll: Callable[[], None],
    since: float,
) -> Planned:
    """As many steps as end so many minutes after `since`, a time of `rehearsal.clock`."""
    config = recipe.train.resolved(recipe.train.steps)  # until the steps are known; their cost does not depend on it
    rehearsed = Rehearsal(model, task, config, optimizer, recipe.seed, group, poll)
    step = rehearsed.seconds_per_step(within=min(SHARE * 60 * minutes, LONGEST))
    evaluation, scoring = _seconds_of_answers(recipe, task, model, rehearsed)
    pace = Pace(step, evaluation, scoring)
    # The first process says what is left: the others' clocks started at other times.
    left = group.sum(60 * minutes - (rehearsal.clock() - since) if group.rank == 0 else 0.0)
    steps = steps_within(left, pace, recipe.train.evaluate_every, minutes)
    return Planned(steps, minutes, pace.step, pace.evaluation, pace.scoring)


def extended(
    stored: Mapping[str, Any], begun: TrainConfig, wanted: TrainConfig, folder: RunFolder, epoch_lengths: EpochLengths
) -> list[Stretch]:
    """The stretches of a run with checkpoints, and one more if its owner wants it to end elsewhere now."""
    plan = stretches(stored) or [Stretch(0, begun.counted(epoch_lengths))]
    if begun.length == wanted.length:
        return plan
    at, (key, value) = folder.checkpoints.steps()[-1], wanted.length
    if key == "minutes":
        config = begun.resolved(plan[-1].steps, shares_of=plan[0].steps)
        steps = at + _steps_left(folder, value, config)
    else:
        steps = wanted.counted(epoch_lengths)
    if steps == plan[-1].steps:
        return plan
    if plan[-1].since == at and [stretch.steps for stretch in plan[-2:-1]] == [steps]:
        return plan[:-1]  # an extension that has not begun is taken back
    if steps <= at:
        raise CheckpointError(
            f"the run has taken {at:,} steps already, and train.{key} = {value:g}{_in_steps(key, steps)}",
            where=folder.path,
            hint=f"ask for more than {at} steps to go on from there, or choose another --out",
            code="checkpoint.fewer_steps",
        )
    return [*plan, Stretch(at, steps)]


def _in_steps(key: str, steps: int) -> str:
    return "" if key == "steps" else f" are {steps:,}"


def _steps_left(folder: RunFolder, minutes: float, config: TrainConfig) -> int:
    """How many more steps fit into the minutes, of which some have passed: the run itself tells its pace."""
    found = pace_of(folder.history())
    if found is None:
        raise CheckpointError(
            "the events of the run are gone, so nobody knows how long it has been trained",
            where=folder.events,
            hint="set train.steps to extend it",
            code="checkpoint.no_events",
        )
    pace, spent = found
    return steps_within(60 * minutes - spent, pace, config.evaluate_every, minutes)


def extension(plan: Sequence[Stretch], config: TrainConfig, *, d_model: int) -> Extended:
    """What the last stretch of a plan changes."""
    before, now = plan[-2:]
    peak, first = peak_rate(config.optimizer, d_model=d_model), plan[0].steps
    rates = [
        learning_rate(step, config.resolved(steps, shares_of=first).optimizer, peak=peak, steps=steps)
        for step, steps in ((now.since, before.steps), (now.since + 1, now.steps))
    ]
    return Extended(now.since, before.steps, now.steps, *rates)


def _seconds_of_answers(recipe: Recipe, task: Any, model: Model, rehearsed: Rehearsal) -> tuple[float, float]:
    """How long an evaluation on dev takes, and the final scores of dev and test.

    An untrained model does not know when to end, so what is generated is as long as its input.
    """

    def heard(_: int) -> None:
        rehearsed.group.working()
        rehearsed.poll()

    if not isinstance(task.dev, Sequence):  # passages that are read in pairs, not one by one
        whole = rehearsed.seconds_per_example(lambda _: task.evaluate(model.eval(), done=heard), [task.dev])
        return whole, 2 * whole
    n_test = sum(1 for _ in Corpus[Any](recipe.data, "test", seed=recipe.seed))
    engine = TorchEngine([model.eval()], task.tokenizers, between=heard)
    predictor: Any = recipe.kind.predictor(engine, task.tokenizers, asdict(recipe.task), task.facts)
    if predictor.kind != "translation":
        each = rehearsed.seconds_per_example(predictor.measure, task.dev)
        return each * len(task.dev), each * (len(task.dev) + n_test)
    decode = {**asdict(recipe.decode), "max_extra": 1}
    quick = rehearsed.seconds_per_example(lambda some: predictor.predict(some, method="greedy", max_extra=1), task.dev)
    full = rehearsed.seconds_per_example(lambda some: predictor.predict(some, **decode), task.dev)
    return quick * len(task.dev), full * (len(task.dev) + n_test)
