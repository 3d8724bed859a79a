"""PO files with their empty msgstr filled.

What is machine-made is marked fuzzy. Everything else stays as it is: comments, order, wrapping, obsolete entries, line
ends. The file is written in UTF-8, and its header says so; a BOM, which gettext refuses, is dropped.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from jumok.examples.filled import Answer, Piece, unchanged
from jumok.examples.filled.plurals import plural_forms
from jumok.examples.gettext import PO_ESCAPE, PO_STRING, PoEntry, po_charset, po_entries, po_escaped, po_unescaped
from jumok.examples.pairs import Excerpt

_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*")
_COUNT = re.compile(r"nplurals\s*=\s*([1-9])\b")
_MARKS = ("#.", "#:", "#,", "#|", "#~", "#=")
"""comments that are not the translator's"""


def po_pieces(path: Path, *, target: str, again: bool = False) -> Iterator[Piece]:
    """The messages of a PO file; only those without a translation are asked for, or all if `again`."""
    charset = po_charset(path)
    header: _Header | None = None
    for entry in po_entries(path, charset):
        if header is None:
            header = _Header(entry if entry.is_header else PoEntry(), charset, target)
            content = header.written(_newline(entry))
            if entry.is_header:
                yield unchanged(content.encode())
                continue
            yield unchanged((content + _newline(entry)).encode())
        yield _Message(entry, charset, header.forms, again).piece(path)


def _newline(entry: PoEntry) -> str:
    return "\r\n" if entry.lines and entry.lines[0][0].endswith("\r\n") else "\n"


def _as_utf8(line: str, charset: str) -> str:
    """A line whose escaped bytes, which are of the old charset, are characters."""
    if charset.lower().replace("_", "-") in ("utf-8", "utf8", "us-ascii", "ascii") or "\\" not in line:
        return line
    return PO_ESCAPE.sub(lambda e: po_escaped(po_unescaped(e[0], charset, "")) if e[1] else e[0], line)


class _Header:
    """The header of a file, or of one that has none yet."""

    def __init__(self, entry: PoEntry, charset: str, target: str) -> None:
        self._entry, self._charset = entry, charset
        self._found = self._fields()
        self._new: dict[str, str] = {}
        said = {name.lower(): value for name, (value, _) in self._found.items()}
        if not said.get("language") and _LANGUAGE.fullmatch(target):
            self._new["Language"] = target.replace("-", "_")
        if "mime-version" not in said:
            self._new["MIME-Version"] = "1.0"
        declared = re.search(r"charset=([^\s;]+)", said.get("content-type", ""))
        if not declared or declared[1].lower() not in ("utf-8", "utf8"):
            self._new["Content-Type"] = "text/plain; charset=UTF-8"
        if said.get("content-transfer-encoding", "ENCODING") == "ENCODING":
            self._new["Content-Transfer-Encoding"] = "8bit"
        plurals = said.get("plural-forms", "")
        if not _COUNT.search(plurals) and (known := plural_forms(said.get("language", "")) or plural_forms(target)):
            plurals = self._new["Plural-Forms"] = known
        count = _COUNT.search(plurals)
        self.forms = int(count[1]) if count else None
        """how many forms a plural has; None if neither the file nor the table says so"""

    def _fields(self) -> dict[str, tuple[str, list[int]]]:
        """Each header field with its value, and the lines of the entry that it is on."""
        found: dict[str, tuple[str, list[int]]] = {}
        value, places = "", list[int]()
        for i, (line, field) in enumerate(self._entry.lines):
            if field is None or not self._entry.fields[field][0].startswith("msgstr"):
                continue
            value += "".join(po_unescaped(s, self._charset, "") for s in PO_STRING.findall(line))
            if value:
                places.append(i)
            if value.endswith("\n"):
                for said in value.splitlines():  # usually one
                    name, _, rest = said.partition(":")
                    found[name.strip()] = rest.strip(), places if value.count("\n") == 1 else []
                value, places = "", []
        return found

    def written(self, newline: str) -> str:
        """The header with what it has to say; no longer fuzzy, or gettext would not read it."""
        places = {name.lower(): lines for name, (_, lines) in self._found.items()}
        lines: list[str | None] = [_as_utf8(line, self._charset) for line, _ in self._entry.lines]
        for i, (line, field) in enumerate(self._entry.lines):
            if field is None and line.startswith("#,"):
                flags = [flag for flag in map(str.strip, line[2:].split(",")) if flag not in ("fuzzy", "")]
                lines[i] = f"#, {', '.join(flags)}{newline}" if flags else None
        added = []
        for name, value in self._new.items():
            said = f'"{po_escaped(f"{name}: {value}")}\\n"{newline}'
            if first := places.get(name.lower()):
                keyword = "msgstr " if (lines[first[0]] or "").startswith("msgstr") else ""
                lines[first[0]] = keyword + said
                for i in first[1:]:
                    lines[i] = None
            else:
                added.append(said)
        if not self._entry.lines:
            lines = [f'msgid ""{newline}', f'msgstr ""{newline}']
        whole = [line for line in lines if line is not None]
        if added and not whole[-1].endswith("\n"):
            whole[-1] += newline
        return "".join([*whole, *added])


@dataclass(slots=True)
class _Message:
    entry: PoEntry
    charset: str
    forms: int | None
    again: bool

    def piece(self, path: Path) -> Piece:
        if not self.entry.fields or not any(self.entry.texts("msgid")):
            return unchanged(self._whole())
        texts, found = self.entry.texts("msgid"), self.entry.texts("msgstr")
        if all(found) and not self.again:
            return unchanged(self._whole())
        where = f"{path}:{self.entry.line}"
        if len(texts) > 1 and self._count(found) == 1:
            texts = texts[1:]  # the one form is for any number
        return Piece([Excerpt(text, None, where) for text in texts], self._filled)

    def _whole(self) -> bytes:
        return "".join(_as_utf8(line, self.charset) for line, _ in self.entry.lines).encode()

    def _count(self, found: Sequence[str]) -> int:
        """Forms that are written: what the header says, unless somebody has translated more."""
        used = max((n for n, text in enumerate(found, start=1) if text), default=0)
        return max(self.forms or len(found), 0 if self.again else used)

    def _filled(self, answers: Sequence[Answer | None]) -> bytes:
        if any(answer is None for answer in answers):
            return self._whole()
        said = [answer for answer in answers if answer is not None]
        found = self.entry.texts("msgstr")
        plural = len(self.entry.texts("msgid")) > 1
        count = self._count(found) if plural else 1
        texts = [said[min(n, len(said) - 1)].text for n in range(count)]
        if not self.again:
            texts = [(found[n] if n < len(found) else "") or text for n, text in enumerate(texts)]
        names = [f"msgstr[{n}]" if plural else "msgstr" for n in range(count)]
        newline = _newline(self.entry)
        lines: list[str] = []
        written = False
        for line, field in self.entry.lines:
            if field is None or not self.entry.fields[field][0].startswith("msgstr"):
                lines.append(_as_utf8(line, self.charset))
            elif not written:
                written = True
                for name, text in zip(names, texts, strict=True):
                    lines += [f"{part}{newline}" for part in _strings(name, text, spread=self._spread())]
        if not self.entry.lines[-1][0].endswith("\n"):
            lines[-1] = lines[-1].removesuffix(newline)
        return "".join(_flagged(lines, newline, [answer.remark for answer in said])).encode()

    def _spread(self) -> bool:
        """Whether the msgid begins with an empty string, as it does if it goes over several lines."""
        own = [field for _, field in self.entry.lines if field is not None]
        return any(
            len([*group]) > 1 for field, group in groupby(own) if self.entry.fields[field][0].startswith("msgid")
        )


def _strings(name: str, text: str, *, spread: bool) -> list[str]:
    """A keyword and its text, as gettext writes it: a string for each line."""
    parts = [po_escaped(line) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    if len(parts) <= 1 and not (spread and parts):
        return [f'{name} "{"".join(parts)}"']
    return [f'{name} ""', *(f'"{part}"' for part in parts)]


def _flagged(lines: list[str], newline: str, remarks: Sequence[str]) -> list[str]:
    """The lines of a message marked fuzzy, with the remarks as comments."""
    first = next(i for i, line in enumerate(lines) if line.lstrip()[:1] not in ("#", "") and line.strip())
    begin = max((i + 1 for i in range(first) if not lines[i].strip() or lines[i].lstrip().startswith("#~")), default=0)
    flags = next((i for i in range(begin, first) if lines[i].startswith("#,")), None)
    if flags is None:
        at = next((i for i in range(begin, first) if lines[i].startswith("#|")), first)
        lines = [*lines[:at], f"#, fuzzy{newline}", *lines[at:]]
    elif "fuzzy" not in [flag.strip() for flag in lines[flags][2:].split(",")]:
        lines[flags] = f"#, fuzzy,{lines[flags][2:]}"
    at = next((i for i in range(begin, first) if lines[i].startswith(_MARKS)), begin)
    said = dict.fromkeys(f"# jumok: {' '.join(remark.split())}{newline}" for remark in remarks if remark)
    return [*lines[:at], *said, *lines[at:]]
