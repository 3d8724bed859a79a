"""Answer the next examples of a file while the answers of those before are written, so that no core waits for them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from jumok.engines import Engine

Chunk = TypeVar("Chunk")


def answered_ahead(
    engine: "Engine", answer: Callable[[Chunk], list[Any]], chunks: Iterable[Chunk]
) -> Iterator[tuple[Chunk, list[Any]]]:
    """Each chunk with its answers, in order. If the engine computes several batches at once, two chunks are at work.

    Tokens and texts are made by Python, one text after the other; meanwhile the engine works on the other chunk.
    """
    if engine.workers == 1:
        yield from ((chunk, answer(chunk)) for chunk in chunks)
        return
    waiting, stopped = deque[tuple[Chunk, Future[list[Any]]]](), Event()
    with _stopped_by(engine, stopped), ThreadPoolExecutor(2) as pool:
        try:
            for chunk in chunks:
                waiting.append((chunk, pool.submit(answer, chunk)))
                if len(waiting) == 2:
                    first, outputs = waiting.popleft()
                    yield first, outputs.result()
            for first, outputs in waiting:
                yield first, outputs.result()
        finally:
            stopped.set()


@contextmanager
def _stopped_by(engine: "Engine", stopped: Event) -> Iterator[None]:
    """An engine that is stopped leaves off before its next batch."""
    heard = engine.between

    def between(n: int) -> None:
        if stopped.is_set():
            raise CancelledError
        heard(n)

    engine.between = between
    try:
        yield
    finally:
        engine.between = heard
