"""What is wrong with annotated texts and plain text: in each split, and between the splits."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np

from jumok.data.made import (
    ToyChoices,
    ToyEntailment,
    ToyGrammar,
    ToyJosa,
    ToyNames,
    ToyQuestions,
    ToyRelations,
    ToyReviews,
    ToySimilarity,
    ToyTopics,
)
from jumok.data.sources import ChoiceData, LabelledData, QuestionData, RelationData, TaggedData, TextData
from jumok.data.synthetic import Split
from jumok.doctor.findings import (
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
from jumok.doctor.labels import Labels
from jumok.errors import DataError
from jumok.text.annotated import Choice, Marked, Question, Related
from jumok.text.formats import read_lines
from jumok.text.labelled import Labelled, Tagged
from jumok.text.language import WORD, Language

FiledText = LabelledData | TaggedData | RelationData | QuestionData | ChoiceData | TextData
MadeText = ToyReviews | ToyTopics | ToySimilarity | ToyEntailment | ToyNames | ToyJosa | ToyRelations | ToyQuestions
OneTextData = FiledText | MadeText | ToyChoices | ToyGrammar

# fmt: off
_RULES: dict[str, Rule] = {
    "unreadable": ("unreadable", 0, 0, "lines of {file} that are not UTF-8", "Nothing can read them: convert the file"
        " from the encoding that it was written in, e.g. with iconv -f CP949 -t UTF-8"),
    "empty": ("empty", 0, 0.1, "{things} without a word", "They teach nothing: remove them, and if there are many,"
        " look for the step that lost the text"),
    "blank": ("empty", inf, inf, "empty lines", "Training passes over them"),
    "damaged": ("damaged", 0, 0.1, "{things} with the mark of a lost character (U+FFFD)", "The text was read in a wrong"
        " encoding once: go back to the original and convert it anew"),
    "decomposed": ("decomposed", inf, inf, "{things} with decomposed characters (NFD)", "Training composes them (NFC)"
        " anyway: compose the files too if other programs are to find or compare their words"),
    "duplicate": ("duplicate", 0.1, inf, "{things} that repeat an earlier one of the split", "They weigh more than the"
        " others: keep one of each, unless the repetition is meant"),
    "contradiction": ("contradiction", 0.01, 0.1, "{things} that stand earlier in the split with another {answer}",
        "A model can learn only one of the two: decide which is right, or leave both out"),
    "over_long": ("over_long", 0.01, inf, "{things} of more than {max_words} words", "Often these are lines that were"
        " joined: split them; of what has more pieces than data.max_len, data.long_texts says what becomes"),
    "long_line": ("over_long", inf, inf, "lines of more than {max_words} words", "Training cuts a line into parts of"
        " data.max_len pieces, which is fine for paragraphs"),
    "wrong_language": ("wrong_language", 0.05, 0.5, "{things} that do not look like {language}", "The model learns"
        " little from them: remove them, if they are not meant"),
    "same": ("overlap", 0.005, 0.05, "{split} {things} that are also in {earlier}", "Scores on {split} will reward"
        " memory: remove these {things} from {earlier}"),
    "same_text": ("overlap", 0.01, inf, "{split} {things} that are in {earlier} with another {answer}", "One of the"
        " two is wrong: decide which, and keep these {things} in one of the splits"),
}
# fmt: on
_SHORT = 5  # words; a shorter sentence or line may well recur, as headings do


@dataclass(frozen=True, slots=True)
class PlainLine:
    """A line of plain text and the place it was read from."""

    text: str
    where: str


OneText = Labelled | Tagged | Marked | Related | Question | Choice | PlainLine
_CALLED: dict[type[OneText], tuple[str, str]] = {
    Labelled: ("texts", "label"),
    Tagged: ("sentences", "sequence of tags"),
    Marked: ("texts", "set of spans"),
    Related: ("pairs of entities", "label"),
    Question: ("questions", "answer"),
    Choice: ("choices", "label"),
    PlainLine: ("lines", ""),
}


def texts_of(data: OneTextData, split: Split, *, seed: int) -> Iterator[OneText]:
    """The examples of a split, each with its place."""
    match data:
        case TextData():
            return (PlainLine(line, where) for where, line in data.read_with_places(split))
        case ToyGrammar():
            lines = enumerate(data.read(split, seed=seed))
            return (PlainLine(line, f"grammar {split} {i}") for i, line in lines)
    return data.read(split, seed=seed)


def examine_bytes(path: Path) -> list[Finding]:
    """Whether every line of a file is UTF-8; a reader stops at the first that is not, and says nothing of the rest."""
    tally, n = Tally(), 0
    for line in read_lines(path, charset="latin-1"):  # which takes any byte
        n += 1
        written = line.encode("latin-1")
        try:
            written.decode()
        except UnicodeDecodeError:
            tally.add(f"{path}:{n}", written.decode(errors="replace"))
    return judge(_RULES["unreadable"], tally, n, {"file": str(path)})


def examine_texts(
    splits: Mapping[str, Iterable[OneText]], *, language: str = "", max_words: int = 250
) -> list[Finding]:
    """The counts and the faults of each split, and what the splits share; worst first. Every split is read once.

    All that is kept of a text is two hashes of eight bytes and two lengths.
    """
    findings: list[Finding] = []
    seen: dict[str, _Split] = {}
    for name in sorted(splits, key=lambda name: ("train", "dev", "test", name).index(name)):
        split = _Split(Language(language, other="en") if language else None, max_words)
        shared: dict[tuple[str, str], Tally] = defaultdict(Tally)
        try:
            for example in splits[name]:
                whole, text = split.examine(example)
                for earlier, there in seen.items():
                    if whole in there.wholes:
                        shared["same", earlier].add(example.where, *_shown(example))
                    elif text in there.texts:
                        shared["same_text", earlier].add(example.where, *_shown(example))
        except DataError as error:
            message = f"{name}: {error.what}. Right would be {error.right}. What comes after it was not looked at."
            findings.append(finding("unreadable", "error", 1, split.n + 1, message, [error.where or ""]))
        if not split.n:
            findings.append(finding("empty", "error", 0, 1, f"{name}: no examples at all. Check its files."))
            continue
        things, answer = split.called
        facts = {"things": things, "answer": answer, "language": language, "max_words": str(max_words), "split": name}
        findings.append(finding("counts", "note", split.n, split.n, f"{name}: {split.n:,} {things}. {split.lengths()}"))
        findings += split.labels.examine(name, seen["train"].labels if "train" in seen else None)
        for rule, tally in split.tallies.items():
            findings += judge(_RULES[rule], tally, split.n, facts, begin=f"{name}: ")
        for (rule, earlier), tally in shared.items():
            findings += judge(_RULES[rule], tally, split.n, {**facts, "earlier": earlier})
        seen[name] = split
    return worst_first(findings)


class _Split:
    """What is known of one split after each of its texts."""

    def __init__(self, language: Language | None, max_words: int) -> None:
        self.n = 0
        self.called = ("texts", "label")
        self.labels = Labels()
        self.wholes: set[int] = set()
        self.texts: set[int] = set()
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self._language, self._max_words = language, max_words
        self._words, self._characters = array("l"), array("l")

    def examine(self, example: OneText) -> tuple[int, int] | tuple[None, None]:
        """The hashes of the text with its answer, and of the text alone, if it is one to compare."""
        self.n += 1
        self.called = _CALLED[type(example)]
        match example:
            case Labelled() | Related() | Choice():
                self.labels.add_label(str(example.label), example.where)
            case Tagged():
                self.labels.add_tags(example.words, example.tags, example.where)
            case Marked():
                self.labels.add_types([mark.label for mark in example.marks], example.where)
        *written, answer = _text_and_answer(example)
        parts = [folded(part) for part in written]
        if any(map(is_decomposed, written)):
            self._found("decomposed", example)
        if any("\ufffd" in part for part in parts):
            self._found("damaged", example)
        if not all(parts):
            if isinstance(example, PlainLine):
                self.tallies["blank"].count += 1  # there is nothing to show
            else:
                self._found("empty", example)
            return None, None
        words = max(map(count_words, parts))
        self._words.append(words)
        self._characters.append(max(map(len, parts)))
        if words > self._max_words:
            self._found("long_line" if isinstance(example, PlainLine) else "over_long", example)
        if self._language and any(map(self._language.excludes, parts)):
            self._found("wrong_language", example)
        if isinstance(example, Tagged | Marked | PlainLine) and count_words(" ".join(WORD.findall(parts[0]))) < _SHORT:
            return None, None
        text = "\n".join(parts)
        hashes = hash_of(f"{text}\n\n{answer}"), hash_of(text)
        if hashes[0] in self.wholes:
            self._found("duplicate", example)
        elif hashes[1] in self.texts:
            self._found("contradiction", example)
        self.wholes.add(hashes[0])
        self.texts.add(hashes[1])
        return hashes

    def _found(self, fault: str, example: OneText) -> None:
        self.tallies[fault].add(example.where, *_shown(example))

    def lengths(self) -> str:
        said = []
        for name, values in (("Words", self._words), ("Characters", self._characters)):
            if values:
                half, most, longest = (int(value) for value in np.percentile(values, [50, 95, 100]))
                said.append(f"{name}: median {half:,}, 95 % at most {most:,}, longest {longest:,}.")
        return " ".join(said)


def _text_and_answer(example: OneText) -> tuple[str, ...]:
    """The text, or all texts of several, and last what is said of them, which is nothing for plain text."""
    match example:
        case Labelled():
            return (example.text, *([] if example.pair is None else [example.pair]), example.label)
        case Tagged():
            return " ".join(example.words), " ".join(example.tags)
        case Marked():
            return example.text, " ".join(f"{mark.label}:{mark.start}-{mark.end}" for mark in example.marks)
        case Related():
            return _with_entities(example), example.label
        case Question():
            return example.context, example.question, " | ".join(sorted({text for text, _ in example.answers}))
        case Choice():
            return example.context, *example.endings, str(example.label)
        case PlainLine():
            return example.text, ""


def _shown(example: OneText) -> tuple[str, ...]:
    return (example.text,) if isinstance(example, PlainLine) else _text_and_answer(example)


def _with_entities(example: Related) -> str:
    """The text with its head and tail in brackets: with others it is another example."""
    text = example.text
    brackets = [(example.head.start, "["), (example.head.end, "]"), (example.tail.start, "<"), (example.tail.end, ">")]
    for place, bracket in sorted(brackets, reverse=True):
        text = text[:place] + bracket + text[place:]
    return text
