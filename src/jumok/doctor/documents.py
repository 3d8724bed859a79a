"""What is wrong with documents to pre-train on: repetition, boilerplate, damage; and what they are made of.

They are read once and never held: what is kept is a hash of every sentence, up to MOST of them, and a sample.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from math import ceil, inf
from pathlib import Path

from jumok.data.corpus import SPLITS
from jumok.data.made import MadeData, ToyGrammar, ToyStories
from jumok.data.sources import DocumentData, TextData
from jumok.data.synthetic import Split
from jumok.doctor.faults import examine_bytes
from jumok.doctor.findings import (
    Finding,
    Rule,
    Tally,
    count_words,
    example,
    finding,
    folded,
    hash_of,
    is_decomposed,
    judge,
)
from jumok.errors import DataError
from jumok.text.documents import Sentence, text_files
from jumok.text.language import WORD, Language

MOST = 2_000_000  # sentences of a split that are looked at: their hashes take 200 MB, those of their documents no more
SAMPLE = 3_000_000  # characters that a vocabulary is tried on
STRETCH = 200_000  # characters of a document that are held at once
LONG = 250  # words
SHORT = 5  # words; a shorter sentence may well recur, as headings do
MANY, SHARE = 10, 0.005  # boilerplate stands in so many documents at least, and in such a share of all
LETTERS = 20  # words that tell the script of a sentence

# fmt: off
_RULES: dict[str, Rule] = {
    "one_sentence": ("one_sentence", inf, inf, "documents of one {thing}", "Next-sentence prediction cannot cut"
        " them in two"),
    "same_document": ("duplicate", 0.02, inf, "documents that repeat an earlier one, with {words} of all words", "They"
        " are learned by heart: keep one of each"),
    "same_sentence": ("duplicate", 0.03, inf, "{things} that repeat an earlier one, with {words} of all words, repeated"
        " documents not counted", "Thousands of repeated lines have kept losses from falling: keep one of each, unless"
        " the repetition is meant"),
    "boilerplate": ("boilerplate", 0.02, inf, "{things} that stand in {many} documents or more, with {words} of all"
        " words", "Menus, notices and headings teach little: remove them if they are many"),
    "damaged": ("damaged", 0.001, 0.1, "{things} with the mark of a lost character (U+FFFD)", "The text was read in a"
        " wrong encoding once: go back to the original and convert it anew"),
    "control": ("control", 0.001, 0.1, "{things} with control characters", "A broken conversion left them: remove them,"
        " or they become pieces of the vocabulary"),
    "decomposed": ("decomposed", inf, inf, "{things} with decomposed characters (NFD)", "Training composes them (NFC)"
        " anyway: compose the files too if other programs are to find or compare their words"),
    "no_letters": ("no_letters", 0.05, 0.5, "{things} without a letter", "Numbers, rules and tables teach no language:"
        " leave them out if they are many"),
    "long_sentence": ("over_long", 0.01, inf, "sentences of more than {long} words", "Their ends were not found: does"
        " the text have full stops?"),
    "long_line": ("over_long", inf, inf, "lines of more than {long} words", "Training cuts them, which is fine for"
        " paragraphs"),
    "wrong_language": ("wrong_language", 0.05, 0.5, "{things} that do not look like {language}", "The model learns"
        " little from them: remove them, if they are not meant"),
    "shared_document": ("overlap", 0.005, 0.05, "documents that are also in {earlier}", "Scores on {split} will reward"
        " memory: remove these documents from {earlier}"),
    "shared_sentence": ("overlap", 0.05, inf, "{things} that are also in {earlier}, shared documents not counted",
        "Scores on {split} will reward memory: remove these from {earlier}"),
}
# fmt: on
_OF_DOCUMENTS = ("one_sentence", "same_document", "shared_document")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff]")


def examine_documents(data: DocumentData | ToyStories, *, seed: int) -> "tuple[list[Finding], Survey | None]":
    """The findings of every split, and what is known of the training text if there is any."""
    findings: list[Finding] = []
    surveys: dict[str, Survey] = {}
    for split in (split for split in SPLITS if data.exists(split)):
        survey, unreadable = Survey.of(data, earlier=surveys), list[Finding]()
        try:
            survey.read(data.read(split, seed=seed))
        except DataError as error:
            unreadable = _unreadable(data, split, error, survey.sentences)
        findings += unreadable
        if survey.sentences:
            findings += survey.findings(split)
            surveys[split] = survey
        elif not unreadable:
            findings.append(finding("empty", "error", 0, 1, f"{split}: no documents at all. Check its files."))
    return findings, surveys.get("train")


def _unreadable(data: DocumentData | ToyStories, split: Split, error: DataError, n: int) -> list[Finding]:
    """A reader stops at the first line that it cannot read; lines that are not UTF-8 are counted to the end."""
    files = map(Path, data.files(split) if isinstance(data, DocumentData) else [])
    texts = [text for file in files for text in (text_files(file) if file.is_dir() else [file])]
    if "UTF-8" in error.what and (found := [finding for text in texts for finding in examine_bytes(text)]):
        return found
    message = f"{split}: {error.what}. Right would be {error.right}. What comes after it was not looked at."
    return [finding("unreadable", "error", 1, n + 1, message, [error.where or ""])]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A sentence that was looked at."""

    sentence: Sentence
    text: str
    words: int
    letters: int
    """words that are made of letters"""


class Survey:
    """What is known of one split after each of its documents."""

    def __init__(
        self,
        language: str = "",
        *,
        earlier: "Mapping[str, Survey] | None" = None,
        is_made: bool = False,
        is_cut: bool = True,
    ) -> None:
        """Made sentences are those of a small grammar; lines that are not cut into sentences are lines."""
        self.documents = self.sentences = self.words = self.characters = 0
        self.is_whole = True
        """nothing of the split was left unread"""
        self.sample = Sample(SAMPLE)
        self._language = language
        self._excludes = Language(language).excludes if language else None
        self._earlier = dict(earlier or {})
        self._is_made = is_made
        self._things, self._long = ("sentences", "long_sentence") if is_cut else ("lines", "long_line")
        self._lengths: Counter[int] = Counter()
        self._sizes: Counter[int] = Counter()
        """sentences of every document but the last one, which may go on"""
        self._size = 0
        self._scripts: Counter[str] = Counter()
        self._tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
        """of a rule, and of the split that it compares with"""
        self._words_again: Counter[str] = Counter()
        self._seen_documents: set[int] = set()
        self._seen_in: dict[int, int] = {}
        """the number of the document that a sentence was last seen in"""
        self._spread: Counter[int] = Counter()
        """in how many documents a sentence stands beside the first"""
        self._widespread: dict[int, _Seen] = {}

    @staticmethod
    def of(
        data: DocumentData | ToyStories | TextData | ToyGrammar, *, earlier: "Mapping[str, Survey] | None" = None
    ) -> "Survey":
        is_cut = data.split_sentences if isinstance(data, DocumentData) else isinstance(data, ToyStories)
        return Survey(data.language, earlier=earlier, is_made=isinstance(data, MadeData), is_cut=is_cut)

    def read(self, sentences: Iterable[Sentence]) -> None:
        stream = iter(sentences)
        for part, is_document in _stretches(islice(stream, MOST)):
            self._add(part, is_document)
        self.is_whole = next(stream, None) is None

    @property
    def repeated(self) -> float:
        """The share of the words that stand in repeated documents and sentences."""
        return self._words_again.total() / max(self.words, 1)

    def _add(self, part: list[Sentence], is_document: bool) -> None:
        self.sample.add(part)
        if part[0].first:
            if self.documents:
                self._sizes[self._size] += 1
            self.documents, self._size = self.documents + 1, 0
        self._size += len(part)
        if is_document and len(part) == 1:
            self._found("one_sentence", part[0])
        seen = [self._look_at(sentence) for sentence in part]
        # A document that is known is one finding, not one more for each of its sentences.
        if not (is_document and self._is_known(seen)) and not self._is_made:
            for one in seen:
                self._compare(one)

    def _look_at(self, sentence: Sentence) -> _Seen:
        text = folded(sentence.text)
        letters = WORD.findall(text)
        words = count_words(text)
        self.sentences += 1
        self.words += words
        self.characters += len(text)
        self._lengths[words] += 1
        if letters:
            self._scripts[_script(letters)] += 1
        faults = {
            "damaged": "\ufffd" in text,
            "control": _CONTROL.search(sentence.text),
            "decomposed": is_decomposed(sentence.text),
            "no_letters": not letters,
            self._long: words > LONG,
            "wrong_language": self._excludes and self._excludes(text),
        }
        for fault, found in faults.items():
            if found:
                self._found(fault, sentence)
        return _Seen(sentence, text, words, count_words(" ".join(letters)) if letters else 0)

    def _is_known(self, document: list[_Seen]) -> bool:
        """Whether it stands earlier in the split or in another one; counted if so."""
        if sum(one.letters for one in document) < SHORT:
            return False
        whole, first = hash_of("\n".join(one.text for one in document)), document[0].sentence
        shared = [name for name, survey in self._earlier.items() if whole in survey._seen_documents]
        for name in shared:
            self._found("shared_document", first, name)
        again = whole in self._seen_documents
        if again:
            self._found("same_document", first)
            self._words_again["same_document"] += sum(one.words for one in document)
        self._seen_documents.add(whole)
        return again or bool(shared)

    def _compare(self, one: _Seen) -> None:
        key = hash_of(one.text)
        if one.letters >= SHORT:
            for name in (name for name, survey in self._earlier.items() if key in survey._seen_in):
                self._found("shared_sentence", one.sentence, name)
            if key in self._seen_in:
                self._found("same_sentence", one.sentence)
                self._words_again["same_sentence"] += one.words
        if self._seen_in.get(key, self.documents) != self.documents:
            self._spread[key] += 1
            if self._spread[key] == MANY - 1:
                self._widespread[key] = one
        self._seen_in[key] = self.documents

    def _found(self, rule: str, sentence: Sentence, other: str = "") -> None:
        self._tallies[rule, other].add(sentence.where, sentence.text)

    def findings(self, split: str) -> list[Finding]:
        """All that is worth a word of the training text; of the others what is wrong, and what they share."""
        many = max(MANY, ceil(SHARE * self.documents))
        boilerplate, words = self._boilerplate(many)
        tallies = {**self._tallies, ("boilerplate", ""): boilerplate}
        words_of = {**self._words_again, "boilerplate": words}
        facts = {"things": self._things, "thing": self._things[:-1], "language": self._language, "split": split}
        facts |= {"long": str(LONG), "many": f"{many:,}"}
        found: list[Finding] = []
        if self.documents == 1 and self.sentences >= 2 * SHORT:
            message = f"{split}: all {self._things} are one document. If they are not, data.format has to say so."
            found.append(finding("one_document", "note", 1, 1, message))
        for (rule, earlier), tally in tallies.items():
            n = self.documents if rule in _OF_DOCUMENTS else self.sentences
            share = words_of[rule] / self.words if rule in words_of else None  # repetition weighs by its words
            told = {**facts, "earlier": earlier, "words": f"{100 * (share or 0):.1f} %"}
            found += judge(_RULES[rule], tally, n, told, begin=f"{split}: ", weight=share)
        if split != "train":
            found = [one for one in found if one.severity != "note" or one.kind == "overlap"]
        return [finding("counts", "note", self.sentences, self.sentences, f"{split}: {self._counts()}"), *found]

    def _counts(self) -> str:
        of = "" if self.is_whole else f"the first {MOST:,} {self._things}, and no more was looked at: "
        documents = f"{self.documents:,} document{'s' * (self.documents != 1)}"
        sizes = quartiles(self._sizes + Counter([self._size]))
        total = max(self._scripts.total(), 1)
        scripts = [f"{name} {100 * n / total:.1f} %" for name, n in self._scripts.most_common(4) if n >= total / 2000]
        return (
            f"{of}{documents}, {self.sentences:,} {self._things}, {self.words:,} words, {self.characters:,} characters."
            f" Words in a {self._things[:-1]}: {quartiles(self._lengths)}. {self._things.capitalize()} in a document:"
            f" {sizes}. Written in {', '.join(scripts) or 'no letters'}."
        )

    def _boilerplate(self, many: int) -> tuple[Tally, int]:
        """Sentences that stand in many documents, those in most first, and their words."""
        found = [(self._spread[key] + 1, one) for key, one in self._widespread.items() if self._spread[key] + 1 >= many]
        found.sort(key=lambda counted: -counted[0])
        examples = [example(f"in {n:,} documents", one.sentence.text) for n, one in found[:5]]
        return Tally(sum(n for n, _ in found), examples), sum(n * one.words for n, one in found)


class Sample:
    """Some documents of a stream, each as likely as any other; of long ones, parts."""

    def __init__(self, most: int) -> None:
        self._most = most
        """characters"""
        self._kept: list[tuple[float, int, list[Sentence]]] = []
        self._size = self._read = 0
        self._limit = 1.0

    def add(self, part: list[Sentence]) -> None:
        # A place in [0, 1) for each: those below the limit are kept, and the limit falls when there are too many.
        self._read += 1
        place, size = hash_of(str(self._read)) / 2**64, sum(len(sentence.text) for sentence in part)
        if place >= self._limit:
            return
        self._kept.append((place, size, part))
        self._size += size
        while self._size > self._most and len(self._kept) > 1:
            self._limit /= 2
            self._kept = [entry for entry in self._kept if entry[0] < self._limit]
            self._size = sum(size for _, size, _ in self._kept)

    @property
    def is_all(self) -> bool:
        return self._limit == 1

    def __iter__(self) -> Iterator[Sentence]:
        for _, _, part in self._kept:
            yield part[0] if self.is_all else replace(part[0], first=True)
            yield from part[1:]


def _stretches(sentences: Iterable[Sentence]) -> Iterator[tuple[list[Sentence], bool]]:
    """Documents, and whether it is a whole one: a long one comes in parts, so that none is held as a whole."""
    part: list[Sentence] = []
    size = 0
    for sentence in sentences:
        if part and (sentence.first or size >= STRETCH):
            yield part, part[0].first and sentence.first
            part, size = [], 0
        part.append(sentence)
        size += len(sentence.text)
    if part:
        yield part, part[0].first


def _script(words: list[str]) -> str:
    """The one that most words begin with, by the names of letters: Latin, Hangul, Cyrillic."""
    return Counter(map(_script_of, (word[0] for word in words[:LETTERS]))).most_common(1)[0][0]


@cache
def _script_of(letter: str) -> str:
    name = unicodedata.name(letter, "unknown").split()[0].capitalize()
    return {"Cjk": "Han"}.get(name, name)


def quartiles(counted: Counter[int]) -> str:
    """Of values that were counted: a quarter is at most the first of these, and so on."""
    if len(counted) == 1:
        return f"always {max(counted):,}"
    found: list[str] = []
    total, below = counted.total(), 0
    for value in sorted(counted):
        below += counted[value]
        found += [f"{value:,}"] * (sum(4 * below >= k * total for k in (1, 2, 3)) - len(found))
    return f"quartiles {', '.join(found)}, most {max(counted):,}"
