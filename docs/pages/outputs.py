"""docs/outputs.md: what goes into every task and what comes out of it, as JSON, with recorded examples."""

import inspect
import json
import types
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from jumok.score.classification import Bin
from jumok.score.confusion import Confusion
from jumok.score.significance import Comparison, Score
from jumok.tasks import TASKS
from jumok.tasks.protocol import Failure, Note, Predictor, TaskKind, adapter
from pages.fields import field_docs

RECORDED = Path(__file__).parents[1] / "examples" / "outputs.json"
SHARED = (Note, Failure, Score, Confusion, Bin, Comparison)
"""classes that are explained once, for all tasks"""
PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def predictor_of(task: TaskKind) -> type[Predictor[Any, Any]]:
    """The predictor in the room of a task."""
    module = import_module(f"{type(task).__module__}.predictor")
    found = [kind for kind in vars(module).values() if inspect.isclass(kind) and issubclass(kind, Predictor)]
    (predictor,) = (kind for kind in found if kind.__module__ == module.__name__)
    return predictor


def type_name(kind: Any) -> str:
    """A type as JSON has it, with links to the objects in it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_name(arguments[0])
    if origin is Literal:
        return " or ".join(f'`"{value}"`' for value in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(type_name(member) for member in arguments if member is not type(None))
    if origin is list:
        return f"list of {type_name(arguments[0])}"
    if origin is tuple:
        return f"[{', '.join(map(type_name, arguments))}]"
    if origin is dict:
        return f"object: {type_name(arguments[0])} to {type_name(arguments[1])}"
    return PLAIN[kind] if kind in PLAIN else f"[{kind.__name__}](#{kind.__name__.lower()})"


def objects(kind: Any) -> list[type]:
    """The dataclasses inside a type."""
    if isinstance(kind, type) and is_dataclass(kind):
        return [kind]
    return [found for argument in get_args(kind) for found in objects(argument)]


def json_fields(cls: type) -> list[str]:
    """The fields of the JSON form: what the adapter writes, but for the place an example was read from."""
    written = adapter(cls).json_schema(mode="serialization")
    names = written.get("properties") or written["$defs"][cls.__name__]["properties"]  # one that contains itself
    return [name for name in names if name != "where" or cls is Failure]


def table(cls: Any) -> list[str]:
    hints, docs, wanted = get_type_hints(cls, include_extras=True), field_docs(cls), json_fields(cls)
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for field in fields(cls):
        if field.name not in wanted:
            continue
        meaning = docs.get(field.name, "")
        if type(None) in get_args(hints[field.name]) and field.default is not MISSING:
            meaning = f"{meaning}; may be missing" if meaning else "may be missing"
        lines.append(f"| `{field.name}` | {type_name(hints[field.name])} | {_cell(meaning)} |")
    return lines


def inner(cls: type, known: tuple[type, ...] = ()) -> list[type]:
    """The classes that stand in a class, each once, without those that are explained elsewhere."""
    hints, found = get_type_hints(cls, include_extras=True), list[type]()
    for name in json_fields(cls):
        for kind in objects(hints[name]):
            if kind not in (cls, *known, *SHARED, *found):
                found += [kind, *inner(kind, (cls, *known, *found))]
    return found


def section(task: TaskKind, recorded: list[dict[str, Any]], told: set[type]) -> list[str]:
    predictor = predictor_of(task)
    lines = [f"## Task `{task.name}`", ""]
    if predictor.example in told and predictor.answers in told:
        example, output = predictor.example.__name__, predictor.answers.__name__
        lines += [f"As above: [{example}](#{example.lower()}) in, [{output}](#{output.lower()}) out.", ""]
    for cls in (predictor.example, predictor.answers):
        for kind in [cls, *inner(cls)]:
            if kind not in told:
                told.add(kind)
                lines += [f"### {kind.__name__}", "", _cell(inspect.getdoc(kind) or ""), "", *table(kind), ""]
    if predictor.options is not None and predictor.options not in told:
        told.add(predictor.options)
        lines += ["Options of `predict` (`--set name=value` on the command line):", ""]
        lines += [*table(predictor.options), ""]
    for each in recorded:
        asked = f", with {_listed(each['options'])}" if each["options"] else ""
        lines += [f"`{each['recipe']}`{asked}:", "", *_block(each["input"]), "", *_block(each["output"]), ""]
    return lines


def _block(value: object) -> list[str]:
    """A field a line."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict) and len(text) > 100:
        rows = [f"  {json.dumps(key)}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items()]
        text = "{\n" + ",\n".join(rows) + "\n}"
    return ["```json", text, "```"]


def _listed(options: dict[str, Any]) -> str:
    return " ".join(f"`{name}={json.dumps(value).strip(chr(34))}`" for name, value in options.items())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def page() -> str:
    recorded = json.loads(RECORDED.read_text("utf-8"))
    head = [
        "# Inputs and outputs",
        "",
        "Generated from the task classes by `make docs`; do not edit. The examples were recorded by"
        " `python docs/record_outputs.py` with tiny models trained for seconds: they show the format, not what a model"
        " can do.",
        "",
        "An example can be a line of text, JSON or a Python object; all three mean the same."
        " `jumok predict RUN --json` prints `run` and `predictions`, one object per input: `input`, and the fields of"
        " the output. Fields without a value are omitted. If an input cannot be answered, `error` takes the place of"
        " its output, and the others are still answered. Numbers have six significant digits; the last one may depend"
        " on which inputs are in the same batch.",
        "",
        "A text of more than 1,000,000 characters is not answered but an `error`, before it is tokenized; for"
        " translation and language models, which do not read in windows, the limit is 20,000. `--max-characters N`, or"
        " `jumok.load(run, max_characters=N)`, sets another one. [own-data.md](own-data.md) has the limit of a line.",
        "",
    ]
    told: set[type] = set()
    lines = [line for task in TASKS for line in section(task, [r for r in recorded if r["task"] == task.name], told)]
    lines += ["## All tasks", ""]
    for cls in SHARED:
        lines += [f"### {cls.__name__}", "", _cell(inspect.getdoc(cls) or ""), "", *table(cls), ""]
    return "\n".join([*head, *lines]).rstrip() + "\n"
