"""What is wrong with parallel text, with two files that should be aligned, or with the outputs of a model."""

import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice, pairwise, zip_longest
from math import inf, log
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
import numpy.typing as npt

from jumok.errors import DataError
from jumok.text.formats import Pair, read_lines

Severity = Literal["error", "warning", "note"]
Values = npt.NDArray[np.float64]

_PRICE_OF_CHANGE = 20.0  # in nats: with a million lines to be wrong about, far more than chance gives


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
_LATIN = "a-zA-Zª-ɏḀ-ỿ"
_LETTERS = {
    "ko": "가-힣ᄀ-ᇿ㄰-㆏", "ja": "ぁ-ヿ㐀-鿿", "zh": "㐀-鿿", "ru": "Ѐ-ԯ", "uk": "Ѐ-ԯ", "el": "Ͱ-Ͽἀ-῿",
    "he": "\u0590-\u05ff", "ar": "\u0600-\u06ff\u0750-\u077f", "th": "\u0e00-\u0e7f", "hi": "\u0900-\u097f",
    **dict.fromkeys(("en", "de", "fr", "es", "it", "nl", "pt", "sv", "da", "fi", "pl", "cs", "tr", "vi"), _LATIN),
}
# The words that hold sentences together: hardly a sentence does without, whatever it talks about.
_FUNCTION_WORDS = {
    "en": "the a an and or of is are was were be with for from by on at to this that it its has have not as you he can"
          " which your his her they their there who will while into",
    "de": "der die das den dem des ein eine einen einem einer und oder ist sind mit für von vom zu zum zur auf aus an"
          " bei im sich es er sie nicht was wird werden nach über auch durch kann als",
    "fr": "le la les un une des du de d l et est sont dans sur avec pour par au ce cette qui que qu ne pas il elle en",
    "es": "el la los las un una de del y o es son en con por para al que no se su sus lo como más pero este esta hay",
    "it": "il lo la i gli le un una di del della dei e è sono in con per da dal al alla che non si come più nel su",
    "nl": "de het een en is zijn met voor van op aan in uit bij naar niet ook zich hij ze als dat door te om die er",
    "pt": "o a os as um uma de do da dos das e é são em no na com por para ao que não se seu sua como mais mas está",
}
# fmt: on
_WORD = re.compile(r"[^\W\d_]+")
_UNSEGMENTED = re.compile("[ぁ-ヿ㐀-鿿\u0e00-\u0e7f]")
_REPETITIONS = (
    r"\b(\w+(?:\W+\w+){0,3})(?:\W+\1\b){TIMES}",
    r"(?<!\S)(\S+(?:\s+\S+){0,3})(?:\s+\1(?!\S)){TIMES}",
    # Laughter, too, repeats a letter or a syllable: shorter pieces must go on for longer.
    r"([^\W\d_]{2})\1{5}|([^\W\d_]{3,8}?)\2{TIMES}",
)
_LOWERCASE_WORD = re.compile(r"(?<!\S)[a-zß-ÿ]{2,}(?!\S)")


def examine_pairs(
    splits: Mapping[str, Iterable[Pair]], *, source: str, target: str, max_words: int = 250
) -> list[Finding]:
    """The faults of each split, and what the splits share; worst first. Every split is read once.

    All that is kept of a pair is two hashes of eight bytes and one length ratio.
    """
    findings: list[Finding] = []
    seen: dict[str, _Split] = {}
    languages = _Language(source, other=target), _Language(target, other=source)
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
            findings.append(_finding("empty", "error", 0, 1, f"{name}: no pairs at all. Check the paths of its files."))
        facts = {"source": source, "target": target, "max_words": str(max_words), "split": name}
        for kind, tally in split.tallies().items():
            findings += _judge(kind, tally, split.n, facts, begin=f"{name}: ")
        for (kind, earlier), tally in shared.items():
            findings += _judge(kind, tally, split.n, {**facts, "earlier": earlier})
        seen[name] = split
    return _worst_first(findings)


class _Split:
    """What is known of one split after each of its pairs."""

    def __init__(self, languages: "tuple[_Language, _Language]", max_words: int) -> None:
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
        if same and self._languages[0].code != self._languages[1].code and _WORD.search(source):
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


class _Language:
    """Tells texts that cannot be of a language; in doubt they can."""

    def __init__(self, code: str, *, other: str) -> None:
        self.code, other = (re.split("[-_]", name.lower())[0] for name in (code, other))
        letters = _LETTERS.get(self.code)
        self._latin = letters == _LATIN
        self._letters = re.compile(f"[{letters}]") if letters else None
        own, others = (set(_FUNCTION_WORDS.get(name, "").split()) for name in (self.code, other))
        self._profiles = (own - others, others - own) if own and others else None

    def excludes(self, text: str) -> bool:
        words = _WORD.findall(text)
        if self._profiles and len(words) >= 5:
            own, others = (sum(word.lower() in profile for word in words) for profile in self._profiles)
            if others >= max(2, 0.25 * len(words)) and others > 3 * own:
                return True
        if not self._letters or (self._latin and text.isascii()):
            return False
        # Korean or Russian may be nearly all Latin names and code; English is hardly ever mostly Hangul.
        if len(self._letters.findall(text)) >= (0.3 * sum(map(len, words)) if self._latin else 1):
            return False
        # Names and commands stay in Latin letters (those before "ɐ") everywhere: only running text tells.
        if all(word < "ɐ" for word in words) and len(_LOWERCASE_WORD.findall(text)) < 2:
            return False
        return sum(len(word.encode()) for word in words) >= 10


def examine_parallel_files(source: Path, target: Path) -> list[Finding]:
    """Whether line n of one file is the translation of line n of the other, as far as their lengths tell."""
    lengths = [np.array([len(line) for line in read_lines(path)], dtype=np.float64) for path in (source, target)]
    n, n_target = map(len, lengths)
    fit, stretches = _stretches(*lengths)
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


def _stretches(source: Values, target: Values) -> tuple[float, list[tuple[int, int, int | None]]]:
    """How well the lengths fit (a correlation), and the likeliest stretches: first, end and shift, None for no fit.

    For correlated Gaussians the log-odds that two lines belong together are known in closed form. The stretches
    are the path through the odds of all lines and shifts that gains most, when each change has its price.
    """
    n = len(source)
    if min(n, len(target)) < 20 or not source.std() or not target.std():
        return 1.0, []
    shifts = sorted({*range(-3, 4), len(target) - n}, key=abs)
    x, y = (np.clip((v - v.mean()) / v.std(), -3, 3) for v in (np.log1p(source), np.log1p(target)))
    shifted = np.full((len(shifts), n), np.nan)
    for row, shift in zip(shifted, shifts, strict=True):
        first, end = max(0, -shift), min(n, len(target) - shift)
        row[first:end] = y[first + shift : end + shift]
    known = np.nan_to_num(shifted)
    window = min(50, n)
    whole = n // window * window
    in_windows = _correlation(x[:whole].reshape(-1, window), known[:, :whole].reshape(len(shifts), -1, window))
    # Files sorted by length have no correlation within a window, but one over all.
    fit = float(max(np.median(in_windows.max(axis=0)), _correlation(x, known).max()))
    r = min(max(fit, 0.0), 0.9)  # more would be too sure of itself where a chapter has a style of its own
    odds = (2 * r * x * shifted - r * r * (x * x + shifted**2)) / (2 * (1 - r * r)) - 0.5 * log(1 - r * r)
    changes = _best_path(np.vstack([np.clip(np.nan_to_num(odds), -4, 4), np.zeros(n)]))
    stretches: list[tuple[int, int, int | None]] = []
    for (first, state), (end, _) in pairwise([*changes, (n, 0)]):
        fits = state < len(shifts) or _correlation(x[first:end], known[:, first:end]).max() > fit / 2
        # Lines that correlate but do not fit only have an unusual ratio.
        stretches.append((first, end, (*shifts, 0)[state] if fits else None))
    return fit, stretches


def _correlation(x: Values, y: Values) -> Values:
    x, y = (values - values.mean(axis=-1, keepdims=True) for values in (x, y))
    spread = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    return np.asarray((x * y).sum(axis=-1) / np.maximum(spread, 1e-9))


def _best_path(odds: Values) -> list[tuple[int, int]]:
    """Viterbi's path through [states, lines]: each line where it changes, the first too, and its new state."""
    states = np.arange(len(odds), dtype=np.int8)
    came_from = np.zeros(odds.shape[::-1], dtype=np.int8)
    best = -_PRICE_OF_CHANGE * (states != 0)
    for line, gain in enumerate(odds.T):
        top = best.argmax()
        stay = best >= best[top] - _PRICE_OF_CHANGE
        came_from[line] = np.where(stay, states, top)
        best = np.where(stay, best, best[top] - _PRICE_OF_CHANGE) + gain
    path = [int(best.argmax())]
    for back in came_from[:0:-1]:
        path.append(int(back[path[-1]]))
    path.reverse()
    return [(0, path[0])] + [(line, new) for line, (old, new) in enumerate(pairwise(path), start=1) if old != new]


def examine_outputs(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str] | None = None
) -> list[Finding]:
    """The faults of decoded text that show without knowing its language; worst first."""
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
            if output == source and _count_words(output) >= 3 and _WORD.search(output):
                tallies["copied_output"].add(pair)
    facts = {"expected": "usual for their source" if references is None else "their reference"}
    findings = [finding for kind, tally in tallies.items() for finding in _judge(kind, tally, len(rows), facts)]
    distinct = len({source for source, _, _ in rows})
    same = list(max(pairs_by_output.values(), key=len, default={}).values())
    if len(same) >= max(5, 0.2 * distinct):
        findings += _judge("ignores_input", _Tally(len(same), same[:5]), distinct, facts)
    return _worst_first(findings)


def _repeats(text: str, times: int) -> bool:
    """Whether up to four words, or up to eight letters within a word, come `times` times in a row."""
    return any(re.search(pattern.replace("TIMES", f"{times - 1}"), text.lower()) for pattern in _REPETITIONS)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


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


def _worst_first(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (("error", "warning", "note").index(finding.severity), -finding.share))
