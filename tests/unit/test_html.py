"""HTML for notebooks: every text escaped, spans where they stand, nothing fetched."""

import re

from jumok import html
from jumok.text.span import Span

HOSTILE = '<script>alert("x")</script> & "q"'


def visible(fragment: str) -> str:
    return re.sub(r"<[^>]*>", "", fragment)


def test_every_text_is_escaped() -> None:
    fragments = [
        html.line(HOSTILE),
        html.bars({HOSTILE: 0.5}),
        html.marked(HOSTILE, [Span(0, 8, HOSTILE)]),
        html.shaded([(HOSTILE, 1.0)]),
        html.matrix([HOSTILE], [HOSTILE], [[1.0]]),
    ]
    for fragment in fragments:
        assert "<script" not in fragment
        assert "&lt;script" in fragment
        assert "http" not in fragment


def test_a_marked_text_has_all_of_its_text_and_each_label_at_its_span() -> None:
    fragment = html.marked("김민준은 부산에 산다", [Span(5, 7, "LOC"), Span(0, 3, "PER"), Span(1, 2, "X")])
    assert visible(fragment) == "김민준PER은 부산LOC에 산다"  # a span inside another is left to the other


def test_bars_are_ranked_and_counted() -> None:
    fragment = html.bars({f"l{i}": i / 20 for i in range(12)})
    assert fragment.index("l11") < fragment.index("l10") < fragment.index("l2<")
    assert "and 2 more" in fragment


def test_a_matrix_has_a_cell_for_each_pair() -> None:
    assert html.matrix(["a", "b"], ["c", "d", "e"], [[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]]).count("<td") == 6
