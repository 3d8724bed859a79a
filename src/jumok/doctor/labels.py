"""What is wrong with labels and tags: how they are distributed over the splits, and tags that mark no whole span."""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from math import inf

from jumok.doctor.findings import Finding, Rule, Tally, example, finding, hash_of, judge
from jumok.doctor.numbers import number_of
from jumok.errors import listed
from jumok.score.relations import relation_of
from jumok.score.tagging import spans
from jumok.text.annotated import Marked, Related
from jumok.text.labelled import Labelled, Tagged

_RARE = 0.2  # of the share that each label would have if all had the same
_FEW = 5  # examples of a label, in data that has room for more
_MANY = 100
_RARE_ADVICE = "A model may never say them, and a score over all hardly shows it: look at each F1, or collect more"

_JOINED = re.compile(r"\w\s*[,;/|+&]\s*\w")

# fmt: off
_RULES: dict[str, Rule] = {
    "only_one": ("labels", 0, 0, "no {what} but {labels}", "There is nothing to tell apart: training needs two"),
    "rare": ("imbalanced", 0, inf, "rare {what} ({labels})", _RARE_ADVICE),
    "rare_type": ("imbalanced", inf, inf, "rare {what} ({labels})", _RARE_ADVICE),
    "missing": ("missing_label", 0, inf, "{what} of train that are missing ({labels})", "How well a model tells them"
        " does not show on {split}: add some, or divide the data anew"),
    "unknown": ("unknown_label", 0, 0, "{what} that train does not have ({labels})", "They cannot be learned, and"
        " training refuses them: mend them{spelling}, or add some to train"),
    "unknown_tag": ("unknown_label", 0, inf, "{what} that train does not have ({labels})", "They cannot be learned,"
        " and count as not found: mend them{spelling}, or add some to train"),
    "alike": ("alike_labels", 0, inf, "{what} that differ only in case or in how a number is written ({labels})",
        "A model takes them for different ones: write each in one way"),
    "no_label": ("no_label", inf, 1, "texts without any label", "That is fine where no label fits: otherwise label"
        " them, or leave them out"),
    "separator": ("separator", 0, inf, "labels that look like several ({labels}), and no text has more than one",
        "data.separator is {separator!r}: check what stands between the labels"),
    "not_begun": ("impossible_tags", 0, 0.05, "spans that begin in their middle (I- or E- after O or another type)",
        "They are scored as spans all the same: begin each with B-, or look for words that were lost"),
    "not_ended": ("impossible_tags", 0, 0.05, "spans that do not end (B- or I- without an E- of their type)",
        "They are scored as spans all the same: end each with E-, and write S- for a span of one word"),
    "no_span": ("unknown_tags", 0, inf, "tags that are neither O nor B-, I-, E- or S- with a type", "They are no part"
        " of a span, so that span F1 does not count them: write them as B-TYPE and I-TYPE"),
}
# fmt: on


class Labels:
    """The labels of one split, or its tags and the types of the spans that they mark."""

    def __init__(self, separator: str | None = None) -> None:
        """`separator` stands between the labels of a text that has several."""
        self._separator = separator
        self._labels: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        """where each of them was found first"""
        self._sizes: Counter[int] = Counter()
        """of the sets of labels"""
        self._is_tagged = False
        self._prefixes: Counter[str] = Counter()
        self._tallies: dict[str, Tally] = defaultdict(Tally)

    def add(self, example: Labelled | Related | Tagged | Marked) -> Hashable:
        """All that matters of the labels of an example, to be compared."""
        match example:
            case Labelled() | Related() if self._separator is None:
                self._count([example.label], example.where)
                return hash_of(example.label)
            case Labelled() | Related():
                labels = sorted({part.strip() for part in example.label.split(self._separator or "|")} - {""})
                self._sizes[len(labels)] += 1
                self._count(labels, example.where)
                if not labels:
                    self._tallies["no_label"].add(example.where, example.text)
                return hash_of("|".join(labels))
            case Tagged():
                self._add_tags(example.words, example.tags, example.where)
                return hash_of(" ".join(example.tags))
            case Marked():
                self._is_tagged = True
                types = [mark.label for mark in example.marks]
                self._count(types, example.where)
                self._types.update(types)
                return hash_of(" ".join(f"{mark.label}:{mark.start}-{mark.end}" for mark in example.marks))

    def agree(self, one: int, other: int) -> bool:
        return one == other

    def _count(self, labels: Sequence[str], where: str) -> None:
        self._labels.update(labels)
        for label in labels:
            if label not in self._first:
                self._first[label] = where
                self._first.setdefault(relation_of(label), where)

    def _add_tags(self, words: Sequence[str], tags: Sequence[str], where: str) -> None:
        self._is_tagged = True
        self._count(tags, where)
        types = [kind for kind, _, _ in spans(tags)]
        self._types.update(types)
        for kind in types:
            self._first.setdefault(kind, where)
        split = [tag.partition("-")[::2] for tag in tags]
        for i, ((before, kind_before), (prefix, kind)) in enumerate(pairwise([("O", ""), *split, ("O", "")])):
            self._prefixes[prefix] += 1
            goes_on = before in ("B", "I") and prefix in ("I", "E") and kind == kind_before
            faults = {
                "not_begun": prefix in ("I", "E") and not goes_on,
                "not_ended": before in ("B", "I") and not goes_on,
                "no_span": prefix not in ("O", "B", "I", "E", "S"),
            }
            for fault in (fault for fault, found in faults.items() if found):
                near = range(max(i - 1, 0), min(i + 1, len(tags)))
                at = _later_line(where, near[-1])
                self._tallies[fault].add(at, " ".join(f"{words[k]}/{tags[k]}" for k in near))

    def examine(self, name: str, train: "Labels | None") -> list[Finding]:
        """The findings of a split of this name, beside the training data if it is another split."""
        if not self._labels and not self._sizes:
            return []
        # Tags that mark no spans, such as parts of speech, are told apart as labels are.
        marks_spans = bool((train or self)._types)
        what, counts = ("types of spans", self._types) if marks_spans else ("labels", self._labels)
        total = counts.total()

        def about(rule: str, labels: Sequence[str], count: int, n: int, **more: str) -> list[Finding]:
            facts = {"what": what, "split": name, "labels": listed(labels), **more}
            examples = [example(self._first[label], label) for label in labels if label in self._first]
            return judge(_RULES[rule], Tally(count, examples[:5]), n, facts, begin=f"{name}: ")

        findings = [self._told(name, what, counts)]
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
            known = train._types if marks_spans else train._labels
            missing = [label for label in _by_relation(known) if label not in relations]
            findings += about("missing", missing, len(missing), len(_by_relation(known)))
            unknown = [label for label in counts if label not in known]
            count = sum(counts[label] for label in unknown)
            spellings = {_spelt_alike(label) for label in unknown}
            meant = [label for label in known if _spelt_alike(label) in spellings]
            spelling = f" (in train they may be {listed(meant)})" if meant else ""
            rule = "unknown_tag" if self._is_tagged else "unknown"
            findings += about(rule, unknown, count, total, spelling=spelling)
        if self._separator and max(self._sizes) < 2 and (odd := [label for label in counts if _JOINED.search(label)]):
            findings += about("separator", odd, sum(counts[label] for label in odd), total, separator=self._separator)
        for fault, tally in self._faults(train or self).items():
            n = {"no_span": self._labels.total(), "no_label": self._sizes.total()}.get(fault, self._types.total())
            findings += judge(_RULES[fault], tally, n, {}, begin=f"{name}: ")
        return findings

    def _told(self, name: str, what: str, counts: Counter[str]) -> Finding:
        """How often each label is there; of several a text each is counted by itself."""
        total = self._sizes.total() or counts.total()
        shares = [f"{label} {n:,} ({100 * n / total:.1f} %)" for label, n in counts.most_common()]
        message = f"{name}: {what}: {listed(shares, most=10) or 'none'}."
        if self._sizes:
            message = message.replace(what, f"{what} and the share of the texts that have them", 1)
            message += f" A text has {counts.total() / total:.2g} of them on average, {max(self._sizes)} at most."
        return finding("labels", "note", counts.total(), max(counts.total(), 1), message)

    def _faults(self, train: "Labels") -> dict[str, Tally]:
        """Tags are judged by the scheme that most of those in train follow."""
        faults, prefixes = dict(self._tallies), train._prefixes
        if train._tallies["not_begun"].count > prefixes["B"] + prefixes["S"]:
            faults.pop("not_begun", None)  # IOB1, where B- only parts two spans of one type
        if not prefixes["E"] and not prefixes["S"]:
            faults.pop("not_ended", None)  # IOB2, which marks no ends
        if not self._types:
            faults.pop("no_span", None)  # parts of speech and the like
        return faults


def _by_relation(counts: Mapping[str, int]) -> Counter[str]:
    relations: Counter[str] = Counter()
    for label, n in counts.items():
        relations[relation_of(label)] += n
    return relations


def _spelt_alike(label: str) -> str:
    """The same for labels that differ only in case or in how a number is written."""
    value = number_of(label)
    return " ".join(label.casefold().split()) if value is None else repr(value)


def _alike(counts: Mapping[str, int]) -> list[str]:
    spellings: dict[str, list[str]] = defaultdict(list)
    for label in counts:
        spellings[_spelt_alike(label)].append(label)
    return [label for labels in spellings.values() if len(labels) > 1 for label in labels]


def _later_line(where: str, lines: int) -> str:
    """The place so many lines after another, if that is a line of a file."""
    file, _, line = where.rpartition(":")
    return f"{file}:{int(line) + lines}" if line.isdecimal() else where
