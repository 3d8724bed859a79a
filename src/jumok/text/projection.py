"""Tags of a sentence projected onto its translation, through the alignment of their tokens.

Each element comes around one stretch of words: the one in which most words are aligned with its own. No tag comes
inside a word, none is doubled, and elements stay in one another as they were, so that the result is balanced. An
element none of whose words is in the translation is dropped with its tags.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jumok.text.normalise import whole_characters
from jumok.text.tags import Range

_HAN_KANA = "\u2e80-\u2fff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNIT = re.compile(rf"[{_HAN_KANA}]|(?:(?![{_HAN_KANA}])\w)++(?:['’](?:(?![{_HAN_KANA}])\w)++|(?<=\d)[.,]\d++)*+|\S")
_MARK = re.compile(r"[\W_]")


@dataclass(eq=False, slots=True)
class Element:
    """An inline element: its tags as they were written, and the first and last place that something of it is at."""

    name: str
    start: str
    end: str
    parent: "Element | None"
    depth: int = 1
    first: int | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        self.depth = 1 if self.parent is None else self.parent.depth + 1


@dataclass(frozen=True, slots=True)
class Atom:
    """What stands between words and is not translated: an image, a comment, code."""

    raw: str
    inside: Element | None
    before: int
    """words before it"""
    blank_before: bool
    blank_after: bool


@dataclass(slots=True)
class Phrase:
    """A sentence of a document."""

    text: str
    units: list[Range]
    owners: list[Element | None]
    """the innermost element of each unit"""
    atoms: list[Atom]
    begins: int
    """in its block, the atoms included"""
    ends: int
    place: int = 0

    @property
    def marked(self) -> bool:
        """Whether tags inside of it have to find their places."""
        return len(set(self.owners)) > 1 or any(0 < atom.before < len(self.units) for atom in self.atoms)


@dataclass(frozen=True, slots=True)
class Aligned:
    """A translation, and how much each of its tokens (rows) has to do with each of the source's (columns)."""

    text: str
    target: Sequence[Range] = ()
    """characters of each token"""
    source: Sequence[Range] = ()
    weights: NDArray[np.float64] | None = None
    """[target, source]; None if it is not known"""


@dataclass(slots=True)
class Item:
    """A word or an atom of the result, with the white space before it."""

    text: str
    inside: Element | None
    before: str = ""
    raw: bool = False


def units_of(text: str) -> list[Range]:
    """Words, and each mark between them: tags may come before and after, never inside."""
    found = [match.span() for match in _UNIT.finditer(text)]
    if text.isascii():
        return found
    whole: list[Range] = []
    for start, end in whole_characters(text, found):
        if whole and start < whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((start, end))
    return whole


def placed(phrase: Phrase, found: Aligned | None) -> list[Item]:
    """The words of the translation and the phrase's atoms, in order, each in its element; without a translation, those
    of the phrase itself."""
    if found is None:
        found, units = Aligned(phrase.text), phrase.units
        owners, places = list(phrase.owners), [atom.before for atom in phrase.atoms]
    else:
        units, weights = units_of(found.text), None
        if phrase.marked and units and phrase.units and found.weights is not None:
            weights = _between_units(found, units, phrase.units)
        owners, places = _owners(phrase, found.text, units, weights)
    items: list[Item] = []
    atoms = sorted(zip(places, range(len(places)), phrase.atoms, strict=True))
    at = 0
    for number in range(len(units) + 1):
        here: list[Atom] = []
        while at < len(atoms) and atoms[at][0] == number:
            here.append(atoms[at][2])
            at += 1
        inner = 0 < number < len(units)
        blank = found.text[units[number - 1][1] : units[number][0]] if inner else ""
        word = None
        if number < len(units):
            start, end = units[number]
            word = Item(found.text[start:end], owners[number], blank)
        items += _beside(here, word, number, inner, len(phrase.units))
    _gather(phrase, items)
    return items


def _beside(atoms: Sequence[Atom], word: Item | None, number: int, inner: bool, last_place: int) -> list[Item]:
    """Atoms and the word after them, with the blanks that they had beside them where there is something beside them."""
    if not atoms:
        return [] if word is None else [word]
    blank = word.before if word else ""
    first, last = atoms[0], atoms[-1]
    before, after = first.blank_before and number > 0, last.blank_after and word is not None
    if inner and word is not None:
        if not blank:  # a stop follows, or a bracket goes before
            before, after = (before, False) if _MARK.match(word.text) else (False, after)
        else:  # nothing sticks together that did not before
            before, after = before or first.before == 0, after or last.before == last_place
            before = before or not after
    items = [Item(atom.raw, atom.inside, " " * (i and atom.blank_before), raw=True) for i, atom in enumerate(atoms)]
    # The model saw the blanks of both sides as one stretch.
    rest = blank[sum(len(item.before) for item in items) :] or " "
    half = len(rest) // 2 if before and after else 0
    items[0].before = (rest[:half] or rest) if before else ""
    if word is not None:
        word.before = rest[half:] if after else ""
        items.append(word)
    return items


def _between_units(found: Aligned, target: Sequence[Range], source: Sequence[Range]) -> NDArray[np.float64]:
    """[target units, source units]: the weights of their tokens, added up."""
    assert found.weights is not None
    rows, columns = (_of_units(tokens, units) for tokens, units in ((found.target, target), (found.source, source)))
    by_row = np.zeros((len(target), found.weights.shape[1]))
    np.add.at(by_row, rows[1], found.weights[rows[0]])
    by_both = np.zeros((len(source), len(target)))
    np.add.at(by_both, columns[1], by_row.T[columns[0]])
    total: NDArray[np.float64] = by_both.T
    return total


def _of_units(tokens: Sequence[Range], units: Sequence[Range]) -> tuple[list[int], list[int]]:
    """Tokens and units that share characters."""
    pairs: tuple[list[int], list[int]] = [], []
    unit = 0
    for token, (start, end) in enumerate(tokens):
        while unit < len(units) and units[unit][1] <= start:
            unit += 1
        here = unit
        while here < len(units) and units[here][0] < end:
            pairs[0].append(token)
            pairs[1].append(here)
            here += 1
    return pairs


def _owners(
    phrase: Phrase, text: str, units: Sequence[Range], weights: NDArray[np.float64] | None
) -> tuple[list[Element | None], list[int]]:
    """The element of each unit of the translation, and of each atom the number of units before it."""
    n = len(units)
    if weights is None:
        # What is around the whole phrase stays around it; where the rest belongs is not known.
        common = _common(phrase.owners)
        places = [n if atom.before else 0 for atom in phrase.atoms]
        return [common] * n, places
    links = _links(phrase, text, units, weights)
    owners = [None if link is None else phrase.owners[link] for link in links]
    _none_left_out(phrase, owners, weights)
    common = _common(phrase.owners)
    around = common.depth if common else 0
    places = []
    for atom in phrase.atoms:
        last = atom.before == len(phrase.units)
        to_left = _shared(atom.inside, phrase.owners[atom.before - 1]) if atom.before else -1
        to_right = -1 if last else _shared(atom.inside, phrase.owners[atom.before])
        if (last or not atom.before) and max(to_left, to_right) <= around:
            places.append(n if last else 0)  # it stays at its edge, unless it is in an element with the word beside it
            continue
        follows = to_left > to_right or (to_left == to_right and (atom.blank_after or not atom.blank_before))
        column = weights[:, atom.before - 1 if follows else atom.before]
        places.append(n - int(column[::-1].argmax()) if follows else int(column.argmax()))
    return owners, places


def _links(phrase: Phrase, text: str, units: Sequence[Range], weights: NDArray[np.float64]) -> list[int | None]:
    """For each unit of the translation the unit of the source it comes from. A name, number or mark that is once on
    each side is the same; another mark comes from nowhere."""
    there = [phrase.text[a:b] for a, b in phrase.units]
    here = [text[a:b] for a, b in units]
    counts, found = Counter(there), Counter(here)
    once = {word: i for i, word in enumerate(there) if counts[word] == 1}
    best = weights.argmax(axis=1).tolist()
    links: list[int | None] = []
    for word, likeliest, weight in zip(here, best, weights.max(axis=1).tolist(), strict=True):
        if found[word] == 1 and word in once:
            links.append(once[word])
        elif weight <= 0 or (_MARK.match(word) and there[likeliest] != word):
            links.append(None)
        else:
            links.append(likeliest)
    return links


def _none_left_out(phrase: Phrase, owners: list[Element | None], weights: NDArray[np.float64]) -> None:
    """An element that no unit is linked to gets the one with most weight on it, unless another would then have none."""
    own: dict[Element, list[int]] = {}
    for i, element in enumerate(phrase.owners):
        if element is not None:
            own.setdefault(element, []).append(i)
    has = Counter(element for owner in owners for element in _with_parents(owner))
    for element, columns in own.items():
        if has[element]:
            continue
        best = int(weights[:, columns].sum(axis=1).argmax())
        before = owners[best]
        if before is None or has[before] > 1 or before in _with_parents(element):
            owners[best] = element
            has.subtract(_with_parents(before))
            has.update(_with_parents(element))


def _with_parents(element: Element | None) -> list[Element]:
    found = []
    while element is not None:
        found.append(element)
        element = element.parent
    return found


def _common(owners: Sequence[Element | None]) -> Element | None:
    """The innermost element that all units are in."""
    if not owners:
        return None
    common = _with_parents(owners[0])
    for owner in set(owners):
        around = set(_with_parents(owner))
        common = [element for element in common if element in around]
    return common[0] if common else None


def _shared(one: Element | None, other: Element | None) -> int:
    around = set(_with_parents(other))
    return sum(element in around for element in _with_parents(one))


def _gather(phrase: Phrase, items: list[Item]) -> None:
    """Give each element one stretch of the items, at the edge if it goes on beyond it."""
    waiting: list[tuple[Element | None, int, int]] = [(None, 0, len(items))]
    while waiting:
        parent, start, end = waiting.pop()
        if len({item.inside for item in items[start:end]}) < 2:
            continue  # all are in the same one, which may be deep
        children = [_child(item.inside, parent) for item in items[start:end]]
        for item, child in zip(items[start:end], children, strict=True):
            if child is None:
                item.inside = parent
        ahead = {child for child in children if child is not None and child.first is not None}
        entering = next((c for c in ahead if c.first is not None and c.first < phrase.place), None)
        lasting = next((c for c in ahead if c.last is not None and c.last > phrase.place), None)
        low, high = 0, end - start
        if entering is not None and entering is lasting:
            low = high
            waiting.append((entering, start, end))
        elif entering is not None:
            low = _best_prefix([child is entering for child in children])
            waiting.append((entering, start, start + low))
        if lasting is not None and lasting is not entering:
            high -= _best_prefix([child is lasting for child in reversed(children[low:])])
            waiting.append((lasting, start + high, end))
        stretches = _stretches(children, low, high, {entering, lasting})
        kept = np.zeros(end - start, dtype=np.bool_)
        kept[:low] = True
        kept[high:] = True
        for child, first, after in stretches:
            kept[first:after] = True
            waiting.append((child, start + first, start + after))
        for i in np.flatnonzero(~kept).tolist():
            items[start + i].inside = parent


def _child(element: Element | None, parent: Element | None) -> Element | None:
    """The element directly in `parent` that this one is, or is in; None if it is not in it."""
    depth = parent.depth if parent else 0
    while element is not None and element.depth > depth + 1:
        element = element.parent
    return element if element is not None and element.depth == depth + 1 and element.parent is parent else None


def _best_prefix(own: Sequence[bool]) -> int:
    """The length of the beginning with most items of its own, others counted against it."""
    best = total = length = 0
    for i, is_own in enumerate(own, start=1):
        total += 1 if is_own else -1
        if total > best:
            best, length = total, i
    return length


def _stretches(
    children: Sequence[Element | None], low: int, high: int, without: set[Element | None]
) -> list[tuple[Element, int, int]]:
    """For each child the stretch with most items of its own, those of the parent between them counted against it; never
    with an item of another child."""
    begun: dict[Element, tuple[int, int, int]] = {}  # score, first, last of the stretch that ends at its last item
    best: dict[Element, tuple[int, int, int]] = {}
    other = -1  # the last item of any child
    for i in range(low, high):
        child = children[i]
        if child is None or child in without:
            continue
        score, first, last = begun.get(child, (0, i, i))
        gain = score + 1 - (i - last - 1)
        begun[child] = (gain, first, i) if child in begun and other == last and gain > 1 else (1, i, i)
        if child not in best or begun[child][0] > best[child][0]:
            best[child] = begun[child]
        other = i
    return [(child, first, last + 1) for child, (_, first, last) in best.items()]
