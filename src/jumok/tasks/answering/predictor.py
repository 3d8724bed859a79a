"""Answers to questions: a question and a text in, parts of the text out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jumok import html
from jumok.config import Count
from jumok.engines import Array, Done, Engine, nobody
from jumok.examples.questions import Question
from jumok.score.answers import answer_statistics, compare_answers, quick_answers, score_answers, threshold_for
from jumok.score.classification import softmax
from jumok.score.significance import Comparison
from jumok.tasks.answering import AnsweringConfig, AnsweringFacts
from jumok.tasks.answering.places import Window, best_spans, encode_question
from jumok.tasks.passage import Passage
from jumok.tasks.protocol import Hidden, Note, Predictor, scored
from jumok.tasks.windows import Beside
from jumok.text.span import Span
from jumok.text.tokenizer import Tokenizers

Windows = Sequence[Window]
"""of one question"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerConfig:
    """What is asked of a model that answers questions."""

    n_best: Count = 5
    """answers to show"""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question, and others that the model thought of."""

    text: str
    """the best answer, empty if there is none"""
    answers: list[Span]
    """best first, the empty one being no answer; a score is the probability among those that are shown"""
    windows: int = 1
    """in how many parts the context was read"""
    truncated: bool = False
    """whether a part of question or context was not read"""
    notes: list[Note] = field(default_factory=list)
    """what should be known of it, such as that the text was cut"""
    context: Hidden = field(default="", repr=False, compare=False)
    """the text that was asked, for notebooks"""

    def _repr_html_(self) -> str:
        best = self.answers[0]
        found = [replace(best, label="answer")] if best.text else []
        others = [f"{span.text or 'no answer'} ({span.score:.3f})" for span in self.answers[1:]]
        return html.block(html.marked(self.context, found), *(html.line(other, small=True) for other in others))


class Answerer(Predictor[Question, Answered]):
    kind = "answering"
    example = Question
    answers = Answered
    options = AnswerConfig
    marks = True

    def __init__(self, engine: Engine, tokenizers: Tokenizers, config: AnsweringConfig, facts: AnsweringFacts) -> None:
        self.engine, self.tokenizers = engine, tokenizers
        self.config = config
        self.long_texts = facts.rule(engine.longest)
        self.threshold = facts.threshold

    def encode(self, example: Question, options: Any) -> Beside[Window]:
        return encode_question(self.tokenizer, example, self.long_texts)

    def answer(
        self, examples: Sequence[Question], read: Sequence[Beside[Window]], options: AnswerConfig, done: Done
    ) -> Iterator[Answered]:
        best = self.best([found.windows for found in read], n_best=options.n_best)
        done(len(examples))
        for example, spans, found in zip(examples, best, read, strict=True):
            shares = softmax([span.score for span in spans])
            answers = [
                replace(span, text=span.of(example.context), score=round(float(p), 6))
                for span, p in zip(spans, shares, strict=True)
            ]
            notes = self.long_texts.notes_beside(found, "questions")
            yield Answered(answers[0].text, answers, len(found.windows), found.truncated, notes, example.context)

    def completed(self, example: Question, output: Answered) -> Question:
        best = output.answers[0]
        return replace(example, answers=[(best.text, best.start)] if best.text else [])

    def best(self, questions: Sequence[Windows], *, n_best: int = 1) -> list[list[Span]]:
        """The n best answers to every question, best first; there is always one, if need be an empty one.

        If there may be no answer, that is an answer among the others: the one of the window that is least sure of it.
        The others have to be better by more than the threshold.
        """
        candidates, nothing = self._places(questions, n_best)
        answers = []
        for spans, null in zip(candidates, nothing.tolist(), strict=True):
            none = [Span(0, 0, score=null + self.threshold)] if self.config.no_answer or not spans else []
            answers.append(_best_first([*spans, *none], n_best))
        return answers

    def _places(self, questions: Sequence[Windows], n_best: int) -> tuple[list[list[Span]], Array]:
        """The n best places of an answer to every question, best first, and the score of there being none."""
        flat = [(i, window) for i, windows in enumerate(questions) for window in windows]
        candidates: list[dict[tuple[int, int], float]] = [{} for _ in questions]
        nothing = np.full(len(questions), np.inf)
        found = self.engine.logits([window.row for _, window in flat])
        for (i, window), by_model in zip(flat, found, strict=True):
            logits = by_model.mean(axis=0)  # [S, 2]
            nothing[i] = min(nothing[i], logits[0].sum())
            for span, score in best_spans(logits, window, self.config.max_answer, n_best).items():
                candidates[i][span] = max(score, candidates[i].get(span, -np.inf))
        spans = ([Span(*span, score=score) for span, score in here.items()] for here in candidates)
        return [_best_first(some, n_best) for some in spans], nothing

    def best_threshold(self, examples: Sequence[Question]) -> float | None:
        """How much better than none an answer has to be for the highest F1 on these; None if there is always one."""
        if not self.config.no_answer or not examples:
            return None
        found, nothing = self._places([self.encode(example, None).windows for example in examples], 1)
        gold = _gold(examples)
        said = [best[0].of(example.context) if best else "" for example, best in zip(examples, found, strict=True)]
        gain = answer_statistics(said, gold)[:, 1] - answer_statistics([""] * len(gold), gold)[:, 1]
        gaps = [best[0].score - null if best else -1e9 for best, null in zip(found, nothing, strict=True)]
        return threshold_for(gaps, gain.tolist())

    def quick(self, examples: Sequence[Question]) -> dict[str, float]:
        """Dev scores, without intervals."""
        return quick_answers(self._said(examples, nobody), _gold(examples))

    def score(
        self, examples: Sequence[Question], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Exact match and F1 by the official rule of SQuAD."""
        self.wanted(options)
        said = self._said(examples, done)
        return scored(examples, score_answers(said, _gold(examples))), said

    def compare(
        self, other: "Answerer", examples: Sequence[Question], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        self.wanted(options)
        return compare_answers(self._said(examples, done), other._said(examples, done), _gold(examples))

    def _said(self, examples: Sequence[Question], done: Done) -> list[str]:
        found = self.best([self.encode(example, None).windows for example in examples])
        done(len(examples))
        return [spans[0].of(example.context) for spans, example in zip(found, examples, strict=True)]

    def passage(self, example: Any, output: Answered) -> Passage:
        asked, best = self.parse(example), output.answers[0]
        found = [replace(best, label="answer")] if best.text else []
        return Passage(asked.context, found, title=asked.question)


def _gold(examples: Sequence[Question]) -> list[list[str]]:
    return [[text for text, _ in example.gold] for example in examples]


def _best_first(spans: list[Span], n: int) -> list[Span]:
    return sorted(spans, key=lambda span: -span.score)[:n]
