"""The processes that train together: rank, world size, sums over all of them, and whether each is still alive.

Under torchrun, a process finds its rank in the environment; started alone, it is a group of one, and every sum is the
number itself. torchrun's store outlives the processes: they leave signs of life there, so that one that dies or hangs
can be named by the others.
"""

import importlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from threading import Event, Thread
from typing import Any

import torch
from torch import Tensor, distributed
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from jumok.errors import RunError

BEAT = 0.5
"""seconds between two signs of life"""
SILENCE = 10.0
"""seconds without one after which a process is taken for dead"""
_groups = count()


class Pulse:
    """Signs of life of a group's processes: a beat for as long as one lives, and a count of the work it has done."""

    def __init__(self, store: Any, rank: int, world: int, watchdog: float) -> None:
        self.rank, self.world, self.watchdog = rank, world, watchdog
        self._store = store
        self._stopped = Event()
        self._turns = count()
        self._thread = Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT):
            try:
                self._store.add(f"beat/{self.rank}", 1)
            except RuntimeError:
                return  # torchrun has gone, and all of us with it

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def work(self) -> None:
        """Something was done."""
        self._store.add(f"work/{self.rank}", 1)

    def announce(self, turn: int) -> None:
        self._store.set(f"turn/{turn}", "")

    def turn(self) -> int:
        """Every process asks as often as the others."""
        return next(self._turns)

    def wait(self, turn: int) -> None:
        """Until the first process has announced a turn, for as long as it lives and works."""
        seen, since = (-1, -1), {"beat": time.monotonic(), "work": time.monotonic()}
        while not self._store.check([f"turn/{turn}"]):
            now = self._store.add("beat/0", 0), self._store.add("work/0", 0)
            for place, kind in enumerate(since):
                if now[place] != seen[place]:
                    since[kind] = time.monotonic()
            seen = now
            if time.monotonic() - since["beat"] > SILENCE:
                raise self.lost([0])
            if time.monotonic() - since["work"] > self.watchdog:
                raise self.hung([0])
            time.sleep(0.05)

    def blame(self) -> RunError:
        """Why an exchange with the others failed: a process that no longer beats, or one that has done less."""
        beats = self._counts("beat")
        time.sleep(4 * BEAT)
        if silent := [rank for rank, (a, b) in enumerate(zip(beats, self._counts("beat"), strict=True)) if a == b]:
            return self.lost([rank for rank in silent if rank != self.rank] or silent)
        done = self._counts("work")
        return self.hung([rank for rank, n in enumerate(done) if n < max(done)] or [*range(self.world)])

    def _counts(self, kind: str) -> list[int]:
        return [int(self._store.add(f"{kind}/{rank}", 0)) for rank in range(self.world)]

    def lost(self, ranks: Sequence[int]) -> RunError:
        what = f"process {_listed(ranks)} of {self.world} no longer responds; process {self.rank} ends, too"
        hint = "run the same command again: it resumes from the last checkpoint"
        return RunError(what, hint=hint, code="run.rank_lost")

    def hung(self, ranks: Sequence[int]) -> RunError:
        what = f"process {_listed(ranks)} of {self.world} has done nothing for {self.watchdog / 60:g} minutes"
        hint = "check its machine, then run the same command again; train.watchdog sets the minutes"
        return RunError(what, hint=hint, code="run.rank_hung")


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))


@dataclass(frozen=True, slots=True)
class Group:
    rank: int = 0
    world: int = 1
    device: torch.device = torch.device("cpu")
    pulse: Pulse | None = None

    def sum(self, value: float) -> float:
        if self.world == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64, device=self.device)
        self._add_up(tensor)
        return float(tensor)

    def any(self, flag: bool) -> bool:
        return self.sum(float(flag)) > 0

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """All-reduce all gradients in one message; a process without a batch contributes zeros."""
        if self.world == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self._add_up(flat)
        parts = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, summed in zip(gradients, parts, strict=True):
            gradient.copy_(summed.view_as(gradient))

    def _add_up(self, tensor: Tensor) -> None:
        assert self.pulse is not None
        self.pulse.work()
        try:
            distributed.all_reduce(tensor)
        except RuntimeError as error:  # gloo's, which has many lines and no name
            raise self.pulse.blame() from error

    def working(self) -> None:
        """Tell the processes that wait for this one that it is not stuck."""
        if self.pulse is not None:
            self.pulse.work()

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """The first process runs the block, however long it takes; then the others run it."""
        if self.pulse is None:
            yield
            return
        turn = self.pulse.turn()
        if self.rank > 0:
            self.pulse.wait(turn)
        yield
        if self.rank == 0:
            self.pulse.announce(turn)


def join_group(device: torch.device, *, watchdog: float = 600.0) -> Group:
    """The group that torchrun started this process in, or a group of one; `watchdog` is in seconds."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Group(device=device)
    # Functions in this module bind the current group as a default argument, and an optimizer's first step imports it.
    # Imported once the group exists, it would keep it alive past leave_group, and the group's threads occasionally
    # abort the process (SIGABRT) by requesting the GIL at exit.
    importlib.import_module("torch.distributed.nn")
    rank = int(os.environ["RANK"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    agent = TCPStore(address, port, is_master=False)  # a connection of our own
    prefix = f"jumok-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}-{next(_groups)}"
    distributed.init_process_group(
        backend="nccl" if device.type == "cuda" else "gloo",
        store=PrefixStore(f"{prefix}-group", agent),
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=watchdog),
    )
    pulse = Pulse(PrefixStore(f"{prefix}-pulse", agent), rank, world, watchdog)
    return Group(rank=rank, world=world, device=device, pulse=pulse)


def leave_group(group: Group) -> None:
    if group.pulse is not None:
        group.pulse.stop()
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
