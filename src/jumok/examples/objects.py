"""JSON written by others: every value is checked before use, and errors name its location."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from jumok.errors import DataError, OffsetError, Wrong, refuse
from jumok.examples.faults import Example, read_each
from jumok.text.lines import as_line, numbered_lines

Value = TypeVar("Value")


_CALLED: dict[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number with a fraction",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object, with the name, location and hint that its errors show."""

    values: dict[str, Any]
    name: str
    where: str
    hint: str

    def error(self, what: str, *, code: str = "data.json") -> DataError:
        return DataError(self._named(what), where=self.where, hint=self.hint, code=code)

    def misplaced(self, what: str, *, shift: int | None = None) -> OffsetError:
        return OffsetError(self._named(what), where=self.where, hint=self.hint, shift=shift)

    def _named(self, what: str) -> str:
        return ": ".join(filter(None, [self.name, what]))

    def __contains__(self, key: str) -> bool:
        """Null counts as missing."""
        return self.values.get(key) is not None

    def text(self, key: str) -> str:
        return self._looked_at(self._value(key, str), f'"{key}"')

    def whole(self, key: str) -> int:
        return self._value(key, int)

    def truth(self, key: str) -> bool:
        return self._value(key, bool)

    def texts(self, key: str) -> list[str]:
        values: list[Any] = self._value(key, list)
        names = [f'"{key}" {i}' for i in range(len(values))]
        return [self._looked_at(self._of_kind(v, str, name), name) for v, name in zip(values, names, strict=True)]

    def object(self, key: str) -> "Object":
        return self._below(self._value(key, dict), key)

    def objects(self, key: str, name: str) -> "Iterator[Object]":
        """Yield the objects of a list, each called `name` and its number, from 1."""
        values: list[Any] = self._value(key, list)
        for i, value in enumerate(values, start=1):
            yield self._below(self._of_kind(value, dict, f"{name} {i}"), f"{name} {i}")

    def _below(self, values: dict[str, Any], name: str) -> "Object":
        return Object(values, ", ".join(filter(None, [self.name, name])), self.where, self.hint)

    def _value(self, key: str, kind: type[Value]) -> Value:
        if key not in self:
            raise self.error(f'no "{key}"')
        return self._of_kind(self.values[key], kind, f'"{key}"')

    def _of_kind(self, value: Any, kind: type[Value], name: str) -> Value:
        if type(value) is not kind:  # isinstance would accept true as a number
            raise self.error(f"{name} is {_CALLED.get(type(value), type(value).__name__)}, not {_CALLED[kind]}")
        return value

    def _looked_at(self, text: str, name: str) -> str:
        if half := _HALF_A_PAIR.search(text):
            raise self.error(f"{name} has an unpaired surrogate \\u{ord(half[0]):04x} at character {half.start()}")
        return text


def is_object(line: str) -> bool:
    """Whether a line is meant as an object, damaged or not, rather than a text that starts with a brace."""
    return re.match(r'\s*{\s*["}]', line) is not None


def as_object(given: str | Mapping[str, Any], *, where: str, hint: str) -> Object:
    """Wrap a mapping, or parse the JSON of a text."""
    if isinstance(given, str):
        return parse_object(given, where=where, hint=hint)
    return Object(dict(given), "", where, hint)


def parse_object(text: str, *, where: str, hint: str) -> Object:
    """Parse a JSON object; if the text has several lines, errors name the wrong one."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}" if "\n" in text else where
        raise DataError(
            f"not JSON: {error.msg}, column {error.colno}", where=place, hint=hint, code="data.not_json"
        ) from None
    except (RecursionError, ValueError) as error:  # endless brackets, or a number of thousands of digits
        raise DataError(f"unreadable JSON: {error}", where=where, hint=hint, code="data.not_json") from None
    if not isinstance(value, dict):
        raise DataError(f"{_CALLED[type(value)]}, not an object", where=where, hint=hint, code="data.json")
    return Object(value, "", where, hint)


def read_objects(
    path: Path, read: Callable[[Object], Example], *, hint: str, wrong: Wrong = refuse
) -> Iterator[Example]:
    """Read the objects of a JSONL file (.gz too), one per line; empty lines are skipped."""
    lines = ((number, line) for number, line in numbered_lines(path, wrong=wrong) if line.strip())

    def read_line(numbered: tuple[int, str]) -> Example:
        number, line = numbered
        return read(parse_object(line, where=f"{path}:{number}", hint=hint))

    return read_each(lines, read_line, wrong)


def as_json(values: Any, where: str) -> str:
    """Write values as a line of JSON, with non-ASCII characters unescaped."""
    return as_line(json.dumps(values, ensure_ascii=False), where)
