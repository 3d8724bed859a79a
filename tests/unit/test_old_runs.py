"""Run folders of earlier versions go on opening, and give what they gave."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jumok.cli import app
from jumok.predictor import load
from jumok.tasks.protocol import Predictor, answered
from jumok.tasks.tagging.predictor import Tagger
from jumok.tasks.translation.predictor import Translator

OLD_RUNS = Path(__file__).parents[1] / "data" / "old_runs"
each_run = pytest.mark.parametrize("name", ["copy", "josa"])


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def outputs(predictor: Predictor[Any, Any], expected: list[Any], **options: Any) -> list[Any]:
    return answered(predictor.predict([each["input"] for each in expected], **options))


@each_run
def test_they_were_written_by_the_version_that_they_name(name: str) -> None:
    assert read(OLD_RUNS / name / "recipe.json")["jumok"] == "0.1.0"
    assert read(OLD_RUNS / name / "model" / "config.json")["jumok"]["version"] == "0.1.0"


@each_run
@pytest.mark.parametrize("part", [".", "model"])
def test_texts_are_the_same(name: str, part: str) -> None:
    expected = read(OLD_RUNS / name / "expected.json")
    found = outputs(load(OLD_RUNS / name / part, device="cpu"), expected)
    assert [output.text for output in found] == [each["text"] for each in expected]


def test_translations_have_the_same_scores_and_alignments() -> None:
    expected = read(OLD_RUNS / "copy" / "expected.json")
    found = outputs(load(OLD_RUNS / "copy", task=Translator, device="cpu"), expected, alignment=True)
    assert [output.score for output in found] == pytest.approx([each["score"] for each in expected], abs=1e-4)
    assert [[list(link) for link in output.alignment.words] for output in found] == [e["words"] for e in expected]


def test_texts_have_the_same_tags_and_entities() -> None:
    expected = read(OLD_RUNS / "josa" / "expected.json")
    found = outputs(load(OLD_RUNS / "josa", task=Tagger, device="cpu"), expected)
    assert [output.tags for output in found] == [each["tags"] for each in expected]
    for output, each in zip(found, expected, strict=True):
        assert [asdict(entity) for entity in output.entities] == [
            {**entity, "score": pytest.approx(entity["score"], abs=1e-4)} for entity in each["entities"]
        ]


def close(scores: Any) -> Any:
    """The same tree, with numbers that may differ in their last places."""
    if isinstance(scores, dict):
        return {key: close(value) for key, value in scores.items()}
    if isinstance(scores, list):
        return [close(value) for value in scores]
    return pytest.approx(scores, abs=1e-4) if isinstance(scores, float) else scores


@each_run
def test_evaluate_gives_the_scores_that_the_run_has(name: str, tmp_path: Path) -> None:
    run = shutil.copytree(OLD_RUNS / name, tmp_path / name)
    said = CliRunner().invoke(app, ["evaluate", str(run), "--json"])
    assert said.exit_code == 0, said.output
    splits = json.loads(said.stdout)["splits"]
    stored = read(run / "scores.json")
    assert splits.keys() == stored.keys() == {"dev", "test"}
    for split, result in stored.items():
        kept = {name: score for name, score in splits[split]["scores"].items() if name in result["scores"]}
        assert {**{key: splits[split][key] for key in result}, "scores": kept} == close(result)
        assert splits[split].keys() - result.keys() <= {"findings", "data", "confusion", "reliability"}
        assert splits[split]["data"] == {"sha256": read(run / "recipe.json")["data"][split], "as_trained": True}


@each_run
def test_show_counts_what_is_stored(name: str) -> None:
    said = CliRunner().invoke(app, ["show", str(OLD_RUNS / name), "--json"])
    assert said.exit_code == 0, said.output
    found = json.loads(said.stdout)
    assert found["scores"] == read(OLD_RUNS / name / "scores.json")
    predictor: Any = load(OLD_RUNS / name, device="cpu")
    (model,) = predictor.engine.models
    if name == "copy":  # of labels, only the data knows how many there will be
        assert found["cost"]["parameters"]["total"] == sum(weight.numel() for weight in model.parameters())
