"""Tables with named columns: TSV, CSV and JSONL files."""

import csv
import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.errors import DataError, Wrong, listed, nearest, refuse
from jumok.examples.faults import suffix_of
from jumok.examples.objects import Object, read_objects
from jumok.text.lines import as_line, max_line, numbered_lines

TABLES = ("tsv", "csv", "jsonl")
"""suffixes of files with named columns; in JSONL, the keys of objects are the columns"""
Row = tuple[str, list[str]]
"""where a row begins, and its cells"""
_DELIMITERS = ",;\t|"
_LOOKED_AT = 20  # lines of a CSV that decide what separates its cells


def read_columns(
    path: Path,
    names: list[str],
    *,
    header: Sequence[str] | None = None,
    optional: Collection[str] = (),
    separator: str = "|",
    wrong: Wrong = refuse,
) -> Iterator[Row]:
    """Yield the location of each row of a table, and its cells in the named columns; empty lines are skipped.

    Objects of a JSONL file may lack a key that is `optional`; its cell is empty then. A list of labels is one cell,
    joined by the separator, or the separator alone if the list is empty.
    """
    if suffix_of(path) == "jsonl":
        keys = ", ".join(f'"{name}"' for name in names)
        return read_objects(
            path,
            lambda found: (found.where, [_cell(found, name, optional, separator) for name in names]),
            hint=f"write each line as an object with {keys}",
            wrong=wrong,
        )
    return _named_cells(path, names, header, wrong)


def first_row(path: Path) -> list[str]:
    """The names of the columns, or the first row of a file without a header; none if it cannot be read."""
    if suffix_of(path) == "jsonl":
        return next(read_objects(path, lambda found: [*found.values], hint="write each line as an object"), [])
    return next((cells for _, cells in rows_of(path)), [])


def rows_of(path: Path, *, wrong: Wrong = refuse) -> Iterator[Row]:
    """Yield the rows of a TSV or CSV, the header included; an empty line is a row without cells.

    A TSV has no quoting: a cell is the text between two tabs. In a CSV, quotes may be around a cell, which may then
    contain line breaks; cells are separated by commas, semicolons, tabs or bars, whichever gives the first rows equally
    many.
    """
    if suffix_of(path) == "csv":
        return csv_rows(path, delimiter=delimiter_of(path), wrong=wrong)
    return ((f"{path}:{n}", line.split("\t") if line else []) for n, line in numbered_lines(path, wrong=wrong))


def csv_rows(path: Path, *, delimiter: str = ",", hint: str = "", wrong: Wrong = refuse) -> Iterator[Row]:
    """Yield the rows of a CSV; one with a line that cannot be read is skipped."""
    csv.field_size_limit(max_line())  # a quote that is never closed would take in the rest of the file
    taken: list[int] = []  # lines of the row

    def lines() -> Iterator[str]:
        for number, line in numbered_lines(path, wrong=wrong):
            taken.append(number)
            yield f"{line}\n"

    try:
        for row in csv.reader(lines(), delimiter=delimiter, strict=True):
            first, last, n = taken[0], taken[-1], len(taken)
            taken.clear()
            if last - first + 1 == n:
                yield f"{path}:{first}", row
    except csv.Error as error:
        begun = f"{path}:{taken[0]}" if taken else str(path)
        hint = hint or "close every quote, and double the quotes inside a quoted cell"
        raise DataError(f"not CSV: {error}", where=begun, hint=hint, code="data.not_csv") from error


def delimiter_of(path: Path) -> str:
    """What separates the cells of a CSV: what gives most of its first rows the same number of cells, and many."""
    lines = [f"{line}\n" for _, line in islice(numbered_lines(path, wrong=lambda error: None), _LOOKED_AT)]

    def evidence(delimiter: str) -> tuple[int, int]:
        try:
            widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
        except csv.Error:
            return 0, 0
        width, n = max(widths.items(), key=lambda item: item[1], default=(0, 0))
        return (n, width) if width > 1 else (0, 0)

    return max(_DELIMITERS, key=evidence)


def _named_cells(path: Path, names: list[str], header: Sequence[str] | None, wrong: Wrong) -> Iterator[Row]:
    columns = list(header or [])
    places = _places(columns, names, "header") if columns else []
    between = "commas" if suffix_of(path) == "csv" else "tabs"
    for i, (where, cells) in enumerate(rows_of(path, wrong=wrong)):
        first = i == 0 and where == f"{path}:1"
        if first and columns and cells == columns:
            what = "the file has a header line, but column names are also given"
            raise DataError(what, where=where, hint="remove one of the two", code="data.columns")
        if not columns and not first:
            return  # the header could not be read
        if not columns:
            columns, places = cells, _places(cells or [""], names, where)
            continue
        cells = cells or [""]
        if cells == [""] and len(columns) > 1:
            continue
        if len(cells) != len(columns):
            hint = f"write {len(columns)} columns, as in the header, separated by {between}"
            wrong(DataError(f"{len(cells)} columns", where=where, hint=hint, code="data.columns"))
            continue
        yield where, [cells[place] for place in places]


def _places(columns: list[str], names: list[str], where: str) -> list[int]:
    if missing := [name for name in names if name not in columns]:
        guess = nearest(missing[0], columns)
        hint = f"{guess} use a header with these columns; it has {listed(columns, 20)[:500]}".lstrip()
        raise DataError(f"no column {', '.join(missing)}", where=where, hint=hint, code="data.columns")
    if several := ", ".join(name for name in names if columns.count(name) > 1):
        hint = "give each column its own name"
        raise DataError(f"more than one column {several}", where=where, hint=hint, code="data.columns")
    return [columns.index(name) for name in names]


def _cell(found: Object, name: str, optional: Collection[str], separator: str) -> str:
    """A value of an object as the text of a cell."""
    if name not in found and name in optional:
        return ""
    value = found.values.get(name)
    if isinstance(value, list):
        names = [_written(each, found, name) for each in value]
        if odd := next((each for each in names if separator in each), None):
            raise found.error(f'"{name}" has {odd!r}, which contains the separator of labels {separator!r}')
        return separator.join(names) or separator
    return _written(value, found, name)


def _written(value: Any, found: Object, name: str) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return Object({name: value}, found.name, found.where, found.hint).text(name)


def as_row(cells: Sequence[str], where: str) -> str:
    """Join cells into a line of a TSV, which has no quoting: a tab inside a cell is a DataError."""
    for cell in cells:
        if "\t" in cell:
            hint = "remove the tab: a TSV has no quoting"
            raise DataError(f"a tab inside {cell[:60]!r}", where=where, hint=hint, code="data.tab")
    return as_line("\t".join(cells), where)
