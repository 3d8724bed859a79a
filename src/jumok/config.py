"""Reading configs strictly: types are not guessed, and all mistakes are told at once, each with the path of its key.

A config is a frozen dataclass. The range of a field stands in its annotation, a relation between fields in
`__post_init__`, which runs only when every field is in its range. Annotations are looked at by `read_config` alone:
whatever a user wrote (recipes, overrides, options, config.json) comes through it; Python code is trusted.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from jumok.errors import InputError, RecipeError

Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
"""a part that is never the whole: dropout, label smoothing, the betas of Adam"""


def _whole_or_share(amount: float) -> float:
    if isinstance(amount, float) and amount >= 1:
        raise ValueError(f"must be a whole number, or below 1 a share of all (got {amount})")
    return amount


Steps = Annotated[int | float, Field(gt=0), AfterValidator(_whole_or_share)]
"""a number of steps, or below 1 a share of all"""
StepsOrZero = Annotated[int | float, Field(ge=0), AfterValidator(_whole_or_share)]

Config = TypeVar("Config")
_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

# pydantic's words for a Python programmer, and ours; the longer before those that they contain.
_WORDS = {
    "Input should be": "must be",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "over",
    "less than": "below",
    "a valid integer or a valid number": "a number",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid string": "text",
    "a valid boolean": "true or false",
    "a valid array": "a list",
    "an object": "a table of keys and values",
    "Tuple should": "must",
    "List should": "must",
    " after validation": "",
}


def read_config(
    kind: type[Config],
    tree: object,
    *,
    what: str,
    where: str | Path | None = None,
    path: str = "",
    unions: Collection[str] = (),
    error: type[InputError] = RecipeError,
) -> Config:
    """The config that a tree of JSON values says; `what` names it, `path` leads to it, `unions` have several kinds."""
    # pydantic takes no settings for a dataclass; through a list they reach it and all dataclasses in it.
    adapter: TypeAdapter[list[Config]] = TypeAdapter(list[kind], config=_STRICT)  # type: ignore[valid-type]
    try:
        # As JSON, because there a list may be a tuple and a whole number a float, and nothing else is mistaken.
        return adapter.validate_json(json.dumps([tree], default=str))[0]
    except ValidationError as invalid:
        found = _mistakes(invalid, tree, unions)
        mistakes = [line for mistake in found for line in _explain(mistake, kind, what, path, unions)]
        raise error(
            f"{what} has an error" if len(mistakes) == 1 else f"{what} has {len(mistakes)} errors",
            where=where,
            right="\n         ".join(mistakes),  # one below the other in a JumokError's text
        ) from invalid


def _mistakes(invalid: ValidationError, tree: object, unions: Collection[str]) -> list[dict[str, Any]]:
    """What pydantic found. Of a value that may have several types it tells every type that it tried: here only once.

    Such a type is part of its path, but no key of the tree. The type that fits best is the one that it went into.
    """
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    deepest: dict[object, int] = {}
    mistakes: list[dict[str, Any]] = [dict(mistake) for mistake in invalid.errors()]
    for number, mistake in enumerate(mistakes):
        keys: list[Any] = []
        node: Any = [tree]
        value: object = number
        for i, key in enumerate(mistake["loc"]):
            try:
                node = node if i == 2 and keys[1] in unions else node[key]
            except (LookupError, TypeError):
                if mistake["type"] != "missing":
                    value = tuple(keys)
                    continue
            keys.append(key)
        mistake["loc"] = keys
        deepest[value] = max(deepest.get(value, 0), len(keys))
        told = found.setdefault((value, *keys), mistake)
        if told is not mistake:
            told["msg"] += " or " + mistake["msg"].removeprefix("Input should be ")
    return [mistake for (value, *_), mistake in found.items() if len(mistake["loc"]) == deepest[value]]


def _explain(mistake: Mapping[str, Any], kind: type, what: str, path: str, unions: Collection[str]) -> list[str]:
    keys = list(mistake["loc"][1:])  # the first is the place in the list
    chosen = None
    if len(keys) > 1 and keys[0] in unions:
        chosen = keys.pop(1)  # the kind, which is part of pydantic's path but not of the tree's
    context, given = mistake.get("ctx", {}), mistake["input"]
    match mistake["type"]:
        case "value_error":
            message = str(context["error"])  # of `__post_init__`, a line for each relation
        case "unexpected_keyword_argument":
            message = "there is no such key"
            if chosen and (others := _kinds_with(kind, keys[0], keys[1])):
                message += f' when {keys[0]}.kind is "{chosen}"; it belongs to {" or ".join(others)}'
        case "missing":
            message = "is missing"
        case "union_tag_not_found":
            keys, message = [*keys, "kind"], "is missing"
        case "union_tag_invalid":
            keys, message = [*keys, "kind"], f"must be one of {context['expected_tags']} (got {context['tag']!r})"
        case "json_invalid":  # half a surrogate pair, from a command line that is not UTF-8
            message = f"cannot be read: {context['error']}"
        case _:
            message = mistake["msg"]
            for theirs, ours in _WORDS.items():
                message = message.replace(theirs, ours)
            message += "" if isinstance(given, dict) else f" (got {given!r})"
    place = ".".join(filter(None, [path, *map(str, keys)])) or what
    return [f"{place}: {line}" for line in message.splitlines()]


def _kinds_with(kind: type, section: str, key: str) -> list[str]:
    """The kinds of a section, a union of dataclasses, that have such a key."""
    members = [m for m in get_args(get_type_hints(kind)[section]) if key in {f.name for f in fields(m)}]
    return [f'"{get_args(get_type_hints(member)["kind"])[0]}"' for member in members]
