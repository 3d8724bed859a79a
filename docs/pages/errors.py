"""docs/errors.md: every stable code of an error, a note or a finding, found in the source."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "jumok"
WORDS = 14
CODE = re.compile(r"[a-z_]+\.[a-z_]+")


@dataclass(frozen=True, slots=True)
class Found:
    """A place where a code is used."""

    code: str
    raised: str
    """the class or function that is called with it"""
    file: str
    message: str
    """its first words; `…` where the source puts in what it found"""


def scan(folder: Path = SOURCE) -> list[Found]:
    """Calls with a `code="area.name"`, notes with one, and the codes of findings."""
    found = [each for path in sorted(folder.rglob("*.py")) for each in _of_file(path, path.relative_to(folder))]
    return sorted(found, key=lambda each: (each.code, each.file))


@dataclass(frozen=True, slots=True)
class _Place:
    """A function, or a module, in which names are looked up."""

    scope: ast.AST
    module: ast.Module

    def said(self, name: str, line: int) -> tuple[ast.expr | None, int]:
        """What a name was last given above a line, or in the module, and on which line."""
        here = [node for node in _within(self.scope) if isinstance(node, ast.Assign) and node.lineno < line]
        everywhere = [node for node in self.module.body if isinstance(node, ast.Assign)]
        for node in [*reversed(here), *everywhere]:
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):  # what, hint = "…", "…"
                    pairs = [*zip(target.elts, node.value.elts, strict=False)]
                else:
                    pairs = [(target, node.value)]
                for to, value in pairs:
                    if isinstance(to, ast.Name) and to.id == name:
                        return value, node.lineno
        return None, 0


def _of_file(path: Path, name: Path) -> Iterator[Found]:
    module = ast.parse(path.read_text("utf-8"))
    for scope in ast.walk(module):
        if not isinstance(scope, ast.FunctionDef | ast.Module):
            continue
        place = _Place(scope, module)
        for node in _within(scope):
            if isinstance(node, ast.Call):
                for code in _codes(node, place):
                    yield Found(code, _name(node), str(name), _message(node, place))
            elif isinstance(node, ast.Tuple) and (rule := _rule(node)):
                yield Found(rule, "Rule", str(name), _shortened(_text(node.elts[3], 0, place)))


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, but not in the functions in it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _within(child)


def _codes(call: ast.Call, place: _Place) -> Iterator[str]:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    if _name(call) in ("Note", "finding") and call.args:
        given.append(call.args[0])
    for value in given:
        meant = place.said(value.id, call.lineno)[0] if isinstance(value, ast.Name) else value
        for constant in ast.walk(meant) if meant is not None else ():
            if isinstance(constant, ast.Constant) and CODE.fullmatch(str(constant.value)):
                yield str(constant.value)


def _rule(node: ast.Tuple) -> str | None:
    """The code of a `Rule` of the doctor: code, two shares, what was found, what to do."""
    match node.elts:
        case [ast.Constant(value=str(code)), _, _, ast.Constant(value=str()), ast.Constant(value=str())]:
            return code if CODE.fullmatch(code) else None
    return None


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _message(call: ast.Call, place: _Place) -> str:
    """The words that a call says: its first argument that is a text, or the variable that has it."""
    first = {"Note": 1, "finding": 4}.get(_name(call), 0)
    for value in call.args[first:]:
        text = _text(value, call.lineno, place)
        if text.strip("… "):
            return _shortened(text)
    return ""


def _shortened(text: str) -> str:
    """The first words; what is put in is shown as `…`."""
    words = re.sub(r"\{\w+\}", "…", text).split()
    return " ".join(words[:WORDS]) + (" …" if len(words) > WORDS else "")


def _text(value: ast.AST | None, line: int, place: _Place) -> str:
    """The words of an expression, as far as the source has them."""
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
        case ast.IfExp(body=body):
            return _text(body, line, place)
        case ast.BinOp(left=left, right=right):
            return _text(left, line, place) + _text(right, line, place)
        case ast.Name(id=name):
            return _text(*place.said(name, line), place)
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return _text(text, line, place)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
            table, _ = place.said(name, line)
            pairs = zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ()
            found = [each for known, each in pairs if isinstance(known, ast.Constant) and known.value == key]
            return _text(found[0], line, place) if found else ""
        case _:
            return ""


FINDINGS = ("finding", "Rule")


def page() -> str:
    rows = scan()
    errors = [each for each in rows if each.raised not in ("Note", *FINDINGS)]
    findings = [each for each in rows if each.raised in FINDINGS]
    lines = [
        "# Codes",
        "",
        "Generated from the source by `make docs`; do not edit. Codes are stable across versions; messages are not."
        " `…` stands for values filled in at run time.",
        "",
        "## Errors",
        "",
        "The code is `error.code` in Python, and is in the JSON of an input that failed. The command line exits with"
        " 2 if the input is invalid and with 1 if the run failed (`run`). An error without a more specific code has the"
        " code of its area: `input`, `recipe`, `data`, `checkpoint`, `run`. Invalid keys in a recipe, in options or in"
        " a model's config have their area and `value`, `mismatch`, `unknown_key` or `missing_key`, or `invalid` for"
        " several kinds of mistakes at once.",
        "",
        *["| code | message | in |", "|---|---|---|", *_rows(errors), ""],
        "## Notes",
        "",
        "Notes are returned with an output, as `notes`.",
        "",
        *["| code | in |", "|---|---|", *_places([each for each in rows if each.raised == "Note"]), ""],
        "## Findings",
        "",
        "What `jumok doctor` finds in data, recipes and runs: `findings[].code` with `--json`.",
        "",
        *["| code | finding | in |", "|---|---|---|", *_rows(findings), ""],
    ]
    return "\n".join(lines)


def _rows(found: list[Found]) -> list[str]:
    return list(dict.fromkeys(f"| `{e.code}` | {_cell(e.message)} | {_link(e.file)} |" for e in found))


def _places(found: list[Found]) -> list[str]:
    return list(dict.fromkeys(f"| `{each.code}` | {_link(each.file)} |" for each in found))


def _link(file: str) -> str:
    return f"[{file}](../src/jumok/{file})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_").replace("*", "\\*")
