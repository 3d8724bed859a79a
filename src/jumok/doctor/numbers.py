"""What is wrong with labels that are numbers: those that are none, how they are spread, and splits that differ."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from math import inf, isfinite

import numpy as np

from jumok.doctor.findings import Finding, Rule, Tally, example, finding, judge
from jumok.text.labelled import NUMBER, Labelled

_MUCH = 0.2  # of the range of nine of ten numbers: two that are farther apart contradict each other
_FAR = 10  # such ranges away from the others
_STEPS = 5
_ENOUGH = 30  # numbers that tell the scale of a split
_OTHER_SCALE = 0.4  # of the usual spread, or one over it
_MANY = 10  # different numbers; fewer may be classes that are called by numbers, and can be listed

# fmt: off
_RULES: dict[str, Rule] = {
    "none": ("not_a_number", 0, 0, "labels that are not numbers", "Training refuses them: write each as a number with"
        " a point, such as 2.5, or leave it out (data.skip_labels)"),
    "not_finite": ("not_a_number", 0, 0, "labels that are no finite number", "One such target would make every weight"
        " NaN, so training refuses them: give them their value, or leave them out (data.skip_labels)"),
    "one_value": ("labels", 0, 0, "no number but {low}", "There is nothing to predict: check that the right column is"
        " the label (data.label)"),
    "outside": ("out_of_range", 0, 0.05, "numbers outside those of train, which go from {low} to {high}", "A model"
        " hardly says what it has never seen: see whether they are wrong or on another scale, or add some to train"),
    "scale": ("out_of_range", 0, inf, "numbers that look as if they were on another scale: nine of ten are from {low}"
        " to {high}, and in train from {train_low} to {train_high}", "Use one scale, or divide the data anew"),
    "far": ("out_of_range", 0, inf, "numbers far from the others, of which nine of ten are from {low} to {high}", "One"
        " such number may weigh more than all the others: see whether it is right"),
    "differ": ("contradiction", 0.01, 0.1, "{things} that stand earlier in the split with a number more than {much}"
        " away", "A model can learn only one of the two: decide which is right, or leave both out"),
    "differ_a_little": ("duplicate", 0.1, inf, "{things} that repeat an earlier one of the split with a number not"
        " more than {much} away", "They weigh more than the others: keep one of each, with the mean of their numbers"),
}
# fmt: on


class Numbers:
    """The numbers of one split."""

    def __init__(self) -> None:
        self._values = array("d")
        self._tallies: dict[str, Tally] = defaultdict(Tally)
        # The lowest and the highest: which of them are outside the range of train is asked only at the end.
        self._extremes: dict[int, list[tuple[float, str]]] = {-1: [], 1: []}
        self._gaps: list[tuple[float, str]] = []
        """how far a number is from that of the same text before, and the example"""
        self._things = ""
        self.much = 0.0
        """the distance from which two numbers contradict each other, known when all are"""

    def add(self, row: Labelled) -> float | None:
        value = number_of(row.label)
        self._things = "texts" if row.pair is None else "pairs of texts"
        if value is None or not isfinite(value):
            self._tallies["none" if value is None else "not_finite"].add(row.where, row.label)
            return None
        self._values.append(value)
        for sign, found in self._extremes.items():
            found[:] = sorted([*found, (sign * value, example(row.where, row.label))], reverse=True)[:5]
        return value

    def agree(self, one: float, other: float) -> bool:
        return abs(one - other) <= self.much

    def differ(self, value: float, earlier: Iterable[float], where: str, *shown: str) -> None:
        """A text that was there before, with other numbers."""
        gap, nearest = min((abs(value - other), other) for other in earlier)
        self._gaps.append((gap, example(where, *shown, f"earlier {nearest:g}")))

    def examine(self, name: str, train: "Numbers | None") -> list[Finding]:
        """The findings of a split of this name, beside the training data if it is another split."""
        n = len(self._values) + sum(tally.count for tally in self._tallies.values())
        findings: list[Finding] = []
        for rule, tally in self._tallies.items():
            findings += judge(_RULES[rule], tally, n, {}, begin=f"{name}: ")
        if not self._values:
            return findings
        low, high = min(self._values), max(self._values)
        usual_low, usual_high = np.percentile(self._values, [5, 95]) if len(self._values) >= _ENOUGH else (low, high)
        usual = usual_high - usual_low or high - low  # one number that is far off does not stretch the scale of all
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
            findings.append(finding("labels", "note", n, n, f"{name}: {self._told()}"))
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

    def _told(self) -> str:
        """How they are spread, in words."""
        values = np.array(self._values)
        different, counts = np.unique(values, return_counts=True)
        steps = [f"{value:g}" for value in different]
        said = f"numbers from {steps[0]} to {steps[-1]}, {len(steps):,} different ones,"
        if len(steps) > _MANY:
            counts, edges = np.histogram(values, bins=_STEPS)
            steps = [f"{start:.3g} to {end:.3g}" for start, end in pairwise(edges)]
        shares = [f"{step}: {100 * n / len(values):.1f} %" for step, n in zip(steps, counts, strict=True)]
        return f"{said} mean {values.mean():.3g}, median {np.median(values):.3g}. {', '.join(shares)}."


def number_of(label: str) -> float | None:
    """What training would read a label as; NaN and infinity are numbers that it refuses."""
    try:
        value = float(label)
    except ValueError:
        return None
    return value if NUMBER.fullmatch(label) or not isfinite(value) else None


def are_numbers(labels: Iterable[str]) -> bool:
    """Whether labels look like numbers rather than classes that are called by numbers: many different, with fractions.

    One in twenty may be no number: such a column has faults rather than classes.
    """
    counts = Counter(labels)
    values = {label: number_of(label) for label in counts}
    wrong = sum(n for label, n in counts.items() if values[label] is None)
    found = {value for value in values.values() if value is not None and isfinite(value)}
    return wrong <= counts.total() / 20 and len(found) >= _MANY and any(value % 1 for value in found)
