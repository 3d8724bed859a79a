"""Line numbers of the keys in a TOML file, which the standard library does not keep."""

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}'  # multi-line strings
    r'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|#[^\n]*|[\[\]{}=,.\n]|[^\s\[\]{}=,.#\"']+",
    re.DOTALL,
)


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
