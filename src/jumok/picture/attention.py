"""Pictures of attention: a matrix of tokens, or a text with its words shaded by weight."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jumok.picture.surface import drawing, visible
from jumok.text.vocabulary import EOS, SPACE, WORDPIECE_PREFIX

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


class Alignment(Protocol):
    """Source and target tokens, and a row of weights over the source for each target token."""

    @property
    def source(self) -> Sequence[str]: ...
    @property
    def target(self) -> Sequence[str]: ...
    @property
    def weights(self) -> Sequence[Sequence[float]]: ...


LONGEST_LABEL = 24
END = "⏎"
SHADES = ("white", "#6baed6", "#08306b")


def draw_alignment(alignment: Alignment, path: Path, *, title: str = "", rows: str = "output") -> "Figure":
    """Draw a row for each target token and a column for each source token, darker for more attention; `rows` says what
    the target tokens are."""
    source, target = ([_label(piece) for piece in pieces] for pieces in (alignment.source, alignment.target))
    with drawing(path, source + target) as figure:
        # Each cell has a fixed size in inches and labels lie outside, so labels never overlap, however many there are.
        cell = 0.36 if max(len(source), len(target)) <= 30 else 0.29
        width, height = cell * len(source), cell * len(target)
        figure.set_size_inches(width, height)
        axes = figure.add_axes((0, 0, 1, 1))
        most = max(max(row) for row in alignment.weights) or 1
        image = axes.imshow(
            alignment.weights,
            cmap=_shades(),
            vmin=0,
            vmax=most,
            aspect="auto",
            interpolation="nearest",
            interpolation_stage="rgba",  # map colours per cell, not per pixel
        )
        axes.spines[:].set_visible(False)
        axes.set_xticks(range(len(source)), source, rotation=60, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(target)), target)
        axes.xaxis.set_label_position("top")
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=2)
        for label in axes.get_xticklabels():
            if label.get_text() == END:  # readable only when upright
                label.set(rotation=0, ha="center")
        axes.set_xlabel(f"attended to ({title})" if title else "attended to", color="0.4", labelpad=8)
        axes.set_ylabel(rows, color="0.4")
        right, bottom = len(source) - 0.5, len(target) - 0.5
        axes.vlines([i - 0.5 for i in range(len(source) + 1)], -0.5, bottom, color="0.9", linewidth=0.6)
        axes.hlines([i - 0.5 for i in range(len(target) + 1)], -0.5, right, color="0.9", linewidth=0.6)
        for row, weights in enumerate(alignment.weights):
            for column, weight in enumerate(weights):
                if weight >= 0.095:  # rounds to .10
                    number, ink = f"{weight:.2f}".removeprefix("0"), _shade(weight / most)[1]
                    axes.text(column, row, number, ha="center", va="center", color=ink, size=20 * cell, in_layout=False)
        bar = min(max(height, 1.2), 3)
        scale = axes.inset_axes((1 + 0.3 / width, 1 - bar / height, 0.13 / width, bar / height))
        figure.colorbar(image, cax=scale, label="attention")
    return figure


def draw_words(words: Sequence[str], weights: Sequence[float], path: Path, *, title: str) -> "Figure":
    """Draw the wrapped text with its words shaded by weight; `title` is the prediction: positive 0.97."""
    shown = [visible(word) for word in words]
    with drawing(path, [*shown, title]) as figure:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.font_manager import FontProperties
        from matplotlib.patches import Rectangle

        # All lengths are in points. A word's box is taller than any letter, so that lines look even.
        size, gap, line = 13, 3.5, 24
        renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
        font = FontProperties(size=size)
        pixels = [renderer.get_text_width_height_descent(word, font, False)[0] for word in shown]
        widths = [width * 72 / figure.dpi for width in pixels]
        room = max([500, *widths])
        places, x, y, right = [], 0.0, 0.0, 0.0
        for width in widths:
            if x + width > room:
                x, y = 0.0, y - line
            places.append((x, y))
            right = max(right, x + width)
            x += width + 2 * gap
        figure.set_size_inches((right + 2 * gap) / 72, (line - y) / 72)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(-gap, right + gap), ylim=(y - line / 3, 2 * line / 3))
        axes.set_axis_off()
        most = max(weights, default=0) or 1
        for word, weight, width, (x, y) in zip(shown, weights, widths, places, strict=True):
            shade, ink = _shade(max(weight, 0) / most)
            low, high = 0.32 * size, 1.05 * size
            axes.add_patch(Rectangle((x - gap + 0.4, y - low), width + 2 * gap - 0.8, low + high, color=shade))
            axes.text(x, y, word, size=size, color=ink, va="baseline")
        axes.set_title(title, loc="left", size=size, pad=10)
        axes.text(0, -0.02, f"darkest: {most:.2f}", transform=axes.transAxes, size=8, color="0.4", va="top")
    return figure


def _label(piece: str) -> str:
    """A readable token: without marks, the end of the text visible, not too long."""
    if piece == EOS:
        return END
    text = visible(piece.removeprefix(WORDPIECE_PREFIX).replace(SPACE, " ").strip()) or "␣"
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


@cache
def _shades() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("white to dark", SHADES)


def _shade(share: float) -> tuple[tuple[float, ...], str]:
    """The colour for a share of the darkest, and an ink that is legible on it."""
    red, green, blue, _ = (float(part) for part in _shades()(share))
    return (red, green, blue), "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.46 else "black"
