"""The doctor on the curve of a pre-training: each way to go wrong is told from a healthy one, with its cause."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.cli import main
from jumok.data.sources import DocumentData
from jumok.doctor import Finding
from jumok.doctor.curve import Ground, examine_curve
from jumok.doctor.runs import examine_run, ground_of_run
from jumok.errors import CheckpointError
from jumok.prepare import cache_folder, prepare
from jumok.recipe import Recipe, parse_recipe, recipe_tree

FLOOR = 6.9
GROUND = Ground(floor=FLOOR, vocabulary=8000, used=0.95, unknown=0.0, repeated=0.001)
Events = list[dict[str, Any]]
Shape = Callable[[float], float]
"""the masked loss as a function of the share of the steps that is over"""


def recipe(steps: int = 4000, warmup: int = 40, **parts: Any) -> Recipe:
    optimizer = {"kind": "adamw", "schedule": "linear", "learning_rate": 1e-3, "warmup": warmup}
    tree: dict[str, Any] = {
        "task": {"kind": "pretraining"},
        "data": {"kind": "toy_stories", "n_train": 50, "n_dev": 5, "n_test": 5, "max_len": 64},
        "tokenizer": {"kind": "wordpiece", "vocab_size": 100},
        "model": {"kind": "bert", "d_model": 64, "d_ff": 64, "n_heads": 2, "n_layers": 2, "max_len": 64},
        "train": {"steps": steps, "metric": "masked_accuracy", "optimizer": optimizer},
    }
    return parse_recipe({key: {**value, **parts.get(key, {})} for key, value in tree.items()}, where="test")


def falls_to(low: float) -> Shape:
    """From ln 8,000 down, fast at first."""
    return lambda t: low + (8.99 - low) * float(np.exp(-8 * t))


HEALTHY, AT_FLOOR = falls_to(3.0), falls_to(FLOOR)


def run(
    shape: Shape, n: int = 4000, *, pairs: Shape | None = lambda t: 0.6 - 0.3 * t, noise: float = 0.1, **columns: Any
) -> Events:
    """The steps of a run; other columns are values, or functions of the share of the steps that is over."""
    rng = np.random.default_rng(0)
    events: Events = []
    for step in range(1, n + 1):
        t = step / n
        masked = shape(t) + noise * rng.normal()
        parts = {"masked": masked, "next_sentence": pairs(t) + 0.02 * rng.normal()} if pairs else {}
        event = {"event": "step", "step": step, "epoch": step // 100, "loss": sum(parts.values()) or masked}
        event |= {"learning_rate": 1e-3, "grad_norm": 1.5, "tokens": 4096, "seconds": 0.5, "parts": parts}
        events.append(event | {name: value(t) if callable(value) else value for name, value in columns.items()})
    return events


def evaluated(step: int, masked_loss: float, pairs: float = 80.0) -> dict[str, Any]:
    scores = {"masked_loss": masked_loss, "perplexity": 1.0, "masked_accuracy": 40.0}
    scores |= {"next_sentence_accuracy": pairs, "next_sentence_majority": 52.0}
    return {"event": "evaluated", "step": step, "scores": scores, "best": False}


def finished(step: int) -> dict[str, Any]:
    return {"event": "finished", "step": step, "reason": "steps"}


def examined(events: Sequence[dict[str, Any]], ground: Ground | None = GROUND, **options: Any) -> dict[str, Finding]:
    findings = examine_curve(events, recipe(**options), ground)
    assert len({found.kind for found in findings}) == len(findings)
    assert all(0 <= found.share <= 1 for found in findings)
    return {found.kind: found for found in findings}


class TestSummary:
    def test_a_healthy_run_is_told_in_words_and_has_no_faults(self) -> None:
        found = examined([*run(HEALTHY, noise=0), evaluated(4000, 3.2, pairs=81.5), finished(4000)])
        assert list(found) == ["curve"]
        assert found["curve"].message == (
            "Step 4,000 of 4,000: 16,384,000 pieces read, 8,192 a second. The masked loss was 8.98 at first and is 3.00"
            " (mean of 100 steps). The unigram floor is 6.90, ln V is 8.99: the loss is 3.90 below the floor, so that"
            " the model uses the words around a masked one. On dev it is 3.20, with 40.0 % of the masked pieces guessed"
            " right. Of the pairs 81.5 % are judged right, where the commoner answer has 52.0 %."
        )

    def test_without_pairs_the_loss_is_the_masked_loss(self) -> None:
        found = examined(run(HEALTHY, pairs=None, noise=0))
        assert list(found) == ["curve"]
        assert "is 3.00 (mean" in found["curve"].message

    def test_what_was_told_again_after_a_checkpoint_counts(self) -> None:
        lost = run(lambda t: 12.0, 300)
        found = examined([*lost, {"event": "resumed", "step": 0}, *run(HEALTHY, 300)])
        assert list(found) == ["curve"]

    def test_a_run_without_steps_or_with_few_is_only_told(self) -> None:
        assert "not taken a step" in examined([])["curve"].message
        assert list(examined(run(AT_FLOOR, 49))) == ["curve"]

    def test_without_its_text_a_run_has_no_floor(self) -> None:
        found = examined(run(AT_FLOOR), ground=None)
        assert list(found) == ["curve"]
        assert "floor" not in found["curve"].message

    @pytest.mark.parametrize("where", ["loss", "grad_norm", "dev"])
    def test_what_is_no_number_is_an_error(self, where: str) -> None:
        events = [*run(HEALTHY, 100), evaluated(100, float("nan") if where == "dev" else 3.0)]
        if where != "dev":
            events[50] = {**events[50], where: float("inf"), "parts": {}}
            events[50]["parts"] = {"masked": events[50]["loss"], "next_sentence": 0.7}
        (finding,) = examined(events).values()
        assert (finding.kind, finding.severity) == ("not_finite", "error")


class TestPlateau:
    def causes(self, events: Events, ground: Ground = GROUND, **options: Any) -> list[str]:
        finding = examined(events, ground, **options)["plateau"]
        assert finding.severity == "warning"
        return finding.examples

    def test_a_loss_that_stays_at_the_floor_is_found(self) -> None:
        found = examined(run(AT_FLOOR))["plateau"]
        assert found.severity == "warning"
        assert "within 5 % of the unigram floor, 6.90, for the last" in found.message
        assert found.count > 3000
        assert found.examples == [
            "none that shows: try a third of the learning rate (1.0e-03), then three times as much"
        ]

    @pytest.mark.parametrize(("loss", "is_found"), [(0.94, False), (0.96, True), (1.04, True)])
    def test_within_five_per_cent_is_at_the_floor(self, loss: float, is_found: bool) -> None:
        found = examined(run(falls_to(loss * FLOOR))).get("plateau")
        assert (found is not None and "within" in found.message) == is_found

    @pytest.mark.parametrize(("since", "is_found"), [(0.8, False), (0.6, True)])
    def test_a_third_of_a_short_run_is_long(self, since: float, is_found: bool) -> None:
        events = run(lambda t: 8.0 if t < since else FLOOR, 300)
        assert ("plateau" in examined(events, steps=300)) == is_found

    def test_five_hundred_steps_are_long(self) -> None:
        events = run(lambda t: 8.0 if t < 0.9 else FLOOR, 6000)
        assert examined(events)["plateau"].count == 600

    def test_a_loss_that_comes_through_the_floor_is_on_its_way(self) -> None:
        found = examined(run(lambda t: 8.0 - 1.4 * t, 500))["plateau"]
        assert (found.severity, found.examples) == ("note", [])
        assert "still falls" in found.message

    def test_who_is_still_warming_up_has_to_wait(self) -> None:
        found = examined(run(lambda t: FLOOR, 600), warmup=1000)["plateau"]
        assert (found.severity, "still rises to its peak" in found.message) == ("note", True)

    def test_a_loss_that_never_comes_down_is_found(self) -> None:
        found = examined(run(lambda t: 8.9, learning_rate=1e-6))["plateau"]
        assert (found.severity, found.count) == ("warning", 4000)
        assert "above the unigram floor" in found.message
        assert "does not know yet how frequent" in found.message

    @pytest.mark.parametrize(
        ("cause", "shape", "columns"),
        [
            ("learning rate too high: the loss was 5.4", lambda t: 5.5 if 0.2 < t < 0.4 else AT_FLOOR(t), {}),
            ("learning rate too high: 5 spikes", lambda t: AT_FLOOR(t) + 3 * (abs(t % 0.2 - 0.1) < 2e-4), {}),
            ("learning rate too high: the norm of the gradients grew", AT_FLOOR, {"grad_norm": lambda t: 1 + 50 * t}),
            ("learning rate too high: it was 5.0e-02", AT_FLOOR, {"learning_rate": 0.05}),
            ("learning rate too low: it was 1.0e-06", AT_FLOOR, {"learning_rate": 1e-6}),
            ("next to nothing reaches the weights", AT_FLOOR, {"grad_norm": 1e-5}),
            ("small batches: 300 pieces a step, 45 of them", AT_FLOOR, {"tokens": 300}),
        ],
    )
    def test_causes_that_show_in_the_curve(self, cause: str, shape: Shape, columns: dict[str, Any]) -> None:
        (found,) = self.causes(run(shape, **columns))
        assert found.startswith(cause)

    @pytest.mark.parametrize(
        ("cause", "change"),
        [
            ("repeated text, 12 % of the words", {"repeated": 0.12}),
            ("unknown pieces, 4.0 % of all", {"unknown": 0.04}),
            ("a vocabulary too large for the text: 30 % of it occur", {"used": 0.3}),
        ],
    )
    def test_causes_that_show_in_the_text(self, cause: str, change: dict[str, float]) -> None:
        (found,) = self.causes(run(AT_FLOOR), replace(GROUND, **change))
        assert found.startswith(cause)

    def test_causes_that_show_in_the_recipe(self) -> None:
        (found,) = self.causes(run(AT_FLOOR), model={"d_model": 32, "n_layers": 1})
        assert found == "a small model: 32 wide, layers: 1"
        (found,) = self.causes(run(AT_FLOOR, 900))
        assert found.startswith("few steps: 900")

    def test_several_causes_are_all_told(self) -> None:
        found = self.causes(run(AT_FLOOR, learning_rate=1e-6, tokens=200), replace(GROUND, repeated=0.5))
        assert [cause.split(":")[0] for cause in found] == [
            "learning rate too low",
            "repeated text, 50 % of the words",
            "small batches",
        ]


class TestPairs:
    def test_pairs_at_chance_while_words_are_learned(self) -> None:
        events = [*run(HEALTHY, 600, pairs=lambda t: 0.693), evaluated(600, 3.2, pairs=53.0)]
        found = examined(events)["next_sentence"]
        assert (found.severity, "at chance (loss 0.69" in found.message) == ("note", True)
        assert examined([*events, finished(600)])["next_sentence"].severity == "warning"
        assert examined(run(HEALTHY, 2500, pairs=lambda t: 0.693))["next_sentence"].severity == "warning"

    def test_pairs_that_dev_shows_to_be_learned_are_no_fault(self) -> None:
        assert "next_sentence" not in examined(
            [*run(HEALTHY, 600, pairs=lambda t: 0.693), evaluated(600, 3.2, pairs=70.0)]
        )

    def test_pairs_are_learned_and_words_are_not(self) -> None:
        found = examined(run(AT_FLOOR, pairs=lambda t: 0.693 - 0.4 * t))
        assert (found["next_sentence"].severity, found["plateau"].severity) == ("warning", "warning")
        assert "while masked words are not" in found["next_sentence"].message

    def test_neither_learned_is_one_fault(self) -> None:
        assert set(examined(run(AT_FLOOR, pairs=lambda t: 0.693))) == {"curve", "plateau"}


class TestDev:
    def dev(self, *losses: float) -> Events:
        return [evaluated(1000 * (i + 1), loss) for i, loss in enumerate(losses)]

    def test_a_dev_loss_that_rises_while_the_training_loss_falls(self) -> None:
        found = examined([*run(lambda t: 6 - 3 * t), *self.dev(4.5, 4.0, 4.1, 4.4)])["memorising"]
        assert found.severity == "warning"
        assert "risen from 4.00 at step 2,000 to 4.40, and the training loss fell from 4.5" in found.message
        assert "in epoch 41" in found.message

    @pytest.mark.parametrize("losses", [(4.5, 4.0, 3.9, 3.8), (4.5, 4.0, 4.05, 4.02), (4.0, 4.5)])
    def test_noise_and_few_scores_are_none(self, losses: tuple[float, ...]) -> None:
        assert "memorising" not in examined([*run(lambda t: 6 - 3 * t), *self.dev(*losses)])

    def test_a_training_loss_that_rises_too_is_another_fault(self) -> None:
        events = [*run(lambda t: 4 + 2 * t), *self.dev(4.5, 4.6, 5.0, 6.0)]
        assert set(examined(events)) == {"curve", "risen"}


def language_model(kind: str, data: dict[str, Any] | None = None) -> Recipe:
    wide = {"d_embedding": 64, "d_hidden": 64} if kind == "elmo" else {"d_model": 64, "d_ff": 64, "n_heads": 2}
    tree = {
        "task": {"kind": "language_model"},
        "data": data or {"kind": "toy_grammar", "n_train": 50, "n_dev": 5, "n_test": 5},
        "tokenizer": {"kind": "byte_bpe" if kind == "gpt" else "word", "vocab_size": 300},
        "model": {"kind": kind, **wide},
        "train": {"steps": 4000, "metric": "perplexity"},
    }
    return parse_recipe(tree, where="test")


class TestLanguageModels:
    def examined(self, kind: str, events: Events) -> dict[str, Finding]:
        return {found.kind: found for found in examine_curve(events, language_model(kind), GROUND)}

    def dev(self, step: int, *losses: float) -> dict[str, Any]:
        names = ("perplexity", "backward_perplexity")
        scores = {name: float(np.exp(loss)) for name, loss in zip(names, losses, strict=False)}
        return {"event": "evaluated", "step": step, "scores": scores, "best": False}

    @pytest.mark.parametrize(
        ("kind", "losses", "dev"),
        [
            ("gpt", [3.2], "3.20 (perplexity 24.53)"),
            ("elmo", [3.0, 3.4], "3.20 (perplexity 20.09, backward perplexity 29.96)"),
        ],
    )
    def test_a_healthy_run_is_told_without_masks(self, kind: str, losses: list[float], dev: str) -> None:
        found = self.examined(kind, [*run(HEALTHY, pairs=None, noise=0), self.dev(4000, *losses), finished(4000)])
        assert list(found) == ["curve"]
        assert "The loss was 8.98 at first and is 3.00 (mean of 100 steps)" in found["curve"].message
        assert f"so that the model uses the context. On dev it is {dev}." in found["curve"].message

    def test_a_plateau_has_the_causes_that_apply(self) -> None:
        found = self.examined("gpt", run(AT_FLOOR, pairs=None, learning_rate=1e-6, tokens=300))["plateau"]
        assert (found.severity, "mask" in f"{found}") == ("warning", False)
        assert found.examples[1] == "small batches: 300 pieces a step"
        assert found.examples[0].startswith("learning rate too low")

    def test_a_dev_perplexity_that_rises_is_memorising(self) -> None:
        dev = [self.dev(1000 * (i + 1), loss, loss) for i, loss in enumerate([4.5, 4.0, 4.4])]
        found = self.examined("elmo", [*run(lambda t: 6 - 3 * t, pairs=None), *dev])
        assert "risen from 4.00 at step 2,000 to 4.40" in found["memorising"].message


class TestTrouble:
    def test_a_loss_that_rises_is_found(self) -> None:
        found = examined(run(lambda t: HEALTHY(t) if t < 0.7 else 5.5))["risen"]
        assert found.severity == "warning"
        assert "from 3.0" in found.message
        assert "to 5.5" in found.message
        assert 1200 <= found.count <= 1400

    def test_a_flat_and_noisy_end_has_not_risen(self) -> None:
        assert "risen" not in examined(run(falls_to(0.4), 600, noise=0.08))

    @pytest.mark.parametrize(("n", "severity"), [(1, "note"), (6, "warning")])
    def test_spikes_are_shown(self, n: int, severity: str) -> None:
        events = run(HEALTHY)
        for i in range(n):
            at = 1234 + 300 * i
            events[at] = {**events[at], "parts": {"masked": 9.0, "next_sentence": 0.6}, "grad_norm": 25.0}
        found = examined(events)["spikes"]
        assert (found.severity, found.count, len(found.examples)) == (severity, n, min(n, 5))
        assert found.examples[0].startswith("step 1,235  9.00, where 3.")
        assert found.examples[0].endswith("was usual; gradient norm 25")

    def test_a_leap_that_stays_is_one_spike(self) -> None:
        assert examined(run(lambda t: 3.0 if t < 0.5 else 8.0))["spikes"].count == 1

    @pytest.mark.parametrize(("factor", "is_found"), [(1.8, False), (2.5, True)])
    def test_a_training_that_became_slow(self, factor: float, is_found: bool) -> None:
        events = run(HEALTHY, seconds=lambda t: 0.5 * (factor if t > 0.9 else 1))
        found = examined(events)
        assert ("slow" in found) == is_found
        if is_found:
            assert "3,277 pieces a second, where 8,192 are usual" in found["slow"].message


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
        task = prepare(recipe(), cache_folder())
        ids = task.train.fields["text"].tokens
        shares = np.unique(ids, return_counts=True)[1] / len(ids)
        ground = ground_of_run(folder)
        assert ground.floor == pytest.approx(-(shares * np.log(shares)).sum())
        assert ground.vocabulary == task.tokenizers.source.vocab_size
        found = {finding.kind: finding for finding in examine_run(folder) or []}
        assert f"The unigram floor is {ground.floor:.2f}" in found["curve"].message
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
        task = prepare(wanted, cache_folder())
        ids = task.train.fields["text"].tokens
        shares = np.unique(ids, return_counts=True)[1] / len(ids)
        assert task.tokenizers.source.end_id in ids
        ground = ground_of_run(folder)
        assert ground.floor == pytest.approx(-(shares * np.log(shares)).sum())
        found = {finding.kind: finding for finding in examine_run(folder) or []}
        assert f"The unigram floor is {ground.floor:.2f}" in found["curve"].message
        assert ground.unknown == 0

    def test_without_its_text_the_rest_is_told(self, folder: Path, tmp_path: Path) -> None:
        data = DocumentData(train=[str(tmp_path / "gone.txt")], max_len=64)
        lost = replace(recipe(), data=data)
        self.write(folder, lost)
        found = {finding.kind: finding for finding in examine_run(folder) or []}
        assert set(found) == {"curve", "unigram_floor"}
        assert "cannot be told any more" in found["unigram_floor"].message
        assert "gone.txt" in found["unigram_floor"].message

    def test_a_text_that_gives_another_vocabulary_is_not_the_one(self, folder: Path) -> None:
        self.write(folder, recipe(), tokenizers=["0" * 64] * 2)
        messages = [finding.message for finding in examine_run(folder) or []]
        assert any("has changed" in message for message in messages)

    def test_other_runs_and_folders_are_not_its_business(self, folder: Path, tmp_path: Path) -> None:
        self.write(folder, parse_recipe({"data": {"kind": "synthetic", "problem": "copy"}}, where=""))
        assert examine_run(folder) is None
        assert examine_run(tmp_path) is None
        with pytest.raises(CheckpointError, match="not a run folder"):
            ground_of_run(tmp_path)

    def test_the_command_takes_a_run_that_has_not_finished(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["jumok", "doctor", str(folder), "--json"])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        assert (stopped.value.code or 0, said.err) == (0, "")
        assert "curve" in [finding["kind"] for finding in json.loads(said.out)["findings"]]


def test_the_curve_needs_no_torch() -> None:
    code = "import sys, jumok.doctor.curve; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
