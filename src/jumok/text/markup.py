"""Texts taken out of HTML, or of plain lines, and the document with their translations in the same places.

Blocks cut sentences, inline elements do not. What is no text of the language (code, scripts, `translate="no"`) is left
as it is, and so are all tags, byte for byte. The result is balanced even if the document is not.

The tokens are found by one regular expression that never goes back, as in the HTML standard: the standard library's
parser takes a time quadratic in the length of `<!--<!--…` (CVE-2025-6069), half a minute for 100,000 characters.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape

from jumok.text.projection import Aligned, Atom, Element, Item, Phrase, placed, units_of
from jumok.text.sentences import sentence_spans
from jumok.text.tags import Range

# fmt: off
_CUTS, _VOID, _END_MAY_BE_LEFT_OUT, _RAW, _KEPT = (frozenset(names.split()) for names in (
    "address article aside base blockquote body br button caption center col colgroup dd details dialog dir div dl dt"
    " fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html label legend"
    " li link listing main menu meta nav noscript ol optgroup option p plaintext pre search section select summary"
    " table tbody td tfoot th thead title tr ul xmp",
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
    "html head body p li dt dd tr td th thead tbody tfoot colgroup caption option optgroup rb rp rt rtc",
    # What is in these is no markup, up to their end tag.
    "script style textarea xmp iframe noembed noframes plaintext",
    # What is in these, and in those above, is no text of a language.
    "audio canvas code kbd listing math object pre samp svg template var video",
))
# fmt: on
_DEEPEST = 32
"""inline elements in one another; tags beyond are dropped, their text is not"""

_TOKEN = re.compile(
    r"(?P<text>(?:[^<]++|<(?![a-zA-Z/!?]))++)"
    r"|(?P<comment><!--(?:-?>|[\s\S]*?--!?>|(?P<open>[\s\S]*+))|<[!?][^>]*+>|</(?:[^a-zA-Z>][^>]*+)?>)"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)(?P<attributes>"
    r"""(?:[^=>]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?=[^"'\s])))*+)>"""
    r"|(?P<broken>[\s\S]++)"  # a tag that does not end: the rest is text
)
_ATTRIBUTE = re.compile(r"""([^\s"'/=]++)(?:\s*=\s*("[^"]*+"|'[^']*+'|[^\s"']++))?""")
_HUGE = re.compile(r"&#(?:[xX][0-9a-fA-F]{8,}+|[0-9]{8,}+);?")
_WORD = re.compile(r"[^\W_]")
_LINE_END = re.compile(r"(\r\n?|\n)")
_NO_BLANK_AFTER = "。！？」』…"


@dataclass(frozen=True, slots=True)
class _Cut:
    """A tag that no sentence goes across."""

    raw: str
    inside: Element | None


@dataclass(slots=True)
class Block:
    """Running text between two cuts."""

    text: str = ""
    texts: list[str] = field(default_factory=list)
    length: int = 0
    runs: list[tuple[int, Element | None]] = field(default_factory=list)
    """where text of another element begins"""
    atoms: list[tuple[int, str, Element | None]] = field(default_factory=list)
    phrases: list[Phrase] = field(default_factory=list)

    def add(self, text: str, element: Element | None) -> None:
        self.runs.append((self.length, element))
        self.texts.append(text)
        self.length += len(text)


class Markup:
    """A document whose sentences can be replaced."""

    def __init__(self, parts: Sequence[_Cut | Block], escape: Callable[[str], str]) -> None:
        self._parts, self._escape = parts, escape
        place = 0
        for part in parts:
            if isinstance(part, _Cut):
                _reach(part.inside, place)
                place += 1
                continue
            part.phrases = list(_phrases(part))
            for phrase in part.phrases:
                phrase.place = place
                for element in {*phrase.owners, *(atom.inside for atom in phrase.atoms)}:
                    _reach(element, place)
                place += 1
        found = [phrase for part in parts if isinstance(part, Block) for phrase in part.phrases]
        self._wanted = [phrase for phrase in found if _WORD.search(phrase.text)]

    @property
    def sentences(self) -> list[str]:
        """What is to be translated: all sentences with a letter or digit in them."""
        return [phrase.text for phrase in self._wanted]

    @property
    def aligned(self) -> list[bool]:
        """Of each sentence, whether tags inside of it have to find their places."""
        return [phrase.marked for phrase in self._wanted]

    def filled(self, translations: Sequence[Aligned]) -> str:
        """The document with a translation in the place of each sentence."""
        given = {id(phrase): found for phrase, found in zip(self._wanted, translations, strict=True)}
        writer = _Writer(self._escape)
        for part in self._parts:
            if isinstance(part, _Cut):
                writer.write(Item(part.raw, part.inside, raw=True))
                continue
            at, before = 0, ""
            for phrase in part.phrases:
                blank = part.text[at : phrase.begins]
                found = given.get(id(phrase))
                # Korean sentences may follow one another without a blank; those of most languages do not.
                if not blank and at and before[-1:] not in _NO_BLANK_AFTER and found and found.text != phrase.text:
                    blank = " "
                writer.blank += blank
                for item in placed(phrase, found):
                    writer.write(item)
                at, before = phrase.ends, found.text if found else phrase.text
            writer.blank += part.text[at:]
        return writer.done()


class _Writer:
    """Writes items, opening and closing the elements that they are in."""

    def __init__(self, escape: Callable[[str], str]) -> None:
        self._escape, self._out = escape, list[str]()
        self._inside: Element | None = None
        self.blank = ""
        """white space that is to come between two items, outside of what ends before and begins after it"""

    def write(self, item: Item) -> None:
        self._go(item.inside, self.blank + item.before)
        self.blank = ""
        self._out.append(item.text if item.raw else self._escape(item.text))

    def done(self) -> str:
        self._go(None, self.blank)
        return "".join(self._out)

    def _go(self, to: Element | None, blank: str) -> None:
        begun: list[Element] = []
        here = self._inside
        while here is not to:
            if here is not None and (to is None or here.depth >= to.depth):
                self._out.append(here.end)
                here = here.parent
            else:
                assert to is not None
                begun.append(to)
                to = to.parent
        self._out.append(self._escape(blank))
        self._out += (element.start for element in reversed(begun))
        self._inside = begun[0] if begun else here


def read_lines(text: str) -> Markup:
    """A plain text: what its lines have in common with blocks is that no sentence goes across their ends."""
    parts: list[_Cut | Block] = []
    for i, part in enumerate(_LINE_END.split(text)):
        if i % 2:
            parts.append(_Cut(part, None))
        elif part:
            parts.append(Block(part, [part], len(part), [(0, None)]))
    return Markup(parts, str)


def read_html(text: str) -> Markup:
    """An HTML document or a piece of one, in linear time, whatever is wrong with it."""
    return Markup(_Reader().read(text), _escape)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\xa0", "&nbsp;")


@dataclass(frozen=True, slots=True)
class _Open:
    """A start tag whose end is still to come."""

    name: str
    kind: str
    """cut, inline, dropped; kept: left as it is with all that is in it; within: in such an element"""
    count: int = 0
    """things read before it"""


class _Reader:
    """Reads tokens into cuts and blocks; a stack of its own, no recursion."""

    def __init__(self) -> None:
        self._parts: list[_Cut | Block] = []
        self._block = Block()
        self._stack: list[_Open] = []
        self._names: Counter[str] = Counter()
        self._inside: Element | None = None
        self._kept: list[str] | None = None
        self._count = 0

    def read(self, text: str) -> list[_Cut | Block]:
        place = 0
        while place < len(text):
            token = _TOKEN.match(text, place)
            assert token is not None
            place = token.end()
            if token["name"] is None:
                self._plain(token)
            elif token["end"]:
                self._end(token["name"].lower(), token[0])
            else:
                name = token["name"].lower()
                self._start(name, token[0], token["attributes"])
                if name in _RAW and self._stack and self._stack[-1].name == name:
                    ends = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, place)
                    assert self._kept is not None
                    self._kept.append(text[place : ends.start() if ends else len(text)])
                    place = ends.start() if ends else len(text)
        while self._stack:
            self._close(self._stack.pop(), None)
        self._cut("")
        return self._parts

    def _plain(self, token: re.Match[str]) -> None:
        raw = token[0]
        if token["comment"] is not None:
            self._atom(f"{raw}-->" if token["open"] is not None else raw)
        elif self._kept is not None:
            self._kept.append(raw if token["text"] is not None else _escape(raw))
        else:
            self._count += not raw.isspace()
            self._block.add(unescape(_HUGE.sub("\ufffd", raw)), self._inside)

    def _start(self, name: str, raw: str, attributes: str) -> None:
        alone = name in _VOID or _closes_itself(attributes)
        if self._kept is not None:
            self._kept.append(raw)
            if not alone:
                self._push(name, "within")
        elif alone:
            (self._cut if name in _CUTS else self._atom)(raw)
        elif name in _KEPT or name in _RAW or _not_to_be_translated(attributes):
            self._push(name, "kept")
            self._kept = [raw]
        elif name in _CUTS:
            self._cut(raw)
            self._push(name, "cut")
        elif self._inside is not None and self._inside.depth >= _DEEPEST:
            self._push(name, "dropped")
        else:
            self._inside = Element(name, raw, f"</{name}>", self._inside)
            self._push(name, "inline")

    def _push(self, name: str, kind: str) -> None:
        self._stack.append(_Open(name, kind, self._count))
        self._names[name] += 1

    def _end(self, name: str, raw: str) -> None:
        """Ends what is still open in the element, too; an end without a start is dropped."""
        while self._names[name]:
            one = self._stack.pop()
            self._close(one, raw if one.name == name else None)
            if one.name == name:
                break

    def _close(self, one: _Open, raw: str | None) -> None:
        self._names[one.name] -= 1
        if raw is None:
            raw = "" if one.name in _END_MAY_BE_LEFT_OUT else f"</{one.name}>"
        match one.kind:
            case "within":
                assert self._kept is not None
                self._kept.append(raw)
            case "kept":
                assert self._kept is not None
                whole, self._kept = "".join(self._kept) + raw, None
                (self._cut if one.name in _CUTS else self._atom)(whole)
            case "cut":
                self._cut(raw)
            case "inline":
                element = self._inside
                assert element is not None
                element.end, self._inside = raw, element.parent
                if one.count == self._count:  # nothing in it: an icon, an anchor
                    self._atom(element.start + raw)

    def _cut(self, raw: str) -> None:
        if self._block.length or self._block.atoms:
            self._block.text = "".join(self._block.texts)
            self._parts.append(self._block)
            self._block = Block()
        if raw:
            self._parts.append(_Cut(raw, self._inside))
            self._count += 1

    def _atom(self, raw: str) -> None:
        if self._kept is not None:
            self._kept.append(raw)
            return
        self._block.atoms.append((self._block.length, raw, self._inside))
        self._count += 1


def _closes_itself(attributes: str) -> bool:
    """<x/>, and not <a href=x/>, whose slash belongs to the value."""
    return attributes.endswith("/") and all(m.end(2) != len(attributes) for m in _ATTRIBUTE.finditer(attributes))


def _not_to_be_translated(attributes: str) -> bool:
    if "translate" not in attributes.lower():
        return False
    found = {name.lower(): value.strip("\"'").lower() for name, value in _ATTRIBUTE.findall(attributes)}
    return found.get("translate") == "no" or "notranslate" in found.get("class", "").split()


def _reach(element: Element | None, place: int) -> None:
    """The element, and those around it, have something at this place."""
    while element is not None:
        element.first = place if element.first is None else element.first
        element.last = place
        element = element.parent


def _phrases(block: Block) -> Iterator[Phrase]:
    """The sentences of a block, each with the atoms in it or beside it."""
    text, atoms = block.text, block.atoms
    spans = sentence_spans(text) if text.strip() else [(atoms[0][0],) * 2] if atoms else []
    if not _WORD.search(text):
        spans = [(spans[0][0], spans[-1][1])] if spans else []
    taken = run = 0
    for number, (start, end) in enumerate(spans):
        last = number == len(spans) - 1
        first_atom = taken
        while taken < len(atoms) and (last or atoms[taken][0] <= end):
            taken += 1
        mine = atoms[first_atom:taken]
        units = units_of(text[start:end])
        owners: list[Element | None] = []
        for a, b in units:
            while run + 1 < len(block.runs) and block.runs[run + 1][0] <= start + a:
                run += 1
            owners.append(_deepest(block.runs, run, start + b))
        begins = min([start, *(offset for offset, _, _ in mine)])
        ends = max([end, *(offset for offset, _, _ in mine)])
        yield Phrase(
            text[start:end], units, owners, list(_atoms(mine, text, (begins, ends), start, units)), begins, ends
        )


def _deepest(runs: Sequence[tuple[int, Element | None]], run: int, end: int) -> Element | None:
    """Of the elements that a word is in, the first of the deepest: no tag comes inside a word."""
    found = runs[run][1]
    while run + 1 < len(runs) and runs[run + 1][0] < end:
        run += 1
        other = runs[run][1]
        if other is not None and (found is None or other.depth > found.depth):
            found = other
    return found


def _atoms(
    mine: Sequence[tuple[int, str, Element | None]], text: str, extent: Range, start: int, units: Sequence[Range]
) -> Iterator[Atom]:
    """Atoms with the number of words before them, and whether blanks are beside them."""
    begins, ends = extent
    before = 0
    for offset, raw, inside in mine:
        while before < len(units) and start + units[before][0] < offset:
            before += 1
        left = begins < offset and text[offset - 1].isspace()
        right = offset < ends and text[offset].isspace()
        yield Atom(raw, inside, before, left, right)
