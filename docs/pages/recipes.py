"""docs/recipes.md: every key of a recipe, from the config classes themselves."""

import inspect
import types
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from jumok.recipe import Recipe
from pages.fields import field_docs

ROOT = Path(__file__).parents[2]
SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


def configs(kind: Any) -> list[type]:
    """The config classes behind an annotation: one, or the members of a union."""
    if get_origin(kind) is Annotated:
        return configs(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return [cls for member in get_args(kind) for cls in configs(member)]
    return [kind] if isinstance(kind, type) and is_dataclass(kind) else []


def type_name(kind: Any) -> str:
    """What a user has to write, with its range: `whole number >= 1`, `[text, text]`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        kind, limits = arguments[0], [limit for field in arguments[1:] for limit in getattr(field, "metadata", [])]
        if get_origin(kind) is list:
            lengths = range(1, limits[0].max_length + 1)
            return " or ".join(f"[{', '.join([type_name(get_args(kind)[0])] * length)}]" for length in lengths)
        names = [(type(limit).__name__.lower(), limit) for limit in limits]
        return f"{type_name(kind)} {', '.join(f'{SIGNS[name]} {getattr(limit, name)}' for name, limit in names)}"
    if origin is Literal:
        return " or ".join(f'"{value}"' for value in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(type_name(member) for member in arguments if member is not type(None))
    if origin is tuple:
        return f"[{', '.join(map(type_name, arguments))}]"
    if origin is list:
        return f"[{type_name(arguments[0])}, ...]"
    if origin is dict:
        return f"{{name = {type_name(arguments[1])}, ...}}"
    return {int: "whole number", float: "number", str: "text", bool: "true or false"}[kind]


def default(field: Any) -> str:
    if field.default is not MISSING:
        value = field.default
    elif field.default_factory is not MISSING:
        value = field.default_factory()
    else:
        return "needed"
    if value is None:
        return ""
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value!r}`".replace("'", '"')


def section(cls: Any, path: str, *, one_of_several: bool = False) -> list[str]:
    hints, docs = get_type_hints(cls, include_extras=True), field_docs(cls)
    title = f"`[{path}]`" if path else "The root"
    if one_of_several:
        title += f" with `kind = {type_name(hints['kind'])}`"
    lines = [f"## {title}", "", inspect.getdoc(cls) or "", ""]
    lines += ["| key | value | default | meaning |", "|---|---|---|---|"]
    below: list[str] = []
    for field in fields(cls):
        children = configs(hints[field.name])
        if children:
            for child in children:
                below += section(child, f"{path}.{field.name}".lstrip("."), one_of_several=len(children) > 1)
            continue
        meaning = docs.get(field.name, "").replace("|", "\\|")
        # Among several kinds none is meant unless it is named.
        otherwise = "needed" if one_of_several and field.name == "kind" else default(field).replace("|", "\\|")
        lines.append(f"| `{field.name}` | {type_name(hints[field.name])} | {otherwise} | {meaning} |")
    return [*lines, "", *below]


def recipe_list() -> list[str]:
    lines = ["## Recipes included with jumok", "", "| recipe | description |", "|---|---|"]
    for path in sorted((ROOT / "recipes").rglob("*.toml")):
        first = path.read_text("utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"| [{path.relative_to(ROOT)}](../{path.relative_to(ROOT)}) | {first} |")
    return lines


def page() -> str:
    head = ["# Recipes: every key", "", "Generated from the config classes by `make docs`; do not edit.", ""]
    return "\n".join([*head, *section(Recipe, ""), *recipe_list(), ""])
