"""Readers of text files: plain lines, line-aligned pairs, TSV, gettext PO and MO, TMX.

Every reader is lazy and keeps one line, entry or message in memory, whatever the size of the file. Text comes out
as it was written: no normalisation, no trimming. A file that cannot be read is a DataError that names the place.
"""

import codecs
import gzip
import io
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from jumok.errors import DataError
from jumok.text.tmx import TmxUnits


@dataclass(frozen=True, slots=True)
class Pair:
    """A text, its translation, and the place they were read from."""

    source: str
    target: str
    where: str


def read_lines(path: Path, *, charset: str = "utf-8") -> Iterator[str]:
    """The lines of a file, without their ends: only "\\n" and "\\r\\n" end a line."""
    with _opened(path) as stream:
        yield from decoded(_with_line_ends(stream, path), str(path), charset=charset)


def _with_line_ends(lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """The lines of a file, unless what it has are no lines to begin with."""
    for number, line in enumerate(lines):
        if number == 0 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            right = "UTF-8, e.g. by iconv -f UTF-16 -t UTF-8"
            raise DataError("the file is UTF-16", where=path, right=right)
        if number == 0 and not line.endswith(b"\n") and line.count(b"\r") > 1:
            right = "lines that end with LF or CR LF, e.g. by tr '\\r' '\\n'"
            raise DataError("the lines end with CR alone", where=path, right=right)
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
            raise _undecodable(error, charset, f"{name}:{number}") from None
        if text.endswith("\n"):
            text = text[:-1].removesuffix("\r")
        yield text


def read_parallel(source: Path, target: Path) -> Iterator[Pair]:
    """Two files, where each line of one is the translation of the same line of the other."""
    source_lines, target_lines = read_lines(source), read_lines(target)
    for number, (text, translation) in enumerate(zip_longest(source_lines, target_lines), start=1):
        if text is None or translation is None:
            source_count = number - 1 if text is None else number + sum(1 for _ in source_lines)
            target_count = number - 1 if translation is None else number + sum(1 for _ in target_lines)
            raise DataError(
                f"the files have different line counts: {source_count} and {target_count}",
                where=f"{source} and {target}",
                right="line n of one file is the translation of line n of the other",
            )
        yield Pair(text, translation, f"{source}:{number}")


# fmt: off
# What people call the columns of a table of pairs. Two of these are a header, not a text and its translation.
_COLUMN_NAMES = {
    "source", "target", "src", "tgt", "trg", "input", "output", "prompt", "response", "question", "answer", "query",
    "reply", "text", "translation", "reference", "sentence", "text_a", "text_b", "text1", "text2", "sentence1",
    "sentence2", "id", "index", "label", "score",
}
# fmt: on


def read_tsv(path: Path, *, columns: tuple[str, str] | None = None, languages: tuple[str, ...] = ()) -> Iterator[Pair]:
    """Two tab-separated columns: those the header names, or the first two of a file without a header.

    A file has a header if `columns` are given. If not, a first line that would be a pair of column names, or of the
    codes of the languages, is refused rather than learned. Quotes mean nothing: a cell is what stands between tabs.
    """
    source, target = 0, 1
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if columns and number == 1:
            if missing := ", ".join(name for name in columns if name not in cells):
                raise DataError(f"no column {missing}", where=f"{path}:1", right=f"of {', '.join(cells)}")
            source, target = map(cells.index, columns)
            continue
        if number == 1 and _are_column_names(cells[:2], languages):
            right = "the names of two columns (columns in [data] of the recipe, --columns for the doctor),"
            right += " or the file without this line"
            raise DataError(f"this looks like a header: {', '.join(cells)}", where=f"{path}:1", right=right)
        needed = max(source, target) + 1
        if len(cells) < needed:
            raise DataError(
                f"too few columns: {len(cells)}",
                where=f"{path}:{number}",
                right=f"at least {needed}, separated by tabs",
            )
        yield Pair(cells[source], cells[target], f"{path}:{number}")


def _are_column_names(cells: Sequence[str], languages: Sequence[str]) -> bool:
    names = {cell.strip(' "').lower() for cell in cells}
    # Two different ones: a dictionary may well begin with a word that both languages have, such as "question".
    return len(names) == 2 and names <= _COLUMN_NAMES.union(language.lower() for language in languages)


def read_po(path: Path) -> Iterator[Pair]:
    """The finished translations of a gettext PO file: no header, nothing fuzzy, obsolete or empty."""
    charset = "utf-8"
    # The header may hold bytes of a charset that only its end declares, so a first look takes any byte.
    header = next(_po_entries(path, "latin-1"), None)
    if header and not any(header.texts("msgid")):
        charset = _header_charset(header.texts("msgstr")[0], path)
    for entry in _po_entries(path, charset):
        if not entry.fuzzy:
            yield from _message_pairs(entry.texts("msgid"), entry.texts("msgstr"), f"{path}:{entry.line}")


def read_mo(path: Path) -> Iterator[Pair]:
    """The translations of a compiled gettext MO file, but for the few that differ by system (<PRIu64>)."""
    with _opened(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        if not size:
            return

        def bytes_at(offset: int, length: int) -> bytes:
            # Checked before the read, which would else reserve whatever length a torn file claims.
            if offset + length > size:
                raise DataError(
                    f"bytes {offset} to {offset + length} of a file of {size} bytes",
                    where=path,
                    right="a whole MO file: compile it again",
                )
            stream.seek(offset)
            return stream.read(length)

        def string_at(entry: int) -> bytes:
            length, offset = struct.unpack(f"{order}2I", bytes_at(entry, 8))
            return bytes_at(offset, length)

        magic = bytes_at(0, min(4, size))
        order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(magic)
        if order is None:
            raise DataError("not a gettext MO file", where=path, right="a file that msgfmt compiled")
        revision, count, sources_at, targets_at = struct.unpack(f"{order}4I", bytes_at(4, 16))
        if revision >> 16 > 1:
            raise DataError(f"unknown MO revision {revision >> 16}", where=path, right="revision 0 or 1")

        charset = "utf-8"
        for index in range(count):
            where = f"{path}, message {index + 1}"
            source, target = string_at(sources_at + 8 * index), string_at(targets_at + 8 * index)
            if not source:
                charset = _header_charset(target.decode("latin-1"), path)
            try:
                message = source.decode(charset).split("\x04", 1)[-1]
                forms = target.decode(charset)
            except UnicodeDecodeError as error:
                raise _undecodable(error, charset, where) from None
            yield from _message_pairs(message.split("\0"), forms.split("\0"), where)


def read_tmx(path: Path, *, source: str, target: str) -> Iterator[Pair]:
    """The translation units of a TMX file that have a text in both languages; "en" also means "en-US"."""
    units = TmxUnits(path, source, target)
    with _opened(path) as stream:
        chunk = stream.read(1 << 16)
        while chunk:
            following = stream.read(1 << 16)
            for text, translation, line in units.feed(chunk, last=not following):
                yield Pair(text, translation, f"{path}:{line}")
            chunk = following


def read_pairs(
    paths: Sequence[Path], *, source: str, target: str, columns: tuple[str, str] | None = None
) -> Iterator[Pair]:
    """The pairs of two line-aligned files, or of one file in the format that its name ends in."""
    if len(paths) == 2:
        return read_parallel(*paths)
    if len(paths) == 1:
        name = paths[0].name.lower()
        # An MO file is read at random places, which a packed file cannot offer.
        if name.endswith(".mo"):
            return read_mo(paths[0])
        name = name.removesuffix(".gz")
        if name.endswith(".tsv"):
            return read_tsv(paths[0], columns=columns, languages=(source, target))
        if name.endswith(".po"):
            return read_po(paths[0])
        if name.endswith(".tmx"):
            return read_tmx(paths[0], source=source, target=target)
    raise DataError(
        "no known format of sentence pairs",
        where=", ".join(map(str, paths)) or "no file at all",
        right="two line-aligned files, or one .tsv, .po or .tmx (each also .gz) or .mo file",
    )


_RIGHT_INSTEAD_OF: dict[type[OSError], str] = {
    FileNotFoundError: "the path of a file that exists",
    IsADirectoryError: "the path of a file, not of a folder",
    PermissionError: "a file that you may read",
}


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """The bytes of a file, unpacked if its name ends in .gz; what fails while it is open is a DataError."""
    try:
        with path.open("rb") as file:
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield unpacked
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"not a whole gzip file: {error}", where=path, right="pack it again") from error
    except OSError as error:
        right = _RIGHT_INSTEAD_OF.get(type(error), "a file that can be read")
        raise DataError(f"cannot be read: {error.strerror or error}", where=path, right=right) from error


def _undecodable(error: UnicodeDecodeError, charset: str, where: str) -> DataError:
    return DataError(
        f"byte 0x{error.object[error.start]:02x} is not valid {charset.upper()}",
        where=f"{where}, byte {error.start + 1}",
        right=f"a file that is {charset.upper()} throughout",
    )


def _header_charset(header: str, path: Path) -> str:
    """The charset that a gettext header declares: UTF-8 if it declares none, or still the template's word."""
    declared = re.search(r"^content-type:.*\bcharset=\s*([^\s;]+)", header, re.IGNORECASE | re.MULTILINE)
    if not declared or declared[1] == "CHARSET":
        return "utf-8"
    charset = declared[1]
    try:
        # Keywords and quotes are found before the text is understood, so ASCII must stay ASCII.
        readable = 'msgid ""'.encode(charset) == b'msgid ""'
    except (LookupError, ValueError):
        readable = False
    if not readable:
        raise DataError(f'charset "{charset}" cannot be read', where=path, right="charset=UTF-8 in the header")
    return charset


def _message_pairs(sources: Sequence[str], targets: Sequence[str], where: str) -> Iterator[Pair]:
    """The singular with the first form and the plural, if there is one, with the last form."""
    if sources[0]:
        for source, target in zip(sources, (targets[0], targets[-1]), strict=False):
            if source and target:
                yield Pair(source, target, where)


@dataclass(slots=True)
class _PoEntry:
    fuzzy: bool
    line: int = 0
    fields: list[tuple[str, list[str]]] = field(default_factory=list)

    def texts(self, prefix: str) -> list[str]:
        return ["".join(pieces) for name, pieces in self.fields if name.startswith(prefix)]


_PO_LINE = re.compile(r'((?:msgctxt|msgid_plural|msgid|msgstr)(?:\[[0-8]\])?)?\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
_PO_NEXT: dict[str, tuple[str, ...]] = {
    "": ("msgctxt", "msgid"),
    "msgctxt": ("msgid",),
    "msgid": ("msgstr", "msgid_plural"),
    "msgid_plural": ("msgstr[0]",),
    "msgstr": ("msgctxt", "msgid"),
    # No language has more than six plural forms.
    **{f"msgstr[{n}]": ("msgctxt", "msgid", f"msgstr[{n + 1}]") for n in range(9)},
}
_PO_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PO_ESCAPE = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9A-Fa-f]{1,2})+)|\\(.)")
_PO_CONTROL = dict(zip('abfnrtv"\\', '\a\b\f\n\r\t\v"\\', strict=True))


def _po_entries(path: Path, charset: str) -> Iterator[_PoEntry]:
    """Every entry that is not obsolete, the header and fuzzy ones too, as soon as the next one begins."""
    entry: _PoEntry | None = None
    fuzzy = False
    for number, line in enumerate(read_lines(path, charset=charset), start=1):
        line = line.strip()
        if line.startswith("#~"):
            fuzzy = False  # the flag was that of the obsolete entry
        elif line.startswith("#,"):
            fuzzy |= "fuzzy" in (flag.strip() for flag in line[2:].split(","))
        if not line or line.startswith("#"):
            continue
        parts = _PO_LINE.fullmatch(line)
        if not parts:
            raise DataError(
                "not a line of a PO file", where=f"{path}:{number}", right='a keyword and a "quoted string"'
            )
        name, strings = parts.groups()
        last = entry.fields[-1][0] if entry else ""
        if not (name in _PO_NEXT[last] if name else last):
            raise DataError(
                f"{name or 'a string'} after {last or 'no keyword'}",
                where=f"{path}:{number}",
                right=" or ".join(_PO_NEXT[last]),
            )
        if entry is None or name == "msgctxt" or (name == "msgid" and last != "msgctxt"):
            if entry:
                yield entry
            entry, fuzzy = _PoEntry(fuzzy), False
        if name:
            entry.fields.append((name, []))
        if name == "msgid":
            entry.line = number
        for string in _PO_STRING.findall(strings):
            entry.fields[-1][1].append(_po_unescaped(string, charset, f"{path}:{number}"))
    if entry:
        if not entry.fields[-1][0].startswith("msgstr"):
            raise DataError("the last entry has no msgstr", where=f"{path}:{number}", right="a whole PO file")
        yield entry


def _po_unescaped(string: str, charset: str, where: str) -> str:
    def meaning(escape: re.Match[str]) -> str:
        if escape[2]:
            return _PO_CONTROL[escape[2]]
        # Octal and hex escapes are bytes: a whole run of them may make one character.
        codes = escape[1].split("\\")[1:]
        return bytes(int(code[1:], 16) if code[0] == "x" else int(code, 8) for code in codes).decode(charset)

    try:
        return _PO_ESCAPE.sub(meaning, string)
    except (KeyError, ValueError):
        raise DataError(
            f'a wrong escape in "{string}"',
            where=where,
            right='\\n \\t \\" \\\\ and the like, or bytes as \\351 or \\xe9; a backslash is \\\\',
        ) from None
