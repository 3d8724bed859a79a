"""Results of a run: its scores with intervals, and what its model card says."""

import asyncio
import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jumok.errors import JumokError
from jumok.serve.app import ANY_OBJECT, Refusal, Route, Server, json_response
from jumok.serve.runs import Run
from jumok.train.folder import RunFolder


async def results(server: Server, request: Request) -> Response:
    run = await server.run(request.path_params["run"])
    try:
        return json_response(await asyncio.to_thread(_results, run))
    except JumokError as error:
        raise Refusal(503, error.code, "the scores of the run cannot be read", hint=error.hint or "") from error


def _results(run: Run) -> dict[str, Any]:
    folder, train = RunFolder(run.path), run.recipe().get("train") or {}
    splits = folder.results()
    return {
        "run": run.name,
        "status": run.status(),
        "metric": train.get("metric"),
        "splits": splits,
        "edited": bool(splits) and not folder.has_own_results(),
        "card": _card(run),
        "model": _model(run),
    }


def _model(run: Run) -> dict[str, Any]:
    """The kind of the model and the size that its card tells, as far as they are known."""
    size = re.search(r" of ([\d,]+) parameters", _card(run))
    found = {"kind": (run.recipe().get("model") or {}).get("kind")}
    return found | ({"parameters": int(size[1].replace(",", ""))} if size else {})


def _card(run: Run) -> str:
    """The prose of the model card: between its title and its table."""
    try:
        text = (run.model / "README.md").read_text("utf-8", errors="replace")[:20_000]
    except OSError:
        return ""
    lines = text.split("\n---\n", 1)[-1].splitlines()
    prose = [line for line in lines if line.strip() and not line.startswith(("#", "|", "-", "```"))]
    return prose[0] if prose else ""


ROUTES = (Route("GET", "/api/runs/{run}/results", results, "Scores with intervals", answer=ANY_OBJECT),)
