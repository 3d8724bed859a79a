"""Pictures from plain data: attention, entities and relations, training curves, BLEU by length.

The suffix selects PNG or SVG. matplotlib is the extra `plot` and is imported when a picture is drawn. No window is
opened, and the user's matplotlib settings are ignored. Every `draw_…` writes its file and returns the figure.
"""

from jumok.picture.attention import draw_alignment, draw_words
from jumok.picture.curves import draw_bleu_by_length, draw_curves
from jumok.picture.marks import MOST_PASSAGES, draw_marks
from jumok.picture.surface import find_families, refuse_undrawable

__all__ = [
    "MOST_PASSAGES",
    "draw_alignment",
    "draw_bleu_by_length",
    "draw_curves",
    "draw_marks",
    "draw_words",
    "find_families",
    "refuse_undrawable",
]
