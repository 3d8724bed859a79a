"""Tables: TSV files with named columns."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from jumok.errors import DataError, Wrong, listed, nearest, refuse
from jumok.text.lines import as_line, numbered_lines


def read_columns(
    path: Path, names: list[str], *, header: Sequence[str] | None = None, wrong: Wrong = refuse
) -> Iterator[tuple[str, list[str]]]:
    """Yield the location of each row of a TSV, and its cells in the named columns; empty lines are skipped."""
    columns = list(header or [])
    places = _places(columns, names, "header") if columns else []
    for number, line in numbered_lines(path, wrong=wrong):
        cells, where = line.split("\t"), f"{path}:{number}"
        if number == 1 and cells == columns:
            what = "the file has a header line, but column names are also given"
            raise DataError(what, where=where, hint="remove one of the two", code="data.columns")
        if not columns and number > 1:
            return  # the header could not be read
        if not columns:
            columns, places = cells, _places(cells, names, where)
            continue
        if not line and len(columns) > 1:
            continue
        if len(cells) != len(columns):
            hint = f"write {len(columns)} columns, as in the header, separated by tabs"
            wrong(DataError(f"{len(cells)} columns", where=where, hint=hint, code="data.columns"))
            continue
        yield where, [cells[place] for place in places]


def _places(columns: list[str], names: list[str], where: str) -> list[int]:
    if missing := [name for name in names if name not in columns]:
        guess = nearest(missing[0], columns)
        hint = f"{guess} use a header with these columns, tab-separated; it has {listed(columns, 20)[:500]}".lstrip()
        raise DataError(f"no column {', '.join(missing)}", where=where, hint=hint, code="data.columns")
    if several := ", ".join(name for name in names if columns.count(name) > 1):
        hint = "give each column its own name"
        raise DataError(f"more than one column {several}", where=where, hint=hint, code="data.columns")
    return [columns.index(name) for name in names]


def as_row(cells: Sequence[str], where: str) -> str:
    """Join cells into a line of a TSV, which has no quoting: a tab inside a cell is a DataError."""
    for cell in cells:
        if "\t" in cell:
            hint = "remove the tab: a TSV has no quoting"
            raise DataError(f"a tab inside {cell[:60]!r}", where=where, hint=hint, code="data.tab")
    return as_line("\t".join(cells), where)
