"""Loss curves: a healthy one has no findings, and what is wrong with another is found, with likely causes."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from curves import (
    AT_FLOOR,
    FLOOR,
    GROUND,
    HEALTHY,
    Events,
    Shape,
    evaluated,
    falls_to,
    finished,
    language_model,
    recipe,
    run,
)
from jumok.doctor.curve import Ground, examine_curve
from jumok.findings import Finding


def examined(events: Sequence[dict[str, Any]], ground: Ground | None = GROUND, **options: Any) -> dict[str, Finding]:
    findings = examine_curve(events, recipe(**options), ground)
    assert len({found.code for found in findings}) == len(findings)
    assert all(0 <= found.share <= 1 for found in findings)
    return {found.code: found for found in findings}


class TestSummary:
    def test_a_healthy_run_is_told_in_words_and_has_no_faults(self) -> None:
        found = examined([*run(HEALTHY, noise=0), evaluated(4000, 3.2, pairs=81.5), finished(4000)])
        assert list(found) == ["curve.summary"]
        assert found["curve.summary"].message == (
            "Step 4,000 of 4,000: 16,384,000 tokens read, 8,192 per second. The masked loss started at 8.98 and is now"
            " 3.00 (mean of 100 steps). The unigram floor is 6.90, ln V is 8.99: the loss is 3.90 below the floor, so"
            " the model uses the context. On dev it is 3.20, and 40.0 % of the masked tokens are predicted correctly."
            " 81.5 % of the pairs are classified correctly; the majority class has 52.0 %."
        )

    def test_its_numbers_are_told_apart_from_its_words(self) -> None:
        facts = examined([*run(HEALTHY, noise=0), evaluated(4000, 3.2, pairs=81.5)])["curve.summary"].facts
        assert (facts["last"], facts["steps"], facts["window"], facts["name"]) == (4000, 4000, 100, "masked loss")
        assert (round(facts["first"], 2), round(facts["end"], 2)) == (8.98, 3.0)
        assert facts["dev"]["masked_loss"] == 3.2
        assert json.loads(json.dumps(facts)) == facts

    def test_without_pairs_the_loss_is_the_masked_loss(self) -> None:
        found = examined(run(HEALTHY, pairs=None, noise=0))
        assert list(found) == ["curve.summary"]
        assert "is now 3.00 (mean" in found["curve.summary"].message

    def test_what_was_told_again_after_a_checkpoint_counts(self) -> None:
        lost = run(lambda t: 12.0, 300)
        found = examined([*lost, {"event": "resumed", "step": 0}, *run(HEALTHY, 300)])
        assert list(found) == ["curve.summary"]

    def test_a_run_without_steps_or_with_few_is_only_told(self) -> None:
        assert list(examined([])) == ["curve.summary"]
        assert list(examined(run(AT_FLOOR, 49))) == ["curve.summary"]

    def test_without_its_text_a_run_has_no_floor(self) -> None:
        found = examined(run(AT_FLOOR), ground=None)
        assert list(found) == ["curve.summary"]
        assert "floor" not in found["curve.summary"].message

    @pytest.mark.parametrize("where", ["loss", "grad_norm", "dev"])
    def test_what_is_no_number_is_an_error(self, where: str) -> None:
        events = [*run(HEALTHY, 100), evaluated(100, float("nan") if where == "dev" else 3.0)]
        if where != "dev":
            events[50] = {**events[50], where: float("inf"), "parts": {}}
            events[50]["parts"] = {"masked": events[50]["loss"], "next_sentence": 0.7}
        (finding,) = examined(events).values()
        assert (finding.code, finding.severity) == ("curve.not_finite", "error")


class TestPlateau:
    def causes(self, events: Events, ground: Ground = GROUND, **options: Any) -> list[str]:
        finding = examined(events, ground, **options)["curve.plateau"]
        assert finding.severity == "warning"
        return finding.examples

    def test_a_loss_that_stays_at_the_floor_is_found(self) -> None:
        found = examined(run(AT_FLOOR))["curve.plateau"]
        assert found.severity == "warning"
        assert "within 5 % of the unigram floor, 6.90, for the last" in found.message
        assert found.count > 3000
        (none,) = found.examples
        assert none.startswith("none found: try a third of the learning rate (1.0e-03)")

    @pytest.mark.parametrize(("loss", "is_found"), [(0.94, False), (0.96, True), (1.04, True)])
    def test_within_five_per_cent_is_at_the_floor(self, loss: float, is_found: bool) -> None:
        found = examined(run(falls_to(loss * FLOOR))).get("curve.plateau")
        assert (found is not None and "within" in found.message) == is_found

    @pytest.mark.parametrize(("since", "is_found"), [(0.8, False), (0.6, True)])
    def test_a_third_of_a_short_run_is_long(self, since: float, is_found: bool) -> None:
        events = run(lambda t: 8.0 if t < since else FLOOR, 300)
        assert ("curve.plateau" in examined(events, steps=300)) == is_found

    def test_five_hundred_steps_are_long(self) -> None:
        events = run(lambda t: 8.0 if t < 0.9 else FLOOR, 6000)
        assert examined(events)["curve.plateau"].count == 600

    def test_a_loss_that_comes_through_the_floor_is_on_its_way(self) -> None:
        found = examined(run(lambda t: 8.0 - 1.4 * t, 500))["curve.plateau"]
        assert (found.severity, found.examples) == ("note", [])
        assert "still falling" in found.message

    def test_who_is_still_warming_up_has_to_wait(self) -> None:
        found = examined(run(lambda t: FLOOR, 600), warmup=1000)["curve.plateau"]
        assert (found.severity, "warming up" in found.message) == ("note", True)

    def test_a_loss_that_never_comes_down_is_found(self) -> None:
        found = examined(run(lambda t: 8.9, learning_rate=1e-6))["curve.plateau"]
        assert (found.severity, found.count) == ("warning", 4000)
        assert "above the unigram floor" in found.message

    @pytest.mark.parametrize(
        ("cause", "shape", "columns"),
        [
            ("learning rate too high: the loss was 5.4", lambda t: 5.5 if 0.2 < t < 0.4 else AT_FLOOR(t), {}),
            ("learning rate too high: 5 spikes", lambda t: AT_FLOOR(t) + 3 * (abs(t % 0.2 - 0.1) < 2e-4), {}),
            ("learning rate too high: the gradient norm grew from", AT_FLOOR, {"grad_norm": lambda t: 1 + 50 * t}),
            ("learning rate too high: 5.0e-02", AT_FLOOR, {"learning_rate": 0.05}),
            ("learning rate too low: 1.0e-06", AT_FLOOR, {"learning_rate": 1e-6}),
            ("vanishing gradients: the gradient norm is 1.0e-05", AT_FLOOR, {"grad_norm": 1e-5}),
            ("small batches: 300 tokens per step, 45 of them", AT_FLOOR, {"tokens": 300}),
        ],
    )
    def test_causes_that_show_in_the_curve(self, cause: str, shape: Shape, columns: dict[str, Any]) -> None:
        (found,) = self.causes(run(shape, **columns))
        assert found.startswith(cause)

    @pytest.mark.parametrize(
        ("cause", "change"),
        [
            ("repeated text, 12 % of the words", {"repeated": 0.12}),
            ("unknown tokens, 4.0 % of all", {"unknown": 0.04}),
            ("a vocabulary too large for the text: only 30 % of it", {"used": 0.3}),
        ],
    )
    def test_causes_that_show_in_the_text(self, cause: str, change: dict[str, float]) -> None:
        (found,) = self.causes(run(AT_FLOOR), replace(GROUND, **change))
        assert found.startswith(cause)

    def test_causes_that_show_in_the_recipe(self) -> None:
        (found,) = self.causes(run(AT_FLOOR), model={"d_model": 32, "n_layers": 1})
        assert found == "a small model: d_model = 32, n_layers = 1"
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
        found = examined(events)["curve.next_sentence"]
        assert (found.severity, "at chance (loss 0.69" in found.message) == ("note", True)
        assert examined([*events, finished(600)])["curve.next_sentence"].severity == "warning"
        assert examined(run(HEALTHY, 2500, pairs=lambda t: 0.693))["curve.next_sentence"].severity == "warning"

    def test_pairs_that_dev_shows_to_be_learned_are_no_fault(self) -> None:
        assert "curve.next_sentence" not in examined(
            [*run(HEALTHY, 600, pairs=lambda t: 0.693), evaluated(600, 3.2, pairs=70.0)]
        )

    def test_pairs_are_learned_and_words_are_not(self) -> None:
        found = examined(run(AT_FLOOR, pairs=lambda t: 0.693 - 0.4 * t))
        assert (found["curve.next_sentence"].severity, found["curve.plateau"].severity) == ("warning", "warning")

    def test_neither_learned_is_one_fault(self) -> None:
        assert set(examined(run(AT_FLOOR, pairs=lambda t: 0.693))) == {"curve.summary", "curve.plateau"}


class TestDev:
    def dev(self, *losses: float) -> Events:
        return [evaluated(1000 * (i + 1), loss) for i, loss in enumerate(losses)]

    def test_a_dev_loss_that_rises_while_the_training_loss_falls(self) -> None:
        found = examined([*run(lambda t: 6 - 3 * t), *self.dev(4.5, 4.0, 4.1, 4.4)])["curve.overfitting"]
        assert found.severity == "warning"
        assert "risen from 4.00 at step 2,000 to 4.40 while the training loss fell from 4.5" in found.message
        assert "epoch 41" in found.message

    @pytest.mark.parametrize("losses", [(4.5, 4.0, 3.9, 3.8), (4.5, 4.0, 4.05, 4.02), (4.0, 4.5)])
    def test_noise_and_few_scores_are_none(self, losses: tuple[float, ...]) -> None:
        assert "curve.overfitting" not in examined([*run(lambda t: 6 - 3 * t), *self.dev(*losses)])

    def test_a_training_loss_that_rises_too_is_another_fault(self) -> None:
        events = [*run(lambda t: 4 + 2 * t), *self.dev(4.5, 4.6, 5.0, 6.0)]
        assert set(examined(events)) == {"curve.summary", "curve.diverging"}


class TestLanguageModels:
    def examined(self, kind: str, events: Events) -> dict[str, Finding]:
        return {found.code: found for found in examine_curve(events, language_model(kind), GROUND)}

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
        assert list(found) == ["curve.summary"]
        assert "The loss started at 8.98 and is now 3.00 (mean of 100 steps)" in found["curve.summary"].message
        assert (
            f"3.90 below the floor, so the model uses the context. On dev it is {dev}."
            in found["curve.summary"].message
        )

    def test_a_plateau_has_the_causes_that_apply(self) -> None:
        found = self.examined("gpt", run(AT_FLOOR, pairs=None, learning_rate=1e-6, tokens=300))["curve.plateau"]
        assert (found.severity, "mask" in f"{found}") == ("warning", False)
        assert found.examples[1] == "small batches: 300 tokens per step"
        assert found.examples[0].startswith("learning rate too low")

    def test_a_dev_perplexity_that_rises_is_memorising(self) -> None:
        dev = [self.dev(1000 * (i + 1), loss, loss) for i, loss in enumerate([4.5, 4.0, 4.4])]
        found = self.examined("elmo", [*run(lambda t: 6 - 3 * t, pairs=None), *dev])
        assert "risen from 4.00 at step 2,000 to 4.40" in found["curve.overfitting"].message


class TestTrouble:
    def test_a_loss_that_rises_is_found(self) -> None:
        found = examined(run(lambda t: HEALTHY(t) if t < 0.7 else 5.5))["curve.diverging"]
        assert found.severity == "warning"
        assert "from 3.0" in found.message
        assert "to 5.5" in found.message
        assert 1200 <= found.count <= 1400

    def test_a_flat_and_noisy_end_has_not_risen(self) -> None:
        assert "curve.diverging" not in examined(run(falls_to(0.4), 600, noise=0.08))

    @pytest.mark.parametrize(("n", "severity"), [(1, "note"), (6, "warning")])
    def test_spikes_are_shown(self, n: int, severity: str) -> None:
        events = run(HEALTHY)
        for i in range(n):
            at = 1234 + 300 * i
            events[at] = {**events[at], "parts": {"masked": 9.0, "next_sentence": 0.6}, "grad_norm": 25.0}
        found = examined(events)["curve.spikes"]
        assert (found.severity, found.count, len(found.examples)) == (severity, n, min(n, 5))
        assert found.examples[0].startswith("step 1,235  9.00, usually 3.")
        assert found.examples[0].endswith("; gradient norm 25")
        first = found.facts["spikes"][0]
        assert (first["step"], first["loss"], first["norm"], found.facts["n"]) == (1235, 9.0, 25.0, n)

    def test_a_leap_that_stays_is_one_spike(self) -> None:
        assert examined(run(lambda t: 3.0 if t < 0.5 else 8.0))["curve.spikes"].count == 1

    @pytest.mark.parametrize(("factor", "is_found"), [(1.8, False), (2.5, True)])
    def test_a_training_that_became_slow(self, factor: float, is_found: bool) -> None:
        events = run(HEALTHY, seconds=lambda t: 0.5 * (factor if t > 0.9 else 1))
        found = examined(events)
        assert ("curve.slow" in found) == is_found
        if is_found:
            assert "3,277 tokens per second, usually 8,192" in found["curve.slow"].message


def test_the_curve_needs_no_torch() -> None:
    code = "import sys, jumok.doctor.curve; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
