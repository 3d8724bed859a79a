"""The basis of every picture: a figure, fonts that cover every character, and an atomic write."""

import logging
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.ft2font import FT2Font

SUFFIXES = (".png", ".svg")
DPI = 150
MIN_DPI = 60  # 10-point labels are then 8 pixels high, the legible minimum
MANY_PIXELS = 16_000_000  # above this, the resolution is reduced
MAX_PIXELS = 64_000_000  # a quarter of a gigabyte while drawing
STYLE: dict[str, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "legend.frameon": False,
    "svg.fonttype": "path",  # embed glyphs, so that they display correctly everywhere
    "svg.hashsalt": "jumok",  # same picture, same bytes
    "text.parse_math": False,  # two dollar signs in a text are not a formula
}
BASE_FAMILY = "DejaVu Sans"  # ships with matplotlib
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
# These have a box for every character, which would hide missing glyphs.
NO_GLYPHS = re.compile(r"last ?resort|adobe blank", re.IGNORECASE)


def refuse_undrawable(path: Path) -> None:
    """Reject a wrong suffix or a missing matplotlib before the work starts."""
    if path.suffix.lower() not in SUFFIXES:
        what = f"unsupported picture format: {path.suffix}" if path.suffix else "the picture's name has no suffix"
        raise InputError(what, where=path, hint="use a name that ends in .png or .svg", code="input.picture_kind")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise InputError("matplotlib is not installed", hint="pip install 'jumok[plot]'", code="input.extra") from error


def find_families(text: str) -> list[str]:
    """Installed font families that together have a glyph for every character, in order of preference."""
    refuse_undrawable(Path("any.png"))
    with _quiet_about_fonts():
        return list(_families_for(frozenset(c for c in text if not c.isspace())))


def without_glyph(text: str) -> frozenset[str]:
    """Emoji and other symbols of a text that no installed font can draw.

    Emoji fonts are usually coloured bitmaps and unusable here, so asking for one would not help. Missing letters are
    rejected by `find_families`.
    """
    refuse_undrawable(Path("any.png"))
    symbols = frozenset(c for c in text if unicodedata.category(c)[0] in "SC" and not c.isspace())
    with _quiet_about_fonts():
        return frozenset(_cover(symbols)[1])


@cache
def _families_for(characters: frozenset[str]) -> tuple[str, ...]:
    families, missing = _cover(characters)
    if not missing:
        return families
    names = [f"{c} (U+{ord(c):04X})" for c in sorted(missing)]
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    hangul = any("HANGUL" in unicodedata.name(c, "") for c in missing)
    raise InputError(
        f"no installed font has {', '.join(names[:10])}{more}",
        hint=f"install a font that has them, e.g. `apt-get install {'fonts-nanum' if hangul else 'fonts-noto'}`",
        code="input.no_font",
    )


def _cover(characters: frozenset[str]) -> tuple[tuple[str, ...], set[str]]:
    """Families that cover the characters, and the characters that none covers."""
    families, missing = [BASE_FAMILY], set(characters)
    for family in _installed_families() if missing else ():
        font = _font(family)
        here = {c for c in missing if font is not None and font.get_char_index(ord(c))}
        missing -= here
        if here and family != BASE_FAMILY:
            families.append(family)
        if not missing:
            break
    return tuple(families), missing


def _installed_families() -> Iterator[str]:
    """Likely families first; last those installed after matplotlib built its font list."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    def ranked(names: set[str]) -> list[str]:
        order = [BASE_FAMILY, *FAMILIES]
        rank = {name: order.index(name) if name in order else len(order) + ("Sans" not in name) for name in names}
        return sorted((name for name in names if not NO_GLYPHS.search(name)), key=lambda name: (rank[name], name))

    listed = {entry.name for entry in fontManager.ttflist}
    yield from ranked(listed)
    files = {str(entry.fname) for entry in fontManager.ttflist}
    for file in sorted(set(findSystemFonts()) - files):
        with suppress(Exception):  # an unreadable font may raise anything
            fontManager.addfont(file)
    yield from ranked({entry.name for entry in fontManager.ttflist} - listed)


@cache
def _font(family: str) -> "FT2Font | None":
    """The face that this family is drawn with; None if it is unusable."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    try:
        font = get_font(findfont(FontProperties(family=[family]), fallback_to_default=False))
    except (ValueError, RuntimeError, OSError):
        return None
    return font if font.scalable else None  # coloured bitmap fonts, e.g. of emoji, are not


@contextmanager
def _quiet_about_fonts() -> Iterator[None]:
    """Silence matplotlib, which warns about every family without a regular weight, used or not."""
    log = logging.getLogger("matplotlib.font_manager")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def drawing(path: Path, texts: Sequence[str], *, hinted: bool = True) -> "Iterator[Figure]":
    """Provide a figure with fonts that cover all characters of `texts`, then write it atomically.

    Hinted letters, aligned to whole pixels, are sharper, but their widths depend on the resolution.
    """
    refuse_undrawable(path)
    families = find_families("".join(texts))
    from matplotlib import style
    from matplotlib.figure import Figure

    wanted = {**STYLE, "font.family": families, **({} if hinted else {"text.hinting": "none"})}
    with _quiet_about_fonts(), style.context(wanted, after_reset=True):
        figure = Figure()
        yield figure
        if engine := figure.get_layout_engine():
            engine.execute(figure)
        box = figure.get_tightbbox().padded(0.15)
        kind = path.suffix.lower().removeprefix(".")
        area = box.width * box.height
        dpi = min(DPI, max(MIN_DPI, sqrt(MANY_PIXELS / area)))
        if kind == "png" and area * dpi**2 > MAX_PIXELS:
            hint = f"shorten the text, or draw a scalable {path.with_suffix('.svg').name}"
            raise InputError("too large for a PNG", where=path, hint=hint, code="input.picture")
        path.parent.mkdir(parents=True, exist_ok=True)
        building = path.with_name(f"{path.name}.tmp-{os.getpid()}")
        try:
            figure.savefig(
                building, format=kind, dpi=dpi, bbox_inches=box, metadata={"Date": None} if kind == "svg" else None
            )
            building.replace(path)
        finally:
            building.unlink(missing_ok=True)


def visible(text: str, unseen: frozenset[str] = frozenset()) -> str:
    """Replace `unseen`, control and format characters, which have no glyph, with their code points."""
    return "".join(f"<U+{ord(c):04X}>" if c in unseen or unicodedata.category(c) in ("Cc", "Cf") else c for c in text)
