"""Texts that are written token by token: the compute thread writes, and whoever asked for them can read along."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from secrets import randbelow
from time import monotonic
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import StreamingResponse

from jumok.decode.options import DecodeConfig
from jumok.engines import Done
from jumok.errors import JumokError
from jumok.serve.app import Server
from jumok.serve.models import Served
from jumok.serve.queue import Job
from jumok.serve.refusal import ErrorShape, Refusal
from jumok.tasks.language_model.predictor import Generator
from jumok.tasks.translation.predictor import Translator
from jumok.text.tokenizer import Tokenizer

MOST_TOKENS = 1024
"""of one text"""
CONTEXT = 32
"""tokens that the next one is decoded with"""
ENDING = 5.0
"""seconds that a stream may go on when the server is asked to stop"""
Writer = Generator | Translator
Finish = Literal["end", "length", "stop"]


@dataclass(frozen=True, slots=True)
class Piece:
    """What one token adds."""

    token: int
    log_prob: float
    text: str
    """characters that it completes: none for the first bytes of a character"""
    answer: str
    """characters now known to stand before every stop text"""
    finish: Finish | None
    """why the text ends with it"""
    special: bool
    """it is the end token"""


class Writing:
    """A text while it is written."""

    def __init__(
        self,
        writer: Writer,
        prompt: str,
        options: DecodeConfig,
        *,
        seed: int,
        most: int | None,
        stops: Sequence[str] = (),
    ) -> None:
        """At most `most` tokens, or as many as the options say; it ends with the first of the stop texts."""
        longer = options if most is None else replace(options, max_extra=most)
        reads: Any = writer  # each reads examples and options of its own
        example = reads.parse({_TEXT[writer.kind]: prompt})
        self.source: list[int] | None
        self.source, request = reads.begin(example, replace(longer, seed=seed))
        self.tokenizer: Tokenizer = writer.tokenizers.target
        self.end = self.tokenizer.end_id
        self.room = request.max_len - len(request.prefix)
        if most is not None:
            self.room = min(self.room, most)
        self.request = replace(request, max_len=len(request.prefix) + self.room, watch=self.take)
        self.stops = stops
        self.pieces: list[Piece] = []
        self.text = ""
        self.written = 0
        self.heard: Callable[[Piece], None] = lambda piece: None
        self.unwanted: Callable[[], bool] = lambda: False
        self._ids = list(request.prefix[-CONTEXT:])
        self._decoded = self.tokenizer.decode(self._ids)
        self._known = 0

    @property
    def prompt_tokens(self) -> int:
        return len(self.request.prefix if self.source is None else self.source)

    @property
    def answer(self) -> str:
        """The text before the first stop text."""
        return self.text[: self._known]

    @property
    def finish(self) -> Finish | None:
        return self.pieces[-1].finish if self.pieces else None

    def take(self, token: int, log_prob: float) -> bool:
        """The next token; True if the text ends with it."""
        if special := token == self.end:
            finish: Finish | None = "length" if self.written >= self.room else "end"
        else:
            self._ids.append(token)
            self.written += 1
            finish = "length" if self.written >= self.room else None
        now, text = self.tokenizer.decode(self._ids), ""
        if finish or (now.startswith(self._decoded) and not now.endswith("\ufffd")):  # else a character is incomplete
            text, self._decoded = now[len(self._decoded) :], now
            if len(self._ids) > 4 * CONTEXT:  # or each token would take longer than the one before
                self._ids = self._ids[-CONTEXT:]
                self._decoded = self.tokenizer.decode(self._ids)
        self.text += text
        stopped = [at for stop in self.stops if (at := self.text.find(stop)) >= 0]
        if stopped:
            finish = "stop"
        before, self._known = self._known, min(stopped) if stopped else len(self.text) - (0 if finish else self._held())
        piece = Piece(token, log_prob, text, self.text[before : self._known], finish, special)
        self.pieces.append(piece)
        self.heard(piece)
        return finish is not None or self.unwanted()

    def _held(self) -> int:
        """Characters at the end that a stop text may begin with."""
        longest = max(map(len, self.stops), default=1) - 1
        held = range(min(longest, len(self.text)), 0, -1)
        return next((n for n in held if any(stop.startswith(self.text[-n:]) for stop in self.stops)), 0)


_TEXT = {"language_model": "text", "translation": "source"}


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a request wants its texts chosen; without a wish, as the run's [decode] says."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    sample: bool | None = None

    def options(self, writer: Writer) -> DecodeConfig:
        wished = {"temperature": self.temperature, "top_p": self.top_p, "top_k": self.top_k}
        options: dict[str, Any] = {name: value for name, value in wished.items() if value is not None}
        if self.temperature == 0 or self.sample is False:
            options = {"method": "greedy"}
        elif options or self.seed is not None or self.sample:
            options = {"temperature": 1.0, **options, "method": "sample"}
        found: DecodeConfig = writer.wanted({**options, "n_best": 1})
        if options and self.seed is None:  # asked to sample: another text each time
            return replace(found, seed=randbelow(2**31))
        return found if self.seed is None else replace(found, seed=self.seed)


def writer_of(served: Served) -> Writer | None:
    """The run, if it writes texts."""
    writer = served.predictor
    bidirectional = writer.engine.kind == "elmo"
    return writer if isinstance(writer, Generator | Translator) and not bidirectional else None


def jobs_of(served: Served, options: DecodeConfig, writings: Sequence[Writing]) -> list[Job]:
    """Work for the compute thread: texts of one run and method are written together."""
    shared = replace(options, seed=1, max_extra=1)  # which the requests have themselves

    def write(batch: Sequence[Writing], wanted: Done) -> Sequence[Writing]:
        sources = [writing.source for writing in batch if writing.source is not None] or None
        requests = [writing.request for writing in batch]
        engine = served.predictor.engine
        found = engine.search(sources, requests, shared, done=wanted)
        if shared.method == "beam":  # it knows a text only in the end
            for writing, (best, *_) in zip(batch, found, strict=True):
                written = [*best.ids, writing.end]
                log_probs = engine.chosen(writing.source, written, 1).written.tolist()
                for token, log_prob in list(zip(written, log_probs, strict=True))[len(writing.request.prefix) :]:
                    if writing.take(token, log_prob):
                        break
        return batch

    key = (served.name, "write", *sorted((name, repr(value)) for name, value in asdict(shared).items()))
    jobs = [Job(key, write, writing, writing.prompt_tokens + 1, True) for writing in writings]
    for job, writing in zip(jobs, writings, strict=True):
        writing.unwanted = partial(getattr, job, "abandoned")
    return jobs


async def begin(make: Callable[[], list[Writing]]) -> list[Writing]:
    """Texts to write, read by the tokenizer beside the event loop."""
    try:
        return await asyncio.to_thread(make)
    except JumokError as error:
        raise Refusal(422, error.code, error.what, hint=error.hint or "") from error


class Stream:
    """The pieces of one or several texts, while they are written."""

    def __init__(self, server: Server, jobs: Sequence[Job]) -> None:
        self.server, self.jobs = server, jobs
        self._pieces: asyncio.Queue[tuple[int, Piece | None]] = asyncio.Queue()
        self._first: tuple[int, Piece | None] = (0, None)
        self._deadline = monotonic() + server.limits.seconds
        loop = asyncio.get_running_loop()

        def tell(place: int, piece: Any) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens
                told = (place, piece if isinstance(piece, Piece) else None)
                loop.call_soon_threadsafe(self._pieces.put_nowait, told)

        for place, job in enumerate(jobs):
            job.example.heard = partial(tell, place)
            job.output.add_done_callback(partial(tell, place))

    async def open(self, request: Request) -> None:
        """Until the first piece is there: what goes wrong before is an answer with a status of its own."""
        self.server.submit(self.jobs)
        first = asyncio.ensure_future(self._pieces.get())
        try:
            await self.server.wait(request, first)
            self._check(*first.result())
        except BaseException:
            first.cancel()
            self.close()
            raise
        self._first = first.result()

    async def pieces(self) -> AsyncIterator[tuple[int, Piece]]:
        """Each piece with the number of its text."""
        left, (place, piece) = len(self.jobs), self._first
        while True:
            self._check(place, piece)
            if piece is not None:
                yield place, piece
            left -= piece is None
            if not left:
                return
            place, piece = await self._next()

    async def _next(self) -> tuple[int, Piece | None]:
        while True:
            if self.server.draining:
                self._deadline = min(self._deadline, monotonic() + ENDING)
            seconds = self._deadline - monotonic()
            if seconds <= 0:
                raise Refusal(504, "serve.timeout", "the text took too long, or the server is shutting down")
            with suppress(TimeoutError):
                return await asyncio.wait_for(self._pieces.get(), min(seconds, 1.0))

    def _check(self, place: int, piece: Piece | None) -> None:
        output = self.jobs[place].output
        if piece is None and (output.cancelled() or output.exception() is not None):
            raise Refusal(500, "serve.failed", "the model failed on this request")

    def close(self) -> None:
        """Nobody reads any more: nothing more is written."""
        for job in self.jobs:
            if not job.output.done():
                job.abandon()


class EventStream(StreamingResponse):
    """Server-sent events. However the answer ends, the writing ends with it."""

    def __init__(self, stream: Stream, events: AsyncIterator[Any], errors: ErrorShape, *, last: str = "") -> None:
        """Events are objects; `last` follows them as it is, unless something went wrong."""

        async def lines() -> AsyncIterator[str]:
            try:
                async for event in events:
                    yield f"data: {json.dumps(event)}\n\n"  # ASCII: some clients break lines at U+2028, too
                if last:
                    yield f"data: {last}\n\n"
            except Refusal as refusal:  # the status has been sent
                yield f"data: {json.dumps(errors.body(refusal))}\n\n"

        super().__init__(lines(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        self._stream = stream

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()
