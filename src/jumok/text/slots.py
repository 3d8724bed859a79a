"""Placeholders as numbered slots: what a model sees in their places, and what is put back where it wrote them.

A source numbers its own placeholders, equal ones alike, and its translation uses the same numbers: whatever a
placeholder is made of, to copy it is to write one token.
"""

import re
from dataclasses import dataclass

from jumok.text.placeholders import Unit, find_units

SLOTS = "".join(map(chr, range(0xFDD0, 0xFDE0)))
"""noncharacters, which Unicode sets aside for internal use: no text has them"""
_SLOT = re.compile(f"[{SLOTS[0]}-{SLOTS[-1]}]")
_ACCELERATOR = re.compile(r"\(&.\)")
Fillings = tuple[str, ...]
"""the placeholders of a source by the number of their slot"""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A text with slots in the places of its placeholders."""

    text: str
    fillings: Fillings
    slots: tuple[tuple[int, int], ...] = ()
    """of each slot, in order, the characters that it hides"""

    def spans(self) -> list[tuple[int, int]]:
        """For each character of `text`, what it stands for; a final empty span marks the end."""
        found: list[tuple[int, int]] = []
        end = 0
        for start, after in self.slots:
            found += ((i, i + 1) for i in range(end, start))
            found.append((start, after))
            end = after
        length = end + len(self.text) - len(found)
        return [*found, *((i, i + 1) for i in range(end, length)), (length, length)]


def hide(text: str, fillings: Fillings | None = None) -> Hidden:
    """Put slots in the places of the placeholders: the text's own, or those among `fillings`.

    What has no slot stays as it is: a target's own placeholders, and those of a source beyond the last slot.
    """
    text = _SLOT.sub("\ufffd", text)
    units = find_units(text)
    if fillings is None:
        fillings = tuple(dict.fromkeys(_filling(unit, text) for unit in units))[: len(SLOTS)]
    numbers = {filling: number for number, filling in enumerate(fillings)}
    parts: list[str] = []
    slots: list[tuple[int, int]] = []
    end = 0
    for unit in units:
        filling = _filling(unit, text)
        if filling not in numbers or _filled(filling, text[unit.end : unit.end + 1]) != unit.text:
            continue
        parts += text[end : unit.start], SLOTS[numbers[filling]]
        slots.append((unit.start, unit.end))
        end = unit.end
    return Hidden("".join([*parts, text[end:]]), fillings, tuple(slots))


def fill(text: str, fillings: Fillings | None) -> str:
    """Put placeholders in the places of slots; nothing for a slot that has none, and ⟦1⟧ if they are not known."""

    def put(slot: re.Match[str]) -> str:
        number = SLOTS.index(slot[0])
        if fillings is None:
            return f"⟦{number + 1}⟧"
        return _filled(fillings[number], text[slot.end() : slot.end() + 1]) if number < len(fillings) else ""

    return _SLOT.sub(put, text)


def _filling(unit: Unit, text: str) -> str:
    """A slot's content; an accelerator's is always in the form with brackets."""
    if unit.kind != "accelerator":
        return unit.text
    letter = unit.text[2:3] or text[unit.end]
    return f"(&{letter.upper()})"


def _filled(filling: str, following: str) -> str:
    """`&File` marks its first letter; languages that are not written in letters append it: `파일(&F)`."""
    return "&" if following.isalnum() and _ACCELERATOR.fullmatch(filling) else filling
