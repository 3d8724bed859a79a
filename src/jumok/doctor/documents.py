"""Find repetition, boilerplate and damage in documents for pre-training, and count what they contain.

Documents are read once and not held in memory: only a hash of every sentence, up to MOST, and a sample are kept.
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
from typing import Any

from jumok.doctor.faults import examine_bytes, unreadable
from jumok.errors import DataError
from jumok.examples import SPLITS, Split
from jumok.examples.documents import Sentence, text_files
from jumok.findings import (
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
    quartiles,
)
from jumok.text.language import WORD, Language

MOST = 2_000_000  # sentences to examine per split: their hashes take 200 MB, those of their documents no more
SAMPLE = 3_000_000  # characters to try a vocabulary on
STRETCH = 200_000  # characters of a document to hold at once
LONG = 250  # words
SHORT = 5  # words; shorter sentences may recur by chance, as headings do
MANY, SHARE = 10, 0.005  # boilerplate occurs in at least this many documents, and in this share of them
LETTERS = 20  # words that decide the script of a sentence

# fmt: off
_RULES: dict[str, Rule] = {
    "one_sentence": ("data.one_sentence", inf, inf, "documents of a single {thing}", "Next-sentence prediction cannot"
        " split them"),
    "same_document": ("data.duplicate", 0.02, inf, "documents that repeat an earlier one, with {words} of all words",
        "A model memorises them: keep one of each"),
    "same_sentence": ("data.duplicate", 0.03, inf, "{things} that repeat an earlier one, with {words} of all words,"
        " repeated documents not counted", "Thousands of repeated lines can keep the loss from falling: keep one of"
        " each, unless the repetition is intended"),
    "boilerplate": ("data.boilerplate", 0.02, inf, "{things} that occur in at least {many} documents, with {words} of"
        " all words", "Menus, notices and headings teach little: remove them if there are many"),
    "damaged": ("data.damaged", 0.001, 0.1, "{things} with the replacement character (U+FFFD)", "The text was once read"
        " in the wrong encoding: convert the original again"),
    "control": ("data.control_characters", 0.001, 0.1, "{things} with control characters", "A broken conversion left"
        " them: remove them, or they become part of the vocabulary"),
    "decomposed": ("data.decomposed", inf, inf, "{things} with decomposed characters (NFD)", "Training normalises"
        " them to NFC: do the same in the files if other programs search or compare them"),
    "no_letters": ("data.no_letters", 0.05, 0.5, "{things} without a letter", "Numbers, rules and tables teach no"
        " language: remove them if there are many"),
    "long_sentence": ("data.too_long", 0.01, inf, "sentences of more than {long} words", "No sentence ends were"
        " found: check that the text has full stops"),
    "long_line": ("data.too_long", inf, inf, "lines of more than {long} words", "Training splits them, which is fine"
        " for paragraphs"),
    "wrong_language": ("data.wrong_language", 0.05, 0.5, "{things} that do not look like {language}", "A model learns"
        " little from them: remove them, unless they are intended"),
    "shared_document": ("data.overlap", 0.005, 0.05, "documents that are also in {earlier}", "Scores on {split} will"
        " reward memorisation: remove these documents from {earlier}"),
    "shared_sentence": ("data.overlap", 0.05, inf, "{things} that are also in {earlier}, shared documents not counted",
        "Scores on {split} will reward memorisation: remove these from {earlier}"),
}
# fmt: on
_OF_DOCUMENTS = ("one_sentence", "same_document", "shared_document")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff]")


def examine_documents(data: Any, *, seed: int) -> "tuple[list[Finding], Survey | None]":
    """Examine every split; return the findings and the survey of the training text, if there is any."""
    findings: list[Finding] = []
    surveys: dict[str, Survey] = {}
    for split in (split for split in SPLITS if data.exists(split)):
        survey, faults = Survey.of(data, earlier=surveys), list[Finding]()
        try:
            survey.read(data.sentences(split, seed=seed))
        except DataError as error:
            faults = _unreadable(data, split, error, survey.sentences)
        findings += faults
        if survey.sentences:
            findings += survey.findings(split)
            surveys[split] = survey
        elif not faults:
            findings.append(finding("data.empty", "error", 0, 1, f"{split}: no documents at all. Check its files."))
    return findings, surveys.get("train")


def _unreadable(data: Any, split: Split, error: DataError, n: int) -> list[Finding]:
    """Report where reading stopped; if the text is not UTF-8, count all lines that are not."""
    files = map(Path, data.files(split))
    texts = [text for file in files for text in (text_files(file) if file.is_dir() else [file])]
    if "UTF-8" in error.what and (found := [finding for text in texts for finding in examine_bytes(text)]):
        return found
    return [unreadable(split, error, n)]


@dataclass(frozen=True, slots=True)
class _Seen:
    """An examined sentence."""

    sentence: Sentence
    text: str
    words: int
    letters: int
    """words that consist of letters"""


class Survey:
    """Counts and faults of one split, updated document by document."""

    def __init__(
        self,
        language: str = "",
        *,
        earlier: "Mapping[str, Survey] | None" = None,
        is_made: bool = False,
        is_cut: bool = True,
    ) -> None:
        """`is_made`: generated by a small grammar, so sentences recur; `is_cut`: lines are split into sentences."""
        self.documents = self.sentences = self.words = self.characters = 0
        self.is_whole = True
        """the whole split was read"""
        self.sample = Sample(SAMPLE)
        self._language = language
        self._excludes = Language(language).excludes if language else None
        self._earlier = dict(earlier or {})
        self._is_made = is_made
        self._things, self._long = ("sentences", "long_sentence") if is_cut else ("lines", "long_line")
        self._lengths: Counter[int] = Counter()
        self._sizes: Counter[int] = Counter()
        """sentences per document, except for the last one, which may continue"""
        self._size = 0
        self._scripts: Counter[str] = Counter()
        self._tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
        """by rule, and by the split that it compares with"""
        self._words_again: Counter[str] = Counter()
        self._seen_documents: set[int] = set()
        self._seen_in: dict[int, int] = {}
        """the number of the document in which a sentence was last seen"""
        self._spread: Counter[int] = Counter()
        """number of documents with a sentence, besides the first"""
        self._widespread: dict[int, _Seen] = {}

    @staticmethod
    def of(data: Any, *, earlier: "Mapping[str, Survey] | None" = None) -> "Survey":
        return Survey(data.language, earlier=earlier, is_made=data.is_made, is_cut=data.split_sentences)

    def read(self, sentences: Iterable[Sentence]) -> None:
        stream = iter(sentences)
        for part, is_document in _stretches(islice(stream, MOST)):
            self._add(part, is_document)
        self.is_whole = next(stream, None) is None

    @property
    def repeated(self) -> float:
        """Share of the words that are in repeated documents and sentences."""
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
        # A repeated document is one finding: do not count its sentences again.
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
        """Whether a document occurs earlier in this split or in another one; count it if so."""
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
        """Return all findings for train; for other splits, only problems and overlap."""
        many = max(MANY, ceil(SHARE * self.documents))
        boilerplate, words = self._boilerplate(many)
        tallies = {**self._tallies, ("boilerplate", ""): boilerplate}
        words_of = {**self._words_again, "boilerplate": words}
        facts = {"things": self._things, "thing": self._things[:-1], "language": self._language, "split": split}
        facts |= {"long": str(LONG), "many": f"{many:,}"}
        found: list[Finding] = []
        if self.documents == 1 and self.sentences >= 2 * SHORT:
            message = f"{split}: all {self._things} are one document. If that is wrong, set data.format."
            found.append(finding("data.one_document", "note", 1, 1, message))
        for (rule, earlier), tally in tallies.items():
            n = self.documents if rule in _OF_DOCUMENTS else self.sentences
            share = words_of[rule] / self.words if rule in words_of else None  # repetition is weighted by words
            told = {**facts, "earlier": earlier, "words": f"{100 * (share or 0):.1f} %"}
            found += judge(_RULES[rule], tally, n, told, begin=f"{split}: ", weight=share)
        if split != "train":
            found = [one for one in found if one.severity != "note" or one.code == "data.overlap"]
        return [finding("data.counts", "note", self.sentences, self.sentences, f"{split}: {self._counts()}"), *found]

    def _counts(self) -> str:
        of = "" if self.is_whole else f"only the first {MOST:,} {self._things} were examined: "
        documents = f"{self.documents:,} document{'s' * (self.documents != 1)}"
        sizes = quartiles(self._sizes + Counter([self._size]))
        total = max(self._scripts.total(), 1)
        scripts = [f"{name} {100 * n / total:.1f} %" for name, n in self._scripts.most_common(4) if n >= total / 2000]
        return (
            f"{of}{documents}, {self.sentences:,} {self._things}, {self.words:,} words, {self.characters:,} characters."
            f" Words per {self._things[:-1]}: {quartiles(self._lengths)}. {self._things.capitalize()} per document:"
            f" {sizes}. Scripts: {', '.join(scripts) or 'none'}."
        )

    def _boilerplate(self, many: int) -> tuple[Tally, int]:
        """Tally the sentences that occur in many documents, most frequent first, and count their words."""
        found = [(self._spread[key] + 1, one) for key, one in self._widespread.items() if self._spread[key] + 1 >= many]
        found.sort(key=lambda counted: -counted[0])
        examples = [example(f"in {n:,} documents", one.sentence.text) for n, one in found[:5]]
        return Tally(sum(n for n, _ in found), examples), sum(n * one.words for n, one in found)


class Sample:
    """A random sample of documents from a stream; long ones are sampled in parts."""

    def __init__(self, most: int) -> None:
        self._most = most
        """characters"""
        self._kept: list[tuple[float, int, list[Sentence]]] = []
        self._size = self._read = 0
        self._limit = 1.0

    def add(self, part: list[Sentence]) -> None:
        # Hash each part to [0, 1) and keep those below a limit, which is halved when the sample is too large.
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
    """Yield documents, and whether each is whole; long ones come in parts, so they are never held in memory."""
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
    """Script of most words, from the Unicode names of their first letters: Latin, Hangul, Cyrillic."""
    return Counter(map(_script_of, (word[0] for word in words[:LETTERS]))).most_common(1)[0][0]


@cache
def _script_of(letter: str) -> str:
    name = unicodedata.name(letter, "unknown").split()[0].capitalize()
    return {"Cjk": "Han"}.get(name, name)
