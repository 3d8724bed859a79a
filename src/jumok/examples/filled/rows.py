"""Tables, JSONL, CoNLL columns and plain lines with answers in them: every line as it came in, and what is added.

Who reads the file (the data of a run) says which example begins on which line; here the lines themselves are copied.
"""

import codecs
import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.errors import DataError
from jumok.examples.filled import Answer, Piece, unchanged
from jumok.text.lines import whole_lines

Columns = Sequence[str]
"""names of what an answer has, see `Answer.cells`"""


class Rows(ABC):
    """How the lines of a format take answers."""

    keeps_unread: bool = True
    """whether a line that cannot be read is copied; else it is one without an answer"""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def begin(self, first: list[bytes]) -> list[bytes]:
        """What becomes of the lines before the first example, which may be a header."""
        return first

    def size(self, example: Any, lines: Callable[[], bytes]) -> list[bytes]:
        """Take the lines of an example."""
        return [lines()]

    @abstractmethod
    def filled(self, lines: list[bytes], answer: Answer | None) -> bytes:
        """The lines of an example with its answer."""


def row_pieces(path: Path, examples: Iterable[Any], rows: Rows) -> Iterator[Piece]:
    """A piece for each example, with the lines before it. An example, or its error, says where it is."""
    lines = whole_lines(path)
    number, begun = 1, False
    for example in examples:
        at = _line_of(example, path)
        before = [*islice(lines, max(at - number, 0))]
        if not begun:
            before, begun = rows.begin(before), True
        own: list[bytes] = []
        if not (isinstance(example, DataError) and rows.keeps_unread):
            own = rows.size(example, lambda: next(lines, b""))
        number = max(at, number) + len(own)
        yield _piece(b"".join(before), own, example, rows)
    rest = [] if begun else rows.begin([*islice(lines, 1)])
    yield unchanged(b"".join(rest))
    for line in lines:
        yield unchanged(line)


def _piece(before: bytes, own: list[bytes], example: Any, rows: Rows) -> Piece:
    def written(answers: Sequence[Answer | None]) -> bytes:
        return before + (rows.filled(own, answers[0]) if own else b"")

    return Piece([example], written)


def _line_of(example: Any, path: Path) -> int:
    where = str(example.where).removeprefix(f"{path}:")
    digits = where.partition(",")[0].partition(" ")[0]
    return int(digits) if digits.isdecimal() else 1


def _ended(line: bytes) -> tuple[bytes, bytes]:
    """A line without its end, and its end."""
    body = line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line
    return body, line[len(body) :]


def _added(lines: list[bytes], added: str) -> bytes:
    """Lines with a text before the end of the last one."""
    body, end = _ended(lines[-1])
    return b"".join(lines[:-1]) + body + added.encode() + end


def free_names(columns: Columns, taken: Iterable[str]) -> list[str]:
    """Names for new columns: a label besides a label is a predicted_label."""
    used, found = {*taken}, []
    for name in columns:
        while name in used:
            name = f"predicted_{name}"
        used.add(name)
        found.append(name)
    return found


class Plain(Rows):
    """A line for each line."""

    keeps_unread = False

    def filled(self, lines: list[bytes], answer: Answer | None) -> bytes:
        bom = codecs.BOM_UTF8 if lines[0].startswith(codecs.BOM_UTF8) else b""
        text = "" if answer is None else answer.text.replace("\r", "").replace("\n", " ")
        return bom + text.encode() + _ended(lines[-1])[1]


class Table(Rows):
    """A TSV or a CSV, with new columns at the end."""

    def __init__(self, columns: Columns, delimiter: str, *, quoting: bool) -> None:
        super().__init__(columns)
        self._delimiter, self._quoting = delimiter, quoting

    def begin(self, first: list[bytes]) -> list[bytes]:
        """Only the first line can be a header; others before the first example are empty."""
        if not first or not first[0].strip():
            return first
        text = first[0].removeprefix(codecs.BOM_UTF8).decode(errors="replace")
        taken = next(csv.reader([text], delimiter=self._delimiter), []) if self._quoting else text.split("\t")
        names = free_names(self.columns, [name.strip() for name in taken])
        return [_added(first[:1], self._cells(names)), *first[1:]]

    def size(self, example: Any, lines: Callable[[], bytes]) -> list[bytes]:
        """A row of a CSV goes on while a cell is in quotes."""
        if not self._quoting:
            return [lines()]
        taken: list[bytes] = []

        def texts() -> Iterator[str]:
            while line := lines():
                taken.append(line)
                yield line.removeprefix(codecs.BOM_UTF8).decode(errors="replace")

        next(csv.reader(texts(), delimiter=self._delimiter), None)
        return taken

    def filled(self, lines: list[bytes], answer: Answer | None) -> bytes:
        values = [None if answer is None else answer.cells.get(name) for name in self.columns]
        return _added(lines, self._cells(["" if value is None else _as_cell(value) for value in values]))

    def _cells(self, cells: Sequence[str]) -> str:
        if not self._quoting:
            return "".join(f"\t{' '.join(cell.splitlines()).replace(chr(9), ' ')}" for cell in cells)
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter, lineterminator="").writerow(["", *cells])
        return text.getvalue()


def _as_cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Objects(Rows):
    """JSONL, with new keys at the end of each object."""

    def filled(self, lines: list[bytes], answer: Answer | None) -> bytes:
        if answer is None:
            return lines[0]
        body, end = _ended(lines[0])
        body, brace, rest = body.rpartition(b"}")
        taken = json.loads((body + brace).removeprefix(codecs.BOM_UTF8))
        names = free_names([*answer.cells], taken)
        pairs = zip(names, answer.cells.values(), strict=True)
        added = ", ".join(f"{json.dumps(n)}: {json.dumps(v, ensure_ascii=False)}" for n, v in pairs)
        return body + f"{', ' if taken and added else ''}{added}".encode() + brace + rest + end


class Words(Rows):
    """CoNLL columns, with the tag as the last one."""

    def size(self, example: Any, lines: Callable[[], bytes]) -> list[bytes]:
        return [lines() for _ in example.words]

    def filled(self, lines: list[bytes], answer: Answer | None) -> bytes:
        tags = ["_"] * len(lines) if answer is None else answer.cells["tags"]
        found = []
        for line, tag in zip(lines, tags, strict=True):
            body, end = _ended(line)
            between = b"\t" if b"\t" in body else b" "
            found.append(body.rstrip(b" \t") + between + str(tag).encode() + end)
        return b"".join(found)
