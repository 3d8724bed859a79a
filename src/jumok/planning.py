"""Minutes -> steps: how many fit into the time, from what a few steps and answers take on this machine."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch

from jumok.data.corpus import Corpus
from jumok.engines.torch import TorchEngine
from jumok.models.build import Model
from jumok.recipe import Recipe
from jumok.train import rehearsal
from jumok.train.distributed import Group
from jumok.train.length import Pace, Planned, steps_within
from jumok.train.rehearsal import Rehearsal

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
