"""Documents, read as streams of sentences.

Only part of a line is in memory, however large the file is. Sentences are stripped of white space; otherwise the text
is unchanged, headings included.
"""

import codecs
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal

from jumok.errors import DataError, Wrong, refuse
from jumok.examples.faults import say_each
from jumok.examples.tables import read_columns
from jumok.text.lines import as_line, opened, write_lines
from jumok.text.sentences import iter_spans

DocumentFormat = Literal["blank_line", "line", "file"]
_CHUNK = 1 << 16  # bytes to read at once
_PIECE = 1 << 20  # characters: longer lines are read in pieces
_LOOK_AHEAD = 4096  # characters after a sentence that may decide where it ends


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a document, or a line if lines are not split, and its location."""

    text: str
    first: bool
    """whether it begins a document"""
    where: str = ""


def read_documents(path: Path, form: DocumentFormat, *, split: bool) -> Iterator[Sentence]:
    """Yield the sentences of a file, or of all .txt and .txt.gz files below a folder, sorted by path.

    Documents are separated by blank lines ("blank_line"), or each line ("line") or file ("file") is one. No document
    spans two files or is empty. A line is a sentence, or with `split` a paragraph of sentences.
    Hidden files and folders, and links to folders, are skipped.
    """
    for file in text_files(path) if os.path.isdir(path) else [path]:
        yield from _read_file(file, form, split)


def read_document_column(path: Path, column: str, *, split: bool) -> Iterator[Sentence]:
    """Yield the sentences of a table's column in which each row is a document; empty rows are skipped."""
    for where, (cell,) in read_columns(path, [column]):
        first = True
        for line in cell.splitlines():
            for start, end in iter_spans(line) if split else [(0, len(line))]:
                if text := line[start:end].strip():
                    yield Sentence(text, first, where)
                    first = False


def write_documents(path: Path, sentences: Iterable[Sentence], *, wrong: Wrong = refuse) -> None:
    """Write a file (.gz too) with one sentence per line and a blank line between documents."""
    begins = False

    def lines(sentence: Sentence) -> list[str]:
        nonlocal begins
        begins |= sentence.first  # even if its first sentence cannot be written
        if not sentence.text.strip() or sentence.text != sentence.text.strip():
            what = f"a blank sentence, or white space around it: {sentence.text[:60]!r}"
            raise DataError(what, where=sentence.where, hint="strip or remove it", code="data.white_space")
        line = as_line(sentence.text, sentence.where)
        apart, begins = [""] if begins else [], False
        return [*apart, line]

    found = [line for said in say_each(sentences, lines, wrong) for line in said]
    write_lines(path, found[1:] if found[:1] == [""] else found)


def text_files(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        what = f"cannot be read: {error.strerror or error}"
        hint = "make the folder readable"
        raise DataError(what, where=error.filename, hint=hint, code="data.unreadable") from error

    files: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        visible = [name for name in names if not name.startswith(".")]
        files += [Path(place, name) for name in visible if name.lower().endswith((".txt", ".txt.gz"))]
    if not files:
        hint = "add files that end in .txt or .txt.gz"
        raise DataError("no text files in this folder", where=folder, hint=hint, code="data.no_files")
    return sorted(files)


def _read_file(path: Path, form: DocumentFormat, split: bool) -> Iterator[Sentence]:
    first = True
    for number, pieces in groupby(_pieces(path), key=itemgetter(0)):
        blank = True
        for _, piece in pieces:
            for start, end in iter_spans(piece) if split else [(0, len(piece))]:
                if text := piece[start:end].strip():
                    yield Sentence(text, first, f"{path}:{number}")
                    first = blank = False
        first |= form == "line" or (form == "blank_line" and blank)


def _pieces(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines; a long line comes in several pieces, each ending where a sentence does."""
    with opened(path) as stream:
        number = 1
        decoded = 0  # bytes of this line
        data, text = b"", ""
        while True:
            chunk = stream.readline(_CHUNK)
            if number == 1 and not decoded:
                chunk = chunk.removeprefix(codecs.BOM_UTF8)
            data += chunk
            ends = not chunk or chunk.endswith(b"\n")
            try:
                # Bytes left over are the beginning of a character.
                more, used = codecs.utf_8_decode(data, "strict", ends)
            except UnicodeDecodeError as error:
                raise DataError(
                    f"byte 0x{data[error.start]:02x} is not valid UTF-8",
                    where=f"{path}:{number}, byte {decoded + error.start + 1}",
                    hint="convert the file to UTF-8",
                    code="data.encoding",
                ) from None
            text += more
            decoded += used
            data = data[used:]
            if ends:
                yield number, text
                if not chunk:
                    return
                number, decoded, text = number + 1, 0, ""
            elif len(text) >= _PIECE:
                cut = _cut(text)
                piece, text = text[:cut], text[cut:]
                yield number, piece


def _cut(text: str) -> int:
    """Find where to split a partly read line: where a sentence begins, else at white space, else at its end."""
    # A generator: there may be half a million spans.
    if begin := max((start for start, _ in iter_spans(text) if start <= len(text) - _LOOK_AHEAD), default=0):
        return begin
    words = text.rsplit(maxsplit=1)
    return len(words[0]) if len(words) == 2 else len(text)
