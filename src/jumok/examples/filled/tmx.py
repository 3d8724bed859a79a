"""TMX files with the translations that their units lack; all else stays byte for byte.

The parser says where units begin, and refuses what is no XML; the units are then changed as text.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path

from jumok.examples.filled import Answer, Piece, unchanged
from jumok.examples.pairs import Excerpt
from jumok.examples.tmx import NOT_XML, TmxParser, fitting, language_codes
from jumok.text.lines import max_line, opened
from jumok.text.segments import TOKEN

_BLOCK = 1 << 16
_ATTRIBUTE = re.compile(r"""([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")
_UTF_16 = {
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}


class _Cuts(TmxParser):
    """Cuts a file where its units begin."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.encoding = ""
        self._held, self._from, self._line = b"", 0, 1
        self._starts: list[tuple[int, int]] = []
        self._parser.StartElementHandler = self._start
        self._parser.XmlDeclHandler = self._declared

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = self.encoding or encoding or "utf-8"

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tu":
            self._starts.append((self._parser.CurrentByteIndex, self._parser.CurrentLineNumber))

    def feed(self, chunk: bytes, *, last: bool) -> Iterator[tuple[bytes, int]]:
        """What is complete: a unit and what follows it, with the line that it begins on."""
        if not self._from and not self._held:
            self.encoding = _UTF_16.get(chunk[:2], "")
        self._held += chunk
        self.parse(chunk, last=last)
        for start, line in self._starts:
            yield self._held[: start - self._from], self._line
            self._held, self._from, self._line = self._held[start - self._from :], start, line
        self._starts.clear()
        if len(self._held) > 4 * max_line() + _BLOCK:
            what, hint = f"a unit of more than {4 * max_line():,} bytes", "split it, or set JUMOK_MAX_LINE"
            raise self._wrong(what, hint, code="data.line_too_long")
        if last:
            yield self._held, self._line


def tmx_pieces(path: Path, *, source: str, target: str, again: bool = False) -> Iterator[Piece]:
    """The units of a TMX file; those without the target language are asked for, or all if `again`."""
    cuts = _Cuts(path)
    first = True
    with opened(path) as stream:
        chunk, following = stream.read(_BLOCK), b""
        while chunk:
            following = stream.read(_BLOCK)
            for content, line in cuts.feed(chunk, last=not following):
                if first:  # what comes before the first unit
                    yield unchanged(content)
                else:
                    yield _piece(content, f"{path}:{line}", cuts.encoding or "utf-8", (source, target), again)
                first = False
            chunk = following


@dataclass(slots=True)
class _Variant:
    """A <tuv>, by its places in the text of the unit."""

    language: str | None
    attribute: str
    """the name under which its language is said"""
    start: int
    seg: tuple[int, int] = (0, 0)
    """the element with its tags"""
    inner: tuple[int, int] = (0, 0)
    end: int = 0


def _piece(content: bytes, where: str, encoding: str, languages: tuple[str, str], again: bool) -> Piece:
    text = content.decode(encoding)
    source, target = language_codes(*languages)
    variants = [*_variants(text, [source, target])]
    given = next((v for v in variants if v.language == source and text[slice(*v.inner)].strip()), None)
    there = next((v for v in variants if v.language == target and v is not given), None)
    if there is not None and not there.seg[1]:
        return unchanged(content)
    if given is None or (there is not None and text[slice(*there.inner)].strip() and not again):
        return unchanged(content)
    begin, end = (variants[-1].end,) * 2 if there is None else there.seg
    blank = re.search(r"\s*$", text[: given.start])
    between = blank[0] if blank else ""

    def written(answers: Sequence[Answer | None]) -> bytes:
        if (answer := answers[0]) is None:
            return content
        said = f"<seg>{NOT_XML.sub(chr(0xFFFD), answer.text)}</seg>"
        if there is None:
            language = f'{given.attribute}="{escape(languages[1])}"'
            said = f'{between}<tuv {language} creationtool="jumok">{said}</tuv>'
        return b"".join(part.encode(encoding, "xmlcharrefreplace") for part in (text[:begin], said, text[end:]))

    return Piece([Excerpt(text[slice(*given.inner)], None, where, "tmx")], written)


def _variants(text: str, wanted: Sequence[str]) -> Iterator[_Variant]:
    variant: _Variant | None = None
    for token in TOKEN.finditer(text):
        name, ends, attributes = token["name"], bool(token["end"]), token["attributes"] or ""
        if name == "tuv" and not ends and not attributes.endswith("/"):
            said = {key: unescape(value[1:-1]) for key, value in _ATTRIBUTE.findall(attributes)}
            key = "xml:lang" if "xml:lang" in said or "lang" not in said else "lang"
            variant = _Variant(fitting(said.get(key, ""), wanted), key, token.start())
        elif name == "seg" and variant is not None:
            if not ends:
                variant.seg, variant.inner = token.span(), (token.end(), token.end())
            else:
                variant.seg = variant.seg[0], token.end()
                variant.inner = variant.inner[0], token.start()
        elif name == "tuv" and ends and variant is not None:
            variant.end = token.end()
            yield variant
            variant = None
