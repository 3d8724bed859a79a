"""How fast a run will train here: its first steps, and an evaluation of a part of dev, rehearsed before they count.

The rehearsed steps have a learning rate of zero, and Adam forgets them. So the training that follows is the one that
the same number of steps would have given, and nothing is lost if it is killed before.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import nn

from jumok.train.batches import Batches
from jumok.train.distributed import Group
from jumok.train.layers import Layers
from jumok.train.loop import Interrupted, Task, TrainConfig, take_step

WARM = 2
"""first steps, which are not measured: memory is still being allocated"""
ENOUGH = 5
"""measured steps, at least"""
clock = perf_counter


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What is needed to take the steps of a run."""

    model: nn.Module
    task: Task
    config: TrainConfig
    optimizer: torch.optim.Optimizer
    seed: int
    group: Group
    poll: Callable[[], None]
    """may raise Interrupted"""

    def seconds_per_step(self, *, within: float) -> float:
        """The mean over the first steps, as many as fit into so many seconds; the same for all processes."""
        with _untouched(self.model, self.optimizer):
            source = Batches(self.task.batches)
            Layers(self.model, self.config.transfer).at(self.config.steps)  # as many as learn at the end
            began, measured, step = clock(), 0, 0
            while not self._agreed(measured >= ENOUGH and clock() - began >= within):
                self._heard()
                step += 1
                take_step(self.model, self.task, self.config, self.optimizer, 0.0, source, step, self.seed, self.group)
                if step == WARM:
                    began = clock()
                measured = max(step - WARM, 0)
            return self._of_the_first((clock() - began) / measured)

    def seconds_per_example(self, answer: Callable[[Sequence[Any]], object], examples: Sequence[Any]) -> float:
        """How long `answer` takes for each of the examples, asked of more and more of them for a second."""
        n, seconds, stopped = 8, 0.0, False
        with self.group.first_before_others():
            while self.group.rank == 0 and len(examples):
                some = examples[:: max(len(examples) // n, 1)][:n]
                began = clock()
                try:
                    answer(some)
                except Interrupted:
                    stopped = True
                    break
                seconds = (clock() - began) / len(some)
                if seconds * len(some) >= 1.0 or n >= len(examples):
                    break
                n *= 2
        if self.group.any(stopped):
            raise Interrupted
        return self._of_the_first(seconds)

    def _heard(self) -> None:
        """All processes stop if one of them is asked to: none may wait for another in a step."""
        asked = False
        try:
            self.poll()
        except Interrupted:
            asked = True
        if self.group.any(asked):
            raise Interrupted

    def _agreed(self, enough: bool) -> bool:
        return self.group.any(enough and self.group.rank == 0)

    def _of_the_first(self, value: float) -> float:
        return self.group.sum(value if self.group.rank == 0 else 0.0)


@contextmanager
def _untouched(model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Leave no trace of the steps taken inside, all of which have a learning rate of zero."""
    random = torch.get_rng_state()
    learning = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        yield
    finally:
        optimizer.state.clear()
        optimizer.zero_grad(set_to_none=True)
        for parameter, learns in learning:
            parameter.requires_grad_(learns)
        torch.set_rng_state(random)
