"""`jumok predict RUN --picture FILE` with tiny runs: what is printed is in the picture, and what has none is said."""

import json
import re

import pytest
from typer.testing import CliRunner

from jumok.cli import app
from jumok.errors import InputError


def predict(*arguments, lines=()):
    return CliRunner().invoke(app, ["predict", *map(str, arguments)], input="".join(f"{line}\n" for line in lines))


def drawn(path):
    """The texts of an SVG, which are in its comments."""
    return re.findall(r"<!-- (.*?) -->", path.read_text("utf-8"))


def pair(text, head, tail, **types):
    sides = {"head": head, "tail": tail}
    places = {side: {"start": text.index(word), "end": text.index(word) + len(word)} for side, word in sides.items()}
    return json.dumps({"text": text, **{side: {**place, **types} for side, place in places.items()}})


@pytest.mark.parametrize("form", [[], ["--json"], ["--table", "tsv"], ["--table", "jsonl"]])
def test_entities_are_drawn_besides_what_is_printed(runs, tmp_path, form):
    run, picture = runs("marked"), tmp_path / "new" / "p.svg"
    lines = ["de ABCd AAe", "d"]
    said = predict(run.folder, *form, "--picture", picture, lines=lines)
    assert (said.exit_code, said.stdout) == (0, predict(run.folder, *form, lines=lines).stdout)
    found = [entity for output in run.predictor.predict(lines) for entity in output.entities]
    assert found
    assert drawn(picture).count("NAME") == len(found)
    assert f"NAME  {len(found)}" in drawn(picture)
    assert {"line", "1", "2", "de", "ABCd"} <= set(drawn(picture))


def test_pairs_of_one_text_are_drawn_in_it_together(runs, tmp_path):
    text, picture = "a dog Ada beats Bo today", tmp_path / "p.svg"
    lines = [pair(text, "Ada", "Bo", type="P"), pair(text, "Bo", "Ada", type="P"), pair("Cy meets Dee", "Cy", "Dee")]
    said = predict(runs("relation").folder, "--picture", picture, lines=lines)
    assert said.stdout.splitlines()[:2] == ["beats(e1,e2)", "beats(e2,e1)"]
    seen = drawn(picture)
    assert (seen.count("today"), seen.count("P 1→ →2"), seen.count("P →1 2→")) == (1, 1, 1)
    assert {"P  2", "entity  2", "line", "3"} <= set(seen)


def test_relations_of_raw_text_are_drawn(runs, tmp_path):
    """The tagger finds capitals, and so does the picture; a text that looks like JSON is a text."""
    picture = tmp_path / "p.svg"
    text = '{"A" d B'
    arguments = [runs("relation").folder, "--entities", runs("marked").folder, "--types", "NAME=P"]
    said = predict(*arguments, "--json", "--picture", picture, lines=[text])
    assert said.exit_code == 0, said.exception
    (found,) = json.loads(said.stdout)["predictions"]
    seen = drawn(picture)
    assert {'{"A"', "d", "B"} <= set(seen)
    assert sum(word.split()[0] == "P" for word in seen) == len(found["entities"]) + 1  # and the legend
    assert found["relations"]
    for relation in found["relations"]:
        assert f"{relation['label']}  {relation['probability']:.2f}" in seen


@pytest.mark.parametrize(
    ("types", "code", "named"),
    [([], "input.types", "NAME"), (["--types", "Name=P"], "input.unknown_type", "Name")],
)
def test_types_that_never_meet_are_refused(runs, types, code, named):
    found = predict(runs("relation").folder, "--entities", runs("marked").folder, *types, lines=["A d B"])
    assert isinstance(found.exception, InputError)
    assert (found.exception.code, named in found.exception.what) == (code, True)


def test_answers_are_drawn_in_their_texts(runs, tmp_path):
    picture = tmp_path / "p.svg"
    said = predict(runs("answering").folder, "--picture", picture, lines=["what shines ?\tthe dog red sun here"])
    assert said.stdout == "red sun\n"
    assert drawn(picture) == ["answer  1", "what", "shines", "?", "answer", "the", "dog", "red", "sun", "here"]
    said = predict(runs("answering").folder, "--picture", picture, lines=["what shines ?\tthe dog runs here today"])
    assert said.stdout == "\n"
    assert drawn(picture)[0] == "nothing was found"


@pytest.mark.parametrize(
    ("stream", "code", "where"),
    [([], "input.picture", "--picture"), (["--stream"], "input.options", "--stream")],
)
def test_a_run_that_finds_nothing_in_a_text_is_refused_before_it_predicts(runs, tmp_path, stream, code, where):
    said = predict(runs("classification").folder, *stream, "--picture", tmp_path / "p.svg", lines=["the sun"])
    assert isinstance(said.exception, InputError)
    assert (said.exception.code, said.exception.where) == (code, where)
    assert (said.stdout, list(tmp_path.iterdir())) == ("", [])


def test_a_picture_that_cannot_be_drawn_is_refused_before_the_model_is_loaded(tmp_path):
    said = predict(tmp_path / "no run", "--picture", tmp_path / "p.pdf", lines=["the sun"])
    assert isinstance(said.exception, InputError)
    assert ".svg" in (said.exception.hint or "")


def test_too_many_lines_are_refused(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("jumok.picture.MOST_PASSAGES", 2)
    said = predict(runs("marked").folder, "--picture", tmp_path / "p.svg", lines=["A d"] * 3)
    assert isinstance(said.exception, InputError)
    assert said.exception.code == "input.picture"
    assert "2" in (said.exception.hint or "")
    assert predict(runs("marked").folder, "--picture", tmp_path / "p.svg", lines=["A d"] * 2).exit_code == 0


def test_without_lines_there_is_nothing_to_draw(runs, tmp_path):
    said = predict(runs("marked").folder, "--picture", tmp_path / "p.svg")
    assert isinstance(said.exception, InputError)
    assert said.exception.where == str(tmp_path / "p.svg")
