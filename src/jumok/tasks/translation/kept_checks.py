"""The doctor's rules for what a translation keeps: placeholders, tags and numbers, in data and in outputs."""

from collections.abc import Iterator
from math import inf
from typing import Literal

from jumok.findings import Rule
from jumok.text.numbers import changed_numbers
from jumok.text.placeholders import compare, find_units

Kept = Literal["placeholders", "tags", "numbers"]

# fmt: off
IN_DATA: dict[str, Rule] = {
    "placeholders": ("data.placeholders", 0.01, inf, "pairs whose sides have different placeholders", "A model learns"
        " to lose them, and a program that fills them in fails: correct these pairs or remove them"),
    "tags": ("data.tags", 0.01, inf, "pairs whose sides have different tags", "A model learns to lose or to invent"
        " tags: correct these pairs or remove them"),
    "numbers": ("data.numbers", 0.01, inf, "pairs whose sides have different numbers", "A model learns to change or to"
        " drop numbers: correct these pairs or remove them"),
}
IN_OUTPUTS: dict[str, Rule] = {
    "placeholders": ("output.placeholders", 0, 0.2, "outputs whose placeholders are not those of their source", "A"
        " program that fills them in would fail: correct these outputs, and look for such pairs in the training data"),
    "tags": ("output.tags", 0, 0.2, "outputs whose tags are not those of their source", "Correct these outputs, and"
        " look for such pairs in the training data"),
    "numbers": ("output.numbers", 0.01, 0.2, "outputs whose numbers are not those of their source", "Check them before"
        " anybody relies on them: rare numbers are easily miscopied"),
}
# fmt: on
_TAGS = ("tag", "entity")


def not_kept(source: str, target: str) -> Iterator[tuple[Kept, str]]:
    """The kinds of things that differ between the two, with what only one side has."""
    ours, theirs = find_units(source), find_units(target)
    for kind in ("placeholders", "tags") if ours or theirs else ():
        one, other = ([unit for unit in units if (unit.kind in _TAGS) == (kind == "tags")] for units in (ours, theirs))
        if differ := compare(one, other):
            yield kind, _said(differ.missing, differ.extra) or "in another order"
    missing, extra = changed_numbers(source, target)
    if missing or extra:
        yield "numbers", _said(missing, extra)


def _said(missing: list[str], extra: list[str]) -> str:
    sides = ("only source", missing), ("only target", extra)
    return "; ".join(f"{side}: {' '.join(sorted({*found}))}" for side, found in sides if found)
