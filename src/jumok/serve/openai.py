"""OpenAI's API, for the programs that speak it: language models continue texts, runs that chat reply, pre-trained
encoders embed."""

import base64
from collections.abc import AsyncIterator, Sequence
from secrets import token_hex
from time import time
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jumok.errors import JumokError
from jumok.examples.plain import Text
from jumok.serve.app import ANY_OBJECT, Route, Server, json_response
from jumok.serve.fields import Fields, WrongField, model
from jumok.serve.models import Served
from jumok.serve.refusal import ErrorShape, Refusal
from jumok.serve.runs import Run
from jumok.serve.writing import MOST_TOKENS, EventStream, Sampling, Stream, Writer, Writing, begin, jobs_of, writer_of
from jumok.tasks.language_model.predictor import Generator
from jumok.tasks.pretraining.predictor import Encoder
from jumok.tasks.protocol import Failure
from jumok.tasks.translation.predictor import Translator

MOST_CHOICES = 32
KINDS = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
FINISH = {"end": "stop", "stop": "stop", "length": "length"}
HARMLESS = (
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "parallel_tool_calls",
)


def _error(refusal: Refusal) -> dict[str, Any]:
    status = ERRORS.status(refusal)
    kind = KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    field = refusal.field if isinstance(refusal, WrongField) else "model" if refusal.code == "serve.model" else None
    message = f"{refusal.what} ({refusal.hint})" if refusal.hint else refusal.what
    code = CODES.get(status, refusal.code)
    return {"error": {"message": message, "type": kind, "param": field, "code": code}}


ERRORS = ErrorShape(
    _error,
    {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": {
                    "message": {"type": "string"},
                    "type": {"type": "string"},
                    "param": {"type": ["string", "null"]},
                    "code": {"type": ["string", "null"]},
                },
            }
        },
    },
    {422: 400, 409: 404},
)


async def models(server: Server, request: Request) -> Response:
    return json_response({"object": "list", "data": [_described(run) for run in server.models.runs() if run.usable]})


async def show_model(server: Server, request: Request) -> Response:
    served = await model(server, request.path_params["model"])
    return json_response(_described(await server.run(served.name)))


def _described(run: Run) -> dict[str, Any]:
    return {"id": run.name, "object": "model", "created": int(run.changed()), "owned_by": "jumok"}


async def completions(server: Server, request: Request) -> Response:
    asked = Fields(await server.json(request))
    served = await model(server, asked.text("model"))
    writer = writer_of(served)
    if not isinstance(writer, Generator):
        raise Refusal(400, "serve.task", f"{served.name} does not continue texts: use the run of a language model")
    prompts = asked.take("prompt", "")
    prompts = [prompts] if isinstance(prompts, str) else prompts
    if not isinstance(prompts, list) or not prompts or not all(isinstance(prompt, str) for prompt in prompts):
        raise WrongField("prompt", "must be a text or a list of texts; numbers of tokens are not taken")
    echo = asked.flag("echo")
    asked.only("suffix", "")
    asked.only("best_of", 1)
    asked.only("logprobs", None)
    wish = Wish(asked, asked.whole("max_tokens", 1, MOST_TOKENS), len(prompts))
    form = Form("cmpl", "text_completion", served.name, prompts if echo else [])
    return await _written(server, request, served, writer, prompts, wish, form)


async def chat_completions(server: Server, request: Request) -> Response:
    asked = Fields(await server.json(request))
    return await chat(server, request, await model(server, asked.text("model")), asked)


async def chat(server: Server, request: Request, served: Served, asked: Fields) -> Response:
    """The reply of a run that chats to the last message, as in `jumok chat`."""
    writer = writer_of(served)
    if not isinstance(writer, Translator) or writer.source != writer.target:
        what = f"{served.name} does not chat: use a run whose source and target have the same language"
        raise Refusal(400, "serve.task", what)
    said = _last_message(asked.take("messages"))
    if not said.strip():
        raise WrongField("messages", "the last message is empty")
    most = asked.whole("max_completion_tokens", 1, MOST_TOKENS)
    older = asked.whole("max_tokens", 1, MOST_TOKENS)
    for name in ("logprobs", "tools", "functions", "top_logprobs"):
        asked.only(name, None, False, [])
    asked.only("tool_choice", "none", "auto")
    asked.only("modalities", ["text"])
    asked.only("response_format", {"type": "text"})
    wish = Wish(asked, older if most is None else most, 1)
    form = Form("chatcmpl", "chat.completion", served.name, [])
    return await _written(server, request, served, writer, [said], wish, form)


def _last_message(messages: Any) -> str:
    """What is replied to. The model does not read what was said before it, as it did not in training."""
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise WrongField("messages", "must be a list of messages")
    roles = [message.get("role") for message in messages]
    if not all(role in ("user", "assistant") for role in roles) or roles[-1] != "user":
        raise WrongField("messages", "must be of user and assistant, the last one of user; the model follows no others")
    parts = messages[-1].get("content")
    parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
    if not isinstance(parts, list) or not all(
        isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str) for part in parts
    ):
        raise WrongField("messages", "the content must be text")
    return "".join(part["text"] for part in parts)


class Wish:
    """What both kinds of completions ask for."""

    def __init__(self, asked: Fields, most: int | None, prompts: int) -> None:
        self.most = most
        self.n = asked.whole("n", 1, MOST_CHOICES) or 1
        if self.n * prompts > MOST_CHOICES:
            raise WrongField("n", f"at most {MOST_CHOICES} texts at once")
        temperature, top_p = asked.number("temperature", 0, 2), asked.number("top_p", 0, 1)
        if top_p == 0:
            raise WrongField("top_p", "must be more than 0")
        seed = asked.seed()
        sample = True if self.n > 1 and temperature is None else None
        self.sampling = Sampling(temperature, top_p, seed=seed, sample=sample)
        self.stops = asked.stops()
        self.stream = asked.flag("stream")
        streaming = Fields(asked.take("stream_options", {}), "stream_options")
        self.usage = streaming.flag("include_usage")
        streaming.ignore("include_obfuscation")
        streaming.end()
        for name in ("frequency_penalty", "presence_penalty"):
            asked.only(name, 0)
        asked.only("logit_bias", {})
        asked.ignore(*HARMLESS)
        asked.end()


class Form:
    """How what was written is told."""

    def __init__(self, prefix: str, kind: str, run: str, echoed: Sequence[str]) -> None:
        self.chat = kind == "chat.completion"
        self.known = {"id": f"{prefix}-{token_hex(12)}", "object": kind, "created": int(time()), "model": run}
        self.echoed = echoed

    def whole(self, writings: Sequence[Writing], n: int) -> dict[str, Any]:
        choices = [self._choice(i, writing, n) for i, writing in enumerate(writings)]
        return {**self.known, "choices": choices, "usage": _usage(writings, n)}

    def _choice(self, i: int, writing: Writing, n: int) -> dict[str, Any]:
        before = self.echoed[i // n] if self.echoed else ""
        said = {"message": {"role": "assistant", "content": writing.answer}} if self.chat else {}
        text = {} if self.chat else {"text": before + writing.answer}
        return {"index": i, **said, **text, "logprobs": None, "finish_reason": FINISH[writing.finish or "end"]}

    async def chunks(self, stream: Stream, writings: Sequence[Writing], wish: Wish) -> AsyncIterator[dict[str, Any]]:
        known = {**self.known, "object": "chat.completion.chunk"} if self.chat else self.known
        known |= {"usage": None} if wish.usage else {}

        def chunk(i: int, text: str, finish: str | None, role: str = "") -> dict[str, Any]:
            delta = ({"role": role} if role else {}) | ({"content": text} if text or role else {})
            said = {"delta": delta} if self.chat else {"text": text}
            return {**known, "choices": [{"index": i, **said, "logprobs": None, "finish_reason": finish}]}

        for i in range(len(writings)):
            if self.chat:
                yield chunk(i, "", None, "assistant")
            elif self.echoed:
                yield chunk(i, self.echoed[i // wish.n], None)
        async for i, piece in stream.pieces():
            if piece.answer:
                yield chunk(i, piece.answer, None)
            if piece.finish:
                yield chunk(i, "", FINISH[piece.finish])
        if wish.usage:
            yield {**known, "choices": [], "usage": _usage(writings, wish.n)}


async def _written(
    server: Server, request: Request, served: Served, writer: Writer, prompts: Sequence[str], wish: Wish, form: Form
) -> Response:
    try:
        options = wish.sampling.options(writer)
    except JumokError as error:
        raise Refusal(400, error.code, error.what) from error

    def writing(prompt: str, i: int) -> Writing:
        seed = (options.seed + i) % 2**63
        return Writing(writer, prompt, options, seed=seed, most=wish.most, stops=wish.stops)

    writings = await begin(lambda: [writing(prompt, i) for prompt in prompts for i in range(wish.n)])
    jobs = jobs_of(served, options, writings)
    if not wish.stream:
        await server.compute(request, jobs)
        return json_response(form.whole(writings, wish.n))
    stream = Stream(server, jobs)
    await stream.open(request)
    return EventStream(stream, form.chunks(stream, writings, wish), ERRORS, last="[DONE]")


def _usage(writings: Sequence[Writing], n: int) -> dict[str, int]:
    read = sum(writing.prompt_tokens for writing in writings[::n])
    written = sum(writing.written for writing in writings)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


async def embeddings(server: Server, request: Request) -> Response:
    asked = Fields(await server.json(request))
    served = await model(server, asked.text("model"))
    if not isinstance(encoder := served.predictor, Encoder):
        raise Refusal(400, "serve.task", f"{served.name} does not embed: use the run of a pre-trained encoder")
    texts = asked.take("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise WrongField("input", "must be a text or a list of texts; numbers of tokens are not taken")
    form, width = asked.take("encoding_format", "float"), asked.whole("dimensions", 1, 2**20)
    if form not in ("float", "base64"):
        raise WrongField("encoding_format", "must be float or base64")
    asked.ignore("user")
    asked.end()
    found = await server.answer(request, served, [Text(text) for text in texts], {"ask": "embedding"})
    data = []
    for i, output in enumerate(found):
        if isinstance(output, Failure):
            raise Refusal(400, output.code, f"input[{i}]: {output.what}")
        if width not in (None, len(output.vector)):
            raise WrongField("dimensions", f"the model has {len(output.vector)}, and no fewer")
        vector: Any = output.vector
        if form == "base64":
            vector = base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()
        data.append({"object": "embedding", "index": i, "embedding": vector})
    read = sum(map(len, encoder.tokenizer.encode_batch(texts)))
    usage = {"prompt_tokens": read, "total_tokens": read}
    return JSONResponse({"object": "list", "data": data, "model": served.name, "usage": usage})


TEXT = {"type": "string"}
TEXTS = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
SAMPLED = {
    "model": TEXT,
    "max_tokens": {"type": "integer", "minimum": 1, "maximum": MOST_TOKENS},
    "n": {"type": "integer", "minimum": 1, "maximum": MOST_CHOICES},
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "seed": {"type": "integer"},
    "stop": TEXTS,
    "stream": {"type": "boolean"},
    "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}},
}
COMPLETE = {
    "type": "object",
    "required": ["model", "prompt"],
    "properties": {**SAMPLED, "prompt": TEXTS, "echo": {"type": "boolean"}},
}
MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"enum": ["user", "assistant"]}, "content": TEXT},
}
CHAT = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {**SAMPLED, "messages": {"type": "array", "items": MESSAGE, "minItems": 1}},
}
EMBED = {
    "type": "object",
    "required": ["model", "input"],
    "properties": {
        "model": TEXT,
        "input": TEXTS,
        "encoding_format": {"enum": ["float", "base64"]},
        "dimensions": {"type": "integer"},
    },
}
LIST = {
    "type": "object",
    "required": ["object", "data"],
    "properties": {"data": {"type": "array", "items": ANY_OBJECT}},
}
CHOICES = {"type": "object", "required": ["id", "object", "choices"]}


def _route(method: str, path: str, handle: Any, summary: str, *, body: Any = None, answer: Any) -> Route:
    streams = answer is CHOICES
    about = f"OpenAI's: {summary}" + ("; server-sent events with stream" if streams else "")
    return Route(method, path, handle, about, body=body, answer=answer, streams=streams, errors=ERRORS)


ROUTES = (
    _route("GET", "/v1/models", models, "the runs, as models", answer=LIST),
    _route("GET", "/v1/models/{model}", show_model, "one run", answer=ANY_OBJECT),
    _route(
        "POST", "/v1/completions", completions, "texts that a language model continues", body=COMPLETE, answer=CHOICES
    ),
    _route("POST", "/v1/chat/completions", chat_completions, "a reply to the last message", body=CHAT, answer=CHOICES),
    _route("POST", "/v1/embeddings", embeddings, "texts as vectors", body=EMBED, answer=LIST),
)
