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
from xml.parsers import expat

from jumok.errors import DataError


@dataclass(frozen=True, slots=True)
class Pair:
    """A text, its translation, and the place they were read from."""

    source: str
    target: str
    where: str


def read_lines(path: Path, *, charset: str = "utf-8") -> Iterator[str]:
    """The lines of a file, without their ends: only "\\n" and "\\r\\n" end a line."""
    with _opened(path) as stream:
        yield from decoded(stream, str(path), charset=charset)


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


def read_tsv(path: Path, *, columns: tuple[str, str] | None = None) -> Iterator[Pair]:
    """Two tab-separated columns: those the header names, or the first two of a file without a header.

    Quotes mean nothing: a cell is whatever stands between two tabs.
    """
    source, target = 0, 1
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if columns and number == 1:
            if missing := ", ".join(name for name in columns if name not in cells):
                raise DataError(f"no column {missing}", where=f"{path}:1", right=f"of {', '.join(cells)}")
            source, target = map(cells.index, columns)
            continue
        needed = max(source, target) + 1
        if len(cells) < needed:
            raise DataError(
                f"too few columns: {len(cells)}",
                where=f"{path}:{number}",
                right=f"at least {needed}, separated by tabs",
            )
        yield Pair(cells[source], cells[target], f"{path}:{number}")


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
    units = _TmxUnits(path, source, target)
    with _opened(path) as stream:
        chunk = stream.read(1 << 16)
        while chunk:
            following = stream.read(1 << 16)
            yield from units.feed(chunk, last=not following)
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
            return read_tsv(paths[0], columns=columns)
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


_TMX_MARKUP = {"bpt", "ept", "ph", "it", "ut"}


class _TmxUnits:
    """Takes the bytes of a TMX file and gives pairs.

    On expat itself and not on ElementTree, whose fast parser has no hook that sees a DTD before it is obeyed.
    """

    def __init__(self, path: Path, source: str, target: str) -> None:
        self._path = path
        self._wanted = [language.lower().replace("_", "-") for language in (source, target)]
        self._language: str | None = None
        self._line = 0
        self._texts: dict[str, str] = {}
        self._pieces: list[str] = []
        # For each open element from <seg> on: whether its text is for the reader. Empty outside of a <seg>.
        self._translatable: list[bool] = []
        self._pairs: list[Pair] = []
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.SkippedEntityHandler = self._unknown_entity
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._finish
        self._parser.CharacterDataHandler = self._text

    def feed(self, chunk: bytes, *, last: bool = False) -> list[Pair]:
        """The pairs that these bytes complete."""
        try:
            self._parser.Parse(chunk, last)
        except expat.ExpatError as error:
            raise self._wrong(f"malformed XML: {expat.ErrorString(error.code)}", "a whole file") from error
        except (LookupError, ValueError) as error:
            raise self._wrong(f"the encoding cannot be read: {error}", "a file in UTF-8") from error
        pairs, self._pairs = self._pairs, []
        return pairs

    def _wrong(self, what: str, right: str) -> DataError:
        return DataError(what, where=f"{self._path}:{self._parser.CurrentLineNumber}", right=right)

    def _doctype(self, name: str, system: str | None, public: str | None, own_declarations: bool) -> None:
        if own_declarations:
            raise self._wrong("the file declares a DTD of its own", "at most a plain <!DOCTYPE tmx ...>")

    def _unknown_entity(self, name: str, is_parameter: bool) -> None:
        raise self._wrong(f"unknown entity &{name};", "the character itself, or its number: &#160;")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._translatable:
            self._translatable.append(name == "sub" or (self._translatable[-1] and name not in _TMX_MARKUP))
        elif name == "tu":
            self._texts, self._line = {}, self._parser.CurrentLineNumber
        elif name == "tuv":
            tag = attributes.get("xml:lang", attributes.get("lang", "")).lower().replace("_", "-")
            fitting = (wanted for wanted in self._wanted if f"{tag}-".startswith(f"{wanted}-"))
            # The closest wins, so that "pt" and "pt-br" can be two languages.
            self._language = max(fitting, key=len, default=None)
        elif name == "seg" and self._language:
            self._pieces, self._translatable = [], [True]

    def _text(self, text: str) -> None:
        if self._translatable and self._translatable[-1]:
            self._pieces.append(text)

    def _finish(self, name: str) -> None:
        if self._translatable:
            self._translatable.pop()
            if not self._translatable and self._language:
                self._texts.setdefault(self._language, "".join(self._pieces))
        elif name == "tuv":
            self._language = None
        elif name == "tu":
            source, target = (self._texts.get(language) for language in self._wanted)
            if source and target:
                self._pairs.append(Pair(source, target, f"{self._path}:{self._line}"))
