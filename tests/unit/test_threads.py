"""Threads are as many as free cores, changed when neighbours come and go, and never where somebody has set them."""

import os
import subprocess
import sys

import pytest

from jumok.threads import LOOK_EVERY, Neighbours, Threads


class Street:
    """Neighbours that take as many cores as they are told to."""

    def __init__(self, cores: int) -> None:
        self.cores = set(range(cores))
        self.taken = 0.0

    def busy(self) -> float:
        return self.taken


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def looked(threads: Threads, times: int) -> list[int]:
    """The numbers of threads at so many later looks."""
    start, found = threads._looked, []
    for i in range(1, times + 1):
        threads.look(now=start + i * (LOOK_EVERY + 0.1))
        found.append(threads.n)
    return found


@pytest.mark.parametrize(
    ("cores", "taken", "wanted"),
    [(2, 0.0, 2), (2, 0.2, 2), (2, 0.6, 1), (2, 1.0, 1), (2, 2.0, 1), (8, 0.9, 7), (8, 3.0, 5), (1, 1.0, 1)],
)
def test_as_many_as_there_are_free_cores(cores: int, taken: float, wanted: int) -> None:
    told: list[int] = []
    street = Street(cores)
    threads = Threads(None, told.append, street)  # type: ignore[arg-type]
    street.taken = taken
    assert looked(threads, 2) == [wanted, wanted]
    assert told == ([cores] if wanted == cores else [cores, wanted])


def test_a_neighbour_that_takes_a_breath_has_not_gone() -> None:
    street = Street(2)
    threads = Threads(None, lambda n: None, street)  # type: ignore[arg-type]
    street.taken = 1.0
    assert looked(threads, 1) == [1]
    street.taken = 0.0
    assert looked(threads, 1) == [1]
    street.taken = 1.0
    assert looked(threads, 1) == [1]
    street.taken = 0.0
    assert looked(threads, 2) == [1, 2]


def test_it_looks_now_and_then_only() -> None:
    street = Street(2)
    threads = Threads(None, lambda n: None, street)  # type: ignore[arg-type]
    street.taken = 2.0
    assert not threads.look(now=threads._looked + LOOK_EVERY / 2)
    assert threads.n == 2


@pytest.mark.parametrize(
    ("fixed", "environment", "n"), [(3, None, 3), (None, "5", 5), (2, "5", 2), (None, "9" * 9, 1024), (None, "x", 4)]
)
def test_what_somebody_has_set_stays(fixed, environment, n, monkeypatch: pytest.MonkeyPatch) -> None:
    if environment is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", environment)
    street = Street(4)
    threads = Threads(fixed, lambda n: None, street)  # type: ignore[arg-type]
    street.taken = 3.9
    assert looked(threads, 3) == ([n] * 3 if environment != "x" else [1] * 3)


def test_neighbours_are_seen_and_our_own_work_is_not() -> None:
    """A process that spins on another core than ours is a neighbour; our own spinning is none."""
    neighbours = Neighbours()
    if len(neighbours.cores) < 2 or not os.path.exists("/proc/stat"):
        pytest.skip("needs two cores and /proc/stat")
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            neighbours.busy()
            spin(0.6)
            beside_one = neighbours.busy()
        finally:
            other.kill()
    assert 0.2 < beside_one <= len(neighbours.cores)


def spin(seconds: float) -> None:
    from time import monotonic

    end = monotonic() + seconds
    while monotonic() < end:
        pass


def test_the_spin_is_set_before_torch_and_never_over_the_users() -> None:
    code = "import jumok, os; print(os.environ.get('GOMP_SPINCOUNT'))"
    clean = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    ours = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    theirs = subprocess.run(
        [sys.executable, "-c", code], env={**clean, "GOMP_SPINCOUNT": "7"}, capture_output=True, text=True, check=True
    )
    passive = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "OMP_WAIT_POLICY": "ACTIVE"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (int(ours.stdout) > 0, theirs.stdout.strip(), passive.stdout.strip()) == (True, "7", "None")
