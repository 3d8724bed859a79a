"""The queue: batches without a timer, refusals instead of growth, nothing computed for those who left."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jumok.serve.queue import Abandoned, Busy, Job, Queue


class Model:
    """Answers when it is let, and remembers its batches."""

    def __init__(self, *, open_: bool = False) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.batches: list[list[Any]] = []
        if open_:
            self.gate.set()

    def __call__(self, examples: Sequence[Any], wanted: Callable[[int], None]) -> list[str]:
        self.batches.append(list(examples))
        self.begun.set()
        assert self.gate.wait(10)
        wanted(0)
        return [f"<{example}>" for example in examples]

    def job(self, example: Any, tokens: int = 4, *, key: str = "m", interactive: bool = True) -> Job:
        return Job((key,), self, example, tokens, interactive)


@pytest.fixture
def queue():
    made = Queue(budget=20, most_inputs=8, most_tokens=100)
    yield made
    made.close()


def blocked(queue: Queue, model: Model) -> Job:
    """The thread is busy with a first job; what comes now has to wait."""
    first = model.job("first")
    queue.submit([first])
    assert model.begun.wait(10)
    return first


def test_answers_come_to_their_jobs(queue: Queue) -> None:
    model = Model(open_=True)
    jobs = [model.job(n) for n in range(5)]
    queue.submit(jobs)
    assert [job.output.result(10) for job in jobs] == [f"<{n}>" for n in range(5)]


def test_what_waits_goes_together_up_to_the_budget_of_padded_tokens(queue: Queue) -> None:
    model = Model()
    blocked(queue, model)
    jobs = [model.job(n, tokens) for n, tokens in enumerate([6, 5, 6, 9, 6])]
    queue.submit(jobs)
    model.gate.set()
    for job in jobs:
        job.output.result(10)
    assert model.batches[1] == [0, 2, 4]  # three of six tokens; one of five would pad to 24
    assert sorted(n for batch in model.batches[2:] for n in batch) == [1, 3]
    assert queue.counts.padded_tokens >= queue.counts.tokens == 4 + 32


def test_other_options_or_models_are_other_batches(queue: Queue) -> None:
    model = Model()
    blocked(queue, model)
    jobs = [model.job("a"), model.job("b", key="other"), model.job("c")]
    queue.submit(jobs)
    model.gate.set()
    for job in jobs:
        job.output.result(10)
    assert model.batches[1:] == [["a", "c"], ["b"]]


def test_interactive_inputs_pass_files_until_these_are_old(queue: Queue) -> None:
    model = Model()
    blocked(queue, model)
    file, old, page = (model.job(name, 20, interactive=name == "page") for name in ("file", "old", "page"))
    old.arrived -= 60
    queue.submit([file, old, page])
    model.gate.set()
    for job in (file, old, page):
        job.output.result(10)
    assert model.batches[1:] == [["old"], ["page"], ["file"]]


def test_a_full_queue_refuses_a_request_as_a_whole(queue: Queue) -> None:
    model = Model()
    blocked(queue, model)
    queue.submit([model.job(n) for n in range(7)])
    with pytest.raises(Busy) as busy:
        queue.submit([model.job("x"), model.job("y")])
    assert 1 <= busy.value.seconds <= 60
    assert queue.inputs == 7
    with pytest.raises(Busy):
        queue.submit([model.job("long", 90)])
    queue.submit([model.job("last")])
    assert queue.counts.refused == 3
    model.gate.set()


def test_abandoned_jobs_are_dropped_and_never_computed(queue: Queue) -> None:
    model = Model()
    blocked(queue, model)
    left, stays = model.job("left"), model.job("stays")
    queue.submit([left, stays])
    left.abandon()
    model.gate.set()
    assert stays.output.result(10) == "<stays>"
    assert left.output.cancelled()
    assert model.batches[1:] == [["stays"]]
    assert queue.counts.abandoned == 1


def test_a_batch_that_nobody_waits_for_is_stopped(queue: Queue) -> None:
    model = Model()
    first = blocked(queue, model)
    first.abandon()
    model.gate.set()
    with pytest.raises(Abandoned):
        first.output.result(10)
    after = model.job("after")
    queue.submit([after])
    assert after.output.result(10) == "<after>"
    assert queue.counts.failed_batches == 0


def test_a_model_that_fails_fails_its_batch_alone(queue: Queue) -> None:
    def broken(examples: Sequence[Any], wanted: Callable[[int], None]) -> list[str]:
        raise ValueError("broken")

    bad = Job(("bad",), broken, "x", 1, True)
    good = Model(open_=True).job("y")
    queue.submit([bad, good])
    with pytest.raises(ValueError, match="broken"):
        bad.output.result(10)
    assert good.output.result(10) == "<y>"
    assert queue.counts.failed_batches == 1


def test_closing_answers_what_waits_and_takes_no_more() -> None:
    queue, model = Queue(), Model(open_=True)
    jobs = [model.job(n) for n in range(3)]
    queue.submit(jobs)
    queue.close()
    assert [job.output.result(0) for job in jobs] == ["<0>", "<1>", "<2>"]
    with pytest.raises(Busy):
        queue.submit([model.job("late")])
