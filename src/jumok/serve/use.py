"""What people who use a model ask besides its outputs: the sentences of a text, which a model translates one by one,
other words at a place of a translation, and the relations of a text whose entities are not known yet."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jumok.errors import InputError, JumokError
from jumok.serve.app import ANY_OBJECT, Refusal, Route, Server, json_response
from jumok.serve.models import Served
from jumok.serve.queue import Job
from jumok.tasks.protocol import plain
from jumok.tasks.relation.predictor import Relater
from jumok.tasks.tagging.predictor import Tagger
from jumok.tasks.translation.predictor import Translator
from jumok.text.sentences import split_sentences

MOST_ALTERNATIVES = 20


async def sentences(server: Server, request: Request) -> Response:
    texts = (await _fields(server, request, texts=list))["texts"]
    if len(texts) > server.limits.inputs or not all(isinstance(text, str) for text in texts):
        raise Refusal(422, "serve.request", f"texts must be at most {server.limits.inputs} texts")
    found = await asyncio.to_thread(lambda: [split_sentences(text) for text in texts])
    # A half of a surrogate pair goes back escaped, as it came: what is wrong with it is said where it is translated.
    return Response(json.dumps({"sentences": found}), media_type="application/json")


async def alternatives(server: Server, request: Request) -> Response:
    asked = await _fields(server, request, source=str, prefix=str, n=int)
    served = await server.served(request.path_params["run"])
    translator = served.predictor
    if not isinstance(translator, Translator):
        raise Refusal(422, "serve.task", f"a run of {translator.kind} has no alternatives of words")
    source, prefix, n = asked["source"], asked.get("prefix", ""), asked.get("n", 6)
    if not 1 <= n <= MOST_ALTERNATIVES:
        raise Refusal(422, "serve.request", f"n must be from 1 to {MOST_ALTERNATIVES}")
    if max(len(source), len(prefix)) > translator.max_characters:
        raise Refusal(422, "text.too_long", f"a text of more than {translator.max_characters:,} characters")
    alignment = translator.engine.attends
    found = await _computed(
        server, request, served, source, lambda: translator.alternatives(source, prefix, n=n, alignment=alignment)
    )
    return json_response({"outputs": [plain(output) for output in found]})


async def relations(server: Server, request: Request) -> Response:
    asked = await _fields(server, request, text=str, taggers=list)
    names = asked.get("taggers", [])
    if not names or not all(isinstance(name, str) for name in names):
        raise Refusal(422, "serve.request", "taggers must name runs that find entities")
    served = await server.served(request.path_params["run"])
    relater, text = served.predictor, asked["text"]
    taggers = [(await server.served(name)).predictor for name in names]
    if not isinstance(relater, Relater) or not all(isinstance(tagger, Tagger) for tagger in taggers):
        raise Refusal(422, "serve.task", "relations need a run of relation, and runs of tagging as taggers")
    found = await _computed(server, request, served, text, lambda: relater.relate_texts([text], taggers))
    return json_response({"outputs": [plain(output) for output in found]})


async def _fields(server: Server, request: Request, **kinds: type) -> dict[str, Any]:
    """The body: an object with these fields, the first of which must be there."""
    asked = await server.json(request)
    first = next(iter(kinds))
    if not isinstance(asked, dict) or not asked.keys() <= kinds.keys() or first not in asked:
        raise Refusal(422, "serve.request", f"the body must be an object with {first}, and may have {', '.join(kinds)}")
    for name, value in asked.items():
        if not isinstance(value, kinds[name]) or isinstance(value, bool):
            raise Refusal(422, "serve.request", f"{name} must be of type {kinds[name].__name__}")
    return asked


async def _computed(
    server: Server, request: Request, served: Served, text: str, work: Callable[[], list[Any]]
) -> list[Any]:
    """The result of work on one text, done by the compute thread."""

    def answer(_: Any, __: Any) -> list[Any]:
        try:
            return [work()]
        except InputError as error:
            return [error]

    job = Job((served.name, object()), answer, text, len(text) + 1, True)
    await server.compute(request, [job])
    found = job.output.result()
    if isinstance(found, JumokError):
        raise Refusal(422, found.code, found.what, hint=found.hint or "")
    result: list[Any] = found
    return result


TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
SENTENCES = {"type": "object", "required": ["texts"], "additionalProperties": False, "properties": {"texts": TEXTS}}
FOUND = {
    "type": "object",
    "required": ["sentences"],
    "properties": {"sentences": {"type": "array", "items": TEXTS}},
}
ALTERNATIVES = {
    "type": "object",
    "required": ["source"],
    "additionalProperties": False,
    "properties": {
        "source": TEXT,
        "prefix": TEXT,
        "n": {"type": "integer", "minimum": 1, "maximum": MOST_ALTERNATIVES},
    },
}
RELATIONS = {
    "type": "object",
    "required": ["text", "taggers"],
    "additionalProperties": False,
    "properties": {"text": TEXT, "taggers": {"type": "array", "items": TEXT, "minItems": 1}},
}
ROUTES = (
    Route("POST", "/api/sentences", sentences, "The sentences of texts", body=SENTENCES, answer=FOUND),
    Route(
        "POST",
        "/api/runs/{run}/alternatives",
        alternatives,
        "Translations that start with a prefix and differ in the word after it",
        body=ALTERNATIVES,
        answer=ANY_OBJECT,
    ),
    Route(
        "POST",
        "/api/runs/{run}/relations",
        relations,
        "All relations of a text, between entities that runs of tagging find",
        body=RELATIONS,
        answer=ANY_OBJECT,
    ),
)
