"""The doctor's rules for labels: their distribution over the splits, and how well a model predicts them.

Classification, relations and tagging share them; the rules for outputs also apply to answers and choices.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, ClassVar

from jumok.errors import listed
from jumok.examples.labelled import number_of
from jumok.findings import Finding, Rule, Tally, example, finding, hash_of, judge, worst_first
from jumok.score.relations import relation_of
from jumok.tasks.checks import Gold

_RARE = 0.2  # of the share that each label would have if all were equally frequent
_FEW = 5  # examples of a label, in data that has room for more
_MANY = 100
_ENOUGH = 10  # identical outputs that are no accident
_RARE_ADVICE = "A model may never predict them, and overall scores hide it: check each F1, or collect more examples"

_JOINED = re.compile(r"\w\s*[,;/|+&]\s*\w")

# fmt: off
RULES: dict[str, Rule] = {
    "only_one": ("data.one_label", 0, 0, "{labels} is the only one of the {what}", "There is nothing to learn: training"
        " needs at least two"),
    "rare": ("data.imbalanced", 0, inf, "rare {what} ({labels})", _RARE_ADVICE),
    "rare_type": ("data.imbalanced", inf, inf, "rare {what} ({labels})", _RARE_ADVICE),
    "missing": ("data.missing_label", 0, inf, "{what} that occur only in train ({labels})", "Scores cannot show"
        " how well a model predicts them: add some, or split the data again"),
    "unknown": ("data.unknown_label", 0, 0, "{what} that do not occur in train ({labels})", "Training refuses them,"
        " because they cannot be learned: correct them{spelling}, or add examples to train"),
    "unknown_tag": ("data.unknown_label", 0, inf, "{what} that do not occur in train ({labels})", "They cannot be"
        " learned and count as missed: correct them{spelling}, or add examples to train"),
    "alike": ("data.similar_labels", 0, inf, "{what} that differ only in case or number format ({labels})", "A model"
        " treats them as different: use one spelling"),
    "no_label": ("data.no_label", inf, 1, "texts without any label", "Fine where no label applies: otherwise label"
        " or remove them"),
    "separator": ("data.separator", 0, inf, "labels that look like several in one ({labels}), while no text has more"
        " than one", "data.separator is {separator!r}: check what separates the labels"),
    "ignores_input": ("output.ignores_input", 0, 0, "the model predicts {output!r} for every text", "It ignores its"
        " input: lower the learning rate, train longer, and check the labels"),
    "never_right": ("output.never_right", 0, inf, "texts with a label that is never predicted correctly ({labels})",
        "Overall scores hide it: collect more examples of them{or_weigh}"),
}
# fmt: on


class Labels(Gold):
    """The labels of one split."""

    rules: ClassVar[Mapping[str, Rule]] = RULES
    unknown: ClassVar[str] = "unknown"
    """the rule for labels that do not occur in train"""

    def __init__(self, separator: str | None = None) -> None:
        """`separator` separates the labels of a text that may have several."""
        self._separator = separator
        self.labels: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        """span types, if labels mark spans: judged instead of the labels"""
        self.first: dict[str, str] = {}
        """where each was first found"""
        self._sizes: Counter[int] = Counter()
        """texts by their number of labels"""
        self.tallies: dict[str, Tally] = defaultdict(Tally)

    def add(self, example: Any) -> Hashable:
        if self._separator is None:
            self.count([example.gold], example.where)
            return hash_of(example.gold)
        labels = sorted({part.strip() for part in example.gold.split(self._separator)} - {""})
        self._sizes[len(labels)] += 1
        self.count(labels, example.where)
        if not labels:
            self.tallies["no_label"].add(example.where, example.text)
        return hash_of("|".join(labels))

    def count(self, labels: Sequence[str], where: str) -> None:
        self.labels.update(labels)
        for label in labels:
            if label not in self.first:
                self.first[label] = where
                self.first.setdefault(relation_of(label), where)

    def examine(self, name: str, train: "Labels | None") -> list[Finding]:
        if not self.labels and not self._sizes:
            return []
        # Tags that mark no spans, such as parts of speech, are judged like labels.
        marks_spans = bool((train or self).types)
        what, counts = ("span types", self.types) if marks_spans else ("labels", self.labels)
        total = counts.total()

        def about(rule: str, labels: Sequence[str], count: int, n: int, **more: str) -> list[Finding]:
            facts = {"what": what, "split": name, "labels": listed(labels), **more}
            examples = [example(self.first[label], label) for label in labels if label in self.first]
            return judge(self.rules[rule], Tally(count, examples[:5]), n, facts, begin=f"{name}: ")

        findings = [self._distribution(name, what, counts)]
        relations = _by_relation(counts)
        if train is None:
            if len(counts) == 1 and not marks_spans:
                findings = about("only_one", [*counts], total, total)
            least = max(_RARE * total / len(relations), _FEW if total >= _MANY else 0) if relations else 0
            rare = [label for label, n in relations.items() if n < least]
            count = sum(relations[label] for label in rare)
            findings += about("rare_type" if marks_spans else "rare", rare, count, total)
            alike = _alike(counts)
            findings += about("alike", alike, sum(counts[label] for label in alike), total)
        else:
            known = train.types if marks_spans else train.labels
            missing = [label for label in _by_relation(known) if label not in relations]
            findings += about("missing", missing, len(missing), len(_by_relation(known)))
            unknown = [label for label in counts if label not in known]
            count = sum(counts[label] for label in unknown)
            spellings = {_folded(label) for label in unknown}
            meant = [label for label in known if _folded(label) in spellings]
            spelling = f" (train has {listed(meant)})" if meant else ""
            findings += about(self.unknown, unknown, count, total, spelling=spelling)
        if self._separator and max(self._sizes) < 2 and (odd := [label for label in counts if _JOINED.search(label)]):
            findings += about("separator", odd, sum(counts[label] for label in odd), total, separator=self._separator)
        for fault, (tally, n) in self.faults(train).items():
            findings += judge(self.rules[fault], tally, n, {}, begin=f"{name}: ")
        return findings

    def faults(self, train: Any) -> dict[str, tuple[Tally, int]]:
        """Tallies by rule, each with its total."""
        return {fault: (tally, self._sizes.total()) for fault, tally in self.tallies.items()}

    def _distribution(self, name: str, what: str, counts: Counter[str]) -> Finding:
        """The frequency of each label; where a text may have several, each counts separately."""
        total = self._sizes.total() or counts.total()
        shares = listed([f"{label} {n:,} ({100 * n / total:.1f} %)" for label, n in counts.most_common()], most=10)
        message = f"{name}: {what}: {shares or 'none'}."
        if self._sizes:
            message = f"{name}: {what} by share of the texts: {shares or 'none'}. A text has"
            message += f" {counts.total() / total:.2g} on average and {max(self._sizes)} at most."
        return finding("data.labels", "note", counts.total(), max(counts.total(), 1), message)


def _by_relation(counts: Mapping[str, int]) -> Counter[str]:
    relations: Counter[str] = Counter()
    for label, n in counts.items():
        relations[relation_of(label)] += n
    return relations


def _folded(label: str) -> str:
    """Equal for labels that differ only in case or number format."""
    value = number_of(label)
    return " ".join(label.casefold().split()) if value is None else repr(value)


def _alike(counts: Mapping[str, int]) -> list[str]:
    spellings: dict[str, list[str]] = defaultdict(list)
    for label in counts:
        spellings[_folded(label)].append(label)
    return [label for labels in spellings.values() if len(labels) > 1 for label in labels]


def unknown_in_setting(setting: str, named: Sequence[str], labels: set[str]) -> list[Finding]:
    """A finding if a setting names labels that train does not have, which training refuses."""
    unknown = [label for label in named if label not in labels]
    message = f"{setting} names labels that do not occur in train ({listed(unknown)}), so training refuses it. Train"
    message += f" has {listed(sorted(labels), most=20) or 'no labels'}."
    return [finding("recipe.settings", "error", len(unknown), len(named), message)] if unknown else []


def examine_predictions(
    examples: Sequence[Any],
    outputs: Sequence[str],
    result: Mapping[str, Any],
    *,
    split: str = "",
    labels: Callable[[Any], Iterable[str]] = lambda example: (),
    or_weigh: str = "",
) -> list[Finding]:
    """Findings on the outputs for a split, worst first.

    `labels` returns the gold labels of an example, as the scores name them.
    """
    begin = f"{split}: " if split else ""
    findings: list[Finding] = []
    gold = [{*labels(example)} for example in examples]
    every: set[str] = set().union(*gold)
    if len({*outputs}) == 1 and len(outputs) >= _ENOUGH and len(every) != 1:
        tally = Tally(len(outputs), [example.where for example in examples[:5]])
        findings += judge(RULES["ignores_input"], tally, len(outputs), {"output": outputs[0][:60]}, begin=begin)
    scores = result["scores"].items()
    never = {name[3:] for name, score in scores if name.startswith("f1_") and score["value"] == 0}
    missed = Tally()
    for one, found in zip(examples, gold, strict=True):
        if here := sorted(found & never):
            missed.add(one.where, *here)
    facts = {"labels": listed(sorted(never & every)), "or_weigh": or_weigh}
    return worst_first(findings + judge(RULES["never_right"], missed, len(examples), facts, begin=begin))
