"""What is wrong with the outputs of a model, as far as it shows without knowing their language."""

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from jumok.doctor.findings import Finding, Rule, Tally, count_words, example, folded, judge, worst_first
from jumok.errors import DataError
from jumok.text.language import WORD

# fmt: off
_RULES: dict[str, Rule] = {
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
_REPETITIONS = (
    r"\b(\w+(?:\W+\w+){0,3})(?:\W+\1\b){TIMES}",
    r"(?<!\S)(\S+(?:\s+\S+){0,3})(?:\s+\1(?!\S)){TIMES}",
    # Laughter, too, repeats a letter or a syllable: shorter pieces must go on for longer.
    r"([^\W\d_]{2})\1{5}|([^\W\d_]{3,8}?)\2{TIMES}",
)


def examine_outputs(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str] | None = None, *, split: str = ""
) -> list[Finding]:
    """The faults of decoded text that show without knowing its language; worst first, named by split if given."""
    begin = f"{split}: " if split else ""
    for name, texts in (("outputs", outputs), ("references", references)):
        if texts is not None and len(texts) != len(sources):
            raise DataError(f"{len(sources)} sources, but {len(texts)} {name}", right="one for every source")
    rows = [tuple(map(folded, row)) for row in zip(sources, outputs, references or [""] * len(sources), strict=True)]
    usual = median([len(output) / len(source) for source, output, _ in rows if source and output] or [1])
    tallies: dict[str, Tally] = defaultdict(Tally)
    examples_by_output: dict[str, dict[str, str]] = defaultdict(dict)
    for number, (source, output, reference) in enumerate(rows, start=1):
        pair = (f"line {number}", source, output)
        if source and not output:
            tallies["no_output"].add(*pair)
        if _repeats(output, 4) and not (_repeats(source, 3) or _repeats(reference, 3)):
            tallies["repetition"].add(*pair)
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
    distinct = len({source for source, _, _ in rows})
    same = list(max(examples_by_output.values(), key=len, default={}).values())
    if len(same) >= max(5, 0.2 * distinct):
        findings += judge(_RULES["ignores_input"], Tally(len(same), same[:5]), distinct, facts, begin=begin)
    return worst_first(findings)


def _repeats(text: str, times: int) -> bool:
    """Whether up to four words, or up to eight letters within a word, come `times` times in a row."""
    return any(re.search(pattern.replace("TIMES", f"{times - 1}"), text.lower()) for pattern in _REPETITIONS)
