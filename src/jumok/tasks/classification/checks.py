"""The doctor's rules for classification: texts or pairs of texts with a label, several labels, or a number."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from math import inf, isfinite
from typing import Any

import numpy as np

from jumok.examples.labelled import MANY_NUMBERS, Labelled, number_of
from jumok.findings import Finding, Rule, Tally, example, finding, judge
from jumok.tasks.checks import Gold, TextChecks, View
from jumok.tasks.label_checks import Labels, examine_predictions, unknown_in_setting
from jumok.tasks.targets import split_labels

_MUCH = 0.2  # of the range of the middle 90 %: numbers farther apart contradict each other
_FAR = 10  # such ranges away from the others, a number is an outlier
_STEPS = 5
_ENOUGH = 30  # numbers that show the scale of a split
_OTHER_SCALE = 0.4  # of the usual spread, or one over it
_ANSWERS = {"class": "label", "labels": "set of labels", "number": "number"}

# fmt: off
_RULES: dict[str, Rule] = {
    "none": ("data.not_a_number", 0, 0, "labels that are not numbers", "Training refuses them: write each as a number"
        " with a decimal point, such as 2.5, or skip it (data.skip_labels)"),
    "not_finite": ("data.not_a_number", 0, 0, "labels that are NaN or infinite", "Training refuses them, because a"
        " single one would turn every weight into NaN: correct them, or skip them (data.skip_labels)"),
    "one_value": ("data.one_label", 0, 0, "{low} is the only number", "There is nothing to predict: check that the"
        " right column is the label (data.label)"),
    "outside": ("data.out_of_range", 0, 0.05, "numbers outside the range of train, which is {low} to {high}", "A model"
        " rarely predicts numbers it has never seen: check whether they are wrong or on another scale, or add some"
        " to train"),
    "scale": ("data.out_of_range", 0, inf, "numbers that seem to be on another scale (90 % are from {low} to {high}, in"
        " train from {train_low} to {train_high})", "Use one scale, or split the data again"),
    "far": ("data.out_of_range", 0, inf, "outliers (90 % of the numbers are from {low} to {high})", "A single one can"
        " dominate the loss: check that it is right"),
    "differ": ("data.contradiction", 0.01, 0.1, "{things} that occur earlier in the split with a number more than"
        " {much} away", "A model can learn only one of the two: decide which is right, or remove both"),
    "differ_a_little": ("data.duplicate", 0.1, inf, "{things} that occur earlier in the split with a number at most"
        " {much} away", "They count more than others: keep one of each, with the mean of their numbers"),
}
# fmt: on


class ClassificationChecks(TextChecks):
    things = "rows"

    @property
    def separator(self) -> str:
        return "|" if self.data.is_made else str(self.data.separator)

    @property
    def skips(self) -> bool:
        return not self.data.is_made and self.data.when_wrong == "skip"

    @property
    def hint(self) -> str:
        several = self.config.predicts == "labels"
        return f"; a text without any label has {self.separator!r} as its label" if several else ""

    def view(self, example: Labelled) -> View:
        answers = _ANSWERS[self.config.predicts]
        if example.pair is None:
            return View((example.text,), example.gold, answers=answers)
        return View((example.text, example.pair), example.gold, things="pairs of texts", answers=answers)

    def gold(self) -> Gold:
        if self.config.predicts == "number":
            return Numbers()
        return Labels(self._several)

    def examine_settings(self, splits: Mapping[str, Iterable[Any]]) -> list[Finding]:
        weights = self.config.class_weights
        if not isinstance(weights, dict):
            return []
        labels = (gold_labels(example, self._several) for example in splits.get("train", ()))
        return unknown_in_setting("task.class_weights", [*weights], {*chain(*labels)})

    @property
    def _several(self) -> str | None:
        return self.separator if self.config.predicts == "labels" else None


def gold_labels(example: Labelled, separator: str | None) -> list[str]:
    """The label, or all labels of a text that may have several."""
    return [example.gold.strip()] if separator is None else split_labels(example.gold, separator)


def examine_outputs(
    examples: Sequence[Labelled],
    outputs: Sequence[str],
    result: Mapping[str, Any],
    split: str = "",
    *,
    separator: str | None = None,
) -> list[Finding]:
    """Findings on the outputs; `separator` separates the labels of a text that may have several."""
    return examine_predictions(
        examples,
        outputs,
        result,
        split=split,
        labels=lambda example: gold_labels(example, separator),
        or_weigh=", or give rare ones a higher weight (task.class_weights)",
    )


class Numbers(Gold):
    """The numbers of one split."""

    def __init__(self) -> None:
        self._values = array("d")
        self._tallies: dict[str, Tally] = defaultdict(Tally)
        # The lowest and the highest numbers: the range of train is compared only at the end.
        self._extremes: dict[int, list[tuple[float, str]]] = {-1: [], 1: []}
        self._gaps: list[tuple[float, str]] = []
        """distance of a number from the nearest earlier one of the same text, and the example"""
        self._things = ""
        self.much = 0.0
        """numbers farther apart than this contradict each other; known once all have been added"""

    def add(self, row: Labelled) -> float | None:
        value = number_of(row.gold)
        self._things = "texts" if row.pair is None else "pairs of texts"
        if value is None or not isfinite(value):
            self._tallies["none" if value is None else "not_finite"].add(row.where, row.gold)
            return None
        self._values.append(value)
        for sign, found in self._extremes.items():
            found[:] = sorted([*found, (sign * value, example(row.where, row.gold))], reverse=True)[:5]
        return value

    def agree(self, one: float, other: float) -> bool:
        return abs(one - other) <= self.much

    def contradicts(self, answer: float, earlier: Sequence[float], where: str, *shown: str) -> bool:
        gap, nearest = min((abs(answer - other), other) for other in earlier)
        self._gaps.append((gap, example(where, *shown, f"earlier {nearest:g}")))
        return False  # whether the gap is large is known only at the end

    def examine(self, name: str, train: "Numbers | None") -> list[Finding]:
        n = len(self._values) + sum(tally.count for tally in self._tallies.values())
        findings: list[Finding] = []
        for rule, tally in self._tallies.items():
            findings += judge(_RULES[rule], tally, n, {}, begin=f"{name}: ")
        if not self._values:
            return findings
        low, high = min(self._values), max(self._values)
        usual_low, usual_high = np.percentile(self._values, [5, 95]) if len(self._values) >= _ENOUGH else (low, high)
        usual = usual_high - usual_low or high - low  # one outlier does not stretch the scale
        self.much = _MUCH * usual if train is None else train.much
        far = [value for value in self._values if not -_FAR * usual <= value - usual_low <= (_FAR + 1) * usual]
        if far:
            shown = [shown for sign in (-1, 1) for value, shown in self._extremes[sign] if sign * value in far]
            usually = {"low": f"{usual_low:g}", "high": f"{usual_high:g}"}
            findings += judge(_RULES["far"], Tally(len(far), shown[:5]), n, usually, begin=f"{name}: ")
        facts = {"low": f"{low:g}", "high": f"{high:g}", "much": f"{self.much:g}", "things": self._things}
        if low == high and len(self._values) > 1:
            findings += judge(_RULES["one_value"], Tally(n), n, facts, begin=f"{name}: ")
        else:
            findings.append(finding("data.labels", "note", n, n, f"{name}: {self._distribution()}"))
        if train is not None and train._values:
            findings += self._beside(name, train)
        for rule, gaps in (
            ("differ", [gap for gap in self._gaps if gap[0] > self.much]),
            ("differ_a_little", [gap for gap in self._gaps if gap[0] <= self.much]),
        ):
            worst = [shown for _, shown in sorted(gaps, key=lambda gap: -gap[0])]
            findings += judge(_RULES[rule], Tally(len(gaps), worst[:5]), n, facts, begin=f"{name}: ")
        return findings

    def _beside(self, name: str, train: "Numbers") -> list[Finding]:
        low, high = min(train._values), max(train._values)
        facts = {"low": f"{low:g}", "high": f"{high:g}"}
        outside = sum(not low <= value <= high for value in self._values)
        shown = [shown for value, shown in self._extremes[-1] if -value < low]
        shown += [shown for value, shown in self._extremes[1] if value > high]
        tally = Tally(outside, shown[:5])
        findings = judge(_RULES["outside"], tally, len(self._values), facts, begin=f"{name}: ")
        if min(len(self._values), len(train._values)) < _ENOUGH:
            return findings
        ours, theirs = (np.percentile(values, [5, 95]) for values in (self._values, train._values))
        spread, usual = (np.ptp(ends) for ends in (ours, theirs))
        if usual and spread and not _OTHER_SCALE <= spread / usual <= 1 / _OTHER_SCALE:
            facts = dict(
                zip(("low", "high", "train_low", "train_high"), (f"{x:g}" for x in (*ours, *theirs)), strict=True)
            )
            findings += judge(_RULES["scale"], Tally(len(self._values)), len(self._values), facts, begin=f"{name}: ")
        return findings

    def _distribution(self) -> str:
        values = np.array(self._values)
        different, counts = np.unique(values, return_counts=True)
        steps = [f"{value:g}" for value in different]
        summary = f"numbers from {steps[0]} to {steps[-1]}, {len(steps):,} different ones,"
        if len(steps) > MANY_NUMBERS:
            counts, edges = np.histogram(values, bins=_STEPS)
            steps = [f"{start:.3g} to {end:.3g}" for start, end in pairwise(edges)]
        shares = [f"{step}: {100 * n / len(values):.1f} %" for step, n in zip(steps, counts, strict=True)]
        return f"{summary} mean {values.mean():.3g}, median {np.median(values):.3g}. {', '.join(shares)}."
