"""Strict parsing of configs: no type coercion, and all mistakes reported at once, each with its key and place.

A config is a frozen dataclass. The range of a field is in its annotation, a relation between fields in
`__post_init__`, which runs only when every field is in range. Only `read_config` enforces annotations: all user input
(recipes, overrides, options, config.json) goes through it; Python code is trusted.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from jumok.errors import InputError, Mistake, RecipeError, nearest

Count = Annotated[int, Field(ge=1, lt=2**31)]
CountOrZero = Annotated[int, Field(ge=0, lt=2**31)]
Width = Annotated[int, Field(ge=1, le=2**20)]
"""of a layer, a vocabulary or a text: more is a mistake, and would overflow sizes of tensors"""
Depth = Annotated[int, Field(ge=1, le=1000)]
"""layers, and the heads of one"""
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
"""a share below 1: dropout, label smoothing, Adam's betas"""


def _whole_or_share(amount: float) -> float:
    if isinstance(amount, float) and amount >= 1:
        raise ValueError(f"must be a whole number of steps, or a share of them below 1 (got {amount})")
    return amount


Steps = Annotated[int | float, Field(gt=0), AfterValidator(_whole_or_share)]
"""a number of steps, or a share of all steps below 1"""
StepsOrZero = Annotated[int | float, Field(ge=0), AfterValidator(_whole_or_share)]

Config = TypeVar("Config")
_LITERALS = re.compile(r"'([^']*)'")
_NAMES = re.compile(r"[a-z]\w*(?:\.\w+)*")
_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

# pydantic's wording for Python programmers, and ours; longer phrases before those that they contain.
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
    places: Mapping[str, str] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> Config:
    """Parse a config from a tree of JSON values.

    Errors call it `what`, and prefix its keys with `path`. `unions` are the sections with several kinds. `places` maps
    keys to where they were written: a line of a file, or an option of the command line. `choices` are those that the
    rest of the tree leaves to a key.
    """
    adapter: TypeAdapter[list[Config]] = _adapter(kind)  # type: ignore[arg-type]
    try:
        # As JSON: strict mode then still takes a list for a tuple and a whole number for a float, and nothing else.
        return adapter.validate_json(json.dumps([tree], default=str))[0]
    except RecursionError as endless:
        place = None if where is None else str(where)
        raise error(f"{what} is nested too deeply", where=place, code=f"{error.code}.value") from endless
    except ValidationError as invalid:
        explain = _Explainer(kind, tree, path, unions, error.code, places or {}, choices or {})
        mistakes = [one for found in _found(invalid, tree, unions) for one in explain(found)]
        raise _error(error, mistakes, what, None if where is None else str(where)) from invalid


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Made once for each config: that takes a millisecond, and a server reads options with every request."""
    # pydantic takes no settings for a dataclass; through a list they reach it and all nested dataclasses.
    return TypeAdapter(list[kind], config=_STRICT)  # type: ignore[valid-type]


def _error(error: type[InputError], mistakes: Sequence[Mistake], what: str, where: str | None) -> InputError:
    codes = {mistake.code for mistake in mistakes}
    code = codes.pop() if len(codes) == 1 else f"{error.code}.invalid"
    if len(mistakes) == 1:
        (only,) = mistakes
        found = error(only.told, where=only.where or where, hint=only.guess or None, code=code)
    else:
        lines = [f"    {one.where}: {one.text}" if one.where else f"    {one.text}" for one in mistakes]
        found = error("\n".join([f"{what} has {len(mistakes)} errors", *lines]), where=where, code=code)
    found.mistakes = tuple(mistakes)
    return found


def _found(invalid: ValidationError, tree: object, unions: Collection[str]) -> list[dict[str, Any]]:
    """pydantic's errors, merged for a value that may have several types, where it reports one per type it tried.

    Such a type is in the error's path, but is not a key of the tree. The deepest errors are of the type that fits best.
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
                if mistake["type"] != "missing" or i + 1 < len(mistake["loc"]):
                    value = tuple(keys)
                    continue
            keys.append(key)
        mistake["loc"] = keys
        deepest[value] = max(deepest.get(value, 0), len(keys))
        told = found.setdefault((value, *keys), mistake)
        also = mistake["msg"].removeprefix("Input should be ")
        if also not in told["msg"]:
            told["msg"] += f" or {also}"
    return [mistake for (value, *_), mistake in found.items() if len(mistake["loc"]) == deepest[value]]


class _Explainer:
    """Rewords pydantic's errors about one tree."""

    def __init__(
        self,
        kind: type,
        tree: object,
        path: str,
        unions: Collection[str],
        area: str,
        places: Mapping[str, str],
        choices: Mapping[str, Sequence[str]],
    ) -> None:
        self._kind, self._tree, self._path, self._unions = kind, tree, path, unions
        self._area, self._places, self._choices = area, places, choices

    def __call__(self, mistake: Mapping[str, Any]) -> list[Mistake]:
        keys = list(mistake["loc"][1:])  # the first is the index in the list
        if len(keys) > 1 and keys[0] in self._unions:
            del keys[1]  # the kind, which is in pydantic's path but not in the tree
        context, given, code, guess = mistake.get("ctx", {}), mistake["input"], "value", ""
        match mistake["type"]:
            case "value_error":
                message, code = str(context["error"]), "mismatch"  # from `__post_init__`, one line per relation
            case "unexpected_keyword_argument":
                (message, guess), code = self._unknown_key(keys), "unknown_key"
            case "missing":
                message, code = "is missing", "missing_key"
            case "union_tag_not_found":
                keys, message, code = [*keys, "kind"], "is missing", "missing_key"
            case "union_tag_invalid":
                known = _LITERALS.findall(str(context["expected_tags"]))
                message = f"must be one of {context['expected_tags']} (got {context['tag']!r})"
                keys, guess = [*keys, "kind"], nearest(str(context["tag"]), known)
            case "json_invalid":  # a lone surrogate, from a command line that is not UTF-8
                message = f"cannot be read: {context['error']}"
            case _:
                message = mistake["msg"]
                for theirs, ours in _WORDS.items():
                    message = message.replace(theirs, ours)
                if mistake["type"] == "literal_error":
                    if fitting := self._choices.get(".".join(map(str, keys))):
                        *others, last = map(repr, fitting)
                        message = "must be " + " or ".join(filter(None, [", ".join(others), last]))
                    guess = nearest(str(given), _LITERALS.findall(message))
                message += "" if isinstance(given, dict) else f" (got {_shortened(repr(given))})"
        key = ".".join(filter(None, [self._path, *map(str, keys)]))
        code = f"{self._area}.{code}"
        return [
            Mistake(key or self._first_key(line), code, line, self._where(key, line, code), guess)
            for line in message.splitlines()
        ]

    def _first_key(self, line: str) -> str:
        """The first key named in an error of the root, which is about a relation between keys."""
        known = {path for path, _ in _paths(self._kind, self._tree)}
        return next((name for name in _NAMES.findall(line) if name in known), "")

    def _where(self, key: str, line: str, code: str) -> str | None:
        """Where a key was written, and the override that made it wrong; for a relation, where all of its keys were."""
        names = _NAMES.findall(line)
        if code.endswith(".mismatch"):
            named = [f"{key}.{name}" for name in names] if key else [n for n in names if "." in n or n == names[0]]
            found = [self._places[name] for name in named if name in self._places] or [self._written(key)]
        else:
            names.append(f"{key.partition('.')[0]}.kind")  # overriding the kind may have made the key wrong
            places = [self._places.get(name, "") for name in names if code.endswith("_key")]
            found = [self._written(key), *(place for place in places if place.startswith("--set"))]
        return ", ".join(dict.fromkeys(filter(None, found))) or None

    def _written(self, key: str) -> str:
        """The place of a key, or of the innermost section around it that has one."""
        while key and key not in self._places:
            key = key.rpartition(".")[0]
        return self._places.get(key, "")

    def _unknown_key(self, keys: Sequence[Any]) -> tuple[str, str]:
        """Message and hint for an unknown key: the kinds that have it, or the closest known key."""
        *above, key = keys
        owner, node = self._kind, self._tree
        for name in above:
            members = _members(_hints(owner).get(name))
            node = node.get(name) if isinstance(node, dict) else None
            if not members:
                return "unknown key", ""
            if len(above) == 1 and (kinds := _kinds_with(members, key)) and name in self._unions:
                chosen = node.get("kind") if isinstance(node, dict) else None
                return f'unknown key for {name}.kind = "{chosen}", it belongs to {" or ".join(kinds)}', ""
            owner = _member(members, node)
        if guess := nearest(str(key), _hints(owner)):
            return "unknown key", guess
        elsewhere = [path for path, name in _paths(self._kind, self._tree) if name == key]
        return "unknown key", f"did you mean {elsewhere[0]}?" if elsewhere else ""


def _shortened(text: str, most: int = 80) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def _hints(kind: Any) -> dict[str, Any]:
    """The keys of a config and their types."""
    if not is_dataclass(kind):
        return {}
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def known_keys(kind: type, tree: object) -> list[str]:
    """The paths of all keys that a config of the kinds in this tree may have."""
    return [path for path, _ in _paths(kind, tree)]


def _paths(kind: type, tree: object, path: str = "") -> Iterator[tuple[str, str]]:
    """All key paths of a config, each with its last part."""
    for name, annotation in _hints(kind).items():
        here = f"{path}.{name}" if path else name
        yield here, name
        if members := _members(annotation):
            node = tree.get(name) if isinstance(tree, dict) else None
            yield from _paths(_member(members, node), node, here)


def _members(annotation: Any) -> list[type]:
    """The dataclasses behind an annotation: one, or those of a union."""
    found = [annotation, *get_args(annotation), *(inner for arg in get_args(annotation) for inner in get_args(arg))]
    return [member for member in found if isinstance(member, type) and is_dataclass(member)]


def _member(members: Sequence[type], node: object) -> type:
    """The member of a union that the tree selects by its kind, or the first one."""
    chosen = node.get("kind") if isinstance(node, dict) else None
    return next((member for member in members if _kind_of(member) == chosen), members[0])


def _kind_of(member: type) -> str | None:
    """The tag of a member of a union."""
    tags = get_args(_hints(member).get("kind"))
    return str(tags[0]) if tags else None


def _kinds_with(members: Sequence[type], key: str) -> list[str]:
    """The kinds of a union that have this key."""
    return list(dict.fromkeys(f'"{_kind_of(member)}"' for member in members if key in _hints(member)))
