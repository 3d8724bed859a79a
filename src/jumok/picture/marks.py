"""Entities and relations in their texts: a bar with its type under each entity, and a row below for each relation.

Bars are stacked in levels, so that nested and overlapping entities stay readable. Arcs over a text of ten sentences
would tangle; instead, a relation has a number, shown at both of its entities.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jumok.errors import InputError
from jumok.picture.surface import drawing, without_glyph
from jumok.picture.typesetting import Piece, Typesetter, show
from jumok.text.span import Span

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# All lengths are in points.
ROOM = 560.0  # about 90 characters
SIZE, SMALL, ROW = 11.0, 7.0, 9.5  # font sizes: text, types, rows
LINE, LEVEL, BAR = 19.0, 11.5, 1.8  # heights: a line of text, a bar with its type, the bar
GAP = 4.0  # between marks on one level
TALLEST = 16_000.0  # at this height, small letters are still 9 pixels high
LONG_TEXT = 30_000  # fits with two levels of bars in every line
MOST_PASSAGES = int(TALLEST / (2.6 * LINE))  # of one line each, with a title
LONGEST_NAME = 40
MOST_NUMBERS = 6
UNTYPED = "entity"
# Okabe and Ito's colour-blind-safe palette, the palest last.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")

Key = tuple[int, int, str]
"""Identity of an entity: its first character, the one after its last, its type."""


class Relation(Protocol):
    """A relation between two entities."""

    @property
    def head(self) -> Span: ...
    @property
    def tail(self) -> Span: ...
    @property
    def label(self) -> str: ...
    @property
    def probability(self) -> float: ...


class Passage(Protocol):
    """A text with its entities and relations; tasks/passage.py has the class."""

    @property
    def text(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def entities(self) -> Sequence[Span]: ...
    @property
    def relations(self) -> Sequence[Relation]: ...


@dataclass(slots=True)
class _Mark:
    """An entity in one line: the extent of its bar, and its type with the numbers of its relations."""

    kind: str
    left: float
    right: float
    label: str
    label_left: float
    label_right: float
    level: int = 0

    def meets(self, other: "_Mark") -> bool:
        """Whether the two would overlap on one level."""
        return (
            min(self.left, self.label_left) < max(other.right, other.label_right) + GAP
            and min(other.left, other.label_left) < max(self.right, self.label_right) + GAP
        )


def draw_marks(passages: Sequence[Passage], path: Path) -> "Figure":
    """Draw wrapped texts, one below the other, with their entities and relations; a legend on top counts the types."""
    if not passages:
        raise InputError("no text to draw", where=path, hint="pass at least one", code="input.empty")
    counts = Counter(kind for passage in passages for _, _, kind in _labels(passage))
    colours = {kind: COLOURS[i % len(COLOURS)] for i, kind in enumerate(sorted(counts))}
    written = [*counts, *(text for passage in passages for text in _written(passage))]
    unseen = without_glyph("".join(written))
    with drawing(path, [show(text, unseen) for text in written], hinted=False) as figure:
        sheet = _Sheet(figure, colours, unseen)
        sheet.draw_legend(counts)
        for done, passage in enumerate(passages):
            sheet.draw_passage(passage)
            if -sheet.y > TALLEST:
                raise _too_tall(passages, done, path)
        sheet.finish()
    return figure


def _written(passage: Passage) -> Iterator[str]:
    yield from (passage.text, passage.title)
    yield from (relation.label for relation in passage.relations)


def _key(entity: Span) -> Key:
    return entity.start, entity.end, entity.label or UNTYPED


def _labels(passage: Passage) -> dict[Key, str]:
    """The label under each entity: its type, `1→` for the head of relation 1, `→2` for the tail of relation 2."""
    numbers: dict[Key, list[str]] = {_key(entity): [] for entity in passage.entities}
    for number, relation in enumerate(passage.relations, start=1):
        for side, mark in ((relation.head, f"{number}→"), (relation.tail, f"→{number}")):
            numbers.setdefault(_key(side), []).append(mark)
    more = {key: ["…"] if len(found) > MOST_NUMBERS else [] for key, found in numbers.items()}
    return {key: " ".join([key[2], *found[:MOST_NUMBERS], *more[key]]) for key, found in numbers.items()}


def _stack(marks: Sequence[_Mark]) -> None:
    """Give each mark the highest free level, shortest first, so that nested entities stand above."""
    placed: list[_Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.right - mark.left, mark.left)):
        taken = {other.level for other in placed if other.meets(mark)}
        mark.level = next(level for level in range(len(marks)) if level not in taken)
        placed.append(mark)


def _too_tall(passages: Sequence[Passage], fit: int, path: Path) -> InputError:
    if not fit:
        what = f"a text of {len(passages[0].text):,} characters is too long for one picture"
        return InputError(
            what, where=path, hint=f"draw parts of about {LONG_TEXT:,} characters separately", code="input.picture"
        )
    hint = f"draw several pictures: {'the first text fits' if fit == 1 else f'the first {fit} fit'} into one"
    return InputError(
        f"{len(passages):,} texts are too many for one picture", where=path, hint=hint, code="input.picture"
    )


def _mixed(colour: str, other: str, share: float) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(share * b + (1 - share) * a for a, b in zip(to_rgb(colour), to_rgb(other), strict=True))


class _Sheet:
    """Draws from top to bottom, with `y` as the current position; `finish` fits the figure to its content."""

    def __init__(self, figure: "Figure", colours: Mapping[str, str], unseen: frozenset[str]) -> None:
        self.figure = figure
        self.axes = figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.type = Typesetter(figure, unseen)
        self.colours = colours
        self.right = self.y = 0.0

    def finish(self) -> None:
        top, bottom = SIZE, self.y + 0.4 * LINE
        self.figure.set_size_inches(self.right / 72, (top - bottom) / 72)
        self.axes.set(xlim=(0, self.right), ylim=(bottom, top))

    def draw_legend(self, counts: Mapping[str, int]) -> None:
        if not counts:
            self._write(0, "nothing was found", ROW, "0.4")
        x = 0.0
        for kind, count in sorted(counts.items()):
            name = f"{self.type.shown(kind)}  {count:,}"
            width = 12 + self.type.width(name, ROW)
            if x and x + width > ROOM:
                x, self.y = 0.0, self.y - LINE
            self._box(x, x + 8, -0.5, 7.5, self.colours[kind])
            self._write(x + 12, name, ROW)
            x += width + 18
        self.y -= LINE

    def draw_passage(self, passage: Passage) -> None:
        self.y -= 0.6 * LINE
        if passage.title:
            for line in self.type.wrap(passage.title, ROW, ROOM):
                self._write_line(passage.title, line, ROW, "0.4")
                self.y -= LINE
        labels = _labels(passage)
        for line in self.type.wrap(passage.text, SIZE, ROOM):
            marks = [m for key, label in labels.items() if (m := self._mark(passage.text, line, key, label))]
            _stack(marks)
            for mark in sorted(marks, key=lambda mark: mark.left - mark.right):  # shorter over longer
                self._draw_mark(mark)
            self._write_line(passage.text, line, SIZE)
            # Every line of a text with entities has room for one level, so that line spacing is nearly even.
            self.y -= LINE + LEVEL * max([bool(labels), *(mark.level + 1 for mark in marks)])
            if -self.y > TALLEST:  # will be rejected
                return
        if passage.relations:
            self._draw_relations(passage.relations)

    def _mark(self, text: str, line: Sequence[Piece], key: Key, label: str) -> _Mark | None:
        start, end, kind = key
        extent = self.type.extent(text, line, start, end, SIZE)
        if extent is None:
            return None
        shown = ("…" if start < line[0].start else "") + self.type.shown(label)
        width = self.type.width(shown, SMALL)
        x = max(min(extent[0], ROOM - width), 0)  # at the end of a line there may be no room to the right
        return _Mark(kind, *extent, shown, x, x + width)

    def _draw_mark(self, mark: _Mark) -> None:
        colour, low = self.colours[mark.kind], -0.5 * SIZE - LEVEL * mark.level
        self._tint(mark.left, mark.right, SIZE, mark.kind)
        self._box(mark.left, mark.right, low, low + BAR, colour)
        self._write(mark.label_left, mark.label, SMALL, _mixed(colour, "black", 0.45), lift=low - SMALL)

    def _draw_relations(self, relations: Sequence[Relation]) -> None:
        """Heads, labels and tails in three columns, with an arrow from each head to its tail."""
        sides = [tuple(self._name(side) for side in (relation.head, relation.tail)) for relation in relations]
        labels = [f"{self.type.shown(relation.label)}  {relation.probability:.2f}" for relation in relations]
        head_x = 10 + self.type.width(str(len(relations)), ROW)
        label_x = head_x + max(self.type.width(head, ROW) for head, _ in sides) + 30
        label_width = max(self.type.width(label, ROW) for label in labels)
        tail_x = label_x + label_width + 34
        for number, relation in enumerate(relations, start=1):
            (head, tail), label = sides[number - 1], labels[number - 1]
            self._write(0, str(number), ROW, "0.4")
            begin = self._write_name(head_x, head, relation.head)
            self._write_name(tail_x, tail, relation.tail)
            middle, width = self.y + 0.36 * ROW, self.type.width(label, ROW)
            x = label_x + (label_width - width) / 2
            for left, right, style in ((begin + 3, x - 2, "-"), (x + width + 2, tail_x - 3, "->")):
                look = {"arrowstyle": style, "color": "0.55", "linewidth": 0.8}
                self.axes.annotate("", (right, middle), (left, middle), arrowprops=look, in_layout=False)
            self._write(x, label, ROW)
            self.y -= 1.8 * ROW

    def _write_name(self, x: float, name: str, entity: Span) -> float:
        end = x + self.type.width(name, ROW)
        self._tint(x - 2, end + 2, ROW, _key(entity)[2])
        self._write(x, name, ROW)
        return end

    def _name(self, entity: Span) -> str:
        name = self.type.shown(" ".join(entity.text.split()))
        return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"

    def _write_line(self, text: str, line: Sequence[Piece], size: float, colour: str = "black") -> None:
        for piece in line:
            self._write(piece.x, self.type.shown(text[piece.start : piece.end]), size, colour)

    def _write(self, x: float, shown: str, size: float, colour: Any = "black", *, lift: float = 0) -> None:
        # All text is inside the axes, so layout need not measure it again.
        self.axes.text(x, self.y + lift, shown, size=size, color=colour, va="baseline", in_layout=False)
        self.right = max(self.right, x + self.type.width(shown, size))

    def _tint(self, left: float, right: float, size: float, kind: str) -> None:
        self._box(left, right, -0.27 * size, size, _mixed(self.colours[kind], "white", 0.8))

    def _box(self, left: float, right: float, low: float, high: float, colour: Any) -> None:
        from matplotlib.patches import FancyBboxPatch

        corner = f"round,pad=0,rounding_size={min(right - left, high - low, 4) / 2}"
        box = FancyBboxPatch((left, self.y + low), right - left, high - low, boxstyle=corner, facecolor=colour)
        box.set(edgecolor="none", in_layout=False)
        self.axes.add_artist(box)
