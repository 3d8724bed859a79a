"""The doctor's rules for questions: unanswerable ones, and answers that are not in their context."""

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from jumok.examples.questions import Question
from jumok.findings import Finding, Rule, Tally, count_words, finding, folded, hash_of, judge
from jumok.score.answers import normalised
from jumok.tasks.checks import Gold, TextChecks, View

_CHARACTERS = "counts characters from 0 in the context as written in the file, not bytes or UTF-16 units"

# fmt: off
_RULES: dict[str, Rule] = {
    "new": ("data.unanswerable", 0, inf, "questions without an answer, while train has none", "A model cannot learn"
        " from train that there may be no answer: add such questions to it and set task.no_answer = true, or remove"
        " them here"),
    "none_here": ("data.unanswerable", inf, inf, "questions without an answer in train, while there are none here",
        "Scores cannot show how well a model recognises them: add some, or split the data again"),
    "none_answered": ("data.unanswerable", 0, 0, "questions without an answer, and none with one", "There is nothing to"
        ' learn: check that "answers" were not lost'),
}
_READING: dict[str, Rule] = {
    "over_long": ("data.too_long", inf, inf, "{things} with a context of more than {max_words} words", "data.long_texts"
        " decides how contexts of more than data.max_len tokens are read: windows find answers anywhere in them"),
    "offsets": ("data.answer_offsets", 0, 0, "{things} with an answer that is not in the context, or that splits a"
        " character", "Training stops at the first: copy answers exactly from the context, accents included, and mark"
        ' questions without one with "is_impossible": true'),
    "shifted_offsets": ("data.answer_offsets", 0, 0, "{things} whose answer is elsewhere in the context ({shifts})",
        f"Training stops at the first: correct answer_start, which {_CHARACTERS}"),
}
# fmt: on


class AnsweringChecks(TextChecks):
    things = "questions"
    rules = _READING

    def view(self, example: Question) -> View:
        answers = " | ".join(sorted({text for text, _ in example.gold}))
        texts = example.context, example.question
        return View(texts, answers, things="questions", answers="answer", context=example.context)

    def gold(self) -> Gold:
        return Answers()

    def examine_settings(self, splits: Mapping[str, Iterable[Any]]) -> list[Finding]:
        if self.config.no_answer:
            return []
        unanswered, n = Tally(), 0
        for question in chain(*splits.values()):
            n += 1
            if not question.gold:
                unanswered.add(question.where, question.question)
        if not unanswered.count:
            return []
        message = f"Questions without an answer: {unanswered.count:,} of {n:,}. Training refuses them unless the recipe"
        message += " has task.no_answer = true."
        return [finding("recipe.settings", "error", unanswered.count, n, message, unanswered.examples)]


class Answers(Gold):
    """The answers in one split."""

    def __init__(self) -> None:
        self._contexts: set[int] = set()
        self._numbers: Counter[int] = Counter()
        """questions by their number of different answers"""
        self._asked, self._answered = array("l"), array("l")
        self._unanswered = Tally()

    def add(self, question: Question) -> Hashable:
        answers = {text for text, _ in question.gold}
        self._contexts.add(hash_of(question.context))
        self._asked.append(count_words(folded(question.question)))
        self._answered.extend(count_words(folded(answer)) for answer in answers)
        self._numbers[len(answers)] += 1
        if not answers:
            self._unanswered.add(question.where, question.question)
        return frozenset(word for answer in answers for word in (normalised(answer) or answer).split())

    def agree(self, one: frozenset[str], other: frozenset[str]) -> bool:
        """Answers that share a word agree: annotators rarely choose exactly the same words."""
        return one == other or bool(one & other)

    def examine(self, name: str, train: "Answers | None") -> list[Finding]:
        n, unanswered = self._numbers.total(), self._unanswered.count
        several = sum(count for number, count in self._numbers.items() if number > 1)
        message = (
            f"{name}: {n:,} questions on {len(self._contexts):,} contexts, {_percent(unanswered, n)} without an answer"
        )
        message += f" and {_percent(several, n)} with several. Words per question: {_lengths(self._asked)}"
        message += f"; per answer: {_lengths(self._answered)}." if self._answered else "."
        findings = [finding("data.answers", "note", n, n, message)]
        in_train = train._unanswered.count if train else unanswered
        if unanswered == n and train is None:
            findings += judge(_RULES["none_answered"], self._unanswered, n, {}, begin=f"{name}: ")
        elif unanswered and not in_train:
            findings += judge(_RULES["new"], self._unanswered, n, {}, begin=f"{name}: ")
        elif train and in_train and not unanswered:
            total = train._numbers.total()
            findings += judge(_RULES["none_here"], Tally(in_train), total, {"split": name}, begin=f"{name}: ")
        return findings


def _lengths(values: Sequence[int]) -> str:
    half, most, longest = (int(value) for value in np.percentile(values, [50, 95, 100]))
    return f"median {half:,}, 95 % at most {most:,}, longest {longest:,}"


def _percent(count: int, n: int) -> str:
    return f"{100 * count / n:.1f} %"
