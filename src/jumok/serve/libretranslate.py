"""LibreTranslate's API, for the programs that speak it: each loaded translation run is a pair of languages."""

from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jumok.serve.app import Route, Server, json_response
from jumok.serve.models import Served
from jumok.serve.refusal import ErrorShape, Refusal
from jumok.tasks.protocol import Failure
from jumok.text.language import Language

MOST_ALTERNATIVES = 5
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
    if asked.get("format", "text") != "text":
        raise Refusal(400, "serve.format", 'only format "text" is served')
    if len(texts) > server.limits.inputs:
        raise Refusal(400, "serve.inputs", f"{len(texts):,} texts: at most {server.limits.inputs:,} at once")
    n = _count(asked.get("alternatives", 0))
    pairs = [_pair(server, asked.get("source"), target, text) for text in texts]
    options = {"n_best": n + 1, "beam": max(n + 1, 4)} if n else {}
    outputs: list[Any] = [None] * len(texts)
    for served in dict.fromkeys(pairs):  # texts of one pair of languages are translated together
        places = [i for i, pair in enumerate(pairs) if pair is served]
        found_here = await server.answer(request, served, [texts[i] for i in places], options)
        for i, output in zip(places, found_here, strict=True):
            outputs[i] = output
    for output in outputs:
        if isinstance(output, Failure):
            raise Refusal(400, output.code, output.what)
    found = {"translatedText": [output.text for output in outputs]}
    if asked.get("source") == "auto":
        found["detectedLanguage"] = [_detected(server, text)[0] for text in texts]
    if n:
        found["alternatives"] = [[other.text for other in output.alternatives] for output in outputs]
    return json_response(found if isinstance(given, list) else {name: one for name, (one,) in found.items()})


async def languages(server: Server, request: Request) -> Response:
    await _fields(server, request)
    codes = sorted({code for served in _pairs(server) for code in _codes(served)})
    return JSONResponse(
        [
            {"code": c, "name": c, "targets": sorted({t for s, t in map(_codes, _pairs(server)) if s == c})}
            for c in codes
        ]
    )


async def detect(server: Server, request: Request) -> Response:
    text = (await _fields(server, request)).get("q")
    if not isinstance(text, str):
        raise Refusal(400, "serve.request", "Invalid request: missing q parameter")
    return JSONResponse(_detected(server, text))


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


def _pairs(server: Server) -> list[Served]:
    return [served for served in server.models.loaded() if served.predictor.kind == "translation"]


def _codes(served: Served) -> tuple[str, str]:
    source, target = (getattr(served.predictor, name) for name in ("source", "target"))
    return source, target


def _pair(server: Server, source: Any, target: Any, text: str) -> Served:
    sources = [one["language"] for one in _detected(server, text)] if source == "auto" else [source]
    for code in sources:
        for served in _pairs(server):
            if _codes(served) == (code, target):
                return served
    raise Refusal(400, "serve.languages", f"{ascii(source)} to {ascii(target)} is not supported"[:100])


def _detected(server: Server, text: str) -> list[dict[str, Any]]:
    """The source languages that the text can be in, each as likely as the others."""
    codes = dict.fromkeys(_codes(served)[0] for served in _pairs(server))
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
        "format": {"enum": ["text"]},
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
