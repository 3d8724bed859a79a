"""Lines of text files, gzipped or not.

Reading holds one line in memory, whatever the size of the file. A line has at most 1,000,000 characters, or as many as
the environment variable JUMOK_MAX_LINE says; of a longer one, only the beginning is ever held. Text is returned exactly
as written; a file or a line that cannot be read is a DataError with the location.
"""

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jumok.errors import DataError, InputError, Wrong, refuse
from jumok.files import write_together

MAX_LINE = 1_000_000
"""characters of a line, unless JUMOK_MAX_LINE says otherwise"""
MAX_LINES = 100
"""a file that has to be read as a whole has at most as many bytes as this many of the longest lines have characters"""
_BLOCK = 1 << 16  # bytes to read at once


def max_line() -> int:
    """Characters that a line may have."""
    given = os.environ.get("JUMOK_MAX_LINE", "").strip()
    if given and not (given.isascii() and given.isdigit() and int(given)):
        hint = f"set it to a number of characters, such as {MAX_LINE}"
        raise InputError(
            f"not a number of characters: {given!r}", where="JUMOK_MAX_LINE", hint=hint, code="input.limit"
        )
    return int(given) if given else MAX_LINE


def read_lines(path: Path, *, charset: str = "utf-8", wrong: Wrong = refuse) -> Iterator[str]:
    """Yield the lines of a file without their line ends; only "\\n" and "\\r\\n" end a line."""
    return (line for _, line in numbered_lines(path, charset=charset, wrong=wrong))


def numbered_lines(
    path: Path, *, charset: str = "utf-8", name: str | None = None, wrong: Wrong = refuse
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from 1; `wrong` gets the error of a line that cannot be read.

    Errors call the file `name`, or as it is called.
    """
    with opened(path) as stream:
        blocks = iter(lambda: stream.read1(_BLOCK), b"")
        lines = (line for lines in split_lines(blocks) for line in lines)
        yield from decoded(_with_line_ends(lines, path), name or str(path), charset=charset, wrong=wrong)


def whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their ends, byte for byte; one that is too long is a DataError."""
    most = _most_bytes(max_line())
    with opened(path) as stream:
        blocks = iter(lambda: stream.read1(_BLOCK), b"")
        lines = (line for lines in split_lines(blocks) for line in lines)
        for number, line in enumerate(_with_line_ends(lines, path), start=1):
            if len(line) > most:
                raise _too_long(f"{path}:{number}", max_line())
            yield line


def numbered_whole_lines(path: Path, *, charset: str) -> Iterator[tuple[int, str]]:
    """Yield the decoded lines of a file with their ends, and their numbers, from 1; a BOM is left out."""
    most = max_line()
    for number, line in enumerate(whole_lines(path), start=1):
        if number == 1 and not (line := line.removeprefix(codecs.BOM_UTF8)):
            return
        text = _decode(line, charset, f"{path}:{number}", most)
        yield number, text + ("\r\n" if line.endswith(b"\r\n") else "\n" if line.endswith(b"\n") else "")


def read_text(path: Path, *, charset: str = "utf-8") -> str:
    """Read a file that makes sense only as a whole, such as a JSON object."""
    most = MAX_LINES * max_line()
    with opened(path) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        hint = "split it into several files, or set JUMOK_MAX_LINE"
        raise DataError(f"more than {most:,} bytes", where=path, hint=hint, code="data.file_too_large")
    _refuse_utf16(content, path)
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode(charset)
    except UnicodeDecodeError as error:
        start = content.rfind(b"\n", 0, error.start) + 1
        number = content.count(b"\n", 0, start) + 1
        error.object, error.start = content[start : error.end], error.start - start
        raise undecodable(error, charset, f"{path}:{number}") from None


def split_lines(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield, for each block, the lines that it completes, with their ends; the last one may lack its end.

    What a line has beyond `_most_bytes` is dropped while it is read.
    """
    most = _most_bytes(max_line())
    line = bytearray()
    for block in blocks:
        lines = []
        for part in io.BytesIO(block):
            if not line and part.endswith(b"\n"):  # nearly every line is whole in its block
                lines.append(part)
                continue
            if len(line) <= most:
                line += part
            if part.endswith(b"\n"):
                lines.append(bytes(line))
                line.clear()
        yield lines
    if line:
        yield [bytes(line)]


def _most_bytes(characters: int) -> int:
    """Bytes beyond which a line is too long in any encoding: four for each character, a BOM and a line end."""
    return 4 * characters + len(codecs.BOM_UTF8) + 2


def _with_line_ends(lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Pass the lines through; reject UTF-16 and bare CR line ends."""
    for number, line in enumerate(lines):
        if number == 0:
            _refuse_utf16(line, path)
        if number == 0 and not line.endswith(b"\n") and line.count(b"\r") > 1:
            hint = "end lines with LF or CR LF, e.g. with tr '\\r' '\\n'"
            raise DataError("the lines end with a bare CR", where=path, hint=hint, code="data.line_ends")
        yield line


def _refuse_utf16(beginning: bytes, path: Path) -> None:
    if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        hint = "convert it to UTF-8, e.g. with iconv -f UTF-16 -t UTF-8"
        raise DataError("the file is UTF-16", where=path, hint=hint, code="data.encoding")


def decoded(
    lines: Iterable[bytes], name: str, *, first: int = 1, charset: str = "utf-8", wrong: Wrong = refuse
) -> Iterator[tuple[int, str]]:
    """Decode lines and number them from `first`; errors call their file `name`."""
    most = max_line()
    for number, line in enumerate(lines, start=first):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
            if not line:
                return
        try:
            text = _decode(line, charset, f"{name}:{number}", most)
        except DataError as error:
            wrong(error)
        else:
            yield number, text


def _decode(line: bytes, charset: str, where: str, most: int) -> str:
    """Decode a line, without its end; of one with more than `most` characters, only the beginning may be left."""
    text = ""
    if not (long := len(line) > _most_bytes(most)):
        try:
            text = line.decode(charset)
        except UnicodeDecodeError as error:
            raise undecodable(error, charset, where) from None
        if text.endswith("\n"):
            text = text[:-1].removesuffix("\r")
    if long or len(text) > most:
        raise _too_long(where, most)
    return text


def _too_long(where: str, most: int) -> DataError:
    hint = "split it, or set JUMOK_MAX_LINE"
    return DataError(f"more than {most:,} characters", where=where, hint=hint, code="data.line_too_long")


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
