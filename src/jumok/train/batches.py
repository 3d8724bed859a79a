"""An endless stream of micro-batches: epoch after epoch, from wherever a run stands."""

from collections.abc import Callable, Iterator
from typing import Any

from jumok.errors import RunError


class Batches:
    """The micro-batches after the first `batch` ones of an epoch."""

    def __init__(self, plan: Callable[[int], Iterator[Any]], epoch: int = 0, batch: int = 0) -> None:
        self.plan, self.epoch = plan, epoch
        self.batch = 0
        """batches of this epoch already taken"""
        self._rest = plan(epoch)
        while self.batch < batch and next(self._rest, None) is not None:
            self.batch += 1

    def take(self) -> Any:
        for _ in range(2):
            examples = next(self._rest, None)
            if examples is not None:
                self.batch += 1
                return examples
            self.epoch, self.batch = self.epoch + 1, 0
            self._rest = self.plan(self.epoch)
        hint = "add at least one training example"
        raise RunError("the epoch has no batches", hint=hint, code="run.no_batches")
