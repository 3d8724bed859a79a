"""Readers of examples that people have labelled: tables with a label, and columns of words with tags.

Like the readers of pairs they are lazy, leave the text as it was written, and name the place of what is wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jumok.errors import DataError
from jumok.text.formats import read_lines


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, or two, with a label, and the place they were read from."""

    text: str
    pair: str | None
    label: str
    where: str


@dataclass(frozen=True, slots=True)
class Tagged:
    """The words of a sentence with a tag each."""

    words: list[str]
    tags: list[str]
    where: str


def read_labelled(path: Path, *, text: str, label: str, pair: str | None = None) -> Iterator[Labelled]:
    """A TSV whose header names the columns; quotes mean nothing, a cell is what stands between two tabs."""
    names = [text, label, *([] if pair is None else [pair])]
    places: list[int] = []
    header: list[str] = []
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if number == 1:
            header = cells
            if missing := ", ".join(name for name in names if name not in cells):
                right = f"a header with these columns; it has {', '.join(cells)}"
                raise DataError(f"no column {missing}", where=f"{path}:1", right=right)
            places = [cells.index(name) for name in names]
            continue
        if len(cells) != len(header):
            right = f"{len(header)} as in the header, separated by tabs"
            raise DataError(f"{len(cells)} columns", where=f"{path}:{number}", right=right)
        found = [cells[place] for place in places]
        if not found[1].strip():
            raise DataError("an empty label", where=f"{path}:{number}", right=f"a label in the column {label}")
        yield Labelled(found[0], None if pair is None else found[2], found[1].strip(), f"{path}:{number}")


def read_tagged(path: Path) -> Iterator[Tagged]:
    """CoNLL columns: the first is the word, the last the tag; an empty line ends a sentence, -DOCSTART- is no word."""
    words: list[str] = []
    tags: list[str] = []
    first = 1
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t") if "\t" in line else line.split(" ")
        if not line.strip() or columns[0] == "-DOCSTART-":
            if words:
                yield Tagged(words, tags, f"{path}:{first}")
            words, tags, first = [], [], number + 1
            continue
        if len(columns) < 2 or not columns[0].strip() or not columns[-1].strip():
            right = "a word, perhaps more columns, and a tag, separated by spaces or tabs"
            raise DataError(f"no word with a tag: {line[:60]!r}", where=f"{path}:{number}", right=right)
        words.append(columns[0])
        tags.append(columns[-1].strip())
    if words:
        yield Tagged(words, tags, f"{path}:{first}")
