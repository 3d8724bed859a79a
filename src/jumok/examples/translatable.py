"""Texts to translate, taken out of the files that they are in: PO, MO, TMX, and tables with a column for them."""

from collections.abc import Iterator
from pathlib import Path

from jumok.errors import DataError, Wrong, listed, refuse
from jumok.examples.faults import read_each, suffix_of
from jumok.examples.filled.po import po_pieces
from jumok.examples.filled.tmx import tmx_pieces
from jumok.examples.gettext import read_mo
from jumok.examples.objects import Object, read_objects
from jumok.examples.pairs import Excerpt
from jumok.examples.tables import rows_of

CATALOGUES = ("po", "pot")
_NAMES = ("source", "src", "text", "sentence", "input")
"""of the column with the texts, besides the code of their language"""


def read_excerpts(
    path: Path, *, source: str, target: str, column: str | None = None, wrong: Wrong = refuse
) -> Iterator[Excerpt] | None:
    """Yield all texts of a file that has them in fields; None if its name is not that of such a file.

    `column` is the column of a table, or the key of JSONL; without it, it has a common name, or the language's code.
    Without such a header, the texts of a TSV are its first column.
    """
    names = [column] if column else [*_NAMES, source]
    match suffix_of(path):
        case "po" | "pot":
            return (text for piece in po_pieces(path, target=target, again=True) for text in piece.asked)
        case "mo":
            return (Excerpt(text, None, where) for text, _, where in read_mo(path))
        case "tmx":
            pieces = tmx_pieces(path, source=source, target=target, again=True)
            return (text for piece in pieces for text in piece.asked)
        case "tsv" | "csv" as suffix:
            return _of_table(path, names, given=column is not None or suffix == "csv", wrong=wrong)
        case "jsonl":
            hint = f'write each line as an object with "{names[0]}"'
            return read_objects(path, lambda found: _of_object(found, names), hint=hint, wrong=wrong)
    return None


def _of_object(found: Object, names: list[str]) -> Excerpt:
    return Excerpt(found.text(next((name for name in names if name in found), names[0])), None, found.where)


def _of_table(path: Path, names: list[str], *, given: bool, wrong: Wrong) -> Iterator[Excerpt]:
    rows = rows_of(path, wrong=wrong)
    where, first = next(rows, ("", []))
    called = [cell.strip().lower() for cell in first]
    place = next((called.index(name.lower()) for name in names if name.lower() in called), None)
    if place is None and given and len(first) > 1:
        hint = f"call the column of the texts {names[0]}; the header is {listed(first, 20)[:500]}"
        raise DataError("no column of texts to translate", where=where, hint=hint, code="data.columns")

    def text_of(row: tuple[str, list[str]]) -> Excerpt:
        where, cells = row
        if len(cells) <= (place or 0):
            hint = f"write at least {(place or 0) + 1}"
            raise DataError(f"too few columns: {len(cells)}", where=where, hint=hint, code="data.columns")
        return Excerpt(cells[place or 0], None, where)

    if place is None and first:
        yield text_of((where, first))
    yield from read_each((row for row in rows if row[1]), text_of, wrong)
