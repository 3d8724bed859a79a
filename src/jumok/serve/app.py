"""The web application: limits before work, errors that say nothing internal, the OpenAPI document of its routes."""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as StarletteRoute

from jumok.errors import JumokError
from jumok.files import parse_json
from jumok.serve.access import Access, require_same_origin
from jumok.serve.comparisons import Comparisons
from jumok.serve.limits import Limits
from jumok.serve.models import Models, Served
from jumok.serve.queue import Busy, Job
from jumok.serve.refusal import OWN, ErrorShape
from jumok.serve.refusal import Refusal as Refusal
from jumok.serve.runs import Run
from jumok.version import __version__

SECURITY = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
log = logging.getLogger("jumok.serve")
QUIET = {"/health", "/ready", "/metrics"}
"""asked every few seconds by machines: not logged"""
PARAMETER = re.compile(r"{(\w+)(:path)?}")
SHORT = 500
"""characters of a text that is read on the spot; more would keep the others waiting"""


@dataclass(frozen=True, slots=True)
class Route:
    """A row of the table: what is served, and what the OpenAPI document says of it."""

    method: str
    path: str
    handle: Callable[["Server", Request], Awaitable[Response]]
    summary: str
    body: Mapping[str, Any] | None = None
    """JSON schema of the request's body"""
    answer: Mapping[str, Any] | None = None
    """JSON schema of a 200"""
    media: str = "application/json"
    """type of a 200"""
    streams: bool = False
    """answers with server-sent events if the body asks for them"""
    errors: ErrorShape = OWN
    open: bool = False
    """answered without the API key, or the handler asks for it itself"""


class Server:
    """An ASGI application around the models."""

    def __init__(
        self, models: Models, routes: Sequence[Route], *, limits: Limits | None = None, access: Access | None = None
    ) -> None:
        self.models, self.queue, self.limits = models, models.queue, limits or Limits()
        self.access = access or Access()
        self.draining = False
        self.comparisons = Comparisons()
        self.routes = routes
        self.openapi = json.dumps(document(routes)).encode()
        table = [StarletteRoute(route.path, self._handler(route), methods=[route.method]) for route in routes]
        self.app = Starlette(routes=table, exception_handlers={404: _not_found, 405: _not_allowed, 500: _broken})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Check the host (DNS rebinding), and add security headers to every answer. Plain ASGI: a wrapper of
        Starlette's would hide from a handler that its client has gone."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        began = monotonic()

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                level = logging.DEBUG if scope["path"] in QUIET else logging.INFO
                took = 1000 * (monotonic() - began)
                log.log(level, "%s %s %d %.0f ms", scope["method"], scope["path"][:200], message["status"], took)
                told = {name for name, _ in message["headers"]}
                more = [(k.encode(), v.encode()) for k, v in SECURITY.items() if k.encode() not in told]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        if not self.access.knows(Request(scope).headers.get("host", "")):
            refused = _refused(Refusal(421, "serve.host", "unknown host"))
            await refused(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)

    def _handler(self, route: Route) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            try:
                if route.method != "GET":
                    self.access.refuse_other_sites(request)
                if not route.open:
                    self.access.require_key(request)
                return await route.handle(self, request)
            except Refusal as refusal:
                return _refused(refusal, route.errors)

        return handle

    # what handlers share

    def changing(self, request: Request) -> None:
        """To be called by the handler of an act that changes something: the request must come from this server's own
        page, which alone can read the token of GET /api/session."""
        require_same_origin(request)
        self.access.require_token(request)

    async def json(self, request: Request) -> Any:
        return self.parse(await self.body(request))

    async def body(self, request: Request) -> bytes:
        """The body, read no further than the limit."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self.limits.body:
                raise Refusal(413, "serve.body", f"the body has more than {self.limits.body:,} bytes")
        return bytes(body)

    def parse(self, body: bytes) -> Any:
        """A body as JSON."""
        try:
            value = parse_json(body)
        except ValueError as error:
            raise Refusal(400, "serve.json", f"the body is not JSON: {error}") from error
        if _deeper(value, self.limits.depth):
            raise Refusal(422, "serve.depth", f"the body is nested deeper than {self.limits.depth}")
        return value

    async def served(self, name: str) -> Served:
        if (ready := self.models.ready(name)) is not None:
            return ready
        try:
            found = await asyncio.to_thread(self.models.get, name)
        except JumokError as error:  # a folder that vanished, or is damaged
            raise Refusal(503, error.code, "the run cannot be loaded") from error
        if found is None:
            await self.run(name)
            hint = "GET /api/runs tells which runs can be used"
            raise Refusal(409, "serve.no_model", "the run has no model yet", hint=hint)
        return found

    async def run(self, name: str) -> Run:
        """A run to look at, whether or not it can be used."""
        found = await asyncio.to_thread(self.models.run, name)
        if found is None:
            raise Refusal(404, "serve.run", "there is no such run", hint="GET /api/runs lists them")
        return found

    async def answer(
        self, request: Request, served: Served, examples: Sequence[Any], options: Any, *, most: int | None = None
    ) -> list[Any]:
        """An output or a Failure for each example, of which there may be `most`; nothing goes on if the client goes."""
        most = self.limits.inputs if most is None else most
        if len(examples) > most:
            raise Refusal(422, "serve.inputs", f"{len(examples):,} examples: at most {most:,} at once")
        try:
            self.queue.require_room(len(examples))
            if _is_short(examples):  # tokenized sooner than a thread takes over
                found = served.jobs(examples, options)
            else:
                found = await asyncio.to_thread(served.jobs, examples, options)
        except Busy as busy:
            raise _too_much(busy) from busy
        except JumokError as error:
            raise Refusal(422, error.code, error.what, hint=error.hint or "") from error
        await self.compute(request, [job for job in found if isinstance(job, Job)])
        return [job.output.result() if isinstance(job, Job) else job for job in found]

    async def compute(self, request: Request, jobs: Sequence[Job]) -> None:
        """Have the compute thread answer the jobs; nothing goes on if the client goes."""
        self.submit(jobs)
        outputs = [asyncio.wrap_future(job.output) for job in jobs]
        waiting: asyncio.Future[Any] = asyncio.gather(*outputs, return_exceptions=True)
        try:
            await self.wait(request, waiting)
            if any(isinstance(result, BaseException) for result in waiting.result()):
                raise Refusal(500, "serve.failed", "the model failed on this request")
        finally:
            for job in jobs:
                if not job.output.done():
                    job.abandon()
            waiting.cancel()

    def submit(self, jobs: Sequence[Job]) -> None:
        if self.draining:
            raise Refusal(503, "serve.draining", "the server is shutting down", seconds=5)
        try:
            self.queue.submit(jobs)
        except Busy as busy:
            raise _too_much(busy) from busy

    async def wait(self, request: Request, waiting: "asyncio.Future[Any]") -> None:
        """Until it is there, unless the client goes before, or it takes too long."""
        gone: asyncio.Future[Any] = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({gone, waiting}, timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if waiting.done():
            return
        if gone.done():
            raise Refusal(499, "serve.gone", "the client has gone")
        raise Refusal(504, "serve.timeout", f"no answer within {self.limits.seconds:g} seconds")


def _is_short(examples: Sequence[Any]) -> bool:
    return len(examples) == 1 and isinstance(examples[0], str) and len(examples[0]) <= SHORT


def _too_much(busy: Busy) -> Refusal:
    return Refusal(429, "serve.busy", "too much is waiting", seconds=busy.seconds)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _deeper(value: Any, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    return depth == 0 or any(_deeper(one, depth - 1) for one in (value.values() if isinstance(value, dict) else value))


def _refused(refusal: Refusal, shape: ErrorShape = OWN) -> Response:
    return JSONResponse(shape.body(refusal), shape.status(refusal), headers=refusal.headers)


async def _not_found(request: Request, error: Exception) -> Response:
    return _refused(Refusal(404, "serve.not_found", "there is nothing at this address"))


async def _not_allowed(request: Request, error: Exception) -> Response:
    refused = _refused(Refusal(405, "serve.method", "not with this method"))
    refused.headers.update(getattr(error, "headers", None) or {})
    return refused


async def _broken(request: Request, error: Exception) -> Response:
    return _refused(Refusal(500, "serve.internal", "the server failed on this request"))


def json_response(value: Any) -> Response:
    return Response(json.dumps(value, ensure_ascii=False, allow_nan=False), media_type="application/json")


ANY_OBJECT: dict[str, Any] = {"type": "object"}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """OpenAPI 3.1, from the table of routes."""
    paths: dict[str, Any] = {}
    for route in routes:
        errors = {"description": "an error", "content": {"application/json": {"schema": route.errors.schema}}}
        schema = route.answer or {"type": "string"}
        content = {route.media: {"schema": schema}} | ({"text/event-stream": {}} if route.streams else {})
        answer = {"description": route.summary, "content": content}
        operation: dict[str, Any] = {"summary": route.summary, "responses": {"200": answer, "default": errors}}
        names = [name for name, _ in PARAMETER.findall(route.path)]
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
        if route.body is not None:
            asked = {"application/json": {"schema": route.body}}
            operation["requestBody"] = {"required": True, "content": asked}
        paths.setdefault(PARAMETER.sub(r"{\1}", route.path), {})[route.method.lower()] = operation
    return {"openapi": "3.1.0", "info": {"title": "jumok", "version": __version__}, "paths": paths}
