"""The lines of text files, packed or not.

When they are read only a line is in memory, whatever the size of the file. Text comes out as it was written; a file
that cannot be read is a DataError that names the place.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jumok.errors import DataError
from jumok.files import write_together


def read_lines(path: Path, *, charset: str = "utf-8") -> Iterator[str]:
    """The lines of a file, without their ends: only "\\n" and "\\r\\n" end a line."""
    with opened(path) as stream:
        yield from decoded(_with_line_ends(stream, path), str(path), charset=charset)


def _with_line_ends(lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """The lines of a file, unless what it has are no lines to begin with."""
    for number, line in enumerate(lines):
        if number == 0 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            hint = "UTF-8, e.g. by iconv -f UTF-16 -t UTF-8"
            raise DataError("the file is UTF-16", where=path, hint=hint, code="data.encoding")
        if number == 0 and not line.endswith(b"\n") and line.count(b"\r") > 1:
            hint = "lines that end with LF or CR LF, e.g. by tr '\\r' '\\n'"
            raise DataError("the lines end with CR alone", where=path, hint=hint, code="data.line_ends")
        yield line


def decoded(lines: Iterable[bytes], name: str, *, first: int = 1, charset: str = "utf-8") -> Iterator[str]:
    """Lines as text, from the line numbered `first`; `name` is what an error calls their file."""
    for number, line in enumerate(lines, start=first):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
            if not line:
                return
        try:
            text = line.decode(charset)
        except UnicodeDecodeError as error:
            raise undecodable(error, charset, f"{name}:{number}") from None
        if text.endswith("\n"):
            text = text[:-1].removesuffix("\r")
        yield text


_RIGHT_INSTEAD_OF: dict[type[OSError], str] = {
    FileNotFoundError: "the path of a file that exists",
    IsADirectoryError: "the path of a file, not of a folder",
    PermissionError: "a file that you may read",
}


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """The bytes of a file, unpacked if its name ends in .gz; what fails while it is open is a DataError."""
    try:
        with path.open("rb") as file:
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield unpacked
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"not a whole gzip file: {error}", where=path, hint="pack it again", code="data.torn"
        ) from error
    except OSError as error:
        hint = _RIGHT_INSTEAD_OF.get(type(error), "a file that can be read")
        raise DataError(
            f"cannot be read: {error.strerror or error}", where=path, hint=hint, code="data.unreadable"
        ) from error


def undecodable(error: UnicodeDecodeError, charset: str, where: str) -> DataError:
    return DataError(
        f"byte 0x{error.object[error.start]:02x} is not valid {charset.upper()}",
        where=f"{where}, byte {error.start + 1}",
        hint=f"a file that is {charset.upper()} throughout",
        code="data.encoding",
    )


def as_line(text: str, where: str) -> str:
    """A text that can be written as a line, and read back as it is; any other is a DataError."""
    if "\n" in text or text.endswith("\r"):
        hint = "a text without line breaks, or a format that can hold them"
        raise DataError(f"a line break inside {text[:60]!r}", where=where, hint=hint, code="data.line_break")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"half a surrogate pair, \\u{ord(text[error.start]):04x}, at character {error.start}"
        raise DataError(what, where=where, hint="whole characters", code="data.encoding") from None
    return text


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """A file with these lines, packed if its name ends in .gz; it is there when it is whole, or not at all."""
    write_all_lines({path: lines})


def write_all_lines(files: Mapping[Path, Iterable[str]]) -> None:
    """Several files of lines, that are there when all of them are whole."""
    write_together({path: _content(path, lines) for path, lines in files.items()})


def _content(path: Path, lines: Iterable[str]) -> bytes:
    text = "".join(f"{line}\n" for line in lines)
    # A reader takes one such mark for that of the file.
    content = (codecs.BOM_UTF8 if text.startswith("\ufeff") else b"") + text.encode()
    return gzip.compress(content, mtime=0) if path.name.lower().endswith(".gz") else content
