"""Hugging Face's inference API. For `InferenceClient`, the address of a run stands in the place of a model's name."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jumok.serve.app import ANY_OBJECT, Route, Server
from jumok.serve.fields import Fields, WrongField, model
from jumok.serve.inference import ERRORS, TASKS, TEXT, Answer, Asked
from jumok.serve.models import Served
from jumok.serve.openai import CHAT, CHOICES, chat
from jumok.serve.refusal import Refusal
from jumok.tasks.pretraining.predictor import Encoder


async def infer(server: Server, request: Request) -> Response:
    top = Fields(await server.json(request))
    served = await model(server, request.path_params["run"])
    known = TASKS.get(served.predictor.kind, {})
    name = request.path_params.get("task") or _task(served, known, top)
    if name not in known:
        what = f"a run of {served.predictor.kind} answers to {', '.join(known) or 'nothing'} here"
        raise Refusal(400, "serve.task", what)
    given = Fields(top.take("parameters", {}), "parameters")
    inputs = top.take("inputs")
    several = isinstance(inputs, list)
    if inputs is None or inputs == []:
        raise WrongField("inputs", "must be there")
    asked = Asked(server, request, served, inputs if several else [inputs], several, top, given)
    response: Response = await known[name](asked)
    return response


def _task(served: Served, known: dict[str, Answer], top: Fields) -> str:
    """The task that an address without one means: an encoder fills masks, but `feature_extraction` of
    `InferenceClient` sends no parameters."""
    encoder = served.predictor
    if not isinstance(encoder, Encoder) or "parameters" in top:
        return next(iter(known), "")
    return "fill-mask" if encoder.mask in str(top.peek("inputs")) else "feature-extraction"


async def converse(server: Server, request: Request) -> Response:
    asked = Fields(await server.json(request))
    asked.ignore("model", "tool_prompt")
    return await chat(server, request, await model(server, request.path_params["run"]), asked)


async def health(server: Server, request: Request) -> Response:
    await model(server, request.path_params["run"])
    return JSONResponse({"status": "ok"})


INFER = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "inputs": {
            "anyOf": [TEXT, ANY_OBJECT, {"type": "array", "items": {"anyOf": [TEXT, ANY_OBJECT]}, "minItems": 1}]
        },
        "parameters": ANY_OBJECT,
        "stream": {"type": "boolean"},
    },
}
ANY: dict[str, Any] = {}
ABOUT = 'Hugging Face\'s: a run asked through InferenceClient("http://HOST:PORT/models/RUN")'
TOLD = "Hugging Face's: one of the tasks of a run, such as feature-extraction of an encoder"
CHATS = "Hugging Face's: chat_completion of the same InferenceClient, for runs that chat"
ROUTES = (
    Route("POST", "/models/{run}", infer, ABOUT, body=INFER, answer=ANY, streams=True, errors=ERRORS),
    Route("POST", "/models/{run}/pipeline/{task}", infer, TOLD, body=INFER, answer=ANY, streams=True, errors=ERRORS),
    Route(
        "POST",
        "/models/{run}/v1/chat/completions",
        converse,
        CHATS,
        body={**CHAT, "required": ["messages"]},
        answer=CHOICES,
        streams=True,
        errors=ERRORS,
    ),
    Route(
        "GET", "/models/{run}/health", health, "Hugging Face's: whether a run can be asked", answer=ANY, errors=ERRORS
    ),
)
