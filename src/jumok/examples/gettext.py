"""Software translations: gettext PO and MO files."""

import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jumok.errors import DataError
from jumok.text.lines import max_line, opened, read_lines, undecodable

Message = tuple[str, str, str]
"""a text, its translation, and their location"""


def read_po(path: Path) -> Iterator[Message]:
    """Yield the finished translations of a PO file: no header, nothing fuzzy, obsolete or empty."""
    charset = "utf-8"
    # The header may use a charset that it declares only at its end, so first read it as latin-1, which takes any byte.
    header = next(_po_entries(path, "latin-1"), None)
    if header and not any(header.texts("msgid")):
        charset = _header_charset(header.texts("msgstr")[0], path)
    for entry in _po_entries(path, charset):
        if not entry.fuzzy:
            yield from _message_pairs(entry.texts("msgid"), entry.texts("msgstr"), f"{path}:{entry.line}")


def catalogue_language(path: Path) -> str:
    """The language that the header of a PO or MO file declares; empty if it declares none."""
    if path.name.lower().endswith(".mo"):
        header = next(_mo_entries(path), ("", "", ""))[1]
    else:
        entry = next(_po_entries(path, "latin-1"), None)
        header = entry.texts("msgstr")[0] if entry and not any(entry.texts("msgid")) else ""
    declared = re.search(r"^language:[ \t]*([\w@.-]+)", header, re.IGNORECASE | re.MULTILINE)
    return declared[1] if declared else ""


def po_header(language: str) -> list[str]:
    """Lines of the header entry of a PO file."""
    said = [f"Language: {language}", "MIME-Version: 1.0", "Content-Type: text/plain; charset=UTF-8"]
    said.append("Content-Transfer-Encoding: 8bit")
    return ['msgid ""', 'msgstr ""', *(f'"{_po_escaped(line)}\\n"' for line in said)]


def po_entry(source: str, target: str, context: str = "") -> list[str]:
    """Lines of a message, after an empty one; a context distinguishes it from others with the same source."""
    named = [f'msgctxt "{_po_escaped(context)}"'] if context else []
    return ["", *named, f'msgid "{_po_escaped(source)}"', f'msgstr "{_po_escaped(target)}"']


def read_mo(path: Path) -> Iterator[Message]:
    """Yield the translations of a compiled MO file, except for the few that differ by system (<PRIu64>)."""
    for source, target, where in _mo_entries(path):
        yield from _message_pairs(source.split("\0"), target.split("\0"), where)


def _mo_entries(path: Path) -> Iterator[Message]:
    """Yield every entry of an MO file, the header included, which comes first and has an empty source."""
    with opened(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        if not size:
            return

        def bytes_at(offset: int, length: int) -> bytes:
            # Checked before reading, which would otherwise allocate whatever length a damaged file claims.
            if offset + length > size:
                raise DataError(
                    f"the file refers to bytes {offset} to {offset + length}, but has only {size} bytes",
                    where=path,
                    hint="compile the file again",
                    code="data.torn",
                )
            stream.seek(offset)
            return stream.read(length)

        def string_at(entry: int) -> bytes:
            length, offset = struct.unpack(f"{order}2I", bytes_at(entry, 8))
            return bytes_at(offset, length)

        magic = bytes_at(0, min(4, size))
        order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(magic)
        if order is None:
            raise DataError("not a gettext MO file", where=path, hint="compile it with msgfmt", code="data.not_mo")
        revision, count, sources_at, targets_at = struct.unpack(f"{order}4I", bytes_at(4, 16))
        if revision >> 16 > 1:
            raise DataError(
                f"unknown MO revision {revision >> 16}", where=path, hint="use revision 0 or 1", code="data.mo_revision"
            )

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
                raise undecodable(error, charset, where) from None
            yield message, forms, where


def _header_charset(header: str, path: Path) -> str:
    """Charset that a header declares; UTF-8 if it declares none, or still has the template's placeholder."""
    declared = re.search(r"^content-type:.*\bcharset=\s*([^\s;]+)", header, re.IGNORECASE | re.MULTILINE)
    if not declared or declared[1] == "CHARSET":
        return "utf-8"
    charset = declared[1]
    try:
        # Lines, keywords and quotes must be found whatever the charset, so ASCII must stay ASCII.
        readable = 'msgid ""'.encode(charset) == b'msgid ""'
    except (LookupError, ValueError):
        readable = False
    if not readable:
        raise DataError(
            f'unknown charset "{charset}"', where=path, hint="convert the file to charset=UTF-8", code="data.encoding"
        )
    return charset


def _message_pairs(sources: Sequence[str], targets: Sequence[str], where: str) -> Iterator[Message]:
    """Pair the singular with the first form and the plural, if there is one, with the last form."""
    if sources[0]:
        for source, target in zip(sources, (targets[0], targets[-1]), strict=False):
            if source and target:
                yield source, target, where


@dataclass(slots=True)
class _PoEntry:
    fuzzy: bool
    line: int = 0
    size: int = 0
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


_PO_LETTERS = {character: letter for letter, character in _PO_CONTROL.items()}


def _po_entries(path: Path, charset: str) -> Iterator[_PoEntry]:
    """Yield every entry that is not obsolete, including the header and fuzzy ones, when the next one begins."""
    entry: _PoEntry | None = None
    fuzzy = False
    for number, line in enumerate(read_lines(path, charset=charset), start=1):
        line = line.strip()
        if line.startswith("#~"):
            fuzzy = False  # the flag belonged to the obsolete entry
        elif line.startswith("#,"):
            fuzzy |= "fuzzy" in (flag.strip() for flag in line[2:].split(","))
        if not line or line.startswith("#"):
            continue
        parts = _PO_LINE.fullmatch(line)
        if not parts:
            raise DataError(
                "not a line of a PO file",
                where=f"{path}:{number}",
                hint='write a keyword and a "quoted string"',
                code="data.not_po",
            )
        name, strings = parts.groups()
        last = entry.fields[-1][0] if entry else ""
        if not (name in _PO_NEXT[last] if name else last):
            raise DataError(
                f"unexpected {name or 'string'} after {last or 'no keyword'}",
                where=f"{path}:{number}",
                hint=f"write {' or '.join(_PO_NEXT[last])}",
                code="data.not_po",
            )
        if entry is None or name == "msgctxt" or (name == "msgid" and last != "msgctxt"):
            if entry:
                yield entry
            entry, fuzzy = _PoEntry(fuzzy), False
        if name:
            entry.fields.append((name, []))
        if name == "msgid":
            entry.line = number
        entry.size += len(line)
        if entry.size > max_line():
            what, hint = f"an entry of more than {max_line():,} characters", "split it, or set JUMOK_MAX_LINE"
            raise DataError(what, where=f"{path}:{number}", hint=hint, code="data.line_too_long")
        for string in _PO_STRING.findall(strings):
            entry.fields[-1][1].append(_po_unescaped(string, charset, f"{path}:{number}"))
    if entry:
        if not entry.fields[-1][0].startswith("msgstr"):
            raise DataError(
                "the last entry has no msgstr", where=f"{path}:{number}", hint="use the whole PO file", code="data.torn"
            )
        yield entry


def _po_escaped(text: str) -> str:
    return "".join(f"\\{_PO_LETTERS[character]}" if character in _PO_LETTERS else character for character in text)


def _po_unescaped(string: str, charset: str, where: str) -> str:
    def meaning(escape: re.Match[str]) -> str:
        if escape[2]:
            return _PO_CONTROL[escape[2]]
        # Octal and hex escapes are bytes: several in a row may form one character.
        codes = escape[1].split("\\")[1:]
        return bytes(int(code[1:], 16) if code[0] == "x" else int(code, 8) for code in codes).decode(charset)

    try:
        return _PO_ESCAPE.sub(meaning, string)
    except (KeyError, ValueError):
        raise DataError(
            f'invalid escape in "{string}"',
            where=where,
            hint='use \\n, \\t, \\" or the like, or bytes such as \\351 or \\xe9; write a backslash as \\\\',
            code="data.escape",
        ) from None
