"""Chunks are answered two at a time, in order, and stop when nobody wants them any more."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from jumok.cli.ahead import answered_ahead
from jumok.engines import nobody


def engine(workers: int = 2) -> Any:
    return SimpleNamespace(workers=workers, between=nobody)


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_every_chunk_has_its_answers_in_order(workers: int, n: int) -> None:
    def answer(chunk: int) -> list[int]:
        threading.Event().wait(0.002 * (7 - chunk))  # later chunks are answered sooner
        return [chunk, 10 * chunk]

    assert [*answered_ahead(engine(workers), answer, range(n))] == [(i, [i, 10 * i]) for i in range(n)]


def test_the_next_chunk_is_answered_while_the_last_one_is_looked_at() -> None:
    begun = [threading.Event() for _ in range(3)]

    def answer(chunk: int) -> list[int]:
        begun[chunk].set()
        return []

    found = answered_ahead(engine(), answer, range(3))
    next(found)
    assert begun[1].wait(10)
    assert not begun[2].is_set()  # no more than two, or a file would fill the memory
    found.close()  # type: ignore[attr-defined]


def test_with_one_worker_nothing_is_read_ahead() -> None:
    read: list[int] = []

    def chunks() -> Iterator[int]:
        for i in range(3):
            read.append(i)
            yield i

    next(answered_ahead(engine(1), lambda chunk: [], chunks()))
    assert read == [0]


def test_an_error_comes_in_the_place_of_its_chunk() -> None:
    def answer(chunk: int) -> list[int]:
        if chunk == 1:
            raise ValueError("one")
        return [chunk]

    found = answered_ahead(engine(), answer, range(5))
    assert next(found) == (0, [0])
    with pytest.raises(ValueError, match="one"):
        next(found)


def test_who_stops_does_not_wait_for_the_chunk_at_work() -> None:
    one = engine()
    before, ended = one.between, threading.Event()

    def answer(chunk: int) -> list[int]:
        try:
            while chunk > 0:  # as a search that asks between batches whether it is to go on
                one.between(0)
        finally:
            ended.set()
        return []

    found = answered_ahead(one, answer, range(9))
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert ended.wait(10)
    assert one.between is before
