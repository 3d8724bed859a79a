"""Pictures from plain data: what a model looked at, how a training went, BLEU by length. PNG or SVG by the suffix.

matplotlib is the extra `plot` and is imported when a picture is drawn. No window is opened and nothing of a user's
matplotlib settings is read. Every `draw_…` writes its file and returns the figure.
"""

import logging
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import InputError
from jumok.text.vocabulary import EOS, SPACE, WORDPIECE_PREFIX

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.ft2font import FT2Font

    from jumok.predictor import Alignment

SUFFIXES = (".png", ".svg")
DPI = 150
MIN_DPI = 60  # labels of 10 points are then 8 pixels high, the least that can be read
MANY_PIXELS = 16_000_000  # from here on a picture is drawn more coarsely
MAX_PIXELS = 64_000_000  # a quarter of a gigabyte while it is drawn
LONGEST_LABEL = 24
END = "⏎"
METRICS = {"bleu": "BLEU", "chrf": "chrF"}
SHADES = ("white", "#6baed6", "#08306b")
STYLE: dict[str, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "legend.frameon": False,
    "svg.fonttype": "path",  # glyphs travel with the picture: they are right wherever it is looked at
    "svg.hashsalt": "jumok",  # the same picture, the same bytes
    "text.parse_math": False,  # two dollar signs in a text are not a formula
}
BASE_FAMILY = "DejaVu Sans"  # comes with matplotlib
FAMILIES = (
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "NanumGothic",
    "NanumBarunGothic",
    "Apple SD Gothic Neo",
    "Malgun Gothic",
    "UnDotum",
    "Noto Sans CJK JP",
    "Noto Sans",
)
# They have a box for every character, and so would hide that a glyph is missing.
NO_GLYPHS = re.compile(r"last ?resort|adobe blank", re.IGNORECASE)


def draw_alignment(alignment: "Alignment", path: Path) -> "Figure":
    """A row for each written piece, a column for each piece that was read, the darker the more it was looked at."""
    source, target = ([_label(piece) for piece in pieces] for pieces in (alignment.source, alignment.target))
    with _figure(path, source + target) as figure:
        # The axes have a fixed size in inches for each cell, and labels lie outside: however many there are, no label
        # meets the next one.
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
            interpolation_stage="rgba",  # colours are found for each cell, not for each pixel
        )
        axes.spines[:].set_visible(False)
        axes.set_xticks(range(len(source)), source, rotation=60, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(target)), target)
        axes.xaxis.set_label_position("top")
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=2)
        for label in axes.get_xticklabels():
            if label.get_text() == END:  # it reads as one when it stands upright
                label.set(rotation=0, ha="center")
        axes.set_xlabel("looked at", color="0.4", labelpad=8)
        axes.set_ylabel("written", color="0.4")
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
    """The text, wrapped, each word the darker the more it weighs; `title` says what came of it: positive 0.97."""
    shown = [_visible(word) for word in words]
    with _figure(path, [*shown, title]) as figure:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.font_manager import FontProperties
        from matplotlib.patches import Rectangle

        # All lengths in points. A word has a shade that is higher than any of its letters, so that a line is even.
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


def draw_curves(events: Iterable[Mapping[str, Any]], path: Path, *, floor: float | None = None) -> "Figure":
    """Training loss and every metric on dev against the step, from the events of a run (its events.jsonl).

    Of a pre-training it is the masked loss; `floor` is the unigram floor, below which context is used.
    """
    losses: dict[int, float] = {}
    scores: dict[str, dict[int, float]] = {}
    best: int | None = None
    name_of_loss = "loss"
    for event in events:  # a run that went on from a checkpoint tells some steps again: the later word counts
        if event["event"] == "step":
            parts = event.get("parts") or {}
            losses[event["step"]] = parts.get("masked", event["loss"])
            name_of_loss = "masked loss" if "masked" in parts or floor is not None else "loss"
        elif event["event"] == "evaluated":
            best = event["step"] if event["best"] else best
            for name, value in event["scores"].items():
                scores.setdefault(name, {})[event["step"]] = value
    if not losses:
        raise InputError("no training steps to draw", where=path, right="the events of a run that has begun")
    with _figure(path, list(scores)) as figure:
        panels = 1 + len(scores)
        columns = 2 if panels == 4 else min(panels, 3)
        rows = -(-panels // columns)
        figure.set_size_inches(3.6 * columns, 2.8 * rows)
        figure.set_layout_engine("constrained")
        first, *others = figure.subplots(rows, columns, squeeze=False, sharex=True).flat
        steps = sorted(losses)
        window = max(len(steps) // 100, 1)
        first.plot(steps, [losses[step] for step in steps], color="C0", alpha=0.25, linewidth=0.8)
        first.plot(*_means(steps, losses, window), color="C0", label=f"mean of {window} steps" if window > 1 else None)
        if floor is not None:
            first.axhline(floor, color="0.4", linestyle="--", linewidth=1, label=f"unigram floor {floor:.2f}")
        if window > 1 or floor is not None:
            first.legend()
        first.set_title(f"training {name_of_loss}", loc="left", size=10)
        for axes, (name, values) in zip(others, scores.items(), strict=False):
            at = sorted(values)
            if best is not None:
                axes.axvline(best, color="0.8", linewidth=1)
            axes.plot(at, [values[step] for step in at], color="C1", marker="o", markersize=3)
            axes.set_title(f"dev {METRICS.get(name, name.replace('_', ' '))}", loc="left", size=10)
            if name == "masked_loss" and floor is not None:
                axes.axhline(floor, color="0.4", linestyle="--", linewidth=1)
            if name == "perplexity":
                _scale_logarithmically(axes)
        for axes in others[len(scores) :]:
            axes.remove()
        note = "" if best is None else f" (grey line: the best on dev, {best:,})"
        figure.supxlabel(f"step{note}", size=10)
    return figure


def draw_bleu_by_length(runs: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> "Figure":
    """BLEU with its 95 % interval by source length: of each run the entries `bleu_by_source_words` of scores.json."""
    buckets = sorted({_bucket(score["name"], path) for scores in runs.values() for score in scores})
    if not buckets:
        raise InputError("no BLEU by source length to draw", where=path, right="scores of runs that translate")
    sizes: dict[tuple[int, float], set[int]] = {bucket: set() for bucket in buckets}
    with _figure(path, list(runs)) as figure:
        figure.set_size_inches(max(5.0, 1.3 * len(buckets) + 1.5), 3.8)
        figure.set_layout_engine("constrained")
        axes = figure.subplots()
        for run, (name, unsorted) in enumerate(runs.items()):
            scores = sorted(unsorted, key=lambda score: _bucket(score["name"], path))
            shift = 0.12 * (run - (len(runs) - 1) / 2)  # side by side, or the bars would hide each other
            at = [buckets.index(_bucket(score["name"], path)) + shift for score in scores]
            lows, highs = ([score[end] for score in scores] for end in ("low", "high"))
            colour, marker = f"C{run % 10}", "osD^vP*X"[run % 8]
            # A bootstrap interval need not have the value inside, which `errorbar` of the values would refuse.
            middles = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
            halves = [(high - low) / 2 for low, high in zip(lows, highs, strict=True)]
            axes.errorbar(at, middles, yerr=halves, fmt="none", ecolor=colour, elinewidth=1, capsize=3)
            values = [score["value"] for score in scores]
            axes.plot(at, values, color=colour, marker=marker, markersize=5, linewidth=1, label=f" {name}")
            for score in scores:
                sizes[_bucket(score["name"], path)].add(score["n"])
        labels = []
        for (low, high), n in sizes.items():
            words = f"{low}+" if high == float("inf") else f"{low}–{high:.0f}"
            labels.append(f"{words}\nn = {n.pop():,}" if len(n) == 1 else words)
        axes.set_xticks(range(len(buckets)), labels)
        axes.set_xlabel("words in the source")
        axes.set_ylabel("BLEU, 95 % interval")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="0.9", linewidth=0.6)
        figure.legend(loc="outside upper left", ncols=min(len(runs), 4))
    return figure


def refuse_undrawable(path: Path) -> None:
    """Say before the work begins what would stop a picture at its end: a suffix, or matplotlib that is not there."""
    if path.suffix.lower() not in SUFFIXES:
        what = f"no pictures of the kind {path.suffix}" if path.suffix else "a picture needs a suffix"
        raise InputError(what, where=path, right="a name that ends in .png or .svg")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise InputError("matplotlib is not installed", right="pip install 'jumok[plot]'") from error


def find_families(text: str) -> list[str]:
    """Installed font families that together have a glyph for every character, the first one to be asked first."""
    refuse_undrawable(Path("any.png"))
    with _quiet_about_fonts():
        return list(_families_for(frozenset(c for c in text if not c.isspace())))


@cache
def _families_for(characters: frozenset[str]) -> tuple[str, ...]:
    families, missing = [BASE_FAMILY], set(characters)
    for family in _installed_families():
        font = _font(family)
        here = {c for c in missing if font is not None and font.get_char_index(ord(c))}
        missing -= here
        if here and family != BASE_FAMILY:
            families.append(family)
        if not missing:
            return tuple(families)
    names = [f"{c} (U+{ord(c):04X})" for c in sorted(missing)]
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    hangul = any("HANGUL" in unicodedata.name(c, "") for c in missing)
    raise InputError(
        f"no installed font has {', '.join(names[:10])}{more}",
        right=f"a font that has them, e.g. `apt-get install {'fonts-nanum' if hangul else 'fonts-noto'}`",
    )


def _installed_families() -> Iterator[str]:
    """The likely ones first; in the end what was installed after matplotlib made its list of fonts."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    def ranked(names: set[str]) -> list[str]:
        order = [BASE_FAMILY, *FAMILIES]
        rank = {name: order.index(name) if name in order else len(order) + ("Sans" not in name) for name in names}
        return sorted((name for name in names if not NO_GLYPHS.search(name)), key=lambda name: (rank[name], name))

    listed = {entry.name for entry in fontManager.ttflist}
    yield from ranked(listed)
    files = {str(entry.fname) for entry in fontManager.ttflist}
    for file in sorted(set(findSystemFonts()) - files):
        with suppress(Exception):  # a font that cannot be read raises whatever it likes
            fontManager.addfont(file)
    yield from ranked({entry.name for entry in fontManager.ttflist} - listed)


@cache
def _font(family: str) -> "FT2Font | None":
    """The face that a text of this family would be drawn with; None if it cannot be drawn with."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    try:
        font = get_font(findfont(FontProperties(family=[family]), fallback_to_default=False))
    except (ValueError, RuntimeError, OSError):
        return None
    return font if font.scalable else None  # fonts of coloured bitmaps, such as emoji, are not


@contextmanager
def _quiet_about_fonts() -> Iterator[None]:
    """matplotlib logs a warning of every family that has no regular weight, whether it is wanted or not."""
    log = logging.getLogger("matplotlib.font_manager")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def _figure(path: Path, texts: Sequence[str]) -> "Iterator[Figure]":
    """A figure to draw on, in fonts that have all characters of `texts`; then it is written aside and renamed."""
    refuse_undrawable(path)
    families = find_families("".join(texts))
    from matplotlib import style
    from matplotlib.figure import Figure

    with _quiet_about_fonts(), style.context({**STYLE, "font.family": families}, after_reset=True):
        figure = Figure()
        yield figure
        if engine := figure.get_layout_engine():
            engine.execute(figure)
        box = figure.get_tightbbox().padded(0.15)
        kind = path.suffix.lower().removeprefix(".")
        area = box.width * box.height
        dpi = min(DPI, max(MIN_DPI, sqrt(MANY_PIXELS / area)))
        if kind == "png" and area * dpi**2 > MAX_PIXELS:
            right = f"a shorter text, or a drawing that can be enlarged: {path.with_suffix('.svg').name}"
            raise InputError("too much for a picture of pixels", where=path, right=right)
        path.parent.mkdir(parents=True, exist_ok=True)
        building = path.with_name(f"{path.name}.tmp-{os.getpid()}")
        try:
            figure.savefig(
                building, format=kind, dpi=dpi, bbox_inches=box, metadata={"Date": None} if kind == "svg" else None
            )
            building.replace(path)
        finally:
            building.unlink(missing_ok=True)


def _label(piece: str) -> str:
    """A piece as a person reads it: without marks, its end visible, not too long."""
    if piece == EOS:
        return END
    text = _visible(piece.removeprefix(WORDPIECE_PREFIX).replace(SPACE, " ").strip()) or "␣"
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def _visible(text: str) -> str:
    """Control and format characters, which have no glyph, as their numbers."""
    return "".join(f"<U+{ord(c):04X}>" if unicodedata.category(c) in ("Cc", "Cf") else c for c in text)


@cache
def _shades() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("white to dark", SHADES)


def _shade(share: float) -> tuple[tuple[float, ...], str]:
    """The colour for a share of the darkest, and the ink that can be read on it."""
    red, green, blue, _ = (float(part) for part in _shades()(share))
    return (red, green, blue), "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.46 else "black"


def _means(steps: Sequence[int], values: Mapping[int, float], window: int) -> tuple[list[float], list[float]]:
    """Middle and mean of each window."""
    cut = [steps[i : i + window] for i in range(0, len(steps), window)]
    return [sum(part) / len(part) for part in cut], [sum(values[s] for s in part) / len(part) for part in cut]


def _scale_logarithmically(axes: "Axes") -> None:
    """Perplexity begins in the thousands and ends in the tens; plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _bucket(name: str, path: Path) -> tuple[int, float]:
    """The fewest and most words of `bleu_11_to_20_words` or `bleu_51_or_more_words`."""
    found = re.fullmatch(r"bleu_(\d+)_(?:to_(\d+)|or_more)_words", name)
    if not found:
        raise InputError(f"not BLEU by source length: {name}", where=path, right="e.g. bleu_11_to_20_words")
    return int(found[1]), float(found[2] or "inf")
