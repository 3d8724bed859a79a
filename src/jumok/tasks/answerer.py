"""A trained model that answers questions: a question and a text in, parts of the text out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumok.config import Count, read_config
from jumok.errors import InputError
from jumok.score.answers import answer_statistics, compare_answers, score_answers, threshold_for
from jumok.score.significance import Comparison
from jumok.tasks.answering import (
    QUESTIONS,
    AnsweringConfig,
    AnyAnswerer,
    Span,
    Window,
    answer,
    encode_question,
    scored_places,
)
from jumok.tasks.one_text import OneTextPredictor, scored
from jumok.tasks.predict import Done, line_places, nobody, plain_output, refuse_options
from jumok.tasks.windows import Beside
from jumok.text.annotated import Question, parse_question
from jumok.text.objects import is_object
from jumok.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerConfig:
    """What is asked of a model that answers questions."""

    n_best: Count = 5
    """answers to show"""


@dataclass(frozen=True, slots=True)
class PossibleAnswer:
    """`context[start:end]`; empty if there is no answer."""

    text: str
    start: int
    end: int
    probability: float
    """among those that are shown"""


@dataclass(frozen=True, slots=True)
class Answered:
    text: str
    """the best answer, empty if there is none"""
    answers: list[PossibleAnswer]
    windows: int
    """in how many parts the context was read"""
    truncated: bool = False
    """whether a part of question or context was not read"""


class Answerer(OneTextPredictor[AnyAnswerer]):
    """One loaded model, or several as an ensemble."""

    def __init__(self, models: Sequence[AnyAnswerer], tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        super().__init__(models, tokenizer, facts)
        self.config = AnsweringConfig(**facts["task"])
        self.threshold: float = facts.get("threshold", 0.0)

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[Answered]:
        """Lines of JSON with `question` and `context`, or the two with a tab between them."""
        config = read_config(AnswerConfig, options, what="the question", path="")
        asked = [read_question(line, where) for line, where in zip(texts, line_places(texts), strict=True)]
        found, read = self._answer(asked, config.n_best, done)
        outputs = []
        for example, spans, how in zip(asked, found, read, strict=True):
            scores = np.exp(np.array([span.score for span in spans]) - spans[0].score)
            answers = [
                PossibleAnswer(span.said(example.context), span.start, span.end, round(float(p), 6))
                for span, p in zip(spans, scores / scores.sum(), strict=True)
            ]
            outputs.append(Answered(answers[0].text, answers, len(how.windows), how.truncated))
        return outputs

    def score(
        self, examples: Sequence[Question], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Exact match and F1 by the official rule, with intervals, and the answers."""
        refuse_options(options, "the score of answers")
        said = self._best(examples, done)
        scores = score_answers(said, [[text for text, _ in example.answers] for example in examples])
        return scored(examples, scores), said

    def compare(
        self, other: "Answerer", examples: Sequence[Question], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        refuse_options(options, "the score of answers")
        gold = [[text for text, _ in example.answers] for example in examples]
        return compare_answers(self._best(examples, done), other._best(examples, done), gold)

    def plain(self, text: str, output: Answered) -> dict[str, Any]:
        return plain_output(output)

    def _best(self, examples: Sequence[Question], done: Done) -> list[str]:
        found, _ = self._answer(examples, 1, done)
        return [spans[0].said(example.context) for spans, example in zip(found, examples, strict=True)]

    def _answer(
        self, examples: Sequence[Question], n_best: int, done: Done
    ) -> tuple[list[list[Span]], list[Beside[Window]]]:
        read = [encode_question(self.tokenizer, example, self.long_texts) for example in examples]
        self.long_texts.warn_beside(read, QUESTIONS)
        options: dict[str, Any] = {"n_best": n_best, "threshold": self.threshold, "done": done}
        windows = [found.windows for found in read]
        return answer(self.models, self.tokenizer, windows, self.config, **options) if read else [], read

    def best_threshold(self, examples: Sequence[Question]) -> float | None:
        """How much better than none an answer has to be for the highest F1 on these; None if there is always one."""
        if not self.config.no_answer or not examples:
            return None
        windows = [encode_question(self.tokenizer, example, self.long_texts).windows for example in examples]
        found, nothing = scored_places(self.models, self.tokenizer, windows, self.config.max_answer, 1)
        gold = [[text for text, _ in example.answers] for example in examples]
        said = [best[0].said(example.context) if best else "" for example, best in zip(examples, found, strict=True)]
        gain = answer_statistics(said, gold)[:, 1] - answer_statistics([""] * len(gold), gold)[:, 1]
        gaps = [best[0].score - null if best else -1e9 for best, null in zip(found, nothing, strict=True)]
        return threshold_for(gaps, gain.tolist())


def read_question(line: str, where: str) -> Question:
    """A question and its text, with a tab between them or as JSON."""
    question, tab, context = line.partition("\t")
    if tab and not is_object(line):
        return Question("", question, context, [], where)
    if not line.lstrip().startswith("{"):
        right = 'a question and a text with a tab between them, or {"question": …, "context": …}'
        raise InputError(f"no text to find the answer in: {line[:60]!r}", where=where, right=right)
    return parse_question(line, where)
