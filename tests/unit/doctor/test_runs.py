"""Runs that learned from text alone: their curve beside the unigram floor of the training text."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curves import AT_FLOOR, language_model, recipe, run
from jumok.cli import main
from jumok.data.cache import Cache
from jumok.doctor.runs import examine_run, ground_of_run
from jumok.errors import CheckpointError
from jumok.examples.plain import DocumentData
from jumok.recipe import Recipe, parse_recipe, recipe_tree


class TestRuns:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A run of a pre-training that has not finished."""
        monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
        monkeypatch.chdir(tmp_path)
        self.write(tmp_path / "run", recipe())
        return tmp_path / "run"

    def write(self, folder: Path, wanted: Recipe, **facts: Any) -> None:
        folder.mkdir(exist_ok=True)
        stored = {"recipe": recipe_tree(wanted), "data": {}, **facts}
        (folder / "recipe.json").write_text(json.dumps(stored), "utf-8")
        (folder / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in run(AT_FLOOR, 300)), "utf-8")

    def test_the_floor_is_that_of_the_training_text(self, folder: Path) -> None:
        task = recipe().kind.prepare(recipe(), Cache.of_user())
        ids = task.train.fields["text"].tokens
        shares = np.unique(ids, return_counts=True)[1] / len(ids)
        ground = ground_of_run(folder)
        assert ground.floor == pytest.approx(-(shares * np.log(shares)).sum())
        assert ground.vocabulary == task.tokenizers.source.vocab_size
        found = {finding.code: finding for finding in examine_run(folder) or []}
        assert f"The unigram floor is {ground.floor:.2f}" in found["curve.summary"].message
        self.write(folder, recipe(), tokenizers=[task.tokenizers.source.sha256] * 2)
        assert ground_of_run(folder) == ground

    @pytest.mark.parametrize("kind", ["gpt", "elmo"])
    @pytest.mark.parametrize("form", ["documents", "text", "toy_grammar"])
    def test_the_floor_of_a_language_model_counts_all_that_it_predicts(
        self, folder: Path, kind: str, form: str
    ) -> None:
        file = folder / "text.txt"
        file.write_text("the cat sat\nthe dog ran\n\n  \nthe cat ran\n\nthe cat sat\n" * 20, "utf-8")
        files = {"kind": form, "train": [str(file)], "dev": [str(file)]}
        wanted = language_model(kind, None if form == "toy_grammar" else files)
        self.write(folder, wanted)
        task = wanted.kind.prepare(wanted, Cache.of_user())
        ids = task.train.fields["text"].tokens
        shares = np.unique(ids, return_counts=True)[1] / len(ids)
        assert task.tokenizers.source.end_id in ids
        ground = ground_of_run(folder)
        assert ground.floor == pytest.approx(-(shares * np.log(shares)).sum())
        found = {finding.code: finding for finding in examine_run(folder) or []}
        assert f"The unigram floor is {ground.floor:.2f}" in found["curve.summary"].message
        assert ground.unknown == 0

    def test_without_its_text_the_rest_is_told(self, folder: Path, tmp_path: Path) -> None:
        data = DocumentData(train=[str(tmp_path / "gone.txt")], max_len=64)
        lost = replace(recipe(), data=data)
        self.write(folder, lost)
        found = {finding.code: finding for finding in examine_run(folder) or []}
        assert set(found) == {"curve.summary", "data.unigram_floor"}
        assert "gone.txt" in found["data.unigram_floor"].message

    def test_a_text_that_gives_another_vocabulary_is_not_the_one(self, folder: Path) -> None:
        self.write(folder, recipe(), tokenizers=["0" * 64] * 2)
        messages = [finding.message for finding in examine_run(folder) or []]
        assert any("has changed" in message for message in messages)

    def test_other_runs_and_folders_are_not_its_business(self, folder: Path, tmp_path: Path) -> None:
        self.write(folder, parse_recipe({"data": {"kind": "synthetic", "problem": "copy"}}, where=""))
        assert examine_run(folder) is None
        assert examine_run(tmp_path) is None
        with pytest.raises(CheckpointError) as caught:
            ground_of_run(tmp_path)
        assert (caught.value.code, caught.value.where) == ("checkpoint.no_run", str(tmp_path))

    def test_the_command_takes_a_run_that_has_not_finished(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["jumok", "doctor", str(folder), "--json"])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        assert (stopped.value.code or 0, said.err) == (0, "")
        assert "curve.summary" in [finding["code"] for finding in json.loads(said.out)["findings"]]
