"""Look inside a model: its attention, its choices, what decided an output, one step with all its numbers."""

from collections.abc import Callable
from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from jumok.decode.options import DecodeConfig
from jumok.decode.options import Request as SearchRequest
from jumok.engines import Array
from jumok.errors import InputError, JumokError
from jumok.serve.app import ANY_OBJECT, Refusal, Route, Server, json_response
from jumok.serve.attribution import attribute
from jumok.serve.maps import LastMaps, Quantised, message
from jumok.serve.models import Served
from jumok.serve.queue import Job
from jumok.serve.reading import Reading, reading_of
from jumok.tasks.language_model.predictor import Generator
from jumok.tasks.protocol import rounded
from jumok.tasks.translation.predictor import Translator
from jumok.text.vocabulary import EOS_ID

SHORT = 8
"""dimensions of a vector that are shown unless all are asked for"""
MOST_TOKENS = 1024
"""of a text that is looked into: attention takes memory with the square of it"""
POSITIONS = 128
last_maps = LastMaps()


async def _asked(server: Server, request: Request, known: dict[str, Any]) -> dict[str, Any]:
    """The body of a request: an example, and values of the kinds that `known` has as defaults."""
    asked = await server.json(request)
    if not isinstance(asked, dict) or "example" not in asked or not asked.keys() <= {"example", "output", *known}:
        raise Refusal(422, "serve.request", f"the body must have an example, and may have {', '.join(known)}")
    found = {"output": None, **known, **asked}
    for name, default in known.items():
        kinds = {"head": int | str}.get(name, type(default) if default is not None else int | str | None)
        if not isinstance(found[name], kinds) or isinstance(found[name], bool) != isinstance(default, bool):
            raise Refusal(422, "serve.request", f"{name} is of the wrong kind")
    output = found["output"]
    if not isinstance(output, str | list | None):
        raise Refusal(422, "serve.request", "output must be a text or a list of tokens")
    return found


async def _computed(server: Server, request: Request, served: Served, work: Callable[[], Any], text: Any) -> Any:
    """What `work` returns, computed when its turn comes."""

    def answer(batch: Any, wanted: Any) -> list[Any]:
        try:
            return [(work(), None)]
        except JumokError as error:
            return [(None, error)]  # the queue would take it for a failure of the model

    job = Job((served.name, "inside", object()), answer, None, 1 + len(str(text)) // 4, True)
    await server.compute(request, [job])
    found, error = job.output.result()
    if error is not None:
        raise Refusal(422, error.code, error.what, hint=error.hint or "") from error
    return found


def _read(served: Served, asked: dict[str, Any]) -> Reading:
    reading = reading_of(served.predictor, asked["example"], asked["output"])
    if max(len(reading.source), len(reading.target or ())) > MOST_TOKENS:
        raise InputError(f"a text of more than {MOST_TOKENS} tokens", hint="shorten the text", code="text.too_long")
    return reading


# attention


def _maps(served: Served, asked: dict[str, Any]) -> tuple[Reading, dict[str, Quantised]]:
    def make() -> tuple[Any, int]:
        reading = _read(served, asked)
        found = served.predictor.engine.attention_maps(reading.source, reading.target)
        if not found:
            raise InputError("the model has no attention", code="input.no_attention")
        maps = {name: Quantised.of(layers) for name, layers in found.items()}
        return (reading, maps), sum(each.values.nbytes for each in maps.values())

    key = (id(served.predictor), repr(asked["example"]), repr(asked["output"]))
    found: tuple[Reading, dict[str, Quantised]] = last_maps.get(key, make)
    return found


def _overview(served: Served, asked: dict[str, Any]) -> bytes:
    reading, maps = _maps(served, asked)
    parts = {name: each.thumbnails() for name, each in maps.items()}
    described, at = [], 0
    for name, each in maps.items():
        rows, columns = reading.columns(name)
        described.append(
            {
                "name": name,
                "rows": rows,
                "columns": columns,
                "layers": each.shape[0],
                "heads": each.shape[1],
                "size": each.values.shape[2:],
                "thumbnail": parts[name].shape[2:],
                "offset": at,
                "peaks": rounded(each.peaks.astype(float).tolist()),
            }
        )
        at += parts[name].size
    return message({**reading.plain(), "maps": described}, *parts.values())


async def attention(server: Server, request: Request) -> Response:
    asked = await _asked(server, request, {})
    served = await server.served(request.path_params["run"])
    found = await _computed(server, request, served, lambda: _overview(served, asked), asked["example"])
    return Response(found, media_type="application/octet-stream")


async def attention_head(server: Server, request: Request) -> Response:
    asked = await _asked(server, request, {"map": "", "layer": 0, "head": 0})
    served = await server.served(request.path_params["run"])

    def work() -> bytes:
        _, maps = _maps(served, asked)
        if asked["map"] not in maps:
            raise InputError(f"the maps are {', '.join(maps)}", code="input.no_such_part")
        values, peak = maps[asked["map"]].head(asked["layer"], asked["head"])
        return message({"size": values.shape, "peak": peak}, values)

    found = await _computed(server, request, served, work, asked["example"])
    return Response(found, media_type="application/octet-stream")


# choices


def _choices(served: Served, asked: dict[str, Any]) -> dict[str, Any]:
    predictor = served.predictor
    prefix, beam = asked["prefix"], min(max(asked["beam"], 1), 16)
    if isinstance(predictor, Translator):
        given = predictor.parse(asked["example"])
        tokenizers = predictor.tokenizers.filled(given.source)
        source, tokenizer, end = tokenizers.encode_source(given.source), tokenizers.target, EOS_ID
        predictor._refuse_too_long(source, prefix, where="")
        room = predictor.engine.longest or MOST_TOKENS
        config = replace(predictor.facts.decode, method="beam", beam=beam, n_best=beam)
        search = SearchRequest(len(source), min(len(source) + config.max_extra, room - 1), prefix)
    elif isinstance(predictor, Generator):
        config = replace(predictor.facts.decode, method="beam", beam=beam, n_best=beam, max_extra=asked["words"])
        search = predictor.encode(predictor.parse(asked["example"]), config)
        source, tokenizer, end = None, predictor.tokenizer, predictor.tokenizer.end_id
        whole = [*search.prefix, *prefix]
        search = replace(search, prefix=whole, max_len=max(search.max_len, min(len(whole) + 1, search.max_len)))
    else:
        raise InputError("only a model that writes text makes choices", code="input.no_inside")
    if not all(isinstance(one, int) and 0 <= one < tokenizer.vocab_size for one in prefix):
        raise InputError("a token is not in the vocabulary", code="input.no_such_part")
    hypotheses, nodes = predictor.engine.trace(source, search, DecodeConfig(**_decode(config)))
    best = [*hypotheses[0].ids, end]
    found = predictor.engine.chosen(source, best, min(max(asked["k"], 1), 50))
    steps = [
        {
            "id": best[t],
            "token": tokenizer.pieces([best[t]])[0],
            "probability": exp(found.written[t]),
            "rank": int(found.ranks[t]),
            "forced": t < len(search.prefix),
            "top": [
                {"id": int(i), "token": piece, "probability": exp(p)}
                for i, piece, p in zip(
                    found.tokens[t], tokenizer.pieces(found.tokens[t].tolist()), found.log_probs[t], strict=True
                )
            ],
        }
        for t in range(len(best))
    ]
    pieces = tokenizer.pieces([node.token for node in nodes])
    tree = [
        {"id": node.token, "token": piece, "log_prob": node.log_prob, "parent": node.parent, "fate": node.fate}
        for node, piece in zip(nodes, pieces, strict=True)
    ]
    outputs = [{"ids": one.ids, "text": tokenizer.decode(one.ids), "score": one.score} for one in hypotheses]
    answer: dict[str, Any] = rounded({"outputs": outputs, "steps": steps, "tree": tree})
    return answer


def _decode(config: Any) -> dict[str, Any]:
    return {name: getattr(config, name) for name in DecodeConfig.__dataclass_fields__}


async def choices(server: Server, request: Request) -> Response:
    asked = await _asked(server, request, {"prefix": [], "beam": 4, "k": 8, "words": 20})
    served = await server.served(request.path_params["run"])
    return json_response(await _computed(server, request, served, lambda: _choices(served, asked), asked["example"]))


# attribution


async def attribution(server: Server, request: Request) -> Response:
    known = {"method": "occlusion", "steps": 32, "step": None, "label": None}
    asked = await _asked(server, request, known)
    served = await server.served(request.path_params["run"])
    return json_response(
        await _computed(
            server, request, served, lambda: attribute(served, _read(served, asked), asked), asked["example"]
        )
    )


# step by step


def _short(values: Array, full: bool) -> Any:
    """A vector's first dimensions, how many it has, and its norm; or all of it. A matrix row by row."""
    if values.ndim == 2:
        return [_short(row, full) for row in values]
    first = values[: None if full else SHORT].tolist()
    return {"first": first, "size": len(values), "norm": float(np.linalg.norm(values))}


def _steps(served: Served, asked: dict[str, Any]) -> dict[str, Any]:
    reading, engine, full = _read(served, asked), served.predictor.engine, asked["full"]
    name, layer, head, row = asked["part"], asked["layer"], asked["head"], asked["row"]
    if not isinstance(head, int):
        raise InputError("a single head has steps, not the mean of several", code="input.no_such_part")
    ids = reading.source, reading.target
    found: dict[str, Any]
    if name == "additive":
        step = engine.additive_step(*ids, row=row)
        found = {each: _short(getattr(step, each), full) for each in ("s", "ws", "uh", "h", "context")}
        found |= {"scores": step.scores.tolist(), "weights": step.weights.tolist(), "columns": "source"}
    elif name.endswith("cells"):
        cells = engine.cell_steps(*ids, name=name, layer=layer, way=head)
        found = {
            "cell": cells.cell,
            "order": cells.order,
            "columns": "read" if name == "decoder_cells" else "source",
            "before": {key: _short(value, full) for key, value in cells.before.items()},
            "parts": {key: _short(value, full) for key, value in cells.parts.items()},
            "means": {key: np.abs(value).mean(axis=1).tolist() for key, value in cells.parts.items()},
        }
    else:
        at = engine.head_step(*ids, name=name, layer=layer, head=head, row=row)
        found = {each: _short(getattr(at, each), full) for each in ("q", "k", "v", "context")}
        found |= {each: getattr(at, each).tolist() for each in ("scores", "scaled", "weights")}
        found |= {"allowed": at.allowed, "width": len(at.q), "columns": reading.columns(name)[1]}
    answer: dict[str, Any] = rounded({**reading.plain(), "parts_known": engine.parts, **found})
    return answer


async def steps(server: Server, request: Request) -> Response:
    asked = await _asked(server, request, {"part": "", "layer": 0, "head": 0, "row": 0, "full": False})
    served = await server.served(request.path_params["run"])
    return json_response(await _computed(server, request, served, lambda: _steps(served, asked), asked["example"]))


async def parts(server: Server, request: Request) -> Response:
    """What there is to look at in a run."""
    served = await server.served(request.path_params["run"])
    predictor = served.predictor
    readable = predictor.kind in ("translation", "language_model", "classification", "tagging", "pretraining")
    kinds = predictor.engine.parts if readable else {}
    attends = readable and (any(not name.endswith("cells") for name in kinds) or predictor.engine.attends)
    return json_response(
        {
            "attention": attends,
            "choices": isinstance(predictor, Translator | Generator),
            "attribution": readable and predictor.kind != "pretraining" and predictor.engine.kind != "elmo",
            "steps": kinds,
            "positions": predictor.engine.positions(1) is not None,
        }
    )


async def positions(server: Server, request: Request) -> Response:
    served = await server.served(request.path_params["run"])
    found = served.predictor.engine.positions(POSITIONS)
    if found is None:
        raise Refusal(422, "input.no_inside", "the model has no position encodings")
    kind, table = found
    peak = float(np.abs(table).max())
    values = np.rint(table * (127 / peak) + 128).astype(np.uint8)
    return Response(
        message({"kind": kind, "size": table.shape, "peak": peak}, values), media_type="application/octet-stream"
    )


def _body(**known: Any) -> dict[str, Any]:
    example = {"anyOf": [{"type": "string"}, ANY_OBJECT]}
    output = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}
    properties = {"example": example, "output": output, **known}
    return {"type": "object", "required": ["example"], "additionalProperties": False, "properties": properties}


_NUMBER = {"type": "integer"}
_HEAD = {"anyOf": [_NUMBER, {"enum": ["mean", "max"]}]}
RUN = "/api/runs/{run}"
ROUTES = (
    Route("GET", f"{RUN}/inside", parts, "What there is to look at inside a model", answer=ANY_OBJECT),
    Route(
        "POST",
        f"{RUN}/attention",
        attention,
        "All attention maps as thumbnails",
        body=_body(),
        media="application/octet-stream",
    ),
    Route(
        "POST",
        f"{RUN}/attention/head",
        attention_head,
        "One head's attention, or the mean or maximum of a layer's",
        media="application/octet-stream",
        body=_body(map={"type": "string"}, layer=_NUMBER, head=_HEAD),
    ),
    Route(
        "POST",
        f"{RUN}/choices",
        choices,
        "What a decoder chose from, and the tree of its search",
        body=_body(prefix={"type": "array", "items": _NUMBER}, beam=_NUMBER, k=_NUMBER, words=_NUMBER),
        answer=ANY_OBJECT,
    ),
    Route(
        "POST",
        f"{RUN}/attribution",
        attribution,
        "The share of each word in an output",
        body=_body(method={"type": "string"}, steps=_NUMBER, step=_NUMBER, label={"type": "string"}),
        answer=ANY_OBJECT,
    ),
    Route(
        "POST",
        f"{RUN}/steps",
        steps,
        "One step of attention or of a recurrent layer, with its numbers",
        body=_body(part={"type": "string"}, layer=_NUMBER, head=_NUMBER, row=_NUMBER, full={"type": "boolean"}),
        answer=ANY_OBJECT,
    ),
    Route("GET", f"{RUN}/positions", positions, "Position encodings as a picture", media="application/octet-stream"),
)
