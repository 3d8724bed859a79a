"""LibreTranslate's API, for the programs that speak it: each loaded translation run is a pair of languages.

Texts are translated sentence by sentence, and the ends of lines, or the tags of HTML, stay where they were.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jumok.errors import JumokError
from jumok.serve.app import Route, Server, json_response
from jumok.serve.models import Served
from jumok.serve.refusal import ErrorShape, Refusal
from jumok.tasks.protocol import Failure
from jumok.tasks.translation.documents import aligned
from jumok.tasks.translation.predictor import Translation, Translator
from jumok.text.language import Language
from jumok.text.markup import Markup, read_html, read_lines
from jumok.text.projection import Aligned

MOST_ALTERNATIVES = 5
MOST_CHARACTERS = 100_000
"""of all texts of a request, tags included"""
READERS = {"text": read_lines, "html": read_html}
ERRORS = ErrorShape(
    lambda refusal: {"error": refusal.what},
    {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
    {401: 403, 422: 400},
)


async def translate(server: Server, request: Request) -> Response:
    asked = await _fields(server, request)
    given, target = asked.get("q"), asked.get("target")
    texts: list[Any] = given if isinstance(given, list) else [given]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise Refusal(400, "serve.request", "Invalid request: missing q parameter")
    if (read := READERS.get(str(asked.get("format", "text")))) is None:
        raise Refusal(400, "serve.format", "Invalid request: format is text or html")
    if len(texts) > server.limits.inputs:
        raise Refusal(400, "serve.inputs", f"{len(texts):,} texts: at most {server.limits.inputs:,} at once")
    if (size := sum(map(len, texts))) > MOST_CHARACTERS:
        what = f"Invalid request: request ({size}) exceeds text limit ({MOST_CHARACTERS})"
        raise Refusal(400, "serve.characters", what)
    n = _count(asked.get("alternatives", 0))
    documents = await asyncio.to_thread(lambda: [read(text) for text in texts])
    sources = [" ".join(document.sentences) for document in documents]
    known = await _pairs(server)
    pairs = [_pair(known, asked.get("source"), target, text) for text in sources]
    found_texts: list[list[str]] = [[]] * len(texts)
    try:
        async with asyncio.timeout(server.limits.seconds):
            for served in dict.fromkeys(pairs):  # texts of one pair of languages are translated together
                places = [i for i, pair in enumerate(pairs) if pair is served]
                here = await _translated(server, request, served, [documents[i] for i in places], n)
                for i, versions in zip(places, here, strict=True):
                    found_texts[i] = versions
    except TimeoutError as error:
        raise Refusal(504, "serve.timeout", f"no answer within {server.limits.seconds:g} seconds") from error
    found: dict[str, list[Any]] = {"translatedText": [best for best, *_ in found_texts]}
    if asked.get("source") == "auto":
        found["detectedLanguage"] = [_detected(known, text)[0] for text in sources]
    if n:
        found["alternatives"] = [others for _, *others in found_texts]
    return json_response(found if isinstance(given, list) else {name: one for name, (one,) in found.items()})


async def _translated(
    server: Server, request: Request, served: Served, documents: Sequence[Markup], n: int
) -> list[list[str]]:
    """Each document in its best translation and n others, sentence by sentence."""
    translator = served.predictor
    assert isinstance(translator, Translator)
    sentences = [text for document in documents for text in document.sentences]
    marked = [one and translator.engine.attends for document in documents for one in document.aligned]
    most = server.queue.most_inputs
    if len(sentences) > most:
        raise Refusal(400, "serve.inputs", f"{len(sentences):,} sentences: at most {most:,} at once")
    outputs: dict[int, Translation] = {}
    for alignment in (False, True):  # which costs a second look at the sentence
        places = [i for i, one in enumerate(marked) if one is alignment]
        options: dict[str, Any] = {"n_best": n + 1, "beam": max(n + 1, 4)} if n else {}
        options |= {"alignment": True} if alignment else {}
        if places:
            wanted = [{"source": sentences[i]} for i in places]
            for i, output in zip(places, await server.answer(request, served, wanted, options, most=most), strict=True):
                if isinstance(output, Failure):
                    raise Refusal(400, output.code, output.what)
                outputs[i] = output

    def filled() -> list[list[str]]:
        found, at = [], 0
        for document in documents:
            here = [
                [_aligned(translator, sentence, outputs[at + i], rank) for i, sentence in enumerate(document.sentences)]
                for rank in range(n + 1)
            ]
            at += len(document.sentences)
            versions = [document.filled(one) for one in here]
            found.append([versions[0], *(one for one in dict.fromkeys(versions[1:]) if one != versions[0])])
        return found

    return await asyncio.to_thread(filled)


def _aligned(translator: Translator, source: str, output: Translation, rank: int) -> Aligned:
    """The best translation with its alignment, if there is one, or a runner-up; the last where there are too few."""
    if rank:
        return Aligned(([*output.alternatives[:rank]] or [output])[-1].text)
    return aligned(translator, source, output)


async def languages(server: Server, request: Request) -> Response:
    await _fields(server, request)
    pairs = await _pairs(server)
    codes = sorted({code for served in pairs for code in _codes(served)})
    return JSONResponse(
        [{"code": c, "name": c, "targets": sorted({t for s, t in map(_codes, pairs) if s == c})} for c in codes]
    )


async def detect(server: Server, request: Request) -> Response:
    text = (await _fields(server, request)).get("q")
    if not isinstance(text, str):
        raise Refusal(400, "serve.request", "Invalid request: missing q parameter")
    return JSONResponse(_detected(await _pairs(server), text))


async def _fields(server: Server, request: Request) -> dict[str, Any]:
    """The parameters, as JSON or form-encoded; the API key is one of them."""
    body = await server.body(request)
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        try:
            asked: Any = {name: values[-1] for name, values in parse_qs(body.decode(), max_num_fields=32).items()}
        except ValueError as error:
            raise Refusal(400, "serve.form", "the form cannot be read") from error
    else:
        asked = server.parse(body) if body else {}
    if not isinstance(asked, dict):
        raise Refusal(400, "serve.request", "the body must be an object")
    server.access.require_key(request, str(asked.get("api_key", "")))
    return asked


def _count(value: Any) -> int:
    digits = value if isinstance(value, int) else int(value) if isinstance(value, str) and value.isdecimal() else -1
    if not 0 <= digits <= MOST_ALTERNATIVES:
        raise Refusal(400, "serve.alternatives", f"alternatives is a number from 0 to {MOST_ALTERNATIVES}")
    return int(digits)


async def _pairs(server: Server) -> list[Served]:
    """The runs that translate, loaded if nobody has asked for them yet; those that chat have one language only."""

    def found() -> Iterator[Served]:
        loaded = {served.name: served for served in server.models.loaded()}
        for run in server.models.runs():
            known = loaded.get(run.name)
            task = known.predictor.kind if known else run.facts()["task"]
            with suppress(JumokError):  # a damaged folder: the others go on
                if task == "translation" and (served := server.models.get(run.name)) is not None:
                    source, target = _codes(served)
                    if source != target:
                        yield served

    return await asyncio.to_thread(lambda: list(found()))


def _codes(served: Served) -> tuple[str, str]:
    source, target = (getattr(served.predictor, name) for name in ("source", "target"))
    return source, target


def _pair(pairs: Sequence[Served], source: Any, target: Any, text: str) -> Served:
    sources = [one["language"] for one in _detected(pairs, text)] if source == "auto" else [source]
    for code in sources:
        for served in pairs:
            if _codes(served) == (code, target):
                return served
    raise Refusal(400, "serve.languages", f"{ascii(source)} to {ascii(target)} is not supported"[:100])


def _detected(pairs: Sequence[Served], text: str) -> list[dict[str, Any]]:
    """The source languages that the text can be in, each as likely as the others."""
    codes = dict.fromkeys(_codes(served)[0] for served in pairs)
    possible = [code for code in codes if not Language(code).excludes(text)]
    if not possible:
        return [{"confidence": 0.0, "language": code} for code in codes] or [{"confidence": 0.0, "language": "en"}]
    return [{"confidence": round(100 / len(possible), 1), "language": code} for code in possible]


TEXT = {"type": "string"}
TRANSLATE = {
    "type": "object",
    "required": ["q", "source", "target"],
    "properties": {
        "q": {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]},
        **dict.fromkeys(("source", "target", "api_key"), TEXT),
        "format": {"enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": MOST_ALTERNATIVES},
    },
}
TRANSLATED = {"type": "object", "required": ["translatedText"]}
DETECT = {"type": "object", "required": ["q"], "properties": {"q": TEXT, "api_key": TEXT}}
LIST = {"type": "array", "items": {"type": "object"}}
ROUTES = (
    Route("POST", "/translate", translate, "Translate", body=TRANSLATE, answer=TRANSLATED, errors=ERRORS, open=True),
    Route("GET", "/languages", languages, "Language pairs", answer=LIST, errors=ERRORS, open=True),
    Route("POST", "/detect", detect, "Language of a text", body=DETECT, answer=LIST, errors=ERRORS, open=True),
)
