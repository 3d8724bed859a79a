"""Entities and relations in texts: all of them are there, none hides another, and nobody has to guess a colour."""

import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from jumok.errors import InputError
from jumok.picture import MOST_PASSAGES, draw_marks, find_families, marks, surface
from jumok.picture.marks import BAR, COLOURS, ROOM, SIZE, _Mark, _stack
from jumok.picture.marks import SMALL as SMALL_SIZE
from jumok.picture.typesetting import Typesetter
from jumok.tasks.passage import Passage
from jumok.tasks.relation.predictor import Relation
from jumok.text.span import Span

TEXT = "Aspirin inhibits COX-2 in human platelets."
PRIVATE_SYMBOL = "\U000f0000"  # no font has a glyph for it
CUNEIFORM = "\U00012000"


def entity(text: str, what: str, kind: str, after: int = 0) -> Span:
    start = text.index(what, after)
    return Span(start, start + len(what), kind, what, 0.9)


ASPIRIN, COX = entity(TEXT, "Aspirin", "Chemical"), entity(TEXT, "COX-2", "Gene")
SMALL = Passage(TEXT, [ASPIRIN, COX], [Relation(ASPIRIN, COX, "INHIBITOR", 0.97)])


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def boxes(figure: Figure) -> list[tuple[str, float, float, float, float]]:
    """Colour, left, right, bottom and height of everything that is coloured."""
    found = [artist for artist in figure.axes[0].get_children() if isinstance(artist, FancyBboxPatch)]
    return [
        (to_hex(box.get_facecolor()), box.get_x(), box.get_x() + box.get_width(), box.get_y(), box.get_height())
        for box in found
    ]


def bars(figure: Figure, colour: str | None = None) -> list[tuple[float, float, float]]:
    """Left, right and bottom of the bars under entities."""
    found = [box for box in boxes(figure) if box[-1] == pytest.approx(BAR) and colour in (None, box[0])]
    return [box[1:4] for box in found]


def place(figure: Figure, word: str) -> tuple[float, float]:
    (found,) = {text.get_position() for text in figure.axes[0].texts if text.get_text() == word}
    return found


class TestEntities:
    def test_each_has_a_bar_under_it_and_its_type(self, tmp_path: Path) -> None:
        figure = draw_marks([SMALL], tmp_path / "m.png")
        said = texts(figure)
        assert said[:2] == ["Chemical  1", "Gene  1"]  # the legend
        assert [word for word in said if word in TEXT.split()] == [*TEXT.split(), "Aspirin", "COX-2"]
        assert {"Chemical 1→", "Gene →1"} <= set(said)
        (left, right, low), (next_left, _, next_low) = bars(figure)
        assert left == 0
        assert low == next_low < place(figure, "inhibits")[1]
        assert right < place(figure, "inhibits")[0] < next_left
        assert [path.name for path in tmp_path.iterdir()] == ["m.png"]

    def test_a_type_has_one_colour_in_the_legend_the_text_and_the_rows(self, tmp_path: Path) -> None:
        text = "b a b a"
        found = [Span(i, i + 1, text[i].upper(), text[i], 0.9) for i in (0, 2, 4, 6)]
        figure = draw_marks([Passage(text, found, [Relation(found[0], found[3], "r", 1.0)])], tmp_path / "m.svg")
        first, second = COLOURS[:2]
        used = boxes(figure)
        strong, pale = {c for c, *_ in used if c in COLOURS}, {c for c, *_ in used if c not in COLOURS}
        assert strong == {first, second}
        assert len(pale) == 2
        assert [len(bars(figure, colour)) for colour in (first, second)] == [2, 2]
        assert texts(figure)[:2] == ["A  2", "B  2"]

    def test_many_types_take_turns(self, tmp_path: Path) -> None:
        words = [f"w{i}" for i in range(10)]
        text = " ".join(words)
        figure = draw_marks([Passage(text, [entity(text, w, f"type {w}") for w in words])], tmp_path / "m.svg")
        assert {f"type {word}" for word in words} <= set(texts(figure))
        assert [len(bars(figure, colour)) for colour in COLOURS] == [2, 2, 2, 1, 1, 1, 1]

    def test_an_entity_may_be_a_part_of_a_word(self, tmp_path: Path) -> None:
        text = "wwwwwwwww works"
        figure = draw_marks([Passage(text, [Span(3, 6, "P", "www", 0.9)])], tmp_path / "m.svg")
        ((left, right, _),) = bars(figure)
        assert left == pytest.approx(right - left, rel=0.05)
        assert place(figure, "works")[0] == pytest.approx(3 * left, rel=0.1)

    def test_those_without_a_type_are_called_entities(self, tmp_path: Path) -> None:
        figure = draw_marks([Passage("a b", [Span(0, 1, "", "a", 1.0)])], tmp_path / "m.svg")
        assert texts(figure) == ["entity  1", "entity", "a", "b"]

    def test_nothing_found_is_said(self, tmp_path: Path) -> None:
        figure = draw_marks([Passage("not a thing", []), Passage("", [])], tmp_path / "m.svg")
        assert texts(figure) == ["nothing was found", "not", "a", "thing"]
        assert boxes(figure) == []


class TestLevels:
    def test_what_is_inside_stands_above_and_what_crosses_beneath(self, tmp_path: Path) -> None:
        text = "tumor necrosis factor receptor"
        spans = {"inner": (0, 5), "outer": (0, 21), "across": (6, 30)}
        found = [Span(*span, kind, text[slice(*span)], 0.9) for kind, span in spans.items()]
        figure = draw_marks([Passage(text, found)], tmp_path / "m.svg")
        low = {kind: place(figure, kind)[1] for kind in spans}
        assert low["inner"] > low["outer"] > low["across"]
        assert len({bottom for *_, bottom in bars(figure)}) == 3

    def test_two_types_of_the_same_characters_are_both_told(self, tmp_path: Path) -> None:
        figure = draw_marks(
            [Passage("a", [Span(0, 1, kind, "a", 0.9) for kind in ("X", "Y", "X")])], tmp_path / "m.svg"
        )
        assert texts(figure)[:2] == ["X  1", "Y  1"]
        assert len(bars(figure)) == 2
        assert place(figure, "X")[1] != place(figure, "Y")[1]

    @given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 200), st.integers(5, 150)), max_size=12))
    def test_no_two_that_meet_share_a_level(self, made: list[tuple[int, int, int]]) -> None:
        found = [_Mark("X", x, x + width, "", x, x + label) for x, width, label in made]
        _stack(found)
        assert all(one.level != other.level for one, other in combinations(found, 2) if one.meets(other))
        assert {mark.level for mark in found} == set(range(len({mark.level for mark in found})))

    def test_types_never_meet(self, tmp_path: Path) -> None:
        text = "a b c d e f g " * 12
        found = [Span(i, i + 1, f"a_long_type_{text[i]}", text[i], 0.9) for i in range(0, len(text), 2)]
        figure = draw_marks([Passage(text, found)], tmp_path / "m.png")
        labels = [text for text in figure.axes[0].texts if re.fullmatch(r"…?a_long_type_.", text.get_text())]
        assert len(labels) == len(found)
        width = Typesetter(figure, frozenset()).width("a_long_type_g", SMALL_SIZE)
        levels: dict[float, list[float]] = {}
        for label in labels:
            x, y = label.get_position()
            levels.setdefault(y, []).append(x)
        assert all(b - a > width for xs in levels.values() for a, b in pairwise(sorted(xs)))
        heights = sorted(levels)
        assert all(b - a > 1.5 * SMALL_SIZE for a, b in pairwise(heights))
        assert max(map(max, levels.values())) + width < ROOM + 3


class TestLines:
    def test_an_entity_at_the_end_of_a_line_is_drawn_in_both(self, tmp_path: Path) -> None:
        text = "word " * 60
        figure = draw_marks([Passage(text, [Span(0, len(text) - 1, "Long", text.strip(), 0.9)])], tmp_path / "m.svg")
        lines = {y: 0 for _, y in [t.get_position() for t in figure.axes[0].texts if t.get_text() == "word"]}
        assert len(lines) > 2
        assert len(bars(figure)) == len(lines)
        assert texts(figure).count("Long") == 1
        assert texts(figure).count("…Long") == len(lines) - 1

    def test_a_word_longer_than_a_line_is_cut_and_nothing_is_lost(self, tmp_path: Path) -> None:
        text = "w" * 300
        figure = draw_marks([Passage(text, [Span(10, 290, "X", text[10:290], 0.9)])], tmp_path / "m.svg")
        parts = [part for part in texts(figure) if set(part) == {"w"}]
        assert len(parts) > 2
        assert "".join(parts) == text
        assert len(bars(figure)) == len(parts)
        assert max(right for _, right, _ in bars(figure)) <= ROOM

    @pytest.mark.parametrize("broken", ["a\nb", "a\r\nb", "a \u2028 b", "a\n\n\n\n\nb"])
    def test_line_breaks_are_kept(self, tmp_path: Path, broken: str) -> None:
        figure = draw_marks([Passage(broken, [Span(0, len(broken), "X", broken, 0.9)])], tmp_path / "m.svg")
        (x, high), (next_x, low) = place(figure, "a"), place(figure, "b")
        assert (x, next_x) == (0, 0)
        lines = 2 if "\n\n" in broken else 1  # of empty ones, one is kept
        assert (high - low) / (marks.LINE + marks.LEVEL) == pytest.approx(lines)
        assert len(bars(figure)) == 2

    def test_other_white_space_is_a_blank(self, tmp_path: Path) -> None:
        figure = draw_marks([Passage("a\t\u3000b", [])], tmp_path / "m.svg")
        assert place(figure, "a")[1] == place(figure, "b")[1]
        assert 0.25 * SIZE < place(figure, "b")[0] < 1.2 * SIZE


class TestRelations:
    def test_they_are_rows_beneath_the_text(self, tmp_path: Path) -> None:
        figure = draw_marks([SMALL], tmp_path / "m.svg")
        assert texts(figure)[-4:] == ["1", "Aspirin", "COX-2", "INHIBITOR  0.97"]
        row = place(figure, "INHIBITOR  0.97")[1]
        assert row < place(figure, "Gene →1")[1]
        arrows = [text.arrow_patch for text in figure.axes[0].texts if not text.get_text()]
        assert len(arrows) == 2

    def test_an_entity_has_the_numbers_of_its_relations_but_not_of_dozens(self, tmp_path: Path) -> None:
        passage = Passage(TEXT, [COX], [Relation(ASPIRIN, COX, f"r{i}", 0.5) for i in range(9)])
        said = texts(draw_marks([passage], tmp_path / "m.svg"))
        assert "Chemical 1→ 2→ 3→ 4→ 5→ 6→ …" in said  # though only relations name it
        assert {f"r{i}  0.50" for i in range(9)} <= set(said)

    def test_long_names_are_cut_and_line_breaks_are_not_drawn(self, tmp_path: Path) -> None:
        text = f"{'n' * 60} a\nb"
        head, tail = Span(0, 60, "X", "n" * 60, 0.9), Span(61, 64, "Y", "a\nb", 0.9)
        said = texts(draw_marks([Passage(text, [head, tail], [Relation(head, tail, "r", 1.0)])], tmp_path / "m.svg"))
        assert said[-3:] == ["n" * 39 + "…", "a b", "r  1.00"]


class TestCharacters:
    def test_symbols_without_a_glyph_are_shown_by_number(self, tmp_path: Path) -> None:
        text = f"I love it {PRIVATE_SYMBOL}\u200b $5 and $6"
        figure = draw_marks([Passage(text, [entity(text, "$5", "MONEY")])], tmp_path / "m.png")
        assert "<U+F0000><U+200B>" in texts(figure)

    def test_letters_without_a_glyph_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(surface, "_installed_families", lambda: iter([surface.BASE_FAMILY]))
        with pytest.raises(InputError) as caught:
            draw_marks([Passage(CUNEIFORM, [])], tmp_path / "m.png")
        assert caught.value.code == "input.no_font"
        assert list(tmp_path.iterdir()) == []

    def test_decomposed_letters_are_composed_and_their_places_kept(self, tmp_path: Path) -> None:
        text = "cafe\u0301s open"
        figure = draw_marks([Passage(text, [Span(0, 5, "P", text[:5], 0.9)])], tmp_path / "m.svg")
        same = draw_marks([Passage("cafés open", [Span(0, 4, "P", "café", 0.9)])], tmp_path / "m.svg")
        assert texts(figure) == texts(same)
        assert bars(figure) == bars(same)

    def test_korean_with_particles(self, tmp_path: Path) -> None:
        try:
            find_families("한글")
        except InputError as error:
            pytest.skip(str(error))
        text = "민아는 서울에서 일한다."
        figure = draw_marks([Passage(text, [entity(text, "서울", "LOC")])], tmp_path / "m.png")
        ((left, right, _),) = bars(figure)
        assert left == place(figure, "서울에서")[0]
        assert (right - left) / (place(figure, "일한다.")[0] - left) == pytest.approx(0.45, abs=0.05)


class TestFiles:
    def test_an_svg_is_the_same_bytes_again(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "m.svg"
        draw_marks([SMALL], path)
        first = path.read_bytes()
        assert ElementTree.fromstring(first).tag.endswith("svg")
        assert b"<!-- platelets. -->" in first
        draw_marks([SMALL], path)
        assert path.read_bytes() == first

    def test_texts_are_stacked_with_one_legend(self, tmp_path: Path) -> None:
        passages = [Passage(f"text{i} Ada", [Span(6, 9, "P", "Ada", 0.9)], title=f"line {i}") for i in range(1, 4)]
        figure = draw_marks(passages, tmp_path / "m.svg")
        assert texts(figure)[0] == "P  3"
        order = [place(figure, f"text{i}")[1] for i in range(1, 4)]
        assert order == sorted(order, reverse=True)
        assert texts(figure).count("line") == 3

    def test_too_many_texts_are_refused_and_it_is_said_how_many_fit(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(marks, "TALLEST", 400)
        with pytest.raises(InputError) as caught:
            draw_marks([SMALL] * 30, tmp_path / "m.svg")
        assert (caught.value.code, caught.value.where) == ("input.picture", str(tmp_path / "m.svg"))
        assert "30" in caught.value.what
        fit = int(re.findall(r"\d+", str(caught.value.hint))[0])
        assert list(tmp_path.iterdir()) == []
        draw_marks([SMALL] * fit, tmp_path / "m.svg")
        with pytest.raises(InputError) as caught:
            draw_marks([SMALL] * (fit + 1), tmp_path / "m.svg")
        assert caught.value.code == "input.picture"

    def test_a_text_that_is_too_long_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(marks, "TALLEST", 100)
        with pytest.raises(InputError) as caught:
            draw_marks([Passage("some words " * 181 + "is it them"[:9], [])], tmp_path / "m.svg")
        assert caught.value.code == "input.picture"
        assert "2,000" in caught.value.what
        assert "30,000" in str(caught.value.hint)

    def test_the_most_passages_fit(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        heights = []
        for n in (10, 20):
            figure: Any = draw_marks([Passage("a", [], title="t")] * n, tmp_path / "m.svg")
            heights.append(figure.get_size_inches()[1] * 72)
        each = (heights[1] - heights[0]) / 10
        assert heights[0] + (MOST_PASSAGES - 11) * each < marks.TALLEST

    def test_no_text_and_no_picture_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            draw_marks([], tmp_path / "m.svg")
        assert (caught.value.code, caught.value.where) == ("input.empty", str(tmp_path / "m.svg"))
        with pytest.raises(InputError) as caught:
            draw_marks([SMALL], tmp_path / "m.pdf")
        assert (caught.value.code, caught.value.where) == ("input.picture_kind", str(tmp_path / "m.pdf"))
