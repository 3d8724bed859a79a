"""Watching a training: its events, recipe and findings; and stopping it, as Ctrl-C would."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jumok.doctor.curve import Curve, examine_curve
from jumok.errors import CheckpointError, JumokError
from jumok.recipe import parse_recipe
from jumok.serve.app import ANY_OBJECT, Refusal, Route, Server, json_response
from jumok.serve.events import Event, history, new_events, told_once
from jumok.serve.runs import Run
from jumok.train.length import as_planned, stretches

MOST_POINTS, MOST_RUNS = 20_000, 8


async def events(server: Server, request: Request) -> Response:
    run = await server.run(request.path_params["run"])
    start, points = _number(request, "from"), _number(request, "points")
    file = run.path / "events.jsonl"
    if points and not start:
        found = await asyncio.to_thread(history, file, min(points, MOST_POINTS))
    else:
        found = await asyncio.to_thread(new_events, file, start)
    status = await asyncio.to_thread(run.status)
    planned = {"run": run.name, "status": status, "usable": run.usable, "steps": _steps(run.stored())}
    return json_response({**planned, **found})


def _steps(stored: Mapping[str, Any]) -> int | None:
    """At which a run is to end; None if nobody knows, as while its speed is measured."""
    with suppress(CheckpointError, LookupError, TypeError, ValueError):  # somebody edited it
        if plan := stretches(stored):
            return plan[-1].steps
        train = stored["recipe"]["train"]
        if train.get("epochs") is None and train.get("minutes") is None:
            return int(train["steps"])
    return None


async def recipe(server: Server, request: Request) -> Response:
    run = await server.run(request.path_params["run"])
    return json_response({"run": run.name, "recipe": await asyncio.to_thread(run.recipe)})


async def differences(server: Server, request: Request) -> Response:
    """Where the recipes of several runs differ."""
    names = request.query_params.getlist("run")
    if not 2 <= len(names) <= MOST_RUNS:
        raise Refusal(422, "serve.request", f"name 2 to {MOST_RUNS} runs: ?run=NAME&run=NAME")
    recipes = [(await server.run(name)).recipe() for name in names]
    return json_response({"runs": names, "differences": differing(recipes)})


def differing(recipes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Dotted keys whose values are not the same in all recipes, with the value in each."""
    flat = [_flat(recipe) for recipe in recipes]
    keys = dict.fromkeys(key for one in flat for key in one)
    found = [{"key": key, "values": [one.get(key) for one in flat]} for key in keys]
    return [one for one in found if any(value != one["values"][0] for value in one["values"])]


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


async def findings(server: Server, request: Request) -> Response:
    """The doctor's findings on the curve, and the steps they speak of."""
    run = await server.run(request.path_params["run"])
    return json_response(await asyncio.to_thread(_findings, run))


def _findings(run: Run) -> dict[str, Any]:
    file = run.path / "events.jsonl"
    try:
        known = parse_recipe(run.recipe(), where=run.name)
        known = replace(known, train=as_planned(known.train, run.stored()))
        told: list[Event] = told_once(history(file, 1 << 40)["events"])
        found = examine_curve(told, known, None)
        curve = Curve.of(told, is_masked=known.kind.learns_from_text == "masked")
    except (JumokError, LookupError, TypeError, ValueError):  # an imported model, or a log that somebody edited
        return {"findings": [], "marks": []}
    codes = {one.code for one in found}
    marks = []
    if "curve.spikes" in codes:
        marks += [{"step": int(curve.steps[i]), "code": "curve.spikes"} for i, _ in curve.spikes()[:50]]
    if "curve.overfitting" in codes:
        dev = curve.dev_losses()
        marks.append({"step": min(dev, key=lambda step: dev[step]), "code": "curve.overfitting"})
    return {"findings": [asdict(one) for one in found], "marks": marks}


async def stop(server: Server, request: Request) -> Response:
    """Ask the process that trains a run to save and stop."""
    server.changing(request)
    if not _from_here(request):
        raise Refusal(403, "serve.stop", "a training is stopped from the machine it runs on")
    run = await server.run(request.path_params["run"])
    pid = run.trainer()
    if pid is None:
        raise Refusal(409, "serve.not_running", "nobody trains this run")
    if not trains(pid, run.path / "lock"):
        hint = "press Ctrl-C where it was started"
        raise Refusal(409, "serve.stop", "the process that holds the run is no jumok train of this user", hint=hint)
    with suppress(ProcessLookupError):
        # To a trainer it is the same as Ctrl-C; but a second Ctrl-C would not let it save, a second SIGTERM does.
        os.kill(pid, signal.SIGTERM)
    return json_response({"run": run.name, "stopping": True})


def trains(pid: int, lock: Path) -> bool:
    """Whether a process is a jumok trainer that holds this lock: known on Linux only, and of this user's processes."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        wanted = lock.stat()
        held = [os.stat(f"/proc/{pid}/fd/{name}") for name in _open_files(pid)]
    except OSError:
        return False
    is_jumok = any(Path(word).name == "jumok" for word in words) and bool({"train", "demo"} & set(words))
    return is_jumok and any((file.st_dev, file.st_ino) == (wanted.st_dev, wanted.st_ino) for file in held)


def _open_files(pid: int) -> list[str]:
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):  # closed in the meantime
            os.stat(f"/proc/{pid}/fd/{name}")
            found.append(name)
    return found


def _from_here(request: Request) -> bool:
    try:
        return request.client is None or ip_address(request.client.host).is_loopback
    except ValueError:
        return request.client is not None and request.client.host == "testclient"


def _number(request: Request, name: str) -> int:
    given = request.query_params.get(name, "0")
    if not (given.isascii() and given.isdecimal() and len(given) < 16):
        raise Refusal(422, "serve.request", f"{name} must be a number of at least 0")
    return int(given)


EVENTS = {
    "type": "object",
    "required": ["run", "status", "events", "next", "restarted", "more"],
    "properties": {
        "run": {"type": "string"},
        "status": {"enum": ["running", "stopped", "died", "finished"]},
        "events": {"type": "array", "items": ANY_OBJECT},
        "next": {"type": "integer"},
        "restarted": {"type": "boolean"},
        "more": {"type": "boolean"},
    },
}
ROUTES = (
    Route("GET", "/api/runs/{run}/events", events, "Events of a training from a byte on", answer=EVENTS),
    Route("GET", "/api/runs/{run}/recipe", recipe, "The effective recipe", answer=ANY_OBJECT),
    Route("GET", "/api/runs/{run}/findings", findings, "The doctor's findings on the curve", answer=ANY_OBJECT),
    Route("GET", "/api/recipes", differences, "Where the recipes of several runs differ", answer=ANY_OBJECT),
    Route("POST", "/api/runs/{run}/stop", stop, "Let a training save and stop", answer=ANY_OBJECT),
)
