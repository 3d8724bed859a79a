"""Signs of life between processes: who hangs or died is named, and who works for long is waited for."""

import time
from collections.abc import Callable, Iterator
from threading import Thread

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]

from jumok.errors import RunError
from jumok.train import distributed
from jumok.train.distributed import Pulse

WATCHDOG = 1.0
Start = Callable[[int], Pulse]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Begins the pulse of one of two processes; both are threads of this one."""
    monkeypatch.setattr(distributed, "BEAT", 0.05)
    monkeypatch.setattr(distributed, "SILENCE", 3.0)
    store, pulses = HashStore(), list[Pulse]()

    def started(rank: int) -> Pulse:
        pulses.append(Pulse(store, rank, 2, WATCHDOG))
        return pulses[-1]

    yield started
    for pulse in pulses:
        pulse.stop()


def test_a_process_that_works_is_waited_for_longer_than_the_watchdog(start: Start) -> None:
    first, second = start(0), start(1)

    def score() -> None:
        for _ in range(20):
            first.work()
            time.sleep(0.1)
        first.announce(0)

    scoring, began = Thread(target=score), time.monotonic()
    scoring.start()
    second.wait(0)
    scoring.join()
    assert time.monotonic() - began > 1.5 * WATCHDOG


def test_a_process_that_lives_and_does_nothing_hangs(start: Start) -> None:
    _, second = start(0), start(1)
    with pytest.raises(RunError) as caught:
        second.wait(0)
    assert (caught.value.code, caught.value.what.partition(" has ")[0]) == ("run.rank_hung", "process 0 of 2")


def test_a_process_that_no_longer_beats_is_dead(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "SILENCE", 0.2)
    first, second = start(0), start(1)
    first.stop()
    with pytest.raises(RunError) as caught:
        second.wait(0)
    for error in (caught.value, second.blame()):
        assert (error.code, error.what.partition(" no ")[0]) == ("run.rank_lost", "process 0 of 2")


def test_of_two_that_live_the_one_that_has_done_less_is_blamed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = start(0), start(1)
    monkeypatch.setattr(distributed, "BEAT", 0.5)  # enough time for beats on a busy machine
    first.work()
    found = first.blame()
    assert (found.code, found.what.partition(" has ")[0]) == ("run.rank_hung", "process 1 of 2")
