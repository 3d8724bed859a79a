"""A question, its context, and where in the context the answer is: SQuAD's JSON."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, groupby
from pathlib import Path
from typing import Any, Literal, Self

from jumok.errors import DataError, Wrong, refuse
from jumok.examples import Split
from jumok.examples.faults import read_each, say_each, suffix_of, unknown_format
from jumok.examples.files import WindowedData
from jumok.examples.objects import Object, as_json, as_object, is_object, parse_object
from jumok.examples.offsets import misplaced, require_whole_characters
from jumok.text.lines import read_text, write_lines

SHAPE = 'the format of SQuAD: {"data": [{"paragraphs": [{"context": "...", "qas": [{"id": "...", "question": "...",'
SHAPE += ' "answers": [{"text": "...", "answer_start": 0}]}]}]}]}; a question without answers has "is_impossible": true'
_TO_ANSWER = '{"question": "...", "context": "..."}, and optionally "id"'


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its context."""

    id: str = ""
    """an optional identifier"""
    question: str = ""
    """the question"""
    context: str = ""
    """the text that may contain the answer"""
    answers: list[tuple[str, int]] | None = None
    """each a text and its start in the context; empty if the context has no answer, None if not known"""
    where: str = ""

    @property
    def gold(self) -> list[tuple[str, int]]:
        """The answers, which must be known."""
        if self.answers is None:
            raise DataError("the answer is not known", where=self.where, hint=f"use {SHAPE}", code="data.no_label")
        return self.answers

    @classmethod
    def parse(cls, given: str | Mapping[str, Any], where: str = "") -> Self:
        """Parse a mapping or JSON with `question` and `context`, or a line with a tab between the two.

        "answers" may be as in SQuAD, or pairs of a text and its start; answers that do not fit are ignored.
        """
        if isinstance(given, str):
            question, tab, context = given.partition("\t")
            if tab and not is_object(given):
                return cls("", question, context, None, where)
            if not given.lstrip().startswith("{"):
                hint = f"separate a question and its context with a tab, or use {_TO_ANSWER}"
                what = f"no context to find the answer in: {given[:60]!r}"
                raise DataError(what, where=where, hint=hint, code="data.no_context")
        found = as_object(given, where=where, hint=f"use {_TO_ANSWER}")
        identity = found.text("id") if "id" in found else ""
        question, context = found.text("question"), found.text("context")
        return cls(identity, question, context, _answers_if_told(found, context), where)


def read_questions(path: Path, *, labelled: bool = True, wrong: Wrong = refuse) -> Iterator[Question]:
    """Read a JSON file in the format of SQuAD 1.1 or 2.0."""
    seen: set[str] = set()

    def paragraphs(article: Object) -> list[Object]:
        return [*article.objects("paragraphs", "paragraph")]

    def paragraph(found: Object) -> tuple[str, list[Object]]:
        return found.text("context"), [*found.objects("qas", "question")]

    def question(asked: Object, context: str) -> Question:
        identity = asked.text("id")
        if identity in seen and labelled:
            raise asked.error(f"duplicate id {identity}", code="data.same_id")
        seen.add(identity)
        asked = replace(asked, name="", where=f"{path}, question {identity}")
        text = asked.text("question")
        answers = _answers(asked, context) if labelled else _answers_if_told(asked, context)
        return Question(identity, text, context, answers, asked.where)

    whole = parse_object(read_text(path), where=str(path), hint=f"use {SHAPE}")
    articles = read_each(whole.objects("data", "article"), paragraphs, wrong)
    for context, asked in read_each(chain.from_iterable(articles), paragraph, wrong):
        yield from read_each(asked, partial(question, context=context), wrong)


def _answers(asked: Object, context: str) -> list[tuple[str, int]]:
    impossible = "is_impossible" in asked and asked.truth("is_impossible")
    told = asked.objects("answers", "answer") if "answers" in asked or not impossible else ()
    answers = [_answer(answer, context) for answer in told]
    if impossible and answers:
        raise asked.error('answers, but "is_impossible" is true', code="data.answers")
    if not impossible and not answers:
        raise asked.error('no answers, but "is_impossible" is not true', code="data.answers")
    return answers


def _answer(answer: Object, context: str) -> tuple[str, int]:
    text, start = answer.text("text"), answer.whole("answer_start")
    if not text.strip():
        raise answer.error("no text", code="data.answers")
    if start < 0 or not context.startswith(text, start):
        raise misplaced(answer, text, context, start, "the context")
    require_whole_characters(answer, context, start, start + len(text))
    return text, start


def _answers_if_told(asked: Object, context: str) -> list[tuple[str, int]] | None:
    """Answers to a question that may have none; answers that do not fit are ignored."""
    told = asked.values.get("answers")
    if not isinstance(told, list) or not told:
        return [] if told == [] or asked.values.get("is_impossible") is True else None
    pairs = [isinstance(answer, list | tuple) and len(answer) == 2 for answer in told]
    as_squad = [{"text": a[0], "answer_start": a[1]} if pair else a for a, pair in zip(told, pairs, strict=True)]
    try:
        return _answers(replace(asked, values={**asked.values, "answers": as_squad}), context)
    except DataError:
        return None


def write_questions(path: Path, examples: Iterable[Question], *, wrong: Wrong = refuse) -> None:
    """Write a JSON file (.gz too) in the format of SQuAD 1.1, or of 2.0 if a question has no answer.

    Neighbouring questions on the same context form a paragraph. Ids are kept; a question without one gets a number.
    """
    if suffix_of(path) != "json":
        raise unknown_format("questions", path, "use a .json file (.json.gz too)")
    found = list(examples)
    impossible = any(example.answers == [] for example in found)
    taken = {example.id for example in found}
    free = (str(number) for number in count(1) if str(number) not in taken)
    seen: set[str] = set()

    def asked(example: Question) -> tuple[str, dict[str, Any]]:
        if example.id in seen:
            what = f"duplicate id {example.id}"
            raise DataError(what, where=example.where, hint="give each question its own id", code="data.same_id")
        values: dict[str, Any] = {"id": example.id or next(free), "question": example.question}
        if example.answers is not None:
            values["answers"] = [{"text": text, "answer_start": start} for text, start in example.answers]
            values |= {"is_impossible": not example.answers} if impossible else {}
        as_json([example.context, values], example.where)  # raises for this question alone
        seen.update([example.id] if example.id else [])
        return example.context, values

    said = say_each(found, asked, wrong)
    paragraphs = [
        {"context": context, "qas": [values for _, values in together]}
        for context, together in groupby(said, key=lambda one: one[0])
    ]
    whole = {"version": "v2.0" if impossible else "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}
    write_lines(path, [as_json(whole, str(path))])


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionData(WindowedData):
    """Questions whose answers are in a text: JSON files (.gz too) in the format of SQuAD 1.1 or 2.0.

    Shares and folds keep all questions on a text in the same split.
    """

    kind: Literal["questions"] = "questions"

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Question]:
        return self._read(split, partial(read_questions, wrong=wrong), lambda example: example.context)

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Question] | None:
        """Read a file to predict on, if it is in the format of this data; None for plain lines."""
        is_json = path.name.lower().removesuffix(".gz").endswith(".json")
        return read_questions(path, labelled=False, wrong=wrong) if is_json else None

    def write(self, path: Path, examples: Iterable[Question], *, wrong: Wrong = refuse) -> None:
        write_questions(path, examples, wrong=wrong)

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind)
