"""What is wrong with parallel text, and with two files that should be aligned."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice, zip_longest
from math import inf, log
from pathlib import Path
from statistics import median

import numpy as np

from jumok.doctor.findings import (
    Finding,
    Rule,
    Severity,
    Tally,
    count_words,
    example,
    finding,
    folded,
    hash_of,
    is_decomposed,
    judge,
    worst_first,
)
from jumok.text.alignment import aligned_stretches
from jumok.text.formats import Pair, read_lines
from jumok.text.language import WORD, Language

# fmt: off
_RULES: dict[str, Rule] = {
    "empty": ("empty", 0, 0.1, "pairs with an empty side", "They teach nothing and are left out of training:"
        " remove them, and if there are many, look for the step that lost the text"),
    "decomposed": ("decomposed", inf, inf, "pairs with decomposed characters (NFD)", "Training composes them (NFC)"
        " anyway: compose the files too if other programs are to find or compare their words"),
    "duplicate": ("duplicate", 0.1, inf, "pairs that repeat an earlier pair of the split", "They weigh more than"
        " the others: keep one of each, unless the repetition is meant"),
    "several_targets": ("several_targets", inf, inf, "pairs that give an earlier source another target", "That is"
        " fine for free translations: if they contradict each other, keep the better one"),
    "over_long": ("over_long", 0.01, inf, "pairs with a side of more than {max_words} words", "Often these are lines"
        " that were joined: split them into sentences, or leave them out"),
    "copied": ("copied", 0.02, 0.5, "pairs whose target is the source, untranslated", "A model learns to copy from"
        " surprisingly few of them: translate or remove them"),
    "length_ratio": ("length_ratio", 0.01, inf, "pairs with lengths five times off the usual ratio", "Text is missing"
        " or belongs to another line: check them, or leave them out"),
    "wrong_source": ("wrong_language", 0.005, 0.5, "pairs whose source does not look like {source}", "The model learns"
        " little from them: remove or translate them"),
    "wrong_target": ("wrong_language", 0.005, 0.5, "pairs whose target does not look like {target}", "The model will"
        " learn to answer in the wrong language: remove or translate them"),
    "swapped": ("swapped", 0, 0, "pairs with a source in {target} and a target in {source}", "The sides are"
        " swapped: exchange the two files or columns, or the two language codes"),
    "same_pair": ("overlap", 0.005, 0.05, "{split} pairs that are also in {earlier}", "Scores on {split} will reward"
        " memory rather than translation: remove these pairs from {earlier}"),
    "same_source": ("overlap", 0.02, inf, "{split} pairs whose source is in {earlier} with another target", "Harmless"
        " for a few everyday phrases: otherwise remove these sources from {earlier}"),
}
# fmt: on


def examine_pairs(
    splits: Mapping[str, Iterable[Pair]], *, source: str, target: str, max_words: int = 250
) -> list[Finding]:
    """The faults of each split, and what the splits share; worst first. Every split is read once.

    All that is kept of a pair is two hashes of eight bytes and one length ratio.
    """
    findings: list[Finding] = []
    seen: dict[str, _Split] = {}
    languages = Language(source, other=target), Language(target, other=source)
    for name in sorted(splits, key=lambda name: ("train", "dev", "test", name).index(name)):
        split = _Split(languages, max_words)
        shared: dict[tuple[str, str], Tally] = defaultdict(Tally)
        for pair in splits[name]:
            pair_hash, source_hash = split.examine(pair)
            for earlier, there in seen.items():
                if pair_hash in there.pairs:
                    shared["same_pair", earlier].add(pair.where, pair.source, pair.target)
                elif source_hash in there.sources:
                    shared["same_source", earlier].add(pair.where, pair.source, pair.target)
        if not split.n:
            message = f"{name}: no pairs at all. Check its files; a TMX has to have texts in {source} and {target}."
            findings.append(finding("empty", "error", 0, 1, message))
        facts = {"source": source, "target": target, "max_words": str(max_words), "split": name}
        for kind, tally in split.tallies().items():
            findings += judge(_RULES[kind], tally, split.n, facts, begin=f"{name}: ")
        for (kind, earlier), tally in shared.items():
            findings += judge(_RULES[kind], tally, split.n, {**facts, "earlier": earlier})
        seen[name] = split
    return worst_first(findings)


class _Split:
    """What is known of one split after each of its pairs."""

    def __init__(self, languages: tuple[Language, Language], max_words: int) -> None:
        self.n = 0
        self.pairs: set[int] = set()
        self.sources: set[int] = set()
        self._languages, self._max_words = languages, max_words
        self._tallies: dict[str, Tally] = defaultdict(Tally)
        self._ratios = array("f")
        # The shortest and the longest targets: which of them are far from the median shows only at the end.
        self._extremes: dict[int, list[tuple[float, int, Pair]]] = {-1: [], 1: []}

    def examine(self, pair: Pair) -> tuple[int, int] | tuple[None, None]:
        """The hashes of the pair and of its source, if neither side is empty."""
        self.n += 1
        if is_decomposed(pair.source) or is_decomposed(pair.target):
            self._tallies["decomposed"].add(pair.where, pair.source, pair.target)
        source, target = folded(pair.source), folded(pair.target)
        if not source or not target:
            self._tallies["empty"].add(pair.where, pair.source, pair.target)
            return None, None
        hashes = hash_of(f"{source}\n{target}"), hash_of(source)
        if hashes[0] in self.pairs:
            self._tallies["duplicate"].add(pair.where, pair.source, pair.target)
            return hashes
        if hashes[1] in self.sources:
            self._tallies["several_targets"].add(pair.where, pair.source, pair.target)
        self.pairs.add(hashes[0])
        self.sources.add(hashes[1])
        if max(count_words(source), count_words(target)) > self._max_words:
            self._tallies["over_long"].add(pair.where, pair.source, pair.target)
        if min(len(source), len(target)) > 20:
            self._ratios.append(log(len(target) / len(source)))
            for sign, pairs in self._extremes.items():
                pairs[:] = sorted([*pairs, (sign * self._ratios[-1], self.n, pair)], reverse=True)[:5]
        same = source.casefold() == target.casefold()
        if same and self._languages[0].code != self._languages[1].code and WORD.search(source):
            self._tallies["copied"].add(pair.where, pair.source, pair.target)
        wrong = [not same and self._languages[side].excludes(text) for side, text in enumerate((source, target))]
        for kind, applies in zip(("wrong_source", "wrong_target", "swapped"), (*wrong, all(wrong)), strict=True):
            if applies:
                self._tallies[kind].add(pair.where, pair.source, pair.target)
        return hashes

    def tallies(self) -> dict[str, Tally]:
        tallies = dict(self._tallies)
        swapped = "swapped" in tallies and tallies["swapped"].count > 0.2 * len(self.pairs)
        for kind in ("wrong_source", "wrong_target") if swapped else ("swapped",):
            tallies.pop(kind, None)
        if len(self._ratios) >= 10:
            usual = median(self._ratios)
            far = sum(abs(ratio - usual) > log(5) for ratio in self._ratios)
            off = ((key - sign * usual, pair) for sign, pairs in self._extremes.items() for key, _, pair in pairs)
            worst = sorted(off, key=lambda distance_and_pair: -distance_and_pair[0])
            tallies["length_ratio"] = Tally(far, [_shown(pair) for _, pair in worst][: min(far, 5)])
        return tallies


def examine_parallel_files(source: Path, target: Path) -> list[Finding]:
    """Whether line n of one file is the translation of line n of the other, as far as their lengths tell."""
    lengths = [np.array([len(line) for line in read_lines(path)], dtype=np.float64) for path in (source, target)]
    n, n_target = map(len, lengths)
    fit, stretches = aligned_stretches(*lengths)
    broken = [stretch for stretch in stretches if stretch[2] != 0]
    counts = f"The files have {n:,} and {n_target:,} lines. " if n != n_target else ""
    severity: Severity = "error"
    if fit < 0.3 and n >= 200:
        severity = "error" if counts else "warning"
        count, begin = n, 0
        message = f"The lengths of their lines hardly go together (correlation {fit:.2f}): check that the files belong"
        message += " together and are in the same order. Only lists of words or names may look like this."
    elif broken:
        count = sum(end - first for first, end, _ in broken)
        begin, end, shift = broken[0]
        message = f"From about line {begin + 1:,} " + (f"to line {end:,} " if end < n else "on ")
        if shift is None:
            severity = "error" if counts or end == n else "warning"
            message += "the lines do not fit, and no small shift repairs them: align this part anew."
        else:
            fewer, more = ("source", "target") if shift > 0 else ("target", "source")
            message += f"the target looks shifted by {shift:+d}: source line {begin + 10:,} belongs to target line"
            message += f" {begin + 10 + shift:,}. Look for lines missing in the {fewer} or too many in the {more}."
        message += f" More such places follow: {len(broken) - 1}." if len(broken) > 1 else ""
    elif counts:
        count, begin = abs(n - n_target), max(0, min(n, n_target) - 1)
        message = "No line was found from which they part: look at the last lines first."
    else:
        return []
    shown = range(max(0, begin - 1), begin + 4)
    lines = islice(zip_longest(read_lines(source), read_lines(target), fillvalue=""), shown.start, shown.stop)
    examples = [example(f"{source}:{line + 1}", *texts) for line, texts in zip(shown, lines, strict=False)]
    return [finding("misaligned", severity, count, max(n, n_target), counts + message, examples)]


def _shown(pair: Pair) -> str:
    return example(pair.where, pair.source, pair.target)
