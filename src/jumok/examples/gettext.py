"""Software translations: gettext PO and MO files."""

import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jumok.errors import DataError
from jumok.text.lines import max_line, numbered_whole_lines, opened, read_lines, undecodable

Message = tuple[str, str, str]
"""a text, its translation, and their location"""


def read_po(path: Path) -> Iterator[Message]:
    """Yield the finished translations of a PO file: no header, nothing fuzzy, obsolete or empty."""
    for entry in po_entries(path, po_charset(path)):
        if entry.fields and not entry.fuzzy:
            yield from _message_pairs(entry.texts("msgid"), entry.texts("msgstr"), f"{path}:{entry.line}")


def catalogue_language(path: Path) -> str:
    """The language that the header of a PO or MO file declares; empty if it declares none."""
    if path.name.lower().endswith(".mo"):
        header = next(_mo_entries(path), ("", "", ""))[1]
    else:
        entry = next(po_entries(path, "latin-1"), None)
        header = entry.texts("msgstr")[0] if entry and not any(entry.texts("msgid")) else ""
    declared = re.search(r"^language:[ \t]*([\w@.-]+)", header, re.IGNORECASE | re.MULTILINE)
    return declared[1] if declared else ""


def po_charset(path: Path) -> str:
    """The charset that the header of a PO file declares."""
    # It may itself use the charset that it declares only at its end, so it is read as latin-1, which takes any byte.
    header = next(po_entries(path, "latin-1"), None)
    return _header_charset(header.texts("msgstr")[0], path) if header and header.is_header else "utf-8"


@dataclass(frozen=True, slots=True)
class PoCounts:
    """The messages of a PO file, without its header, as `msgfmt --statistics` counts them."""

    translated: int
    fuzzy: int
    untranslated: int
    obsolete: int
    """commented out: no longer in the program"""


def count_po(path: Path) -> PoCounts:
    """How much of a PO file `read_po` reads: only what is translated."""
    translated = fuzzy = untranslated = 0
    for entry in po_entries(path, "latin-1"):  # which takes any byte
        if any(entry.texts("msgid")):
            if not entry.texts("msgstr")[0]:
                untranslated += 1
            elif entry.fuzzy:
                fuzzy += 1
            else:
                translated += 1
    obsolete = sum(bool(_PO_OBSOLETE.match(line)) for line in read_lines(path, charset="latin-1"))
    return PoCounts(translated, fuzzy, untranslated, obsolete)


def po_header(language: str) -> list[str]:
    """Lines of the header entry of a PO file."""
    said = [f"Language: {language}", "MIME-Version: 1.0", "Content-Type: text/plain; charset=UTF-8"]
    said.append("Content-Transfer-Encoding: 8bit")
    return ['msgid ""', 'msgstr ""', *(f'"{po_escaped(line)}\\n"' for line in said)]


def po_entry(source: str, target: str, context: str = "") -> list[str]:
    """Lines of a message, after an empty one; a context distinguishes it from others with the same source."""
    named = [f'msgctxt "{po_escaped(context)}"'] if context else []
    return ["", *named, f'msgid "{po_escaped(source)}"', f'msgstr "{po_escaped(target)}"']


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
class PoEntry:
    """A message, or what comes after the last one, which has no fields."""

    fuzzy: bool = False
    line: int = 0
    """number of the line with its msgid"""
    size: int = 0
    fields: list[tuple[str, list[str]]] = field(default_factory=list)
    """keywords, each with its strings"""
    lines: list[tuple[str, int | None]] = field(default_factory=list)
    """each line as it is in the file, and the field that it belongs to; comments are before their message"""

    def texts(self, prefix: str) -> list[str]:
        return ["".join(pieces) for name, pieces in self.fields if name.startswith(prefix)]

    @property
    def is_header(self) -> bool:
        return bool(self.fields) and self.fields[0][0] == "msgid" and not any(self.texts("msgid"))


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


_PO_OBSOLETE = re.compile(r"\s*#~\s*msgid\s*\"")


PO_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


PO_ESCAPE = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9A-Fa-f]{1,2})+)|\\(.)")


_PO_CONTROL = dict(zip('abfnrtv"\\', '\a\b\f\n\r\t\v"\\', strict=True))


_PO_LETTERS = {character: letter for letter, character in _PO_CONTROL.items()}


def po_entries(path: Path, charset: str) -> Iterator[PoEntry]:
    """Yield every entry that is not obsolete, including the header and fuzzy ones, when the next one begins."""
    entry = PoEntry()
    comments: list[tuple[str, int | None]] = []
    fuzzy, number = False, 0
    for number, whole in numbered_whole_lines(path, charset=charset):
        line = whole.strip()
        if line.startswith("#~"):
            fuzzy = False  # the flag belonged to the obsolete entry
        elif line.startswith("#,"):
            fuzzy |= "fuzzy" in (flag.strip() for flag in line[2:].split(","))
        if not line or line.startswith("#"):
            comments.append((whole, None))
            continue
        name, strings = _po_line(line, f"{path}:{number}")
        last = entry.fields[-1][0] if entry.fields else ""
        _require_order(name, last, f"{path}:{number}")
        if not last or name == "msgctxt" or (name == "msgid" and last != "msgctxt"):
            if last:
                yield entry
            entry, fuzzy = PoEntry(fuzzy), False
        if name:
            entry.fields.append((name, []))
        if name == "msgid":
            entry.line = number
        entry.lines += [*comments, (whole, len(entry.fields) - 1)]
        comments = []
        entry.size += len(line)
        if entry.size > max_line():
            what, hint = f"an entry of more than {max_line():,} characters", "split it, or set JUMOK_MAX_LINE"
            raise DataError(what, where=f"{path}:{number}", hint=hint, code="data.line_too_long")
        for string in PO_STRING.findall(strings):
            entry.fields[-1][1].append(po_unescaped(string, charset, f"{path}:{number}"))
    if entry.fields:
        if not entry.fields[-1][0].startswith("msgstr"):
            raise DataError(
                "the last entry has no msgstr", where=f"{path}:{number}", hint="use the whole PO file", code="data.torn"
            )
        yield entry
    if comments:
        yield PoEntry(lines=comments)


def _po_line(line: str, where: str) -> tuple[str | None, str]:
    """The keyword of a line, if it has one, and its strings."""
    parts = _PO_LINE.fullmatch(line)
    if not parts:
        hint = 'write a keyword and a "quoted string"'
        raise DataError("not a line of a PO file", where=where, hint=hint, code="data.not_po")
    return parts[1], parts[2]


def _require_order(name: str | None, last: str, where: str) -> None:
    if not (name in _PO_NEXT[last] if name else last):
        raise DataError(
            f"unexpected {name or 'string'} after {last or 'no keyword'}",
            where=where,
            hint=f"write {' or '.join(_PO_NEXT[last])}",
            code="data.not_po",
        )


def po_escaped(text: str) -> str:
    return "".join(f"\\{_PO_LETTERS[character]}" if character in _PO_LETTERS else character for character in text)


def po_unescaped(string: str, charset: str, where: str) -> str:
    def meaning(escape: re.Match[str]) -> str:
        if escape[2]:
            return _PO_CONTROL[escape[2]]
        # Octal and hex escapes are bytes: several in a row may form one character.
        codes = escape[1].split("\\")[1:]
        return bytes(int(code[1:], 16) if code[0] == "x" else int(code, 8) for code in codes).decode(charset)

    try:
        return PO_ESCAPE.sub(meaning, string)
    except (KeyError, ValueError):
        raise DataError(
            f'invalid escape in "{string}"',
            where=where,
            hint='use \\n, \\t, \\" or the like, or bytes such as \\351 or \\xe9; write a backslash as \\\\',
            code="data.escape",
        ) from None
