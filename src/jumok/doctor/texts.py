"""Examine texts, split by split: rules that apply to any text, and overlap between splits."""

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from operator import eq
from typing import Any

import numpy as np

from jumok.doctor.faults import Faults, unreadable
from jumok.errors import DataError
from jumok.findings import (
    Finding,
    Rule,
    Tally,
    count_words,
    finding,
    folded,
    hash_of,
    is_decomposed,
    judge,
    worst_first,
)
from jumok.tasks.checks import TextChecks, View
from jumok.text.language import WORD, Language, mixed_word

# fmt: off
_RULES: dict[str, Rule] = {
    "empty": ("data.empty", 0, 0.1, "{things} without a word", "Nothing is learned from them: remove them, and if there"
        " are many, find the step that lost the text"),
    "damaged": ("data.damaged", 0, 0.1, "{things} with the replacement character (U+FFFD)", "The text was once read in"
        " the wrong encoding: convert the original again"),
    "decomposed": ("data.decomposed", inf, inf, "{things} with decomposed characters (NFD)", "Training normalises"
        " them to NFC: do the same in the files if other programs search or compare them"),
    "duplicate": ("data.duplicate", 0.1, inf, "{things} that repeat an earlier one of the split", "They count more than"
        " others: keep one of each, unless the repetition is intended"),
    "contradiction": ("data.contradiction", 0.01, 0.1, "{things} that occur earlier in the split with another {answer}",
        "A model can learn only one of the two: decide which is right, or leave both out"),
    "over_long": ("data.too_long", 0.01, inf, "{things} of more than {max_words} words", "Lines may have been joined"
        " by mistake: split them. data.long_texts decides how texts of more than data.max_len tokens are read"),
    "wrong_language": ("data.wrong_language", 0.05, 0.5, "{things} that do not look like {language}", "A model learns"
        " little from them: remove them, unless they are intended"),
    "mixed": ("data.mixed_scripts", 0.005, inf, "{things} with a word of letters from two scripts that look alike",
        "Programs see other words than readers do: replace the letters of the foreign script"),
    "same": ("data.overlap", 0.005, 0.05, "{split} {things} that are also in {earlier}", "Scores on {split} will reward"
        " memorisation: remove these {things} from {earlier}"),
    "same_short": ("data.overlap", 0.2, 0.5, "short {split} {things} that are also in {earlier}", "A few may recur by"
        " chance, as headings do; with many, scores on {split} will reward memorisation: remove them from {earlier}"),
    "same_text": ("data.overlap", 0.01, inf, "{split} {things} that are in {earlier} with another {answer}", "An answer"
        " learned there is wrong here: decide which is right, and keep these {things} in one of the splits"),
    "same_context": ("data.overlap", 0.02, inf, "{split} {things} whose text has other {things} in {earlier}", "Having"
        " seen the text helps: keep all {things} of a text in the same split"),
}
# fmt: on
_SHORT = 5  # words; shorter sentences and lines may recur by chance, as headings do


@dataclass(frozen=True, slots=True)
class Compared:
    """Hashes of an example, and its answer."""

    text: int
    context: int | None
    """of a text that several examples may share"""
    answer: Hashable
    short: bool = False
    """whether it may recur by chance"""


def examine_texts(
    splits: Mapping[str, Iterable[Any]],
    checks: TextChecks,
    *,
    language: str = "",
    max_words: int = 250,
    faults: Faults | None = None,
) -> list[Finding]:
    """Count the examples and faults of each split, and the overlap between splits; worst findings first.

    Every split is read once. Of each text, only one or two hashes of eight bytes, the answer and two lengths are kept.
    `faults` collects the examples that cannot be read.
    """
    findings: list[Finding] = []
    seen: dict[str, _Split] = {}
    for name in sorted(splits, key=lambda name: ("train", "dev", "test", name).index(name)):
        split = _Split(checks, Language(language) if language else None, max_words)
        shared: dict[tuple[str, str], Tally] = defaultdict(Tally)
        try:
            for example in splits[name]:
                compared = split.add(example)
                for earlier, there in seen.items():
                    if compared and (rule := there.has(compared)):
                        shared[rule, earlier].add(example.where, *checks.view(example).shown)
        except DataError as error:
            findings.append(unreadable(name, error, split.n))
        findings += faults.examine(name, split.n) if faults else []
        if not split.n:
            findings.append(finding("data.empty", "error", 0, 1, f"{name}: no examples. Check its files."))
            continue
        things = split.things
        facts = {"things": things, "answer": split.answers, "language": language, "max_words": str(max_words)}
        facts["split"] = name
        counts = f"{name}: {split.n:,} {things}. {split.lengths()}"
        findings.append(finding("data.counts", "note", split.n, split.n, counts))
        findings += split.gold.examine(name, seen["train"].gold if "train" in seen else None) if split.gold else []
        for rule, tally in split.tallies.items():
            findings += judge(checks.rules.get(rule, _RULES[rule]), tally, split.n, facts, begin=f"{name}: ")
        for (rule, earlier), tally in shared.items():
            findings += judge(_RULES[rule], tally, split.n, {**facts, "earlier": earlier})
        seen[name] = split
    return worst_first(findings)


class _Split:
    """Counts and faults of one split, updated example by example."""

    def __init__(self, checks: TextChecks, language: Language | None, max_words: int) -> None:
        self.n = 0
        self.things, self.answers = "", ""
        self.gold = checks.gold()
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self._checks, self._language, self._max_words = checks, language, max_words
        self._agree = self.gold.agree if self.gold else eq
        self._texts: dict[int, tuple[Any, ...]] = {}
        """answers to each text: more than one if they contradict each other"""
        self._contexts: set[int] = set()
        self._short: dict[int, Hashable] = {}
        """answers to texts that may recur by chance"""
        self._words, self._characters = array("l"), array("l")

    def add(self, example: Any) -> Compared | None:
        """Count an example; return what to compare with other splits, if anything."""
        self.n += 1
        view = self._checks.view(example)
        self.things, self.answers = view.things, view.answers
        answer = self.gold.add(example) if self.gold else ""
        parts = [folded(text) for text in view.texts]
        if any(map(is_decomposed, view.texts)):
            self._found("decomposed", example.where, view)
        if any("\ufffd" in part for part in parts):
            self._found("damaged", example.where, view)
        if any(map(mixed_word, parts)):
            self._found("mixed", example.where, view)
        if not all(parts):
            self._found("empty", example.where, view)
            return None
        self._measure(example.where, view, parts)
        if self._checks.may_recur and count_words(" ".join(WORD.findall(parts[0]))) < _SHORT:
            return self._compare_short(example.where, view, parts[0], answer) if self.gold else None
        return None if answer is None else self._compare(example.where, view, answer)

    def has(self, other: Compared) -> str | None:
        """Name the rule for an example of another split that also occurs here."""
        if other.short:
            return "same_short" if other.text in self._short else None
        if (here := self._texts.get(other.text)) is not None:
            return "same" if any(self._agree(answer, other.answer) for answer in here) else "same_text"
        return "same_context" if other.context in self._contexts else None

    def _measure(self, where: str, view: View, parts: list[str]) -> None:
        words = max(map(count_words, parts))
        self._words.append(words)
        self._characters.append(max(map(len, parts)))
        if words > self._max_words:
            self._found("over_long", where, view)
        if self._language and any(map(self._language.excludes, parts)):
            self._found("wrong_language", where, view)

    def _compare_short(self, where: str, view: View, text: str, answer: Any) -> Compared:
        key = hash_of(text)
        if self._short.setdefault(key, answer) != answer:
            self._found("contradiction", where, view)
        return Compared(key, None, answer, short=True)

    def _compare(self, where: str, view: View, answer: Any) -> Compared:
        text = hash_of("\n".join(map(folded, view.key or view.texts)))
        earlier = self._texts.get(text, ())
        if any(self._agree(answer, other) for other in earlier):
            self._found("duplicate", where, view)
        else:
            self._texts[text] = (*earlier, answer)
            if earlier and (self.gold is None or self.gold.contradicts(answer, earlier, where, *view.shown)):
                self._found("contradiction", where, view)
        context = None if view.context is None else hash_of(folded(view.context))
        if context is not None:
            self._contexts.add(context)
        return Compared(text, context, answer)

    def _found(self, fault: str, where: str, view: View) -> None:
        if any(map(str.strip, view.shown)):
            self.tallies[fault].add(where, *view.shown)
        else:
            self.tallies[fault].count += 1  # nothing to show

    def lengths(self) -> str:
        parts = []
        for name, values in (("Words", self._words), ("Characters", self._characters)):
            if values:
                half, most, longest = (int(value) for value in np.percentile(values, [50, 95, 100]))
                parts.append(f"{name}: median {half:,}, 95 % at most {most:,}, longest {longest:,}.")
        return " ".join(parts)
