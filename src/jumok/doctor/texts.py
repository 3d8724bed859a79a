"""What is wrong with annotated texts and plain text: in each split, and between the splits."""

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from operator import eq
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jumok.data.made import (
    MadeData,
    ToyChoices,
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
from jumok.doctor.answers import Answers, Choices
from jumok.doctor.faults import Faults
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
from jumok.doctor.numbers import Numbers
from jumok.errors import DataError
from jumok.text.annotated import Choice, Marked, Question, Related
from jumok.text.faults import Wrong, refuse
from jumok.text.labelled import Labelled, Tagged
from jumok.text.language import WORD, Language

if TYPE_CHECKING:
    from jumok.tasks.targets import Predicts

FiledText = LabelledData | TaggedData | RelationData | QuestionData | ChoiceData | TextData
MadeText = ToyReviews | ToyTopics | ToySimilarity | ToyNames | ToyJosa | ToyRelations | ToyQuestions
OneTextData = FiledText | MadeText | ToyChoices | ToyGrammar

# fmt: off
_RULES: dict[str, Rule] = {
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
    "long_context": ("over_long", inf, inf, "{things} with a context of more than {max_words} words", "Of what has"
        " more pieces than data.max_len, data.long_texts says what becomes: windows find answers all over it"),
    "long_line": ("over_long", inf, inf, "lines of more than {max_words} words", "Training cuts a line into parts of"
        " data.max_len pieces, which is fine for paragraphs"),
    "wrong_language": ("wrong_language", 0.05, 0.5, "{things} that do not look like {language}", "The model learns"
        " little from them: remove them, if they are not meant"),
    "same": ("overlap", 0.005, 0.05, "{split} {things} that are also in {earlier}", "Scores on {split} will reward"
        " memory: remove these {things} from {earlier}"),
    "same_short": ("overlap", 0.2, 0.5, "short {split} {things} that are also in {earlier}", "A few may well recur, as"
        " headings do; if there are many, scores on {split} will reward memory: remove them from {earlier}"),
    "same_text": ("overlap", 0.01, inf, "{split} {things} that are in {earlier} with another {answer}", "What"
        " is learned there is wrong here: decide which is right, and keep these {things} in one of the splits"),
    "same_context": ("overlap", 0.02, inf, "{split} {things} whose text has others in {earlier}", "What is"
        " learned of a text there helps here: keep all {things} of one text in the same split"),
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
    Tagged: ("sentences", "sequence of tags"),
    Marked: ("texts", "set of spans"),
    Related: ("pairs of entities", "label"),
    Question: ("questions", "answer"),
    Choice: ("choices", "right ending"),
    PlainLine: ("lines", ""),
}


class Said(Protocol):
    """What is said of the texts of one split."""

    def add(self, example: Any, /) -> Hashable | None:
        """What is said of an example, to be compared; None if that cannot be."""
        ...

    def agree(self, one: Any, other: Any, /) -> bool: ...
    def examine(self, name: str, train: Any, /) -> list[Finding]:
        """The findings of a split of this name, beside what is said in train if it is another split."""
        ...


@dataclass(frozen=True, slots=True)
class Compared:
    """Hashes of an example, and what is said of it."""

    text: int
    context: int | None
    """of a text that may have several examples"""
    said: Hashable
    short: bool = False
    """whether it may well recur"""


def texts_of(data: OneTextData, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[OneText]:
    """The examples of a split, each with its place."""
    match data:
        case TextData():
            return (PlainLine(line, where) for where, line in data.read_with_places(split))
        case ToyGrammar():
            lines = enumerate(data.read(split, seed=seed))
            return (PlainLine(line, f"grammar {split} {i}") for i, line in lines)
        case MadeData():
            return data.read(split, seed=seed)
    return data.read(split, seed=seed, wrong=wrong)


def examine_texts(
    splits: Mapping[str, Iterable[OneText]],
    *,
    language: str = "",
    max_words: int = 250,
    predicts: "Predicts" = "class",
    separator: str = "|",
    faults: Faults | None = None,
) -> list[Finding]:
    """The counts and the faults of each split, and what the splits share; worst first. Every split is read once.

    All that is kept of a text is a hash or two of eight bytes, what is said of it, and two lengths. `faults` has been
    told of the examples that could not be read.
    """
    findings: list[Finding] = []
    seen: dict[str, _Split] = {}
    for name in sorted(splits, key=lambda name: ("train", "dev", "test", name).index(name)):
        split = _Split(Language(language) if language else None, max_words, predicts, separator)
        shared: dict[tuple[str, str], Tally] = defaultdict(Tally)
        try:
            for example in splits[name]:
                compared = split.examine(example)
                for earlier, there in seen.items():
                    if compared and (rule := there.has(compared)):
                        shared[rule, earlier].add(example.where, *_shown(example))
        except DataError as error:
            message = f"{name}: {error.what}. Right would be {error.right}. What comes after it was not looked at."
            findings.append(finding("unreadable", "error", 1, split.n + 1, message, [error.where or ""]))
        findings += faults.examine(name, split.n) if faults else []
        if not split.n:
            findings.append(finding("empty", "error", 0, 1, f"{name}: no examples at all. Check its files."))
            continue
        things, answer = split.called
        facts = {"things": things, "answer": answer, "language": language, "max_words": str(max_words), "split": name}
        findings.append(finding("counts", "note", split.n, split.n, f"{name}: {split.n:,} {things}. {split.lengths()}"))
        findings += split.said.examine(name, seen["train"].said if "train" in seen else None) if split.said else []
        for rule, tally in split.tallies.items():
            findings += judge(_RULES[rule], tally, split.n, facts, begin=f"{name}: ")
        for (rule, earlier), tally in shared.items():
            findings += judge(_RULES[rule], tally, split.n, {**facts, "earlier": earlier})
        seen[name] = split
    return worst_first(findings)


class _Split:
    """What is known of one split after each of its texts."""

    def __init__(self, language: Language | None, max_words: int, predicts: "Predicts", separator: str) -> None:
        self.n = 0
        self.called = ("texts", "label")
        self.said: Said | None = None
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self._language, self._max_words = language, max_words
        self._predicts, self._separator = predicts, separator
        self._texts: dict[int, tuple[Any, ...]] = {}
        """what is said of each text: more than one thing if there is a contradiction"""
        self._contexts: set[int] = set()
        self._short: dict[int, Hashable] = {}
        """what is said of texts that may well recur, if they are tagged"""
        self._words, self._characters = array("l"), array("l")

    def examine(self, example: OneText) -> Compared | None:
        """What is to be compared with other splits, if anything is."""
        self.n += 1
        said: Hashable | None = ""
        if isinstance(example, PlainLine):
            self.called = "lines", ""
        else:
            self.called = self._named(example)
            self.said = self.said or self._what_is_said(example)
            said = self.said.add(example)
        *written, _ = _text_and_answer(example)
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
            return None
        self._measure(example, parts)
        short = (
            isinstance(example, Tagged | Marked | PlainLine) and count_words(" ".join(WORD.findall(parts[0]))) < _SHORT
        )
        if short and not isinstance(example, PlainLine):
            text = hash_of(parts[0])
            if self._short.setdefault(text, said) != said:
                self._found("contradiction", example)
            return Compared(text, None, said, short=True)
        return None if said is None or short else self._compare(example, parts, said)

    def has(self, other: Compared) -> str | None:
        """The rule of an example of another split that is here, too."""
        if other.short:
            return "same_short" if other.text in self._short else None
        if (here := self._texts.get(other.text)) is not None:
            agree = self.said.agree if self.said else eq
            return "same" if any(agree(said, other.said) for said in here) else "same_text"
        return "same_context" if other.context in self._contexts else None

    def _named(self, example: OneText) -> tuple[str, str]:
        if not isinstance(example, Labelled):
            return _CALLED[type(example)]
        answer = {"class": "label", "labels": "set of labels", "number": "number"}[self._predicts]
        return "texts" if example.pair is None else "pairs of texts", answer

    def _what_is_said(self, example: OneText) -> Said:
        match example:
            case Question():
                return Answers()
            case Choice():
                return Choices()
            case Labelled() if self._predicts == "number":
                return Numbers()
        return Labels(self._separator if self._predicts == "labels" else None)

    def _measure(self, example: OneText, parts: list[str]) -> None:
        words = max(map(count_words, parts))
        self._words.append(words)
        self._characters.append(max(map(len, parts)))
        if words > self._max_words:
            rules: dict[type[OneText], str] = {PlainLine: "long_line", Question: "long_context"}
            self._found(rules.get(type(example), "over_long"), example)
        if self._language and any(map(self._language.excludes, parts)):
            self._found("wrong_language", example)

    def _compare(self, example: OneText, parts: list[str], said: Any) -> Compared:
        if isinstance(example, Choice):
            parts = [parts[0], *sorted(parts[1:])]  # in another order they are the same choice
        text = hash_of("\n".join(parts))
        earlier = self._texts.get(text, ())
        agree = self.said.agree if self.said else eq
        if any(agree(said, other) for other in earlier):
            self._found("duplicate", example)
        else:
            self._texts[text] = (*earlier, said)
            if earlier and isinstance(self.said, Numbers):
                self.said.differ(said, earlier, example.where, *_shown(example))
            elif earlier:
                self._found("contradiction", example)
        context = None
        if isinstance(example, Related | Question):
            context = hash_of(folded(example.text if isinstance(example, Related) else example.context))
            self._contexts.add(context)
        return Compared(text, context, said)

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
            return example.context, *example.endings, example.endings[example.label]
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
