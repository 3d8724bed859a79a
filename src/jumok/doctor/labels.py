"""What is wrong with labels and tags: how they are distributed over the splits, and tags that mark no whole span."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from math import inf

from jumok.doctor.findings import Finding, Rule, Tally, example, finding, judge
from jumok.score.tagging import spans

_RARE = 0.2  # of the share that each label would have if all had the same
_RARE_ADVICE = "A model may never say them, and a score over all hardly shows it: look at each F1, or collect more"

# fmt: off
_RULES: dict[str, Rule] = {
    "only_one": ("labels", 0, 0, "no {what} but {labels}", "There is nothing to tell apart: training needs two"),
    "rare": ("imbalanced", 0, inf, "rare {what} ({labels})", _RARE_ADVICE),
    "rare_type": ("imbalanced", inf, inf, "rare {what} ({labels})", _RARE_ADVICE),
    "missing": ("missing_label", 0, inf, "{what} of train that are missing ({labels})", "How well a model tells them"
        " does not show on {split}: add some, or divide the data anew"),
    "unknown": ("unknown_label", 0, 0, "{what} that train does not have ({labels})", "They cannot be learned, and"
        " training refuses them: mend them, or add some to train"),
    "unknown_tag": ("unknown_label", 0, inf, "{what} that train does not have ({labels})", "They cannot be learned,"
        " and count as not found: mend them, or add some to train"),
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

    def __init__(self) -> None:
        self._labels: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        """where each of them was found first"""
        self._is_tagged = False
        self._prefixes: Counter[str] = Counter()
        self._tallies: dict[str, Tally] = defaultdict(Tally)

    def add_label(self, label: str, where: str) -> None:
        self._labels[label] += 1
        self._first.setdefault(label, where)

    def add_tags(self, words: Sequence[str], tags: Sequence[str], where: str) -> None:
        self._is_tagged = True
        self._labels.update(tags)
        types = [kind for kind, _, _ in spans(tags)]
        self._types.update(types)
        for label in (*tags, *types):
            self._first.setdefault(label, where)
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
                self._tallies[fault].add(where, " ".join(f"{words[k]}/{tags[k]}" for k in near))

    def add_types(self, types: Sequence[str], where: str) -> None:
        """The types of spans that are marked without tags."""
        self._is_tagged = True
        self._labels.update(types)
        self._types.update(types)
        for kind in types:
            self._first.setdefault(kind, where)

    def examine(self, name: str, train: "Labels | None") -> list[Finding]:
        """The findings of a split of this name, beside the training data if it is another split."""
        if not self._labels:
            return []
        # Tags that mark no spans, such as parts of speech, are told apart as labels are.
        marks_spans = bool((train or self)._types)
        what, counts = ("types of spans", self._types) if marks_spans else ("labels", self._labels)
        total = counts.total()

        def about(rule: str, labels: Sequence[str], count: int, n: int) -> list[Finding]:
            facts = {"what": what, "split": name, "labels": _listed(labels)}
            examples = [example(self._first[label], label) for label in labels if label in self._first]
            return judge(_RULES[rule], Tally(count, examples[:5]), n, facts, begin=f"{name}: ")

        shares = [f"{label} {n:,} ({100 * n / total:.1f} %)" for label, n in counts.most_common()]
        message = f"{name}: {what}: {_listed(shares, most=10) or 'none'}."
        findings = [finding("labels", "note", total, max(total, 1), message)]
        if train is None:
            if len(counts) == 1 and not marks_spans:
                findings = about("only_one", [*counts], total, total)
            rare = [label for label, n in counts.items() if n < _RARE * total / len(counts)]
            count = sum(counts[label] for label in rare)
            findings += about("rare_type" if marks_spans else "rare", rare, count, total)
        else:
            known = train._types if marks_spans else train._labels
            missing = [label for label in known if label not in counts]
            findings += about("missing", missing, len(missing), len(known))
            unknown = [label for label in counts if label not in known]
            count = sum(counts[label] for label in unknown)
            findings += about("unknown_tag" if self._is_tagged else "unknown", unknown, count, total)
        for fault, tally in self._faults().items():
            n = self._labels.total() if fault == "no_span" else self._types.total()
            findings += judge(_RULES[fault], tally, n, {}, begin=f"{name}: ")
        return findings

    def _faults(self) -> dict[str, Tally]:
        """Tags are judged by the scheme that most of them follow."""
        faults = dict(self._tallies)
        if "not_begun" in faults and faults["not_begun"].count > self._prefixes["B"] + self._prefixes["S"]:
            del faults["not_begun"]  # IOB1, where B- only parts two spans of one type
        if not self._prefixes["E"] and not self._prefixes["S"]:
            faults.pop("not_ended", None)  # IOB2, which marks no ends
        if not self._types:
            faults.pop("no_span", None)  # parts of speech and the like
        return faults


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
