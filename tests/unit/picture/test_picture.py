"""Pictures: what is drawn is what was given, every glyph is there, and what cannot be drawn is said."""

import json
import struct
import sys
from math import radians, sin
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from jumok.cli import app
from jumok.errors import InputError
from jumok.picture import (
    draw_alignment,
    draw_bleu_by_length,
    draw_curves,
    draw_words,
    find_families,
    refuse_undrawable,
    surface,
)
from jumok.tasks.translation.predictor import Alignment

WEIGHTS = [[0.7, 0.2, 0.06, 0.04], [0.05, 0.25, 0.6, 0.1], [0.0, 0.1, 0.2, 0.7]]
SMALL = Alignment(["▁two", "▁hun", "dred", "</s>"], ["▁$zw$", "ei", "</s>"], WEIGHTS, [], [])
NO_FONT_HAS_IT = "\U0010fffd"  # the last of the private characters


def aligned(source: list[str], target: list[str]) -> Alignment:
    return Alignment(source, target, [[1 / len(source)] * len(source) for _ in target], [], [])


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


@pytest.fixture
def hangul() -> None:
    try:
        find_families("한글")
    except InputError as error:
        pytest.skip(str(error))


class TestAlignment:
    def test_the_picture_has_the_weights_and_the_pieces_as_words(self, tmp_path: Path) -> None:
        figure = draw_alignment(SMALL, tmp_path / "a.png")
        axes = figure.axes[0]
        assert axes.images[0].get_array().tolist() == WEIGHTS
        assert [label.get_text() for label in axes.get_xticklabels()] == ["two", "hun", "dred", "⏎"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["$zw$", "ei", "⏎"]
        assert not axes.get_yticklabels()[0].get_parse_math()  # dollar signs are no formula
        numbers = {(t.get_position(), t.get_text()) for t in axes.texts}
        above = {(c, r): f"{w:.2f}"[1:] for r, row in enumerate(WEIGHTS) for c, w in enumerate(row) if w >= 0.095}
        assert numbers == set(above.items())
        assert min(png_size(tmp_path / "a.png")) > 200
        assert [path.name for path in tmp_path.iterdir()] == ["a.png"]

    def test_marks_and_odd_pieces_are_made_readable(self, tmp_path: Path) -> None:
        pieces = ["##ing", "▁", "<0xEC>", "\u200b", "w" * 100, "</s>"]
        axes = draw_alignment(aligned(pieces, ["</s>"]), tmp_path / "a.svg").axes[0]
        labels = [label.get_text() for label in axes.get_xticklabels()]
        assert labels == ["ing", "␣", "<0xEC>", "<U+200B>", "w" * 23 + "…", "⏎"]

    @pytest.mark.parametrize("n", [1, 40])
    def test_labels_never_meet(self, tmp_path: Path, n: int) -> None:
        figure = draw_alignment(
            aligned([f"▁Höhe{i}g" for i in range(n)], [f"▁(Q{i}g)" for i in range(n)]), tmp_path / "a.svg"
        )
        axes = figure.axes[0]
        rows = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert all(upper.y0 > lower.y1 for upper, lower in zip(rows, rows[1:], strict=False))
        columns = [label.get_window_extent().x0 for label in axes.get_xticklabels()]
        angle = axes.get_xticklabels()[0].get_rotation()
        steps = [b - a for a, b in zip(columns, columns[1:], strict=False)]
        assert all(step * sin(radians(angle)) > rows[0].height for step in steps)

    def test_it_grows_with_the_pieces(self, tmp_path: Path) -> None:
        widths = []
        for n in (4, 12):
            draw_alignment(aligned(["▁a"] * n, ["▁b"] * 4), tmp_path / f"{n}.png")
            widths.append(png_size(tmp_path / f"{n}.png")[0])
        assert widths[1] - widths[0] == pytest.approx(8 * 0.36 * surface.DPI, abs=8)

    def test_too_much_for_pixels_can_still_be_drawn_in_lines(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(surface, "MAX_PIXELS", 1000)
        with pytest.raises(InputError) as caught:
            draw_alignment(SMALL, tmp_path / "a.png")
        assert (caught.value.code, caught.value.where) == ("input.picture", str(tmp_path / "a.png"))
        assert "a.svg" in str(caught.value.hint)
        draw_alignment(SMALL, tmp_path / "a.svg")
        assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


class TestFiles:
    def test_an_svg_has_its_glyphs_with_it_and_the_same_bytes_again(self, tmp_path: Path) -> None:
        path = tmp_path / "new folder" / "A.SVG"
        draw_alignment(SMALL, path)
        first = path.read_bytes()
        root = ElementTree.fromstring(first)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.find(".//{*}text") is None
        assert root.find(".//{*}image") is not None
        assert len(root.findall(".//{*}defs/{*}path")) > 5
        assert b"<!-- dred -->" in first
        draw_alignment(SMALL, path)
        assert path.read_bytes() == first

    @pytest.mark.parametrize("name", ["a.pdf", "a.jpeg", "a", ".png"])
    def test_other_suffixes_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(InputError) as caught:
            draw_alignment(SMALL, tmp_path / name)
        assert (caught.value.code, caught.value.where) == ("input.picture_kind", str(tmp_path / name))
        assert [kind for kind in (".png", ".svg") if kind not in str(caught.value.hint)] == []

    def test_without_matplotlib_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(InputError) as caught:
            refuse_undrawable(Path("a.png"))
        assert (caught.value.code, caught.value.hint) == ("input.extra", "pip install 'jumok[plot]'")


class TestFonts:
    """Warnings are errors here, and matplotlib warns of every glyph that it does not find."""

    @pytest.mark.usefixtures("hangul")
    def test_korean_is_drawn_in_its_own_glyphs(self, tmp_path: Path) -> None:
        pictures = []
        for piece in ("각", "힣"):
            draw_alignment(aligned(["▁two", "</s>"], [f"▁{piece}", "</s>"]), tmp_path / "a.svg")
            pictures.append((tmp_path / "a.svg").read_text("utf-8").replace(piece, ""))
            draw_alignment(aligned(["▁두", "백", "</s>"], [f"▁{piece}", "</s>"]), tmp_path / "a.png")
            assert min(png_size(tmp_path / "a.png")) > 200
        assert pictures[0] != pictures[1]  # the boxes of missing glyphs would be alike

    def test_the_first_font_is_enough_for_most_of_europe(self) -> None:
        assert find_families("Ein Mädchen läuft über die Straße. Ça va? Они идут ⏎") == ["DejaVu Sans"]

    @pytest.mark.usefixtures("hangul")
    def test_a_second_font_helps_out(self) -> None:
        first, second = find_families("Two 둘")
        assert (first, second != first) == ("DejaVu Sans", True)

    def test_a_character_without_a_glyph_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            draw_alignment(aligned(["▁a", NO_FONT_HAS_IT], ["▁b"]), tmp_path / "a.png")
        assert caught.value.code == "input.no_font"
        assert "(U+10FFFD)" in caught.value.what
        assert "apt-get install" in str(caught.value.hint)
        assert list(tmp_path.iterdir()) == []

    def test_without_a_korean_font_it_says_which_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(surface, "_installed_families", lambda: iter([surface.BASE_FAMILY]))
        with pytest.raises(InputError) as caught:
            surface._families_for.__wrapped__(frozenset("한a"))
        assert caught.value.code == "input.no_font"
        assert "apt-get install fonts-nanum" in str(caught.value.hint)

    @pytest.mark.usefixtures("hangul")
    def test_a_font_that_was_installed_after_matplotlib_made_its_list_is_found(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from matplotlib.font_manager import fontManager

        own = [entry for entry in fontManager.ttflist if "mpl-data" in str(entry.fname)]
        monkeypatch.setattr(fontManager, "ttflist", own)
        assert len(surface._families_for.__wrapped__(frozenset("한a"))) == 2


class TestWords:
    def test_the_heavier_the_darker_and_lines_are_wrapped(self, tmp_path: Path) -> None:
        words = ["a", "good", "film"] * 20
        weights = [0.0, 0.04, 0.01] * 20
        figure = draw_words(words, weights, tmp_path / "w.png", title="positive 0.97")
        axes = figure.axes[0]
        assert axes.get_title(loc="left") == "positive 0.97"
        assert [text.get_text() for text in axes.texts][:-1] == words
        light, dark, between = (sum(patch.get_facecolor()[:3]) for patch in list(axes.patches)[:3])
        assert light == 3 > between > dark
        lines = {text.get_position()[1] for text in axes.texts[:-1]}
        assert len(lines) > 1
        left, right = axes.get_xlim()
        boxes = [patch.get_window_extent() for patch in axes.patches]
        assert all(box.x0 >= axes.bbox.x0 and box.x1 <= axes.bbox.x1 + 1 for box in boxes)
        assert right - left < 520
        assert png_size(tmp_path / "w.png")[0] < 1200

    def test_a_word_longer_than_a_line_and_weights_of_zero(self, tmp_path: Path) -> None:
        draw_words(["w" * 200, "a"], [0.0, 0.0], tmp_path / "w.svg", title="a $ and $ b")
        assert b"<!-- a $ and $ b -->" in (tmp_path / "w.svg").read_bytes()

    def test_every_word_has_a_weight(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="zip"):
            draw_words(["a", "b"], [1.0], tmp_path / "w.png", title="")
        assert list(tmp_path.iterdir()) == []


def step(number: int, loss: float) -> dict[str, Any]:
    return {"event": "step", "step": number, "loss": loss}


def evaluated(number: int, *, best: bool, **scores: float) -> dict[str, Any]:
    return {"event": "evaluated", "step": number, "scores": scores, "best": best}


class TestCurves:
    def test_loss_and_every_metric_have_their_panel(self, tmp_path: Path) -> None:
        events = [step(1, 5.0), step(2, 9.0), evaluated(2, best=True, perplexity=900.0, bleu=1.0)]
        events += [{"event": "resumed", "step": 1}, step(2, 4.0), step(3, 3.0)]
        events += [evaluated(2, best=True, perplexity=800.0, bleu=2.0), {"event": "saved", "step": 2}]
        events += [evaluated(3, best=False, perplexity=70.0, bleu=1.5)]
        loss, perplexity, bleu = draw_curves(events, tmp_path / "c.png").axes
        assert loss.lines[-1].get_xydata().tolist() == [[1, 5], [2, 4], [3, 3]]  # what was said again counts
        assert perplexity.lines[-1].get_xydata().tolist() == [[2, 800], [3, 70]]
        assert bleu.lines[-1].get_xydata().tolist() == [[2, 2], [3, 1.5]]
        assert bleu.lines[0].get_xdata() == [2, 2]  # the best
        titles = [axes.get_title(loc="left") for axes in (loss, perplexity, bleu)]
        assert titles == ["training loss", "dev perplexity", "dev BLEU"]

    def test_many_steps_are_averaged(self, tmp_path: Path) -> None:
        (loss,) = draw_curves([step(i, i % 2) for i in range(1, 401)], tmp_path / "c.png").axes
        raw, mean = loss.lines
        assert (len(raw.get_xdata()), len(mean.get_xdata())) == (400, 100)
        assert set(mean.get_ydata()) == {0.5}

    def test_a_pre_training_is_shown_by_its_masked_loss_and_its_floor(self, tmp_path: Path) -> None:
        parts = [{"masked": 8.0 - i, "next_sentence": 0.7} for i in range(4)]
        events = [{**step(i, 99.0), "parts": part} for i, part in enumerate(parts, start=1)]
        events += [evaluated(4, best=True, masked_loss=5.5, masked_accuracy=20.0)]
        loss, dev_loss, accuracy = draw_curves(events, tmp_path / "c.png", floor=6.9).axes
        *_, curve, floor = loss.lines
        assert curve.get_xydata().tolist() == [[1, 8], [2, 7], [3, 6], [4, 5]]
        assert [set(axes.lines[-1].get_ydata()) for axes in (loss, dev_loss)] == [{6.9}, {6.9}]
        assert (floor.get_linestyle(), accuracy.lines[-1].get_ydata().tolist()) == ("--", [20.0])
        assert [text.get_text() for text in loss.get_legend().get_texts()] == ["unigram floor 6.90"]
        assert loss.get_title(loc="left") == "training masked loss"

    def test_a_run_that_has_not_begun_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            draw_curves([], tmp_path / "c.png")
        assert (caught.value.code, caught.value.where) == ("input.empty", str(tmp_path / "c.png"))


def bucket(name: str, value: float, low: float, high: float, n: int) -> dict[str, Any]:
    return {"name": name, "value": value, "low": low, "high": high, "n": n}


class TestBleuByLength:
    def test_values_and_intervals_of_every_run(self, tmp_path: Path) -> None:
        short, long = "bleu_0_to_10_words", "bleu_51_or_more_words"
        runs = {
            "_rnn": [bucket(short, 30, 28, 31, 9), bucket(long, 10, 11, 14, 7)],  # an interval beside its value
            "transformer": [bucket("bleu_11_to_20_words", 32, 30, 34, 8), bucket(short, 33, 31, 35, 9)],
        }
        figure = draw_bleu_by_length(runs, tmp_path / "b.png")
        axes = figure.axes[0]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0–10\nn = 9", "11–20\nn = 8", "51+\nn = 7"]
        lines = [line for line in axes.lines if line.get_linestyle() == "-"]
        assert [list(line.get_ydata()) for line in lines] == [[30, 10], [33, 32]]
        assert [[round(x) for x in line.get_xdata()] for line in lines] == [[0, 2], [0, 1]]
        bars = [[sorted(segment[:, 1]) for segment in bars.get_segments()] for bars in axes.collections]
        assert bars == [[[28, 31], [11, 14]], [[31, 35], [30, 34]]]
        assert [text.get_text().strip() for text in figure.legends[0].get_texts()] == ["_rnn", "transformer"]

    @pytest.mark.parametrize(
        ("runs", "code"),
        [
            ({}, "input.empty"),
            ({"run": []}, "input.empty"),
            ({"run": [bucket("bleu", 1, 1, 1, 1)]}, "input.unknown_score"),
        ],
    )
    def test_scores_of_something_else_are_refused(self, tmp_path: Path, runs: dict[str, Any], code: str) -> None:
        with pytest.raises(InputError) as caught:
            draw_bleu_by_length(runs, tmp_path / "b.png")
        assert (caught.value.code, caught.value.where) == (code, str(tmp_path / "b.png"))


RECIPE = """
[data]
kind = "synthetic"
problem = "copy"
n_train = 40
n_dev = 4
n_test = 4
length = 5
[tokenizer]
kind = "character"
vocab_size = 300
[model]
{model}
[train]
steps = 2
batch_tokens = 64
evaluate_every = 2
save_every = 2
[decode]
method = "greedy"
max_extra = 3
"""
MODELS = {
    "transformer": "d_model = 8\nd_ff = 16\nn_heads = 2\nn_layers = 1",
    "bahdanau": 'kind = "seq2seq"\nattention = "bahdanau"\nd_hidden = 8\nd_embedding = 8\nbidirectional = true',
    "no attention": 'kind = "seq2seq"\nd_hidden = 8\nd_embedding = 8',
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each model, trained for a moment."""
    folder = tmp_path_factory.mktemp("runs")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUMOK_CACHE", str(folder / "cache"))
        for name, model in MODELS.items():
            recipe, found[name] = folder / f"{name}.toml", folder / name
            recipe.write_text(RECIPE.format(model=model), "utf-8")
            done = CliRunner().invoke(app, ["train", str(recipe), "--out", str(found[name])])
            assert done.exit_code == 0, done.exception
    return found


def attention(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["attention", *map(str, arguments)])


class TestCommand:
    @pytest.mark.parametrize("model", ["transformer", "bahdanau"])
    def test_it_draws_into_the_run_and_says_where(self, runs: dict[str, Path], model: str) -> None:
        said = attention(runs[model], "1 2 3")
        assert (said.exit_code, said.stdout) == (0, f"{runs[model] / 'attention.png'}\n")
        assert png_size(runs[model] / "attention.png")[0] > 200

    def test_a_given_output_is_aligned(self, runs: dict[str, Path], tmp_path: Path) -> None:
        out = tmp_path / "a.svg"
        said = attention(runs["transformer"], "1 2 3", "--output", "3 1", "--out", out, "--json")
        found = json.loads(said.stdout)
        assert (found["input"], found["output"], found["picture"]) == ("1 2 3", "3 1", str(out))
        assert "".join(found["target"]) == "▁3▁1</s>"
        assert [len(row) for row in found["weights"]] == [len(found["source"])] * len(found["target"])
        assert [sum(row) for row in found["weights"]] == pytest.approx([1] * len(found["target"]), abs=0.01)
        assert found["links"]
        assert ElementTree.parse(out).getroot().tag.endswith("svg")

    @pytest.mark.parametrize(
        ("model", "arguments", "code", "where"),
        [
            ("transformer", ["  "], "input.empty", None),
            ("transformer", ["1 2", "--out", "a.pdf"], "input.picture_kind", "a.pdf"),
            ("no attention", ["1 2"], "input.no_attention", None),
        ],
    )
    def test_what_cannot_be_drawn_is_said(
        self, runs: dict[str, Path], model: str, arguments: list[str], code: str, where: str | None
    ) -> None:
        said = attention(runs[model], *arguments)
        assert isinstance(said.exception, InputError)
        assert (said.exception.code, said.exception.where) == (code, where)
        assert said.exception.hint
        assert said.stdout == ""
