"""Lines of text files, gzipped or not.

Reading holds one line in memory, whatever the size of the file. Text is returned exactly as written; a file that
cannot be read raises a DataError with the location.
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
    """Yield the lines of a file without their line ends; only "\\n" and "\\r\\n" end a line."""
    with opened(path) as stream:
        yield from decoded(_with_line_ends(stream, path), str(path), charset=charset)


def _with_line_ends(lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Pass the lines through; reject UTF-16 and bare CR line ends."""
    for number, line in enumerate(lines):
        if number == 0 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            hint = "convert it to UTF-8, e.g. with iconv -f UTF-16 -t UTF-8"
            raise DataError("the file is UTF-16", where=path, hint=hint, code="data.encoding")
        if number == 0 and not line.endswith(b"\n") and line.count(b"\r") > 1:
            hint = "end lines with LF or CR LF, e.g. with tr '\\r' '\\n'"
            raise DataError("the lines end with a bare CR", where=path, hint=hint, code="data.line_ends")
        yield line


def decoded(lines: Iterable[bytes], name: str, *, first: int = 1, charset: str = "utf-8") -> Iterator[str]:
    """Decode lines, numbered from `first`; errors call their file `name`."""
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
    FileNotFoundError: "pass the path of a file that exists",
    IsADirectoryError: "pass the path of a file, not of a folder",
    PermissionError: "check the permissions of the file",
}


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file as bytes, decompressed if its name ends in .gz; any failure while it is open is a DataError."""
    try:
        with path.open("rb") as file:
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield unpacked
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"incomplete or corrupt gzip file: {error}", where=path, hint="compress it again", code="data.torn"
        ) from error
    except OSError as error:
        hint = _RIGHT_INSTEAD_OF.get(type(error), "pass a readable file")
        raise DataError(
            f"cannot be read: {error.strerror or error}", where=path, hint=hint, code="data.unreadable"
        ) from error


def undecodable(error: UnicodeDecodeError, charset: str, where: str) -> DataError:
    return DataError(
        f"byte 0x{error.object[error.start]:02x} is not valid {charset.upper()}",
        where=f"{where}, byte {error.start + 1}",
        hint=f"convert the file to {charset.upper()}",
        code="data.encoding",
    )


def as_line(text: str, where: str) -> str:
    """Return a text that can be written as a line and read back unchanged; reject any other with a DataError."""
    if "\n" in text or text.endswith("\r"):
        hint = "remove the line breaks, or use a format that allows them"
        raise DataError(f"line break inside {text[:60]!r}", where=where, hint=hint, code="data.line_break")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"unpaired surrogate \\u{ord(text[error.start]):04x} at character {error.start}"
        raise DataError(what, where=where, hint="remove it", code="data.encoding") from None
    return text


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file atomically, gzipped if its name ends in .gz."""
    write_all_lines({path: lines})


def write_all_lines(files: Mapping[Path, Iterable[str]]) -> None:
    """Write several files of lines; none appears before all are complete."""
    write_together({path: _content(path, lines) for path, lines in files.items()})


def _content(path: Path, lines: Iterable[str]) -> bytes:
    text = "".join(f"{line}\n" for line in lines)
    # Readers strip one leading BOM, so a text that starts with one needs another.
    content = (codecs.BOM_UTF8 if text.startswith("\ufeff") else b"") + text.encode()
    return gzip.compress(content, mtime=0) if path.name.lower().endswith(".gz") else content
