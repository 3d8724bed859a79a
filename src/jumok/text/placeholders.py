"""Placeholders and markup in a text: what a program fills in or reads, and what no translation may change.

These are printf, strftime and Qt formats, names in braces, shell variables, tags, entities, URLs, e-mail addresses,
accelerators of menus, and roles, literals and links of reStructuredText. Numbers are none, nor is `50 %` or `a < b`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["printf", "brace", "variable", "tag", "entity", "address", "role", "literal", "accelerator"]

# Elements that stand in running text; others are tags if they are closed or have attributes: a <file> is none.
_HTML = (
    "a abbr b bdi bdo big blockquote br button cite code dd del dfn div dl dt em font h1 h2 h3 h4 h5 h6 hr i img ins"
    " kbd label li mark ol p pre q qt s samp small span strike strong sub sup table tbody td th thead tr tt u ul var"
    " wbr"
)
_ELEMENTS = frozenset(_HTML.split())
# Roles whose text is for readers; that of the first three names something, unless a <target> does.
_NAMING, _SPOKEN = (
    frozenset({"term", "ref", "doc"}),
    "abbr|dfn|emphasis|guilabel|index|menuselection|strong|sub|sup|term",
)
_LABEL_WORDS = 12
"""a text with more is no label of a menu or a button, and its & no accelerator"""

# fmt: off
_UNIT = re.compile("|".join((
    r"(?P<literal>``[^`\n](?:[^\n]{0,300}?[^\s`])??``(?!`)|(?<![\w`:])`[^\s`]++`(?![\w`]))",
    # The text of a role is part of the unit unless it is for readers: then the role begins one, its <target> another.
    rf"(?P<spoken>(?<![\w:`])(?::[a-z][\w+.-]*+)*?:(?:(?:{_SPOKEN}):`(?=[^`\n]+`)|(?:ref|doc):`(?=[^`\s]+\s[^`\n]*`)"
    r"|[a-z][\w+.-]*:`(?=[^`\n]*\s<[^`<>\n]+>`)))",
    r"(?P<role>(?<![\w:`])(?::[a-z][\w+.-]*+)+:`[^`\n]++`)",
    r"(?P<target>(?<=\s)<[^`<>\n]++>`_{0,2})",
    r"(?P<address>\b(?:https?|ftp|file)://(?:[\w.~:/?\#@!$&*+,;=%{}-]|\([^\s()<>]*\))+(?<![.,;:!?])"
    r"|\bwww\.[\w-]+\.[\w./?=&%#-]*[\w/]|(?<![\w.+-])[\w.+-]*\w@\w[\w-]*(?:\.[\w-]*\w)+)",
    r"""(?P<tag><(?:/?(?:[a-z][\w:.-]*|\d{1,2})|[a-z][\w:.-]*(?:\s+[\w:.-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>/]+))+)"""
    r"\s*/?>)",
    r"(?P<entity>&(?:[a-z][a-z\d]{1,31}|\#\d{1,7}|\#x[\da-f]{1,6});)",
    r"(?P<brace>\{\{\s*[a-z_][\w.|-]*\s*\}\}"
    r"|[$\#%@]?\{(?:[a-z_][\w.-]*+|\d{1,2}(?:\.\w+)?)(?:\[\w+\][\w.]*+)*+(?:![rsa])?(?::[^{}\s]*)?\}"
    r"|(?<!\))(?<![)=]\s)\{(?::[^{}\s]+)?\})",
    r"(?P<variable>(?<![\w$])\$(?:[a-z_]\w*|\([a-z_]\w*\))|(?-i:%[A-Z_]{2,}%))",
    r"(?P<printf>%\([^()%\s]+\)[-+\#0\d.]*[lh]?(?-i:[a-zA-Z])"
    r"|(?<!\d)%(?:L?\d{1,2}(?![\d$.*%a-z])|\d{1,2}%|n(?![a-z]))|%%"
    r"|%(?:\d{1,2}\$)?(?-i:(?:[+\#0]*|-(?=[\d*.])|-(?=[a-zA-Z](?![a-zA-Z-])))*(?:\d+|\*(?:\d{1,2}\$)?)?"
    r"(?:\.(?:\d+|\*(?:\d{1,2}\$)?)?)?"
    r"(?:(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGaAcspn]|[mS@]|[YyBbHMIjZTDRGVUWk])))",
    r"(?P<accelerator>\(&[a-z\d]\)|(?<![\w&])&(?=[^\W_])|(?<=[a-z])&(?=(?-i:[a-z]{2})))",
)), re.IGNORECASE | re.ASCII)
# fmt: on
_CONVERSION = re.compile(r"%(?:(\d+)\$|\(([^()]*)\))?([-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?)(?:[hlLqjzt]*)([a-zA-Z@])")
_PERCENT = re.compile(r"\d%[a-z]{2}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Unit:
    """A placeholder or a piece of markup: `text[start:end]`."""

    start: int
    end: int
    kind: Kind
    text: str
    key: str
    """what a translation has to have again; "" if another unit's key covers it, as a role's does its target"""


@dataclass(frozen=True, slots=True)
class Differences:
    """What a translation has not kept. False if it has kept everything."""

    missing: list[str]
    """in the source more often"""
    extra: list[str]
    """in the translation more often"""
    order: list[str] = field(default_factory=list)
    """printf conversions of the translation that, in their order, would print an argument as another's type"""

    @property
    def reordered(self) -> bool:
        return bool(self.order)

    @property
    def count(self) -> int:
        return len(self.missing) + len(self.extra) + bool(self.order)

    def __bool__(self) -> bool:
        return bool(self.count)


def find_units(text: str) -> list[Unit]:
    """The placeholders and the markup of a text, in order; none overlaps another."""
    if not any(mark in text for mark in "%{$<&`:@") and "www." not in text:
        return []
    found = [_unit(match) for match in _UNIT.finditer(text)]
    accelerators = [unit for unit in found if unit.kind == "accelerator"]
    wrong = set[int]()
    if len(accelerators) != 1 or len(text.split()) > _LABEL_WORDS:
        wrong.update(unit.start for unit in accelerators)
    names = Counter(_element(unit) for unit in found if unit.kind == "tag" and unit.text.startswith("</"))
    wrong.update(unit.start for unit in found if unit.kind == "tag" and not _is_tag(unit, names))
    wrong.update(unit.start for unit in found if unit.start and _PERCENT.match(text, unit.start - 1))  # 50%off
    return [unit for unit in found if unit.start not in wrong]


def differences(source: str, target: str) -> Differences:
    """What a translation has lost, added or put into an order that its program cannot print."""
    return compare(find_units(source), find_units(target))


def compare(source: Sequence[Unit], target: Sequence[Unit]) -> Differences:
    wanted, given = _conversions(source), _conversions(target)
    there, here = _keys(source), _keys(target)
    if any(number for number, _ in given) or any(number for number, _ in wanted):
        # %2$s is the second %s: each argument has to be there, and may be wherever and as often as it likes.
        there |= Counter({f"%{n}${conversion}": 1 for n, conversion in _numbered(wanted)})
        here |= Counter({f"%{n}${conversion}": 1 for n, conversion in _numbered(given)})
        return Differences(list((there - here).elements()), list((here - there).elements()))
    there, here = (counts + Counter(unit.key for unit in units if _is_positional(unit)) for counts, units in
                   ((there, source), (here, target)))  # fmt: skip
    missing, extra = there - here, here - there
    changed = not missing and not extra and [c for _, c in wanted] != [c for _, c in given]
    order = [unit.text for unit in target if _is_positional(unit)] if changed else []
    return Differences(list(missing.elements()), list(extra.elements()), order)


def _unit(match: re.Match[str]) -> Unit:
    text, name = match[0], match.lastgroup
    key = text
    match name:
        case "spoken" | "role":
            inner = match.string[match.start() :].split("`", 2)[1]
            target = re.search(r"\s<([^<>]+)>$", inner)
            head = text[: text.index("`")]
            fixed = name == "role" or target or head.rsplit(":", 2)[1] in _NAMING
            named = target[1] if target else inner
            named = named.casefold() if head.endswith(":term:") else named  # as Sphinx looks it up
            key = f"{head}`{named}`" if fixed else f"{head}``"
        case "target":
            key = text if text.endswith("_") else ""
        case "accelerator":
            key = "&"
    kinds: dict[str | None, Kind] = {"spoken": "role", "target": "role"}
    return Unit(match.start(), match.end(), kinds.get(name, name), text, key)  # type: ignore[arg-type]


def _element(unit: Unit) -> str:
    return re.split(r"[\s/>]", unit.text.lstrip("</"), maxsplit=1)[0].lower()


def _is_tag(unit: Unit, closed: Counter[str]) -> bool:
    name = _element(unit)
    return name in _ELEMENTS or bool(closed[name]) or "=" in unit.text or unit.text.endswith("/>")


def _keys(units: Iterable[Unit]) -> Counter[str]:
    """The keys that are counted, without those that are arguments by their places."""
    return Counter(unit.key for unit in units if unit.key and not _is_positional(unit))


def _is_positional(unit: Unit) -> bool:
    """Whether it prints an argument that it does not name: neither %(name)s nor %%, %1 of Qt or %Y of a date."""
    found = _CONVERSION.fullmatch(unit.text) if unit.kind == "printf" else None
    return found is not None and found[2] is None and found[4] in "diouxXeEfFgGaAcspS@n"


def _conversions(units: Iterable[Unit]) -> list[tuple[int, str]]:
    """(number or 0, type) of each printf conversion whose argument has no name."""
    found = []
    for unit in units:
        if _is_positional(unit):
            conversion = _CONVERSION.fullmatch(unit.text)
            assert conversion is not None
            stars = conversion[3].count("*")
            found += [(0, "*")] * stars
            found.append((int(conversion[1] or 0), conversion[4]))
    return found


def _numbered(conversions: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for place, (number, conversion) in enumerate(conversions, start=1):
        yield number or place, conversion
