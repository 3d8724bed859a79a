"""What is wrong with parallel text, with two files that should be aligned, or with the outputs of a model."""

import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice, zip_longest
from math import inf, log
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np

from jumok.data.corpus import SPLITS, Corpus, DataConfig, ParallelData, SyntheticData
from jumok.errors import DataError, InputError
from jumok.text.alignment import aligned_stretches
from jumok.text.formats import Pair, read_lines
from jumok.text.language import WORD, Language

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One kind of fault: how often it was found, what to do about it, and where to look."""

    kind: str
    severity: Severity
    count: int
    share: float
    """of all pairs or lines that were looked at"""
    message: str
    examples: list[str]
    """up to five: "file:line  source ||| target", long texts shortened"""


@dataclass(slots=True)
class _Tally:
    count: int = 0
    pairs: list[Pair] = field(default_factory=list)

    def add(self, pair: Pair) -> None:
        self.count += 1
        if len(self.pairs) < 5:
            self.pairs.append(pair)


# fmt: off
# Of each rule: the kind of its findings, the shares from which they are a warning and an error, what, and what to do.
_RULES = {
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
    "repetition": ("repetition", 0.01, 0.2, "outputs that say the same words over and over", "Train longer or on more"
        " data, and check that the training targets do not repeat themselves"),
    "no_output": ("empty", 0, 0.2, "empty outputs of sources that are not empty", "Check the length limits of the"
        " search, and the training data for empty targets"),
    "copied_output": ("copied", 0, 0.2, "outputs that are their source, untranslated", "Check that the model was"
        " trained on this source language, and its training data for copied pairs"),
    "far_too_long": ("far_too_long", 0.01, 0.2, "outputs far longer than {expected}", "Check that the search stops at"
        " the end of a sentence, and look for repetition"),
    "ignores_input": ("ignores_input", 0, 0, "different sources with one and the same output", "The model ignores"
        " its input: train longer, check the learning rate and that the source reaches the decoder"),
}
# fmt: on
_UNSEGMENTED = re.compile("[ぁ-ヿ㐀-鿿\u0e00-\u0e7f]")
_REPETITIONS = (
    r"\b(\w+(?:\W+\w+){0,3})(?:\W+\1\b){TIMES}",
    r"(?<!\S)(\S+(?:\s+\S+){0,3})(?:\s+\1(?!\S)){TIMES}",
    # Laughter, too, repeats a letter or a syllable: shorter pieces must go on for longer.
    r"([^\W\d_]{2})\1{5}|([^\W\d_]{3,8}?)\2{TIMES}",
)
_LANGUAGE_SUFFIX = re.compile(r"\.([a-z]{2}(?:[-_]\w+)?)(?:\.gz)?$", re.IGNORECASE)


def examine_data(
    what: Sequence[Path],
    *,
    source: str | None = None,
    target: str | None = None,
    columns: tuple[str, str] | None = None,
) -> list[Finding]:
    """The faults of the data of a recipe, of one file of pairs or of two line-aligned files; worst first.

    Languages and columns (of a TSV with a header) are told for files; a recipe has its own.
    """
    data: DataConfig
    if what[0].suffix == ".toml":
        from jumok.recipe import load_recipe  # here, because it needs torch

        recipe = load_recipe(what[0])
        data, seed = recipe.data, recipe.seed
    else:
        data, seed = _data_of(what, source, target, columns), 0
    if not isinstance(data, ParallelData | SyntheticData):
        raise InputError("the doctor knows parallel data only so far", where=what[0], right="a recipe for translation")
    aligned: list[list[str]] = []
    if isinstance(data, ParallelData):
        aligned = [files for split in SPLITS for files in data.files(split) if len(files) == 2]
    findings = [finding for files in aligned for finding in examine_parallel_files(*map(Path, files))]
    # Files of different length cannot be read as pairs; that is the finding.
    if not any(finding.severity == "error" for finding in findings):
        corpora = [Corpus(data, split, seed=seed) for split in SPLITS]
        splits: dict[str, Corpus[Pair]] = {corpus.split: corpus for corpus in corpora if corpus.exists()}
        findings += examine_pairs(splits, source=data.source, target=data.target)
    return worst_first(findings)


def _data_of(
    files: Sequence[Path], source: str | None, target: str | None, columns: tuple[str, str] | None
) -> ParallelData:
    suffix = files[0].name.lower().removesuffix(".gz").rpartition(".")[2] if len(files) == 1 else ""
    if suffix == "tmx" and not (source and target):
        raise DataError(
            "the name of a TMX file does not tell the two languages to take from it",
            where=files[0],
            right="--source and --target, e.g. --source en --target ko",
        )
    if columns and suffix != "tsv":
        raise InputError("--columns names columns of a TSV", where=", ".join(map(str, files)), right="one .tsv file")
    # Line-aligned files are usually named after their languages. Other names are no language that any rule knows.
    guesses = [_LANGUAGE_SUFFIX.search(path.name) for path in files] if len(files) == 2 else [None, None]
    left, right = (guess[1] if guess else name for guess, name in zip(guesses, ("source", "target"), strict=True))
    names = [str(path) for path in files]
    return ParallelData(source=source or left, target=target or right, train=[names], columns=columns)


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
        shared: dict[tuple[str, str], _Tally] = defaultdict(_Tally)
        for pair in splits[name]:
            pair_hash, source_hash = split.examine(pair)
            for earlier, there in seen.items():
                if pair_hash in there.pairs:
                    shared["same_pair", earlier].add(pair)
                elif source_hash in there.sources:
                    shared["same_source", earlier].add(pair)
        if not split.n:
            message = f"{name}: no pairs at all. Check its files; a TMX has to have texts in {source} and {target}."
            findings.append(_finding("empty", "error", 0, 1, message))
        facts = {"source": source, "target": target, "max_words": str(max_words), "split": name}
        for kind, tally in split.tallies().items():
            findings += _judge(kind, tally, split.n, facts, begin=f"{name}: ")
        for (kind, earlier), tally in shared.items():
            findings += _judge(kind, tally, split.n, {**facts, "earlier": earlier})
        seen[name] = split
    return worst_first(findings)


class _Split:
    """What is known of one split after each of its pairs."""

    def __init__(self, languages: tuple[Language, Language], max_words: int) -> None:
        self.n = 0
        self.pairs: set[int] = set()
        self.sources: set[int] = set()
        self._languages, self._max_words = languages, max_words
        self._tallies: dict[str, _Tally] = defaultdict(_Tally)
        self._ratios = array("f")
        # The shortest and the longest targets: which of them are far from the median shows only at the end.
        self._extremes: dict[int, list[tuple[float, int, Pair]]] = {-1: [], 1: []}

    def examine(self, pair: Pair) -> tuple[int, int] | tuple[None, None]:
        """The hashes of the pair and of its source, if neither side is empty."""
        self.n += 1
        if _is_decomposed(pair.source) or _is_decomposed(pair.target):
            self._tallies["decomposed"].add(pair)
        source, target = _folded(pair.source), _folded(pair.target)
        if not source or not target:
            self._tallies["empty"].add(pair)
            return None, None
        hashes = _hash(f"{source}\n{target}"), _hash(source)
        if hashes[0] in self.pairs:
            self._tallies["duplicate"].add(pair)
            return hashes
        if hashes[1] in self.sources:
            self._tallies["several_targets"].add(pair)
        self.pairs.add(hashes[0])
        self.sources.add(hashes[1])
        if max(_count_words(source), _count_words(target)) > self._max_words:
            self._tallies["over_long"].add(pair)
        if min(len(source), len(target)) > 20:
            self._ratios.append(log(len(target) / len(source)))
            for sign, pairs in self._extremes.items():
                pairs[:] = sorted([*pairs, (sign * self._ratios[-1], self.n, pair)], reverse=True)[:5]
        same = source.casefold() == target.casefold()
        if same and self._languages[0].code != self._languages[1].code and WORD.search(source):
            self._tallies["copied"].add(pair)
        wrong = [not same and self._languages[side].excludes(text) for side, text in enumerate((source, target))]
        for kind, applies in zip(("wrong_source", "wrong_target", "swapped"), (*wrong, all(wrong)), strict=True):
            if applies:
                self._tallies[kind].add(pair)
        return hashes

    def tallies(self) -> dict[str, _Tally]:
        tallies = dict(self._tallies)
        swapped = "swapped" in tallies and tallies["swapped"].count > 0.2 * len(self.pairs)
        for kind in ("wrong_source", "wrong_target") if swapped else ("swapped",):
            tallies.pop(kind, None)
        if len(self._ratios) >= 10:
            usual = median(self._ratios)
            far = sum(abs(ratio - usual) > log(5) for ratio in self._ratios)
            off = ((key - sign * usual, pair) for sign, pairs in self._extremes.items() for key, _, pair in pairs)
            worst = sorted(off, key=lambda distance_and_pair: -distance_and_pair[0])
            tallies["length_ratio"] = _Tally(far, [pair for _, pair in worst][: min(far, 5)])
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
    pairs = [Pair(*texts, f"{source}:{line + 1}") for line, texts in zip(shown, lines, strict=False)]
    return [_finding("misaligned", severity, count, max(n, n_target), counts + message, pairs)]


def examine_outputs(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str] | None = None, *, split: str = ""
) -> list[Finding]:
    """The faults of decoded text that show without knowing its language; worst first, named by split if given."""
    begin = f"{split}: " if split else ""
    for name, texts in (("outputs", outputs), ("references", references)):
        if texts is not None and len(texts) != len(sources):
            raise DataError(f"{len(sources)} sources, but {len(texts)} {name}", right="one for every source")
    rows = [tuple(map(_folded, row)) for row in zip(sources, outputs, references or [""] * len(sources), strict=True)]
    usual = median([len(output) / len(source) for source, output, _ in rows if source and output] or [1])
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    pairs_by_output: dict[str, dict[str, Pair]] = defaultdict(dict)
    for number, (source, output, reference) in enumerate(rows, start=1):
        pair = Pair(source, output, f"line {number}")
        if source and not output:
            tallies["no_output"].add(pair)
        if _repeats(output, 4) and not (_repeats(source, 3) or _repeats(reference, 3)):
            tallies["repetition"].add(pair)
        wanted, most = (len(reference), 2.5) if reference else (usual * len(source), 4)
        if len(output) > wanted * most and len(output) > wanted + 30:
            tallies["far_too_long"].add(pair)
        if output and output != reference:
            pairs_by_output[output].setdefault(source, pair)
            if output == source and _count_words(output) >= 3 and WORD.search(output):
                tallies["copied_output"].add(pair)
    facts = {"expected": "usual for their source" if references is None else "their reference"}
    findings: list[Finding] = []
    for kind, tally in tallies.items():
        findings += _judge(kind, tally, len(rows), facts, begin=begin)
    distinct = len({source for source, _, _ in rows})
    same = list(max(pairs_by_output.values(), key=len, default={}).values())
    if len(same) >= max(5, 0.2 * distinct):
        findings += _judge("ignores_input", _Tally(len(same), same[:5]), distinct, facts, begin=begin)
    return worst_first(findings)


def _repeats(text: str, times: int) -> bool:
    """Whether up to four words, or up to eight letters within a word, come `times` times in a row."""
    return any(re.search(pattern.replace("TIMES", f"{times - 1}"), text.lower()) for pattern in _REPETITIONS)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _is_decomposed(text: str) -> bool:
    # Only joining makes a text shorter: NFC also replaces a few signs by others, and takes a few apart.
    return not unicodedata.is_normalized("NFC", text) and len(unicodedata.normalize("NFC", text)) < len(text)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def _count_words(text: str) -> int:
    """Whitespace-separated words; where none are written, two characters count as one."""
    return max(text.count(" ") + 1, len(_UNSEGMENTED.findall(text)) // 2)


def _judge(kind: str, tally: _Tally, n: int, facts: Mapping[str, str], *, begin: str = "") -> list[Finding]:
    if not tally.count:
        return []
    share = tally.count / n
    public_kind, warning_from, error_from, what, advice = _RULES[kind]
    severity: Severity = "error" if share >= error_from else "warning" if share >= warning_from else "note"
    percent = "below 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"
    message = f"{begin}{what.format(**facts)}: {tally.count:,} of {n:,} ({percent}). {advice.format(**facts)}."
    return [_finding(public_kind, severity, tally.count, n, message, tally.pairs)]


def _finding(kind: str, severity: Severity, count: int, n: int, message: str, pairs: Sequence[Pair] = ()) -> Finding:
    examples = [f"{pair.where}  {_shown(pair.source)} ||| {_shown(pair.target)}" for pair in pairs]
    return Finding(kind=kind, severity=severity, count=count, share=count / n, message=message, examples=examples)


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def refuse_a_mixture(what: list[Path], *, told: bool) -> None:
    """The doctor takes one recipe, one run, or files; only of files it has to be told languages and columns."""
    whole = [path for path in what if path.is_dir() or path.suffix == ".toml"]
    if len(what) > (1 if whole else 2):
        raise InputError(
            "the doctor looks at one thing at a time",
            where=", ".join(map(str, what)),
            right="one recipe, one run folder, one file of pairs, or two line-aligned files",
        )
    for path in what:
        if not path.exists():
            raise DataError("no such file or folder", where=path, right="a path that exists")
    if whole and told:
        right = "none of them: [data] of the recipe has these facts"
        raise InputError("--source, --target and --columns are for files", where=whole[0], right=right)


def worst_first(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (("error", "warning", "note").index(finding.severity), -finding.share))
