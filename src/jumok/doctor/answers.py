"""What is wrong with answers to questions, and with endings to choose from."""

from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from math import inf

import numpy as np

from jumok.doctor.findings import Finding, Rule, Tally, count_words, finding, folded, hash_of, judge
from jumok.errors import listed
from jumok.score.answers import normalised
from jumok.text.annotated import Choice, Question

_RARE = 0.2  # of the share that each place would have if all had the same

# fmt: off
_RULES: dict[str, Rule] = {
    "new_silence": ("unanswerable", 0, inf, "questions without an answer, of which train has none", "No model learns"
        " from train to say that there is none: add such questions to it, with task.no_answer = true, or leave them"
        " out here"),
    "no_silence": ("unanswerable", inf, inf, "questions without an answer in train, and none here", "How well a model"
        " tells them does not show on {split}: add some, or divide the data anew"),
    "all_silent": ("unanswerable", 0, 0, "questions without an answer, and not one with an answer", "There is nothing"
        ' to find: check that "answers" were not lost'),
    "one_place": ("labels", 0, inf, "right endings that all stand at place {places}", "A score would not show whether"
        " anything was read: shuffle the endings of each example"),
    "rare": ("imbalanced", inf, inf, "right endings at a rare place ({places})", "No place should be likelier than"
        " another: shuffle the endings of each example"),
    "missing": ("missing_label", inf, inf, "places of the right ending in train that never have it here ({places})",
        "No place should be likelier than another: shuffle the endings of each example"),
    "unknown": ("unknown_label", 0, inf, "right endings at a place that has none in train ({places})", "Look at the"
        " number of endings of both, and shuffle those of each example"),
    "twins": ("same_endings", 0, 0.1, "choices whose right ending is there twice", "Nobody can tell the two apart:"
        " put another ending in the place of the wrong one"),
}
# fmt: on


class Answers:
    """The answers to the questions of one split."""

    def __init__(self) -> None:
        self._contexts: set[int] = set()
        self._numbers: Counter[int] = Counter()
        """of different answers that a question has"""
        self._asked, self._answered = array("l"), array("l")
        self._silent = Tally()

    def add(self, question: Question) -> Hashable:
        answers = {text for text, _ in question.answers}
        self._contexts.add(hash_of(question.context))
        self._asked.append(count_words(folded(question.question)))
        self._answered.extend(count_words(folded(answer)) for answer in answers)
        self._numbers[len(answers)] += 1
        if not answers:
            self._silent.add(question.where, question.question)
        return frozenset(word for answer in answers for word in (normalised(answer) or answer).split())

    def agree(self, one: frozenset[str], other: frozenset[str]) -> bool:
        """Annotators rarely take the very same words: answers that share one are no contradiction."""
        return one == other or bool(one & other)

    def examine(self, name: str, train: "Answers | None") -> list[Finding]:
        n, silent = self._numbers.total(), self._silent.count
        several = sum(count for number, count in self._numbers.items() if number > 1)
        message = (
            f"{name}: {n:,} questions on {len(self._contexts):,} contexts, {_percent(silent, n)} without an answer"
        )
        message += f" and {_percent(several, n)} with several. Words of a question: {_lengths(self._asked)}"
        message += f"; of an answer: {_lengths(self._answered)}." if self._answered else "."
        findings = [finding("answers", "note", n, n, message)]
        in_train = train._silent.count if train else silent
        if silent == n and train is None:
            findings += judge(_RULES["all_silent"], self._silent, n, {}, begin=f"{name}: ")
        elif silent and not in_train:
            findings += judge(_RULES["new_silence"], self._silent, n, {}, begin=f"{name}: ")
        elif train and in_train and not silent:
            total = train._numbers.total()
            findings += judge(_RULES["no_silence"], Tally(in_train), total, {"split": name}, begin=f"{name}: ")
        return findings


class Choices:
    """The endings of one split, and the places of the right ones."""

    def __init__(self) -> None:
        self._places: Counter[int] = Counter()
        self._endings: Counter[int] = Counter()
        """numbers of endings to choose from"""
        self._first: dict[int, Tally] = {}
        self._twins = Tally()

    def add(self, choice: Choice) -> Hashable:
        endings = [folded(ending) for ending in choice.endings]
        right = endings[choice.label]
        self._places[choice.label] += 1
        self._endings[len(endings)] += 1
        self._first.setdefault(choice.label, Tally()).add(choice.where, choice.context, choice.endings[choice.label])
        if endings.count(right) > 1:
            self._twins.add(choice.where, choice.context, choice.endings[choice.label])
        return hash_of(right)

    def agree(self, one: int, other: int) -> bool:
        return one == other

    def examine(self, name: str, train: "Choices | None") -> list[Finding]:
        n = self._places.total()

        def about(rule: str, places: Sequence[int], count: int, of: int) -> list[Finding]:
            examples = [self._first[place].examples[0] for place in places if place in self._first]
            facts = {"places": listed([str(place) for place in places])}
            return judge(_RULES[rule], Tally(count, examples[:5]), of, facts, begin=f"{name}: ")

        shares = [f"{place} {_percent(count, n)}" for place, count in sorted(self._places.items())]
        numbers = " or ".join(map(str, sorted(self._endings)))
        message = f"{name}: {numbers} endings to choose from. Places of the right one, from 0: {', '.join(shares)}."
        findings = [finding("labels", "note", n, n, message)]
        if len(self._places) == 1 and n >= 2 * max(self._endings):
            findings += about("one_place", [*self._places], n, n)
        rare = [place for place, count in sorted(self._places.items()) if count < _RARE * n / max(self._endings)]
        findings += about("rare", rare, sum(self._places[place] for place in rare), n)
        if train:
            missing = [place for place in sorted(train._places) if place not in self._places]
            findings += about("missing", missing, len(missing), len(train._places))
            unknown = [place for place in sorted(self._places) if place not in train._places]
            findings += about("unknown", unknown, sum(self._places[place] for place in unknown), n)
        return findings + judge(_RULES["twins"], self._twins, n, {}, begin=f"{name}: ")


def _lengths(values: Sequence[int]) -> str:
    half, most, longest = (int(value) for value in np.percentile(values, [50, 95, 100]))
    return f"median {half:,}, 95 % at most {most:,}, longest {longest:,}"


def _percent(count: int, n: int) -> str:
    return f"{100 * count / n:.1f} %"
