"""The number of compute threads on a machine that others use, too.

OpenMP threads meet at a barrier after every operation, and whoever is there first spins until the last one arrives. If
another program occupies one of the cores, the last one is not even running, and the others spin for nothing: two
threads are then slower than one, and ten crowded processes hardly advance. So threads spin only briefly, and there are
no more of them than free cores. A number set by the user is kept.
"""

import os
import re
import resource
import sys
from collections.abc import Callable
from time import monotonic

SPIN = "10000"
"""spins at a barrier before a thread sleeps: enough on an idle machine, where the last thread is never far behind"""
MOST_THREADS = 1024
"""many more than any machine has cores; OpenMP crashes if there are too many"""
LOOK_EVERY = 2.0  # seconds
BUSY = 0.4
"""cores in use by others, from which on one thread less is faster"""


def spin_briefly() -> None:
    """Limit spinning in torch's OpenMP, which reads this setting when it is loaded."""
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)


def own_cores() -> set[int]:
    """The cores that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def asked_threads() -> int | None:
    """The user's OMP_NUM_THREADS; torchrun sets it, too."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(int(asked), MOST_THREADS) if re.fullmatch("0*[1-9][0-9]{0,9}", asked) else None


class Neighbours:
    """Load of other processes on our cores; zero where the system does not report it."""

    def __init__(self) -> None:
        self.cores = own_cores()
        self._before = self._now()

    def busy(self) -> float:
        """Cores that others kept busy since the last call."""
        then, now = self._before, self._now()
        self._before = now
        if then is None or now is None or now[0] <= then[0]:
            return 0.0
        seconds, everybody, ours = (after - before for before, after in zip(then, now, strict=True))
        return max(everybody - ours, 0.0) / seconds

    def _now(self) -> tuple[float, float, float] | None:
        """The clock, and the CPU seconds on our cores: of all processes, and our own."""
        try:
            with open("/proc/stat", encoding="ascii") as file:
                lines = [line.split() for line in file if line.startswith("cpu") and line[3].isdecimal()]
        except OSError:
            return None
        ticks = 0
        for name, *counts in lines:
            if int(name[3:]) in self.cores:
                user, nice, system, _idle, _waiting, *interrupts = map(int, counts[:8])
                ticks += user + nice + system + sum(interrupts)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return monotonic(), ticks / os.sysconf("SC_CLK_TCK"), usage.ru_utime + usage.ru_stime


class Threads:
    """Sets the number of threads, and adapts it as others come and go."""

    def __init__(
        self, fixed: int | None, set_threads: Callable[[int], None], neighbours: Neighbours | None = None
    ) -> None:
        self._set, self._neighbours = set_threads, neighbours or Neighbours()
        self.fixed = fixed or asked_threads()
        self.n = self.fixed or len(self._neighbours.cores)
        self._looked = monotonic()
        self._free_twice = False
        self._set(self.n)

    def look(self, *, now: float | None = None) -> bool:
        """Check the load if it is time to; returns whether the number has changed."""
        now = monotonic() if now is None else now
        if self.fixed is not None or now - self._looked < LOOK_EVERY:
            return False
        self._looked = now
        cores = len(self._neighbours.cores)
        wanted = max(1, int(cores - self._neighbours.busy() + BUSY))
        if wanted > self.n and not self._free_twice:  # a neighbour that only pauses has not gone
            self._free_twice = True
            return False
        self._free_twice = False
        changed, self.n = wanted != self.n, wanted
        if changed:
            self._set(self.n)
        return changed
