"""Placeholders that a translation lost, doubled or made up, put right where that is certain.

A model writes slots (text/slots.py) and seldom gets one wrong. What is left is noted with the output.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jumok.engines import Array
from jumok.text.placeholders import find_units
from jumok.text.tokenizer import Tokenizers
from jumok.text.vocabulary import SPACE

PEAK = 0.5
"""attention that a source token gets where the model means it and nothing else"""
MOST = 4
"""placeholders missing from an output that is worth repairing"""
_TWICE_IS_FINE = ("role", "literal", "address")
"""A sentence may say a name twice; a program cannot print an argument twice."""
_APPENDED = range(0x1100, 0x11FF), range(0x3040, 0x30FF), range(0x4E00, 0x9FFF), range(0xAC00, 0xD7A4)
"""scripts whose menus have the accelerator after the text: 파일(&F)"""


@dataclass(slots=True)
class _Draft:
    """An output under repair, with its slots as numbers."""

    ids: list[int]
    source: list[int]
    tokenizers: Tokenizers
    attention: Callable[[Sequence[int]], Array | None]
    """[T + 1, S]: attention of the next token after each of an output, over the source"""

    def wanted(self) -> dict[int, list[int]]:
        """Where each slot is in the source."""
        return _places(self.source, self.tokenizers.source.slot_ids)

    def given(self) -> dict[int, list[int]]:
        """Where each slot is in the output."""
        return _places(self.ids, self.tokenizers.target.slot_ids)

    def kind(self, number: int) -> str:
        """What kind of placeholder is in a slot; only parts of roles are found within a text alone."""
        target = self.tokenizers.target
        found = find_units(target.pieces([target.slot_ids[number]])[0])
        return found[0].kind if found else "role"


def repaired(
    ids: Sequence[int],
    source: Sequence[int],
    tokenizers: Tokenizers,
    attention: Callable[[Sequence[int]], Array | None],
) -> list[int]:
    """The output with the slots of its source, as far as it is certain where they belong.

    `tokenizers` have the source's placeholders in their slots.
    """
    draft = _Draft(list(ids), list(source), tokenizers, attention)
    _exchange(draft)
    _remove(draft)
    _insert(draft)
    return draft.ids


def _places(ids: Sequence[int], slots: Sequence[int]) -> dict[int, list[int]]:
    found = dict[int, list[int]]()
    for place, token in enumerate(ids):
        if token in slots:
            found.setdefault(slots.index(token), []).append(place)
    return found


def _difference(draft: _Draft) -> tuple[list[int], list[int]]:
    """The slots that are missing, and those that are too many."""
    wanted, given = (
        Counter({number: len(places) for number, places in each.items()}) for each in (draft.wanted(), draft.given())
    )
    return list((wanted - given).elements()), list((given - wanted).elements())


def _exchange(draft: _Draft) -> None:
    """The only one missing takes the place of the only one too many."""
    missing, extra = _difference(draft)
    if len(missing) != 1 or len(extra) != 1:
        return
    places, wanted = draft.given()[extra[0]], draft.wanted()
    if len(places) > 1:
        weights = draft.attention(draft.ids)
        if weights is None:
            return
        there, here = wanted[missing[0]], wanted.get(extra[0], [])
        places = [t for t in places if weights[t, there].sum() > weights[t, here].sum()]
    if len(places) == 1:
        draft.ids[places[0]] = draft.tokenizers.target.slot_ids[missing[0]]


def _remove(draft: _Draft) -> None:
    """Slots of nothing; and those written twice for one that is once in the source."""
    wanted, gone = draft.wanted(), set[int]()
    for number, places in draft.given().items():
        if number not in wanted:
            gone.update(places)
        elif len(places) > len(wanted[number]) == 1 and draft.kind(number) not in _TWICE_IS_FINE:
            weights = draft.attention(draft.ids)
            if weights is None:
                continue
            slots = [place for found in wanted.values() for place in found]
            column = wanted[number][0]
            if all(slots[int(weights[t, slots].argmax())] == column for t in places):
                gone.update(set(places) - {max(places, key=lambda t: weights[t, column])})
    draft.ids = [token for place, token in enumerate(draft.ids) if place not in gone]


def _insert(draft: _Draft) -> None:
    """One that is missing, before the word at which the model looked at it; an accelerator where it belongs."""
    missing, _ = _difference(draft)
    if len(missing) > MOST:
        return
    target = draft.tokenizers.target
    for number in missing:
        if draft.kind(number) == "accelerator":
            pieces = [target.decode([token]) for token in draft.ids]
            if any(ord(character) in script for script in _APPENDED for piece in pieces for character in piece):
                words = [place for place, piece in enumerate(pieces) if any(map(str.isalnum, piece))]
                draft.ids.insert((words or [-1])[-1] + 1, target.slot_ids[number])
            continue
        places = draft.wanted()[number]
        weights = draft.attention(draft.ids) if len(places) == 1 else None
        if weights is None:
            continue
        gaps = [t for t, best in enumerate(weights.argmax(axis=1).tolist()) if best == places[0]]
        if len(gaps) == 1 and weights[gaps[0], places[0]] > PEAK and _between_words(draft, gaps[0]):
            pieces = target.pieces(range(target.vocab_size))
            space = [pieces.index(SPACE)] if SPACE in pieces else []
            draft.ids[gaps[0] : gaps[0]] = [*space, target.slot_ids[number]]


def _between_words(draft: _Draft, gap: int) -> bool:
    return gap == len(draft.ids) or draft.tokenizers.target.pieces([draft.ids[gap]])[0].startswith(SPACE)
