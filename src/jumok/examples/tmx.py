"""Read the translation units of a TMX file from its bytes, and write its lines."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from xml.parsers import expat

from jumok.errors import DataError
from jumok.text.lines import max_line, opened
from jumok.version import __version__

_MARKUP = {"bpt", "ept", "ph", "it", "ut"}
_BEGINNING = 1 << 20  # bytes of a file that show its languages
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class TmxParser:
    """Parses the bytes of a TMX file; refuses what declares or needs entities.

    Uses expat directly, because ElementTree's fast parser has no hook that sees a DTD before it is applied.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.SkippedEntityHandler = self._unknown_entity

    def parse(self, chunk: bytes, *, last: bool) -> None:
        try:
            self._parser.Parse(chunk, last)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            code = "data.entity" if what == expat.errors.XML_ERROR_UNDEFINED_ENTITY else "data.not_xml"
            raise self._wrong(f"malformed XML: {what}", "check that the file is complete", code=code) from error
        except (LookupError, ValueError) as error:
            raise self._wrong(
                f"the encoding cannot be read: {error}", "convert the file to UTF-8", code="data.encoding"
            ) from error

    def _wrong(self, what: str, hint: str, *, code: str) -> DataError:
        return DataError(what, where=f"{self._path}:{self._parser.CurrentLineNumber}", hint=hint, code=code)

    def _doctype(self, name: str, system: str | None, public: str | None, own_declarations: bool) -> None:
        if own_declarations:
            raise self._wrong(
                "the file declares its own DTD", "use at most a plain <!DOCTYPE tmx ...>", code="data.dtd"
            )

    def _unknown_entity(self, name: str, is_parameter: bool) -> None:
        raise self._wrong(f"unknown entity &{name};", "use the character, or its number: &#160;", code="data.entity")


def fitting(tag: str, wanted: Sequence[str]) -> str | None:
    """The wanted language that a language tag is one of. The longest wins: "pt" and "pt-br" can be two languages."""
    tag = tag.lower().replace("_", "-")
    return max((one for one in wanted if f"{tag}-".startswith(f"{one}-")), key=len, default=None)


def language_codes(*languages: str) -> list[str]:
    return [language.lower().replace("_", "-") for language in languages]


class TmxUnits(TmxParser):
    """The texts of a TMX file as (source, target, line of the unit)."""

    def __init__(self, path: Path, source: str, target: str) -> None:
        super().__init__(path)
        self._wanted = language_codes(source, target)
        self._language: str | None = None
        self._line = 0
        self._texts: dict[str, str] = {}
        self._pieces: list[str] = []
        self._size = 0
        # For each open element from <seg> on: whether its text is translatable. Empty outside a <seg>.
        self._translatable: list[bool] = []
        self._pairs: list[tuple[str, str, int]] = []
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._finish
        self._parser.CharacterDataHandler = self._text

    def feed(self, chunk: bytes, *, last: bool = False) -> list[tuple[str, str, int]]:
        """Parse more bytes, and return the pairs that they complete."""
        self.parse(chunk, last=last)
        pairs, self._pairs = self._pairs, []
        return pairs

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._translatable:
            self._translatable.append(name == "sub" or (self._translatable[-1] and name not in _MARKUP))
        elif name == "tu":
            self._texts, self._line = {}, self._parser.CurrentLineNumber
        elif name == "tuv":
            self._language = fitting(attributes.get("xml:lang", attributes.get("lang", "")), self._wanted)
        elif name == "seg" and self._language:
            self._pieces, self._size, self._translatable = [], 0, [True]

    def _text(self, text: str) -> None:
        if self._translatable and self._translatable[-1]:
            self._pieces.append(text)
            self._size += len(text)
            if self._size > max_line():
                what, hint = f"a segment of more than {max_line():,} characters", "split it, or set JUMOK_MAX_LINE"
                raise self._wrong(what, hint, code="data.line_too_long")

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
                self._pairs.append((source, target, self._line))


def tmx_languages(path: Path) -> tuple[str, list[str]]:
    """The source language that the header of a TMX file declares, if any, and the languages at its beginning."""
    with opened(path) as stream:
        beginning = stream.read(_BEGINNING).decode("utf-8", "replace")
    declared = re.search(r"""<header\b[^>]*\bsrclang\s*=\s*["']([^"']+)""", beginning)
    tags = re.findall(r"""<tuv\b[^>]*\blang\s*=\s*["']([^"']+)""", beginning)
    source = declared[1] if declared else ""
    return "" if source == "*all*" else source, list(dict.fromkeys(tags))


def tmx_unit(texts: Iterable[tuple[str, str]], where: str) -> str:
    """Write a unit of (language code, text) pairs; a character that XML cannot hold is a DataError."""
    found = []
    for language, text in texts:
        if wrong := NOT_XML.search(text):
            what = f"XML cannot hold U+{ord(wrong[0]):04X}, character {wrong.start()} of {text[:60]!r}"
            raise DataError(what, where=where, hint="remove it, or write a .tsv file", code="data.encoding")
        seg = escape(text, quote=False).replace("\r", "&#13;")
        found.append(f'<tuv xml:lang="{escape(language)}"><seg>{seg}</seg></tuv>')
    return f"<tu>{''.join(found)}</tu>"


def tmx_lines(units: Iterable[str], source: str) -> list[str]:
    header = f'<header creationtool="jumok" creationtoolversion="{escape(__version__)}"'
    header += ' segtype="sentence" o-tmf="jumok" adminlang="en"'
    begin = ['<?xml version="1.0" encoding="UTF-8"?>', '<tmx version="1.4">']
    begin.append(f'{header} srclang="{escape(source)}" datatype="plaintext"/>')
    return [*begin, "<body>", *units, "</body>", "</tmx>"]
