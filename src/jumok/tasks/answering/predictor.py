"""Predict answers: a question and a context in, spans of the context out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jumok import html
from jumok.config import Count
from jumok.engines import Array, Done, Engine, nobody
from jumok.examples.questions import Question
from jumok.score.answers import answer_metrics, answer_statistics, threshold_for
from jumok.score.classification import softmax
from jumok.tasks.answering import AnsweringConfig, AnsweringFacts
from jumok.tasks.answering.places import Window, best_spans, encode_question
from jumok.tasks.passage import Passage
from jumok.tasks.protocol import Hidden, Measured, Note, Predictor
from jumok.tasks.windows import Beside
from jumok.text.span import Span
from jumok.text.tokenizer import Tokenizers

Windows = Sequence[Window]
"""the windows of one question"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerConfig:
    """Options of prediction."""

    n_best: Count = 5
    """number of answers to return"""


@dataclass(frozen=True, slots=True)
class Answered:
    """The best answer to a question, and its alternatives."""

    text: str
    """the best answer, or an empty text for no answer"""
    answers: list[Span]
    """best first, an empty one for no answer; a score is the probability among these answers"""
    windows: int = 1
    """number of windows that the context was read in"""
    truncated: bool = False
    """whether a part of question or context was dropped"""
    notes: list[Note] = field(default_factory=list)
    """remarks, such as that the text was truncated"""
    context: Hidden = field(default="", repr=False, compare=False)
    """the text of the input, for notebooks"""

    def _repr_html_(self) -> str:
        best = self.answers[0]
        found = [replace(best, label="answer")] if best.text else []
        others = [f"{span.text or 'no answer'} ({span.score:.3f})" for span in self.answers[1:]]
        return html.block(html.marked(self.context, found), *(html.line(other, small=True) for other in others))


class Answerer(Predictor[Question, Answered]):
    kind = "answering"
    example = Question
    answers = Answered
    columns = ("answer", "start", "probability")
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

    def about(self) -> dict[str, Any]:
        return {"no_answer": self.config.no_answer}

    def first_row(self, example: Question) -> Sequence[int]:
        return self.encode(example, None).windows[0].row

    def completed(self, example: Question, output: Answered) -> Question:
        best = output.answers[0]
        return replace(example, answers=[(best.text, best.start)] if best.text else [])

    def cells(self, example: Question, output: Answered) -> dict[str, Any]:
        """No start where there is no answer."""
        best = output.answers[0]
        start = {"start": best.start} if best.text else {}
        return {"answer": best.text, **start, "probability": best.score}

    def best(self, questions: Sequence[Windows], *, n_best: int = 1) -> list[list[Span]]:
        """The n best answers to every question, best first; at least one, which may be empty.

        If the task allows it, no answer competes with the others, with its lowest score over the windows. The others
        must beat it by more than the threshold.
        """
        candidates, nothing = self._places(questions, n_best)
        answers = []
        for spans, null in zip(candidates, nothing.tolist(), strict=True):
            none = [Span(0, 0, score=null + self.threshold)] if self.config.no_answer or not spans else []
            answers.append(_best_first([*spans, *none], n_best))
        return answers

    def _places(self, questions: Sequence[Windows], n_best: int) -> tuple[list[list[Span]], Array]:
        """The n best spans for every question, best first, and the score of no answer."""
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
        """The margin over no answer that maximises F1 on these; None if every question has an answer."""
        if not self.config.no_answer or not examples:
            return None
        found, nothing = self._places([self.encode(example, None).windows for example in examples], 1)
        gold = _gold(examples)
        best = [spans[0].of(example.context) if spans else "" for example, spans in zip(examples, found, strict=True)]
        gain = answer_statistics(best, gold)[:, 1] - answer_statistics([""] * len(gold), gold)[:, 1]
        gaps = [spans[0].score - null if spans else -1e9 for spans, null in zip(found, nothing, strict=True)]
        return threshold_for(gaps, gain.tolist())

    def quick(self, examples: Sequence[Question]) -> dict[str, float]:
        return self.measure(examples).metrics.values("exact_match", "answer_f1")

    def measure(self, examples: Sequence[Question], *, done: Done = nobody, **options: Any) -> Measured:
        found = self.best([self.encode(example, None).windows for example in examples])
        done(len(examples))
        outputs = [spans[0].of(example.context) for spans, example in zip(found, examples, strict=True)]
        return Measured(answer_metrics(outputs, _gold(examples)), outputs)

    def passage(self, example: Any, output: Answered) -> Passage:
        asked, best = self.parse(example), output.answers[0]
        found = [replace(best, label="answer")] if best.text else []
        return Passage(asked.context, found, title=asked.question)


def _gold(examples: Sequence[Question]) -> list[list[str]]:
    return [[text for text, _ in example.gold] for example in examples]


def _best_first(spans: list[Span], n: int) -> list[Span]:
    return sorted(spans, key=lambda span: -span.score)[:n]
