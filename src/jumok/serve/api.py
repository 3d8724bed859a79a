"""jumok's own API: examples in, outputs out; and what operators ask a server."""

import asyncio
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from jumok.serve.access import require_same_origin
from jumok.serve.app import ANY_OBJECT, Route, Server, json_response
from jumok.serve.refusal import Refusal
from jumok.tasks.protocol import plain


async def health(server: Server, request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def ready(server: Server, request: Request) -> Response:
    return JSONResponse({"status": "draining" if server.draining else "ready"}, 503 if server.draining else 200)


async def metrics(server: Server, request: Request) -> Response:
    """Prometheus' text format."""
    values = {f"{name}_total": value for name, value in asdict(server.queue.counts).items()}
    values |= {"queue_inputs": server.queue.inputs, "queue_tokens": server.queue.tokens}
    lines = []
    for name, value in values.items():
        lines += [f"# TYPE jumok_{name} {'counter' if name.endswith('_total') else 'gauge'}", f"jumok_{name} {value}"]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


async def session(server: Server, request: Request) -> Response:
    """For the page: the token that acts which change something need."""
    require_same_origin(request)
    return JSONResponse({"token": server.access.token})


async def list_runs(server: Server, request: Request) -> Response:
    found = await asyncio.to_thread(lambda: [run.facts() for run in server.models.runs()])
    return json_response({"runs": found})


async def show_run(server: Server, request: Request) -> Response:
    run = await server.run(request.path_params["run"])
    facts = await asyncio.to_thread(run.facts)
    if facts["usable"]:
        facts |= (await server.served(run.name)).facts()
        facts["examples"] = await asyncio.to_thread(run.examples)
    return json_response(facts)


async def predict(server: Server, request: Request) -> Response:
    asked = await server.json(request)
    if not isinstance(asked, dict) or not asked.keys() <= {"examples", "options"} or "examples" not in asked:
        raise Refusal(422, "serve.request", 'the body must be {"examples": [...], "options": {...}}')
    examples, options = asked["examples"], asked.get("options", {})
    examples = examples if isinstance(examples, list) else [examples]
    if not isinstance(options, dict):
        raise Refusal(422, "serve.request", "options must be an object")
    served = await server.served(request.path_params["run"])
    outputs = await server.answer(request, served, examples, options)
    known = {"run": served.name, "task": served.predictor.kind}
    return json_response({**known, "outputs": [plain(output) for output in outputs]})


async def openapi(server: Server, request: Request) -> Response:
    return Response(server.openapi, media_type="application/json")


STATUS = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
SESSION = {"type": "object", "required": ["token"], "properties": {"token": {"type": "string"}}}
EXAMPLE = {"anyOf": [{"type": "string"}, ANY_OBJECT]}
PREDICT = {
    "type": "object",
    "required": ["examples"],
    "additionalProperties": False,
    "properties": {"examples": {"anyOf": [EXAMPLE, {"type": "array", "items": EXAMPLE}]}, "options": ANY_OBJECT},
}
PREDICTED = {
    "type": "object",
    "required": ["run", "task", "outputs"],
    "properties": {
        "run": {"type": "string"},
        "task": {"type": "string"},
        "outputs": {"type": "array", "items": ANY_OBJECT},
    },
}
RUN = {
    "type": "object",
    "required": ["name", "task", "status", "usable", "changed"],
    "properties": {
        "name": {"type": "string"},
        "task": {"type": "string"},
        "status": {"enum": ["running", "stopped", "died", "finished"]},
        "usable": {"type": "boolean"},
        "changed": {"type": "number"},
        "checkpoint": ANY_OBJECT,
    },
}
RUNS = {"type": "object", "required": ["runs"], "properties": {"runs": {"type": "array", "items": RUN}}}
ROUTES = (
    Route("GET", "/health", health, "Whether the process lives", answer=STATUS, open=True),
    Route("GET", "/ready", ready, "Whether requests are taken", answer=STATUS, open=True),
    Route("GET", "/metrics", metrics, "Counts for Prometheus", media="text/plain"),
    Route("GET", "/openapi.json", openapi, "This document", answer=ANY_OBJECT),
    Route("GET", "/api/session", session, "The token of acts that change something", answer=SESSION),
    Route("GET", "/api/runs", list_runs, "The runs: task, status, whether they can be used", answer=RUNS),
    Route("GET", "/api/runs/{run}", show_run, "Task, options, languages and labels of a run", answer=ANY_OBJECT),
    Route("POST", "/api/runs/{run}/predict", predict, "Outputs for examples", body=PREDICT, answer=PREDICTED),
)
