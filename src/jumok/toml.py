"""TOML with the line numbers of its keys, which the standard library does not keep, and of whatever is wrong in it."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from jumok.errors import RecipeError

DEEPEST = 32
"""levels of nesting: far more than a recipe has, and far fewer than Python allows"""
LARGEST = 2**63
UNSET = object()
"""the value of a key that falls back to its default"""

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}'  # multi-line strings
    r'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|#[^\n]*|[\[\]{}=,.\n]|[^\s\[\]{}=,.#\"']+",
    re.DOTALL,
)


class NotToml(ValueError):
    """What is wrong in a text, and in which line."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


def key_and_value(override: str) -> tuple[str, Any]:
    """The parts of `--set key=value`; the value of `--set key=` is UNSET."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise RecipeError(
            f"not an override: {override}",
            where="--set",
            hint="use --set key=value, e.g. --set train.steps=200",
            code="recipe.override",
        )
    if not text.strip():
        return key.strip(), UNSET
    try:
        value = parse_toml(f"value = {text}")[0]["value"]
    except NotToml:
        value = text  # a bare word is a string
    return key.strip(), value


def set_or_unset(tree: dict[str, Any], override: str, places: dict[str, str]) -> list[str]:
    """Set a key of the tree, or remove it so that it has its default; errors in it, or in a section created for it,
    point to the override. Returns keys to remove that were not there."""
    key, value = key_and_value(override)
    said = f"--set {override}"
    if value is UNSET:
        return [] if _remove(tree, key, places, said) else [key]
    *parents, leaf = key.split(".")
    node, path = tree, ""
    for parent in parents:
        path = f"{path}.{parent}" if path else parent
        if parent not in node:
            node[parent], places[path] = {}, said
        node = node[parent]
        if not isinstance(node, dict):
            raise RecipeError(f"{key} cannot be below {path}, which is a value", where=said, code="recipe.override")
    for below in [place for place in places if place.startswith(f"{key}.")]:
        del places[below]
    node[leaf], places[key] = value, said
    return []


def _remove(tree: dict[str, Any], key: str, places: dict[str, str], said: str) -> bool:
    """Remove a key; False if it is not there."""
    *parents, leaf = key.split(".")
    node: Any = tree
    for parent in parents:
        node = node.get(parent) if isinstance(node, dict) else None
    if not isinstance(node, dict) or leaf not in node:
        return False
    del node[leaf]
    for below in [place for place in places if place.startswith(f"{key}.")]:
        del places[below]
    places[key] = said  # if it is needed
    return True


def parse_toml(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The tree of a TOML text, and the line of every key."""
    _refuse_nesting(text)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).rpartition(" (at ")
        line = re.match(r"line (\d+)", place)
        raise NotToml(what, int(line[1]) if line else len(text.splitlines())) from error  # "end of document"
    except ValueError as error:  # more digits than Python converts
        longest = max(re.finditer(r"[\d_]+", text), key=lambda digits: len(digits[0]))
        raise NotToml("a whole number must fit into 64 bits", text.count("\n", 0, longest.start()) + 1) from error
    lines = key_lines(text)
    for path, value in _values(tree):
        if len(path) > DEEPEST:
            raise NotToml("nested too deeply", _line(lines, ".".join(path)))
        if isinstance(value, int) and not -LARGEST <= value < LARGEST:
            key = ".".join(path)
            raise NotToml(f"{key}: a whole number must fit into 64 bits", _line(lines, key))
    return tree, lines


def _line(lines: dict[str, int], path: str) -> int:
    """The line of a key, or of the first one below it."""
    below = (line for key, line in lines.items() if key.startswith(path))
    return lines.get(path) or next(below, 1)  # a key written with escapes is not found


def _refuse_nesting(text: str) -> None:
    """Refuse brackets that exhaust the stack of the parser, and keys of so many parts that they exhaust the memory."""
    depth = parts = 0
    for token, line in _tokens(text):
        depth = max(depth + (token in ("[", "{")) - (token in ("]", "}")), 0)
        parts = 0 if token in "[]{}=,\n" else parts + (token == ".")
        if max(depth, parts) > DEEPEST:
            raise NotToml("nested too deeply", line)


def _values(tree: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All values, with the keys that lead to them; not below the deepest level."""
    found: list[tuple[tuple[str, ...], Any]] = [((), tree)]
    while found:
        path, value = found.pop()
        if isinstance(value, dict | list) and len(path) <= DEEPEST:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            found += [((*path, str(key)), item) for key, item in items]
        else:
            yield path, value


def key_lines(text: str) -> dict[str, int]:
    """The line of every key, section and list item, by its path: `train.optimizer.warmup`, `data.train.0`.

    The text must be valid TOML.
    """
    return _Reader(text).lines


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines: dict[str, int] = {}
        self._tokens = list(_tokens(text))
        self._i = 0
        section = ""
        while self._peek():
            if self._peek() == "\n":
                self._i += 1
            elif self._peek() == "[":
                section = self._header()
            else:
                self._key_and_value(section)

    def _peek(self) -> str:
        return self._tokens[self._i][0] if self._i < len(self._tokens) else ""

    def _header(self) -> str:
        line = self._tokens[self._i][1]
        repeated = self._tokens[self._i + 1][0] == "["
        self._i += 2 if repeated else 1
        path = self._key("]")
        self._i += 2 if repeated else 1
        if repeated:
            self.lines.setdefault(path, line)
            path += f".{sum(key.rpartition('.')[0] == path for key in self.lines)}"
        self.lines.setdefault(path, line)
        return path

    def _key(self, end: str) -> str:
        parts = []
        while self._peek() != end:
            if self._peek() != ".":
                parts.append(self._peek().strip("\"'"))
            self._i += 1
        return ".".join(parts)

    def _key_and_value(self, parent: str) -> None:
        line = self._tokens[self._i][1]
        path = ".".join(filter(None, [parent, self._key("=")]))
        self._i += 1
        self.lines[path] = line
        self._value(path)

    def _value(self, path: str) -> None:
        opened = self._peek()
        self._i += 1
        if opened not in ("[", "{"):
            while self._peek() not in ("\n", ",", "]", "}", ""):  # a date, or a number with a point
                self._i += 1
            return
        item = 0
        while self._peek() not in ("]", "}"):
            if self._peek() in (",", "\n"):
                self._i += 1
            elif opened == "{":
                self._key_and_value(path)
            else:
                self.lines[f"{path}.{item}"] = self._tokens[self._i][1]
                self._value(f"{path}.{item}")
                item += 1
        self._i += 1


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Tokens and their lines, without comments."""
    line, seen = 1, 0
    for found in _TOKEN.finditer(text):
        line += text.count("\n", seen, found.start())
        seen = found.start()
        if not found[0].startswith("#"):
            yield found[0], line
