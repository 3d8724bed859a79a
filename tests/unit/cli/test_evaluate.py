"""jumok evaluate: whose data a score is of."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jumok.cli import app


def evaluated(run: Path, *more: str) -> tuple[dict[str, Any], str]:
    said = CliRunner().invoke(app, ["evaluate", str(run), "--json", *more])
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)["splits"], said.stderr


@pytest.fixture
def run(runs, tree, tmp_path: Path) -> Path:
    """A translator whose test file can be changed."""
    copy = shutil.copytree(runs("translation").folder, tmp_path / "run")
    stored = json.loads((copy / "recipe.json").read_text())
    stored["recipe"]["data"]["test"] = [str(shutil.copy(stored["recipe"]["data"]["test"][0], tmp_path / "test.tsv"))]
    (copy / "recipe.json").write_text(json.dumps(stored))
    return copy


def test_scores_of_the_data_of_the_run_carry_its_hash(run: Path) -> None:
    found, said = evaluated(run)
    known = json.loads((run / "recipe.json").read_text())["data"]
    for split in ("dev", "test"):
        assert found[split]["data"] == {"sha256": known[split], "as_trained": True}
    assert "changed" not in said


def test_scores_of_changed_files_say_so(run: Path, tmp_path: Path) -> None:
    """References that were replaced by the model's own outputs would score 100 without a word."""
    file = tmp_path / "test.tsv"
    file.write_text("".join(f"{line.split(chr(9))[0]}\tanything\n" for line in file.read_text().splitlines()))
    found, said = evaluated(run)
    known = json.loads((run / "recipe.json").read_text())["data"]
    assert found["dev"]["data"]["as_trained"]
    assert not found["test"]["data"]["as_trained"]
    assert found["test"]["data"]["sha256"] != known["test"]
    assert str(file) in said
    assert known["test"][:12] in said
    assert found["test"]["data"]["sha256"][:12] in said


def test_scores_of_other_data_carry_its_hash(run: Path, tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text("the dog\tdog the\n")
    found, _ = evaluated(run, "--data", f"test={tmp_path / 'other.tsv'}")
    assert not found["test"]["data"]["as_trained"]
    assert len(found["test"]["data"]["sha256"]) == 64


def test_a_classifier_is_shown_with_its_classes_and_the_best_baseline(runs) -> None:
    folder = runs("classification").folder
    said = CliRunner().invoke(app, ["evaluate", str(folder)])
    assert said.exit_code == 0, said.output
    against = json.loads((folder / "scores.json").read_text())["test"]["against_baseline"]
    assert "precision" in said.stdout
    assert f"p = {against['p_value']:.3f}" in said.stdout
    assert said.stdout.count("bootstrap") == 1  # both splits and all metrics have one signature
    examined = CliRunner().invoke(app, ["doctor", str(folder)])
    assert "recall" in examined.stdout
    split = json.loads(CliRunner().invoke(app, ["evaluate", str(folder), "--json"]).stdout)["splits"]["test"]
    assert split["against_baseline"] == against
