"""Two runs on the same held-out examples: the paired test of `jumok compare`.

It computes for minutes, so it does not go through the queue: it has a thread of low priority, one for the whole server,
which stops when its reader leaves. It changes nothing, so it needs no token: what every POST is asked is enough.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import Future
from threading import Thread
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from jumok.data.corpus import Corpus
from jumok.errors import JumokError
from jumok.recipe import recipe_of_run
from jumok.series import refuse_other_test_data
from jumok.serve.app import Refusal, Route, Server
from jumok.serve.comparisons import Comparing, command
from jumok.serve.runs import Run
from jumok.tasks.prepare import read_split
from jumok.train.folder import RunFolder

MOST_EXAMPLES = 20_000
TOLD_EVERY = 0.4
"""seconds between lines of progress"""


async def compare(server: Server, request: Request) -> Response:
    asked = await server.json(request)
    fields = ("with", "split")
    if not isinstance(asked, dict) or {*asked} != {*fields} or not all(isinstance(asked[name], str) for name in fields):
        raise Refusal(422, "serve.request", 'the body must be {"with": RUN, "split": "dev" or "test"}')
    run, other, split = await server.run(request.path_params["run"]), await server.run(asked["with"]), asked["split"]
    if run.name == other.name or split not in ("dev", "test"):
        raise Refusal(422, "serve.request", "name another run, and the split dev or test")
    if not (run.usable and other.usable):
        raise Refusal(409, "serve.no_model", "one of the runs has no model yet")
    sha256 = await asyncio.to_thread(_same_data, run, other, split)
    key = (run.path, run.stamp(), other.path, other.stamp(), split, sha256)
    if key in server.comparisons.known:
        return _stream(_told(comparisons=server.comparisons.known[key]))
    if server.comparisons.turn.locked():
        raise Refusal(429, "serve.busy", "another comparison is under way", seconds=10)
    examples = await asyncio.to_thread(_examples, run, other, split, sha256)
    return _stream(_lines(server, Comparing(other, run, examples, server.queue), key))


async def _lines(server: Server, work: Comparing, key: tuple[Any, ...]) -> AsyncIterator[str]:
    """Progress, and in the last line the comparisons or an error."""

    answer: Future[list[dict[str, Any]]] = Future()

    def compute() -> None:
        answer.set_running_or_notify_cancel()
        try:
            if not server.comparisons.turn.acquire(blocking=False):
                raise Refusal(429, "serve.busy", "another comparison is under way")
            try:
                found = work.compute()
            finally:
                server.comparisons.turn.release()
            answer.set_result(found)
        except BaseException as error:  # told by the one who reads
            answer.set_exception(error)

    Thread(target=compute, name="compare", daemon=True).start()
    found = asyncio.wrap_future(answer)
    try:
        while not found.done() and not server.draining:
            yield _line(done=min(work.done, 2 * len(work.examples)), total=2 * len(work.examples))
            await asyncio.wait({found}, timeout=TOLD_EVERY)
        if not found.done():
            yield _line(error={"code": "serve.draining", "what": "the server is shutting down"})
            return
        comparisons = found.result()
        server.comparisons.keep(key, comparisons)
        yield _line(comparisons=comparisons)
    except (JumokError, Refusal) as error:
        yield _line(error={"code": error.code, "what": error.what, "hint": error.hint or ""})
    except Exception:  # the headers are sent: what other routes answer with a 500 is told in a line
        yield _line(error={"code": "serve.internal", "what": "the server failed on this request"})
    finally:
        work.stopped.set()
        found.cancel()


def _same_data(run: Run, other: Run, split: str) -> str:
    """The hash of the data that both were scored on; refuses runs of other data, tasks or test sets."""
    try:
        refuse_other_test_data(other.path, run.path)
        stored = [(RunFolder(one.path).stored() or {}).get("data", {}).get(split) for one in (run, other)]
    except (JumokError, LookupError, TypeError, AttributeError) as error:
        raise _refused(error, run, other) from error
    if run.facts()["task"] != other.facts()["task"]:
        raise Refusal(409, "input.task", "the runs have different tasks")
    if not isinstance(stored[0], str) or stored[0] != stored[1]:
        what = f"it is not known that both runs were scored on the same {split} data"
        hint = f"{command(other, run)} --data test=FILE"
        raise Refusal(409, "serve.other_data", what, hint=hint)
    return stored[0]


def _examples(run: Run, other: Run, split: Any, sha256: str) -> list[Any]:
    """The examples, if the data is where the recipe says, and still the same."""
    try:
        recipe = recipe_of_run(run.recipe(), run.path / "recipe.json")
        corpus = Corpus[Any](recipe.data, split, seed=recipe.seed)
        if not corpus.exists() or corpus.fingerprint() != sha256:
            what = f"the {split} data has changed since the runs were trained"
            raise Refusal(409, "serve.other_data", what, hint=command(other, run))
        examples = read_split(corpus)
    except (JumokError, OSError, LookupError, TypeError, ValueError) as error:
        raise _refused(error, run, other, "the data is not where the recipe says, or cannot be read: ") from error
    if len(examples) > MOST_EXAMPLES:
        what = f"{len(examples):,} examples are more than the page compares ({MOST_EXAMPLES:,})"
        raise Refusal(409, "serve.inputs", what, hint=command(other, run))
    return examples


def _refused(error: Exception, run: Run, other: Run, before: str = "") -> Refusal:
    hint = command(other, run)
    if isinstance(error, JumokError):
        return Refusal(409, error.code, before + error.what, hint=hint)
    return Refusal(409, "serve.other_data", "the data of the runs cannot be read", hint=hint)


async def _told(**told: Any) -> AsyncIterator[str]:
    yield _line(**told)


def _line(**told: Any) -> str:
    return json.dumps(told, ensure_ascii=False) + "\n"


def _stream(lines: AsyncIterator[str]) -> Response:
    return StreamingResponse(lines, media_type="application/x-ndjson")


COMPARE = {
    "type": "object",
    "required": ["with", "split"],
    "additionalProperties": False,
    "properties": {"with": {"type": "string"}, "split": {"enum": ["dev", "test"]}},
}
ROUTES = (
    Route(
        "POST",
        "/api/runs/{run}/compare",
        compare,
        "Whether a run is better than another: progress, then paired tests, a JSON object a line",
        body=COMPARE,
        media="application/x-ndjson",
    ),
)
