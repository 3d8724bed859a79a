"""The doctor's rules for translation: parallel text, alignment of files, and outputs."""

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, zip_longest
from math import inf, log
from pathlib import Path
from statistics import median

import numpy as np

from jumok.data.corpus import Corpus
from jumok.errors import DataError
from jumok.examples import SPLITS
from jumok.examples.gettext import count_po
from jumok.examples.pairs import Pair
from jumok.findings import (
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
from jumok.tasks.checks import Checks
from jumok.tasks.translation.kept_checks import IN_DATA, IN_OUTPUTS, Kept, not_kept
from jumok.text.alignment import aligned_stretches
from jumok.text.language import WORD, Language, mixed_word
from jumok.text.lines import read_lines

# fmt: off
_RULES: dict[str, Rule] = {
    "empty": ("data.empty", 0, 0.1, "pairs with an empty side", "Training skips them: remove them, and if there are"
        " many, find the step that lost the text"),
    "decomposed": ("data.decomposed", inf, inf, "pairs with decomposed characters (NFD)", "Training composes them"
        " (NFC): do the same in the files if other programs search or compare them"),
    "duplicate": ("data.duplicate", 0.1, inf, "pairs that repeat an earlier pair of the split", "They count more than"
        " others: keep one of each, unless the repetition is intended"),
    "several_targets": ("data.several_targets", inf, inf, "pairs whose source occurs earlier with another target",
        "Fine for free translations: if they contradict each other, keep the better one"),
    "over_long": ("data.too_long", 0.01, inf, "pairs with a side of more than {max_words} words", "Often lines were"
        " joined by mistake: split them into sentences, or remove them"),
    "copied": ("data.copied", 0.02, 0.5, "pairs whose target is the untranslated source", "A model learns to copy from"
        " surprisingly few of them: translate or remove them"),
    "length_ratio": ("data.length_ratio", 0.01, inf, "pairs whose length ratio is five times off the usual one", "Text"
        " is missing or belongs to another line: check or remove them"),
    "wrong_source": ("data.wrong_language", 0.005, 0.5, "pairs whose source does not look like {source}", "A model"
        " learns little from them: remove or translate them"),
    "wrong_target": ("data.wrong_language", 0.005, 0.5, "pairs whose target does not look like {target}", "A model"
        " learns to answer in the wrong language: remove or translate them"),
    "swapped": ("data.swapped", 0, 0, "pairs with a source in {target} and a target in {source}", "The sides are"
        " swapped: exchange the two files or columns, or the two language codes"),
    "mixed": ("data.mixed_scripts", 0.005, inf, "pairs with a word of letters from two scripts that look alike",
        "Programs see other words than readers do: replace the letters of the foreign script"),
    **IN_DATA,
    "same_pair": ("data.overlap", 0.005, 0.05, "{split} pairs that are also in {earlier}", "Scores on {split} will"
        " reward memorisation: remove these pairs from {earlier}"),
    "same_source": ("data.overlap", 0.02, inf, "{split} pairs whose source is in {earlier} with another target",
        "Harmless for a few everyday phrases: otherwise remove these sources from {earlier}"),
    "repetition": ("output.repetition", 0.01, 0.2, "outputs that repeat the same words over and over", "Train longer or"
        " on more data, and check that the training targets do not repeat themselves"),
    "no_output": ("output.empty", 0, 0.2, "empty outputs for sources that are not empty", "Check the length limits of"
        " the search, and look for empty targets in the training data"),
    "copied_output": ("output.copied", 0, 0.2, "outputs that are their untranslated source", "Check that the model was"
        " trained on this source language, and look for copied pairs in its training data"),
    "far_too_long": ("output.too_long", 0.01, 0.2, "outputs far longer than {expected}", "Check that the search stops"
        " at the end of a sentence, and check for repetition"),
    "ignores_input": ("output.ignores_input", 0, 0, "different sources with the same output", "The model ignores its"
        " input: train longer, check the learning rate and that the source reaches the decoder"),
}
# fmt: on
_REPETITIONS = (
    r"\b(\w+(?:\W+\w+){0,3})(?:\W+\1\b){TIMES}",
    r"(?<!\S)(\S+(?:\s+\S+){0,3})(?:\s+\1(?!\S)){TIMES}",
    # Laughter repeats a letter or a syllable, too: short parts must be repeated more often.
    r"([^\W\d_]{2})\1{5}|([^\W\d_]{3,8}?)\2{TIMES}",
)


class TranslationChecks(Checks):
    def examine(self, *, seed: int) -> list[Finding]:
        aligned = [files for split in SPLITS for files in self.data.files(split) if len(files) == 2]
        findings = [finding for files in aligned for finding in examine_parallel_files(*map(Path, files))]
        files = dict.fromkeys(Path(file) for split in SPLITS for files in self.data.files(split) for file in files)
        findings += [examine_catalogue(file) for file in files if file.name.lower().removesuffix(".gz").endswith(".po")]
        # Files of different length cannot be read as pairs: stop at this finding.
        if any(finding.severity == "error" for finding in findings):
            return findings
        corpora = [Corpus[Pair](self.data, split, seed=seed) for split in SPLITS]
        splits: dict[str, Iterable[Pair]] = {corpus.split: corpus for corpus in corpora if corpus.exists()}
        return findings + examine_pairs(splits, source=self.data.source, target=self.data.target)


def examine_outputs(pairs: Sequence[Pair], outputs: Sequence[str], split: str = "") -> list[Finding]:
    """Findings on translations of pairs, with or without a reference."""
    return examine_written([pair.source for pair in pairs], outputs, [pair.target or "" for pair in pairs], split=split)


def examine_pairs(
    splits: Mapping[str, Iterable[Pair]], *, source: str, target: str, max_words: int = 250
) -> list[Finding]:
    """Faults of each split and overlap between them; worst first. Every split is read once.

    Only two hashes of eight bytes and a length ratio are kept per pair.
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
                    shared["same_pair", earlier].add(pair.where, pair.source, pair.gold)
                elif source_hash in there.sources:
                    shared["same_source", earlier].add(pair.where, pair.source, pair.gold)
        if not split.n:
            message = f"{name}: no pairs at all. Check its files; a TMX file needs texts in {source} and {target}."
            findings.append(finding("data.empty", "error", 0, 1, message))
        facts = {"source": source, "target": target, "max_words": str(max_words), "split": name}
        for kind, tally in split.tallies().items():
            findings += judge(_RULES[kind], tally, split.n, facts, begin=f"{name}: ")
        for (kind, earlier), tally in shared.items():
            findings += judge(_RULES[kind], tally, split.n, {**facts, "earlier": earlier})
        seen[name] = split
    return worst_first(findings)


class _Split:
    """Hashes and counts of one split, updated pair by pair."""

    def __init__(self, languages: tuple[Language, Language], max_words: int) -> None:
        self.n = 0
        self.pairs: set[int] = set()
        self.sources: set[int] = set()
        self._languages, self._max_words = languages, max_words
        self._tallies: dict[str, Tally] = defaultdict(Tally)
        self._ratios = array("f")
        # The relatively shortest and longest targets: the median is known only at the end.
        self._extremes: dict[int, list[tuple[float, int, Pair]]] = {-1: [], 1: []}

    def examine(self, pair: Pair) -> tuple[int, int] | tuple[None, None]:
        """Count a pair; returns the hashes of the pair and of its source, if neither side is empty."""
        self.n += 1
        if is_decomposed(pair.source) or is_decomposed(pair.gold):
            self._tallies["decomposed"].add(pair.where, pair.source, pair.gold)
        source, target = folded(pair.source), folded(pair.gold)
        if not source or not target:
            self._tallies["empty"].add(pair.where, pair.source, pair.gold)
            return None, None
        hashes = hash_of(f"{source}\n{target}"), hash_of(source)
        if hashes[0] in self.pairs:
            self._tallies["duplicate"].add(pair.where, pair.source, pair.gold)
            return hashes
        if hashes[1] in self.sources:
            self._tallies["several_targets"].add(pair.where, pair.source, pair.gold)
        self.pairs.add(hashes[0])
        self.sources.add(hashes[1])
        if max(count_words(source), count_words(target)) > self._max_words:
            self._tallies["over_long"].add(pair.where, pair.source, pair.gold)
        if min(len(source), len(target)) > 20:
            self._ratios.append(log(len(target) / len(source)))
            for sign, pairs in self._extremes.items():
                pairs[:] = sorted([*pairs, (sign * self._ratios[-1], self.n, pair)], reverse=True)[:5]
        same = source.casefold() == target.casefold()
        if same and self._languages[0].code != self._languages[1].code and WORD.search(source):
            self._tallies["copied"].add(pair.where, pair.source, pair.gold)
        wrong = [not same and self._languages[side].excludes(text) for side, text in enumerate((source, target))]
        for kept, differing in not_kept(source, target) if not same else ():
            self._tallies[kept].add(pair.where, pair.source, pair.gold, differing)
        if mixed_word(source) or mixed_word(target):
            self._tallies["mixed"].add(pair.where, pair.source, pair.gold)
        for kind, applies in zip(("wrong_source", "wrong_target", "swapped"), (*wrong, all(wrong)), strict=True):
            if applies:
                self._tallies[kind].add(pair.where, pair.source, pair.gold)
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
    """Check by their lengths whether line n of one file is the translation of line n of the other."""
    lengths = [np.array([len(line) for line in read_lines(path)], dtype=np.float64) for path in (source, target)]
    n, n_target = map(len, lengths)
    fit, stretches = aligned_stretches(*lengths)
    broken = [stretch for stretch in stretches if stretch[2] != 0]
    counts = f"The files have {n:,} and {n_target:,} lines. " if n != n_target else ""
    severity: Severity = "error"
    if fit < 0.3 and n >= 200:
        severity = "error" if counts else "warning"
        count, begin = n, 0
        message = f"The lengths of their lines hardly correlate ({fit:.2f}): check that the files belong together and"
        message += " are in the same order. Only lists of words or names look like this."
    elif broken:
        count = sum(end - first for first, end, _ in broken)
        begin, end, shift = broken[0]
        message = f"From about line {begin + 1:,} " + (f"to line {end:,} " if end < n else "on ")
        if shift is None:
            severity = "error" if counts or end == n else "warning"
            message += "the lines do not match, and no small shift fixes them: align this part again."
        else:
            fewer, more = ("source", "target") if shift > 0 else ("target", "source")
            message += f"the target looks shifted by {shift:+d}: source line {begin + 10:,} belongs to target line"
            message += f" {begin + 10 + shift:,}. Look for lines missing in the {fewer} or extra lines in the {more}."
        message += f" There are {len(broken) - 1} more such places." if len(broken) > 1 else ""
    elif counts:
        count, begin = abs(n - n_target), max(0, min(n, n_target) - 1)
        message = "The line where they diverge was not found: check the last lines first."
    else:
        return []
    shown = range(max(0, begin - 1), begin + 4)
    lines = islice(zip_longest(read_lines(source), read_lines(target), fillvalue=""), shown.start, shown.stop)
    examples = [example(f"{source}:{line + 1}", *texts) for line, texts in zip(shown, lines, strict=False)]
    return [finding("data.misaligned", severity, count, max(n, n_target), counts + message, examples)]


def examine_catalogue(path: Path) -> Finding:
    """Count the messages of a PO file, of which only the translated ones are read."""
    counts = count_po(path)
    n = counts.translated + counts.fuzzy + counts.untranslated
    message = f"{path}: {counts.translated:,} translated, {counts.fuzzy:,} fuzzy, {counts.untranslated:,} untranslated"
    message += f" and {counts.obsolete:,} obsolete messages. Only the translated ones are read."
    if counts.fuzzy:
        message += " Check the fuzzy ones and remove their flag, to train on them, too."
    return finding("data.catalogue", "note", counts.translated, max(n, 1), message)


def _shown(pair: Pair) -> str:
    return example(pair.where, pair.source, pair.gold)


def examine_written(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str] | None = None, *, split: str = ""
) -> list[Finding]:
    """Faults of generated text in any language; worst first, prefixed with `split` if given."""
    begin = f"{split}: " if split else ""
    for name, texts in (("outputs", outputs), ("references", references)):
        if texts is not None and len(texts) != len(sources):
            what = f"{len(sources)} sources, but {len(texts)} {name}"
            raise DataError(what, hint="pass one for every source", code="data.counts")
    rows = [tuple(map(folded, row)) for row in zip(sources, outputs, references or [""] * len(sources), strict=True)]
    usual = median([len(output) / len(source) for source, output, _ in rows if source and output] or [1])
    tallies: dict[str, Tally] = defaultdict(Tally)
    lost: dict[Kept, Tally] = defaultdict(Tally)
    examples_by_output: dict[str, dict[str, str]] = defaultdict(dict)
    for number, (source, output, reference) in enumerate(rows, start=1):
        pair = (f"line {number}", source, output)
        if source and not output:
            tallies["no_output"].add(*pair)
        if _repeats(output, 4) and not (_repeats(source, 3) or _repeats(reference, 3)):
            tallies["repetition"].add(*pair)
        for kept, differing in not_kept(source, output) if output and output != reference else ():
            lost[kept].add(*pair, differing)
        wanted, most = (len(reference), 2.5) if reference else (usual * len(source), 4)
        if len(output) > wanted * most and len(output) > wanted + 30:
            tallies["far_too_long"].add(*pair)
        if output and output != reference:
            examples_by_output[output].setdefault(source, example(*pair))
            if output == source and count_words(output) >= 3 and WORD.search(output):
                tallies["copied_output"].add(*pair)
    facts = {"expected": "usual for their source" if references is None else "their reference"}
    findings: list[Finding] = []
    for kind, tally in tallies.items():
        findings += judge(_RULES[kind], tally, len(rows), facts, begin=begin)
    for kept, tally in lost.items():
        findings += judge(IN_OUTPUTS[kept], tally, len(rows), facts, begin=begin)
    distinct = len({source for source, _, _ in rows})
    same = list(max(examples_by_output.values(), key=len, default={}).values())
    if len(same) >= max(5, 0.2 * distinct):
        findings += judge(_RULES["ignores_input"], Tally(len(same), same[:5]), distinct, facts, begin=begin)
    return worst_first(findings)


def _repeats(text: str, times: int) -> bool:
    """Whether up to four words, or up to eight letters within a word, occur `times` times in a row."""
    return any(re.search(pattern.replace("TIMES", f"{times - 1}"), text.lower()) for pattern in _REPETITIONS)
