"""Line wrapping, and positions of words and characters in wrapped text. All lengths are in points."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.picture.surface import visible
from jumok.text.normalise import compose, is_inside_character

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Piece:
    """`text[start:end]`, a word or a part of one that is longer than a line, and its position `x` in the line."""

    start: int
    end: int
    x: float


class Typesetter:
    """Measures text in the fonts of a figure; `unseen` characters are in none of them."""

    def __init__(self, figure: "Figure", unseen: frozenset[str]) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self._renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
        self._dpi = figure.dpi
        self._unseen = unseen
        self._widths: dict[tuple[str, float], float] = {}

    def shown(self, text: str) -> str:
        """A text as drawn: composed, with code points for characters that have no glyph."""
        return show(text, self._unseen)

    def width(self, shown: str, size: float) -> float:
        if (shown, size) not in self._widths:
            from matplotlib.font_manager import FontProperties

            pixels = self._renderer.get_text_width_height_descent(shown, FontProperties(size=size), False)[0]
            self._widths[shown, size] = pixels * 72 / self._dpi
        return self._widths[shown, size]

    def wrap(self, text: str, size: float, room: float) -> list[list[Piece]]:
        """Wrap words into lines; white space becomes one blank, or a line break where the text has one."""
        lines: list[list[Piece]] = [[]]
        x = 0.0
        for found in re.finditer(r"\s+|\S+", text):
            if found[0].isspace():
                breaks = len(f"{found[0]}.".splitlines()) - 1
                lines += [[] for _ in range(min(breaks, 2))]  # at most one empty line
                x = x + size / 3 if lines[-1] else 0.0
                continue
            for start, end in self._cut(text, *found.span(), size, room):
                width = self.width(self.shown(text[start:end]), size)
                if lines[-1] and x + width > room:
                    lines.append([])
                    x = 0.0
                lines[-1].append(Piece(start, end, x))
                x += width
        return lines

    def extent(self, text: str, line: Sequence[Piece], start: int, end: int, size: float) -> tuple[float, float] | None:
        """Left and right edge of `text[start:end]` in this line; None if it is elsewhere."""
        if not line or end <= line[0].start or line[-1].end <= start:
            return None
        inside = [piece for piece in line if piece.start < end and start < piece.end]
        if not inside:  # white space
            return None
        first, last = inside[0], inside[-1]
        left = first.x + self._up_to(text, first, start, size)
        return left, last.x + self._up_to(text, last, end, size)

    def _up_to(self, text: str, piece: Piece, place: int, size: float) -> float:
        before = text[piece.start : min(max(place, piece.start), piece.end)]
        return self.width(self.shown(before), size) if before else 0.0

    def _cut(self, text: str, start: int, end: int, size: float, room: float) -> Iterator[tuple[int, int]]:
        """Split a word into parts that fit into a line, each of at least one character."""
        while self.width(self.shown(text[start:end]), size) > room:
            low, high = start + 1, end
            while low < high:
                middle = (low + high + 1) // 2
                fits = self.width(self.shown(text[start:middle]), size) <= room
                low, high = (middle, high) if fits else (low, middle - 1)
            cut = next((c for c in range(low, start, -1) if not is_inside_character(text, c)), low)
            if cut == end:
                break
            yield start, cut
            start = cut
        yield start, end


def show(text: str, unseen: frozenset[str]) -> str:
    return visible(compose("".join(" " if c.isspace() else c for c in text)), unseen)
