"""The text of a TMX segment, whose inline tags find their places in its translation as those of HTML do."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, unescape

from jumok.text.markup import Block, Markup
from jumok.text.projection import Aligned, Element

TOKEN = re.compile(
    r"(?P<text>[^<]+)|<!\[CDATA\[(?P<raw>[\s\S]*?)\]\]>|(?P<aside><!--[\s\S]*?-->|<\?[\s\S]*?\?>)"
    r"""|<(?P<end>/?)(?P<name>[^\s/>]+)(?P<attributes>(?:[^"'>]|"[^"]*"|'[^']*')*)>"""
)
_CODE = {"bpt", "ept", "ph", "it", "ut"}
"""elements with code of the original's format in them, which is not translated"""
_NUMBER = re.compile(r"""\bi\s*=\s*["']\s*([^"']*?)\s*["']""")
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")


@dataclass(frozen=True, slots=True)
class _Token:
    raw: str
    text: str | None = None
    name: str = ""
    end: bool = False
    number: str = ""


class Segment:
    """A segment, as it is between <seg> and </seg>."""

    def __init__(self, raw: str) -> None:
        self._tokens = [*_tokens(raw)]
        self.markup = Markup([_block(self._tokens)], escape)

    def filled(self, translations: Sequence[Aligned]) -> str:
        """The translation with all tags of the segment: any that has found no place is at the end."""
        found = self.markup.filled(translations).replace("\r", "&#13;")
        here = Counter(token.raw for token in _tokens(found) if token.text is None)
        wanted = Counter(token.raw for token in self._tokens if token.text is None)
        return found if here == wanted else found + "".join((wanted - here).elements())


def _tokens(raw: str) -> Iterator[_Token]:
    """Texts and tags; an element of code is one, with all that is in it."""
    found = TOKEN.finditer(raw)
    for token in found:
        name = token["name"]
        if token["text"] is not None or token["raw"] is not None:
            said = token["raw"] if token["text"] is None else _meant(token["text"])
            yield _Token(token[0], said)
        elif name is None:
            yield _Token(token[0])
        elif name in _CODE and not token["attributes"].endswith("/"):
            start, depth, end = token.start(), 1, token.end()
            for inner in found:
                end = inner.end()
                if inner["name"] and not (inner["attributes"] or "").endswith("/"):
                    depth += -1 if inner["end"] else 1
                if depth == 0:
                    break
            yield _Token(raw[start:end], name=name, number=_number(token["attributes"]))
        else:
            alone = token["attributes"].endswith("/")
            number = _number(token["attributes"])
            name = "" if alone and name not in _CODE else name
            yield _Token(token[0], name=name, end=bool(token["end"]), number=number)


def _number(attributes: str) -> str:
    return found[1] if (found := _NUMBER.search(attributes)) else ""


def _meant(text: str) -> str:
    """XML has five names of characters, and numbers for all."""
    plain = _REFERENCE.sub(lambda m: chr(int(m[1], 16) if m[1] else int(m[2])), text)
    return unescape(plain, {"&quot;": '"', "&apos;": "'"})


def _block(tokens: Sequence[_Token]) -> Block:
    block, ends = Block(), _pairs(tokens)
    closing = {end: start for start, end in ends.items()}
    inside: Element | None = None
    for i, token in enumerate(tokens):
        if token.text is not None:
            block.add(token.text, inside)
        elif i in ends and ends[i] == i + 1:
            block.atoms.append((block.length, token.raw + tokens[i + 1].raw, inside))
        elif i in ends:
            inside = Element(token.name, token.raw, tokens[ends[i]].raw, inside)
        elif i in closing and closing[i] == i - 1:
            continue
        elif i in closing:
            assert inside is not None
            inside = inside.parent
        else:
            block.atoms.append((block.length, token.raw, inside))
    block.text = "".join(block.texts)
    return block


def _pairs(tokens: Sequence[_Token]) -> dict[int, int]:
    """Which start has which end: <bpt> and <ept> of one number, or tags, where they are in one another."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.text is not None or not token.name:
            continue
        if token.name == "bpt" or (token.name not in _CODE and not token.end):
            opened.append(i)
        elif token.name == "ept":
            # It may not close a tag: a <bpt> outside of one stays alone, and so does one that is still open after it.
            places = [n for n, j in enumerate(opened) if tokens[j].name == "bpt" and tokens[j].number == token.number]
            if places and all(tokens[j].name == "bpt" for j in opened[places[-1] :]):
                found[opened[places[-1]]] = i
                del opened[places[-1] :]
        elif token.end:
            place = max(n for n, j in enumerate(opened) if tokens[j].name == token.name)
            found[opened[place]] = i
            del opened[place:]
    return found
