"""The queue between requests and models.

There is no timer: whenever the compute thread is free it takes what waits, the oldest first, filled up with inputs of
like length for the same model and options, up to a budget of padded tokens. On a busy machine that makes batches by
itself; on an idle one nobody waits. Interactive inputs come before those of files, which age: after `PATIENCE` seconds
they are as urgent as an interactive input that just came.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import Any

PATIENCE = 5.0
"""seconds that an input of a file lets interactive ones pass"""
BUDGET = 4096
"""padded tokens of a batch"""
MOST_INPUTS, MOST_TOKENS = 1024, 1 << 17
"""that may wait: more are refused"""

Answer = Callable[[Sequence[Any], Callable[[int], None]], Sequence[Any]]
"""examples, and a callback that may raise to stop, in; an output for each of them out"""


class Busy(Exception):
    """Too much is waiting: try again in `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"try again in {seconds:.0f} s")
        self.seconds = seconds


class Abandoned(Exception):
    """Nobody waits for the answer any more."""


@dataclass(eq=False, slots=True)
class Job:
    """One input that waits for its output."""

    key: tuple[Any, ...]
    """model and options: jobs of one key can be answered together"""
    answer: Answer
    example: Any
    tokens: int
    interactive: bool
    arrived: float = field(default_factory=monotonic)
    output: "Future[Any]" = field(default_factory=Future)
    abandoned: bool = False

    @property
    def due(self) -> float:
        return self.arrived + (0.0 if self.interactive else PATIENCE)

    def abandon(self) -> None:
        """The client has gone: dropped if it waits; if it is computed, stopped once all of its batch are abandoned."""
        self.abandoned = True
        self.output.cancel()


@dataclass(slots=True)
class Counts:
    """Since the server started, for /metrics."""

    inputs: int = 0
    tokens: int = 0
    batches: int = 0
    padded_tokens: int = 0
    refused: int = 0
    abandoned: int = 0
    failed_batches: int = 0
    tokenising_seconds: float = 0.0
    waited_seconds: float = 0.0
    busy_seconds: float = 0.0


class Queue:
    """Jobs of all models, and the one thread that answers them."""

    def __init__(self, *, budget: int = BUDGET, most_inputs: int = MOST_INPUTS, most_tokens: int = MOST_TOKENS) -> None:
        self.budget, self.most_inputs, self.most_tokens = budget, most_inputs, most_tokens
        self.counts = Counts()
        self._waiting: list[Job] = []
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._work, name="compute", daemon=True)
        self._thread.start()

    @property
    def inputs(self) -> int:
        return len(self._waiting)

    @property
    def tokens(self) -> int:
        with self._changed:
            return sum(job.tokens for job in self._waiting)

    def submit(self, jobs: Sequence[Job]) -> None:
        """All of a request, or none: Busy if there is no room for them. A request larger than the queue can never be
        answered and has to be refused before."""
        with self._changed:
            self._refuse_without_room(len(jobs), sum(job.tokens for job in jobs))
            self._waiting += jobs
            self._changed.notify()

    def require_room(self, inputs: int) -> None:
        """Busy if so many inputs have no room, however short they are: to be asked before they are tokenized."""
        with self._changed:
            self._refuse_without_room(inputs, inputs)

    def _refuse_without_room(self, inputs: int, tokens: int) -> None:
        queued = sum(job.tokens for job in self._waiting)
        full = len(self._waiting) + inputs > self.most_inputs or queued + tokens > self.most_tokens
        if self._closed or (full and self._waiting):
            self.counts.refused += inputs
            raise Busy(self._seconds(queued))

    def tokenised(self, seconds: float) -> None:
        """For the counts: so long took the tokens of a request."""
        with self._changed:
            self.counts.tokenising_seconds += seconds

    def _seconds(self, tokens: int) -> float:
        """How long so many tokens take at the speed so far."""
        speed = self.counts.tokens / self.counts.busy_seconds if self.counts.busy_seconds else 1000.0
        return min(max(tokens / speed, 1.0), 60.0)

    def close(self, seconds: float | None = None) -> None:
        """Answer what waits, take no more, and end the thread; wait for it no longer than `seconds`."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(seconds)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                batch = self._take()
            if batch:
                self._answer(batch)
            elif self._closed:
                return

    def _take(self) -> list[Job]:
        """The most urgent job, and others that fit into a batch with it; abandoned ones are dropped."""
        living = [job for job in self._waiting if not job.abandoned]
        self.counts.abandoned += len(self._waiting) - len(living)
        self._waiting = living
        if not living:
            return []
        first = min(living, key=lambda job: job.due)
        others = [job for job in living if job.key == first.key and job is not first]
        batch, longest = [first], first.tokens
        # Those of like length pad least; among them the older first.
        for job in sorted(others, key=lambda job: (abs(job.tokens - first.tokens), job.due)):
            if max(longest, job.tokens) * (len(batch) + 1) > self.budget:
                break
            batch.append(job)
            longest = max(longest, job.tokens)
        taken = {id(job) for job in batch}
        self._waiting = [job for job in living if id(job) not in taken]
        return [job for job in batch if job.output.set_running_or_notify_cancel()]

    def _answer(self, batch: list[Job]) -> None:
        began = monotonic()

        def still_wanted(_: int) -> None:
            if all(job.abandoned for job in batch):
                raise Abandoned

        try:
            outputs = batch[0].answer([job.example for job in batch], still_wanted)
            for job, output in zip(batch, outputs, strict=True):
                job.output.set_result(output)
        except BaseException as error:
            self.counts.failed_batches += not isinstance(error, Abandoned)
            self.counts.abandoned += len(batch) * isinstance(error, Abandoned)
            for job in batch:
                job.output.set_exception(error)
        finally:
            counts = self.counts
            counts.batches += 1
            counts.inputs += len(batch)
            counts.tokens += sum(job.tokens for job in batch)
            counts.padded_tokens += max(job.tokens for job in batch) * len(batch)
            counts.waited_seconds += sum(began - job.arrived for job in batch)
            counts.busy_seconds += monotonic() - began
