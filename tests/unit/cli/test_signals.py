"""Signals that ask a training to stop, and one that somebody has silenced."""

import signal
from collections.abc import Iterator

import pytest

from jumok.cli.train import interruptible

NUMBERS = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP]


@pytest.fixture(params=NUMBERS, ids=str)
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    before = signal.getsignal(request.param)
    yield request.param
    signal.signal(request.param, before)


def test_a_signal_asks_and_whoever_listened_before_listens_again(number: int) -> None:
    elsewhere: list[int] = []
    signal.signal(number, lambda number, _: elsewhere.append(number))
    with interruptible() as asked:
        signal.raise_signal(number)
        assert (asked, elsewhere) == ([number], [])
    signal.raise_signal(number)
    assert (asked, elsewhere) == ([number], [number])


def test_a_signal_that_is_ignored_stays_so(number: int) -> None:
    """Under nohup, the end of a terminal is no reason to stop."""
    signal.signal(number, signal.SIG_IGN)
    with interruptible() as asked:
        signal.raise_signal(number)
    assert asked == []
