"""The work of comparing two runs: the paired test of `jumok compare`, in a thread that lets requests go first."""

import os
import sys
from dataclasses import asdict, dataclass, field
from threading import Event, Lock, get_native_id
from time import monotonic, sleep
from typing import Any

from jumok.engines.torch import TorchEngine
from jumok.predictor import load
from jumok.serve.queue import PATIENCE, Queue
from jumok.serve.refusal import Refusal
from jumok.serve.runs import Run

MOST_SECONDS = 3600.0
MOST_KNOWN = 64
"""comparisons that are remembered"""
NICENESS = 5


def command(other: Run, run: Run) -> str:
    """The same on the command line."""
    return f"jumok compare {other.name} {run.name}"


class Stopped(Exception):
    """Nobody waits for the comparison any more."""


@dataclass(slots=True)
class Comparisons:
    """Those of a server: one at a time, and what finished ones said."""

    turn: Lock = field(default_factory=Lock)
    known: dict[tuple[Any, ...], list[dict[str, Any]]] = field(default_factory=dict)

    def keep(self, key: tuple[Any, ...], found: list[dict[str, Any]]) -> None:
        if len(self.known) >= MOST_KNOWN:
            self.known.pop(next(iter(self.known)))
        self.known[key] = found


@dataclass(slots=True)
class Comparing:
    """A comparison under way: is `run` better than `other`?"""

    other: Run
    run: Run
    examples: list[Any]
    queue: Queue
    done: int = 0
    stopped: Event = field(default_factory=Event)
    until: float = field(default_factory=lambda: monotonic() + MOST_SECONDS)

    def compute(self) -> list[dict[str, Any]]:
        """What `jumok compare OTHER RUN` prints."""
        if sys.platform == "linux":  # elsewhere a thread has no priority of its own
            os.setpriority(os.PRIO_PROCESS, get_native_id(), NICENESS)
        a, b = (load(run.path, max_characters=sys.maxsize, engine="torch") for run in (self.other, self.run))
        for predictor in (a, b):
            if isinstance(predictor.engine, TorchEngine):
                predictor.engine.between = self.tick
        return [asdict(comparison) for comparison in a.compare(b, self.examples, done=self.tick)]

    def tick(self, n: int) -> None:
        """Told between batches: n more examples are done. Requests that wait go first."""
        self.done += n
        patient = monotonic() + PATIENCE
        while self.queue.inputs and monotonic() < patient and not self.stopped.is_set():
            sleep(0.01)
        if self.stopped.is_set():
            raise Stopped
        if monotonic() > self.until:
            what = f"the comparison took more than {MOST_SECONDS / 60:.0f} minutes"
            raise Refusal(504, "serve.timeout", what, hint=command(self.other, self.run))
