"""The doctor's rules for tagging: tags that form no valid span, and columns of CoNLL files."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

from jumok.examples.spans import Spans, tag_columns, tagged_lines
from jumok.findings import Finding, Rule, Tally, hash_of, judge
from jumok.tasks.checks import Gold, TextChecks, View
from jumok.tasks.label_checks import RULES, Labels, examine_predictions
from jumok.text.tags import spans

# fmt: off
_RULES: dict[str, Rule] = {
    "columns": ("data.columns", 0, 0.5, "lines of {file} that do not have the usual {usual} columns", "The first"
        " column is read as the word and the last as its tag: join words that contain a space, or separate columns by"
        " tabs"),
    "not_begun": ("data.invalid_tags", 0, 0.05, "spans that start with I- or E-, after O or another type", "They still"
        " count as spans: start each with B-, or check for missing words"),
    "not_ended": ("data.invalid_tags", 0, 0.05, "spans with a B- or I- without an E- of their type", "They still"
        " count as spans: end each with E-, and write S- for a single word"),
    "no_span": ("data.unknown_tags", 0, inf, "tags that are neither O nor B-, I-, E- or S- with a type", "Span F1"
        " ignores them: write them as B-TYPE and I-TYPE"),
}
# fmt: on


class Tags(Labels):
    """The tags of one split, and the types of the spans that they mark."""

    rules = {**RULES, **_RULES}
    unknown = "unknown_tag"

    def __init__(self) -> None:
        super().__init__()
        self.prefixes: Counter[str] = Counter()

    def add(self, example: Spans) -> Hashable:
        if example.words is not None and example.tags is not None:
            self._add_tags(example.words, example.tags, example.where)
            return hash_of(" ".join(example.tags))
        types = [span.label for span in example.marked]
        self.count(types, example.where)
        self.types.update(types)
        return hash_of(_written(example))

    def _add_tags(self, words: Sequence[str], tags: Sequence[str], where: str) -> None:
        self.count(tags, where)
        types = [kind for kind, _, _ in spans(tags)]
        self.types.update(types)
        for kind in types:
            self.first.setdefault(kind, where)
        split = [tag.partition("-")[::2] for tag in tags]
        for i, ((before, kind_before), (prefix, kind)) in enumerate(pairwise([("O", ""), *split, ("O", "")])):
            self.prefixes[prefix] += 1
            goes_on = before in ("B", "I") and prefix in ("I", "E") and kind == kind_before
            faults = {
                "not_begun": prefix in ("I", "E") and not goes_on,
                "not_ended": before in ("B", "I") and not goes_on,
                "no_span": prefix not in ("O", "B", "I", "E", "S"),
            }
            for fault in (fault for fault, found in faults.items() if found):
                near = range(max(i - 1, 0), min(i + 1, len(tags)))
                at = _later_line(where, near[-1])
                self.tallies[fault].add(at, " ".join(f"{words[k]}/{tags[k]}" for k in near))

    def faults(self, train: "Tags | None") -> dict[str, tuple[Tally, int]]:
        """Judge tags by the scheme that most tags in train follow."""
        by = train or self
        faults = {
            fault: (tally, self.labels.total() if fault == "no_span" else self.types.total())
            for fault, tally in self.tallies.items()
        }
        if by.tallies["not_begun"].count > by.prefixes["B"] + by.prefixes["S"]:
            faults.pop("not_begun", None)  # IOB1, where B- only separates two spans of one type
        if not by.prefixes["E"] and not by.prefixes["S"]:
            faults.pop("not_ended", None)  # IOB2, which marks no ends
        if not self.types:
            faults.pop("no_span", None)  # parts of speech and the like
        return faults


class TaggingChecks(TextChecks):
    things = "sentences"
    may_recur = True

    def view(self, example: Spans) -> View:
        if example.tags is not None:
            return View((example.text,), " ".join(example.tags), things="sentences", answers="sequence of tags")
        return View((example.text,), _written(example), answers="set of spans")

    def gold(self) -> Gold:
        return Tags()

    def examine_file(self, path: Path) -> list[Finding]:
        return [] if path.name.lower().removesuffix(".gz").endswith(".jsonl") else examine_columns(path)


def examine_columns(path: Path) -> list[Finding]:
    """Check that all lines of a CoNLL file have the same number of columns; those with one are unreadable anyway."""
    tallies: dict[int, Tally] = defaultdict(Tally)
    for sentence in tagged_lines(path, wrong=lambda error: None):
        for number, line in sentence:
            if (columns := len([*filter(None, tag_columns(line.strip()))])) > 1:
                tallies[columns].add(f"{path}:{number}", line)
    if len(tallies) < 2:
        return []
    usual = max(tallies, key=lambda columns: tallies[columns].count)
    n = sum(tally.count for tally in tallies.values())
    odd = [tally for columns, tally in sorted(tallies.items()) if columns != usual]
    tally = Tally(sum(tally.count for tally in odd), [shown for tally in odd for shown in tally.examples][:5])
    return judge(_RULES["columns"], tally, n, {"file": str(path), "usual": str(usual)})


def examine_outputs(
    examples: Sequence[Spans], outputs: Sequence[str], result: Mapping[str, Any], split: str = ""
) -> list[Finding]:
    """Findings on the outputs; scores name span types."""

    def types(example: Spans) -> list[str]:
        return [span.label for span in example.marked]

    return examine_predictions(examples, outputs, result, split=split, labels=types)


def _written(example: Spans) -> str:
    return " ".join(f"{span.label}:{span.start}-{span.end}" for span in example.marked)


def _later_line(where: str, lines: int) -> str:
    """The place `lines` further down, if `where` is a line of a file."""
    file, _, line = where.rpartition(":")
    return f"{file}:{int(line) + lines}" if line.isdecimal() else where
