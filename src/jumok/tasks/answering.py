"""Question answering: the answer is a span of the context (Devlin et al. 2019, sections 4.2 and 4.3).

A model says of every piece how likely the answer starts there, and ends there. A question without an answer in what is
read starts and ends at the first piece of the row, which no answer can.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.config import Count
from jumok.data.batching import Indices
from jumok.data.corpus import Corpus
from jumok.errors import DataError
from jumok.models import BertTagger, RnnTagger
from jumok.score.answers import quick_answers
from jumok.score.significance import Values
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import Done, nobody
from jumok.tasks.reading import OnPage, Page, make_page, pages
from jumok.tasks.windows import Beside, LongTexts, owners
from jumok.text.annotated import Question
from jumok.text.normalise import whole_characters
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyAnswerer = BertTagger | RnnTagger
START_AND_END = ["start", "end"]
NOWHERE = (0, 0)
QUESTIONS = "questions"


@dataclass(frozen=True, kw_only=True, slots=True)
class AnsweringConfig:
    """The task: the answer to a question is a part of a text."""

    kind: Literal["answering"] = "answering"
    no_answer: bool = False
    """whether a question may have none"""
    max_answer: Count = 30
    """pieces of the longest answer"""


@dataclass(frozen=True, slots=True)
class Window:
    """A question with a part of its context as a model reads it."""

    row: list[int]
    first: int
    """where in the row the context begins"""
    offsets: list[tuple[int, int]]
    """the characters of each of its pieces"""
    best: list[bool]
    """of each piece, whether this is the window that has most text around it"""

    def place(self, start: int, end: int) -> tuple[int, int] | None:
        """Where in the row the pieces with these characters begin and end; None if they are not all here."""
        inside = [i for i, (a, b) in enumerate(self.offsets) if a < end and b > start]
        if not inside or self.offsets[inside[0]][0] > start or self.offsets[inside[-1]][1] < end:
            return None
        return self.first + inside[0], self.first + inside[-1]


def encode_question(tokenizer: Tokenizer, example: Question, long_texts: LongTexts) -> Beside[Window]:
    """The whole question beside one part of the context after the other.

    A question that would take more than half of the room is cut there: nobody asks so, and everybody may.
    """
    room = long_texts.max_len - len(tokenizer.frame([], []))
    asked = tokenizer.encode(example.question)
    cut = len(asked) > room // 2
    if cut:
        (_, end), *_ = long_texts.parts(len(asked), room // 2, where=example.where)
        asked = asked[:end]
    encoded = tokenizer.encode_with_offsets(example.context)
    offsets = whole_characters(example.context, encoded.offsets)
    parts = long_texts.parts(len(encoded.ids), room - len(asked), where=example.where)
    owner = owners(parts, range(len(encoded.ids)))
    first = len(tokenizer.frame(asked))
    windows = [
        Window(
            tokenizer.frame(asked, encoded.ids[start:end]),
            first,
            offsets[start:end],
            (owner[start:end] == number).tolist(),
        )
        for number, (start, end) in enumerate(parts)
    ]
    return Beside(windows, len(encoded.ids) > room - len(asked), cut)


def encode_questions(
    corpus: Corpus[Question], tokenizer: Tokenizer, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids of every window, and where its answer starts and ends; `facts` counts the windows without one."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0, "cut": 0, "without": 0}
    for example in corpus:
        found = encode_question(tokenizer, example, long_texts)
        facts["read"] += 1
        facts["long"] += found.long
        facts["cut"] += found.cut
        for window in found.windows:
            places = (window.place(*_characters(text, start)) for text, start in example.answers)
            place = next(filter(None, places), NOWHERE)
            facts["without"] += place == NOWHERE
            yield window.row, place
    if facts["read"] == 0:
        raise DataError("empty corpus: no question", where=corpus.name, right="at least one question to train on")


def _characters(text: str, start: int) -> tuple[int, int]:
    """Of an answer, without the white space around it, which has no piece."""
    return start + len(text) - len(text.lstrip()), start + len(text.rstrip())


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    places: Tensor
    """[B, 2]"""
    count: int


@dataclass(frozen=True, kw_only=True)
class AnsweringTask(OneTextTask[Question]):
    """Batches, loss and evaluation for the training loop."""

    things = "questions"
    asked: ClassVar[str] = QUESTIONS

    config: AnsweringConfig
    long_texts: LongTexts
    labels: list[str] = field(default_factory=lambda: list(START_AND_END))

    def batch(self, examples: Indices) -> Batch:
        text, places = ([self.train.fields[name][i].tolist() for i in examples] for name in ("text", "place"))
        return Batch(make_page(text, self.tokenizer), torch.tensor(places), len(examples))

    def loss(self, model: AnyAnswerer, batch: Batch, *, done: float) -> Loss:
        """The mean of the two: where it starts, and where it ends."""
        page, places = batch.page.to(model.device), batch.places.to(model.device)
        logits = model(page.ids, page.segments, page.mask).masked_fill(~page.mask[..., None], -torch.inf)
        total = F.cross_entropy(logits, places, reduction="sum")  # [B, S, 2] against [B, 2]
        return Loss(total / 2, batch.count)

    def evaluate(self, model: AnyAnswerer) -> dict[str, float]:
        questions = [encode_question(self.tokenizer, example, self.long_texts).windows for example in self.dev]
        found = answer([model], self.tokenizer, questions, self.config)
        said = [best[0].said(example.context) for best, example in zip(found, self.dev, strict=True)]
        return quick_answers(said, [[text for text, _ in example.answers] for example in self.dev])


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of the context, none of them if there is no answer, and the score of their pieces."""

    start: int
    end: int
    score: float

    def said(self, context: str) -> str:
        return context[self.start : self.end]


def answer(
    models: Sequence[AnyAnswerer],
    tokenizer: Tokenizer,
    questions: Sequence[Sequence[Window]],
    config: AnsweringConfig,
    *,
    n_best: int = 1,
    threshold: float = 0.0,
    done: Done = nobody,
) -> list[list[Span]]:
    """The n best answers to every question, best first; there is always one, if need be an empty one.

    If there may be no answer, that is an answer among the others: the one of the window that is least sure of it. The
    others have to be better by more than the threshold.
    """
    candidates, nothing = scored_places(models, tokenizer, questions, config.max_answer, n_best, done=done)
    answers = []
    for spans, null in zip(candidates, nothing.tolist(), strict=True):
        none = [Span(0, 0, null + threshold)] if config.no_answer or not spans else []
        answers.append(_best_first([*spans, *none], n_best))
    return answers


def scored_places(
    models: Sequence[AnyAnswerer],
    tokenizer: Tokenizer,
    questions: Sequence[Sequence[Window]],
    longest: int,
    n_best: int,
    *,
    done: Done = nobody,
) -> tuple[list[list[Span]], Values]:
    """The n best places of an answer to every question, best first, and the score of there being none."""
    flat = [(i, window) for i, windows in enumerate(questions) for window in windows]
    candidates: list[dict[tuple[int, int], float]] = [{} for _ in questions]
    nothing = np.full(len(questions), np.inf)
    with torch.inference_mode():
        for some, page in pages([window.row for _, window in flat], tokenizer, models[0].device):
            found = torch.stack([model(page.ids, page.segments, page.mask) for model in models]).mean(dim=0)
            for place, k in enumerate(some):
                i, window = flat[k]
                logits = found[place].double().cpu().numpy()
                nothing[i] = min(nothing[i], logits[0].sum())
                for span, score in _best_spans(logits, window, longest, n_best).items():
                    candidates[i][span] = max(score, candidates[i].get(span, -np.inf))
    done(len(questions))
    return [_best_first([Span(*span, score) for span, score in here.items()], n_best) for here in candidates], nothing


def _best_first(spans: list[Span], n: int) -> list[Span]:
    return sorted(spans, key=lambda span: -span.score)[:n]


def _best_spans(logits: Values, window: Window, longest: int, n: int) -> dict[tuple[int, int], float]:
    """The n best answers in a window, by the sum of the two logits, that start where no window knows better."""
    size = len(window.offsets)
    if not size:
        return {}
    seen = np.array([a < b for a, b in window.offsets])  # the others have no character
    start, end = (np.where(seen, logits[window.first : window.first + size, k], -np.inf) for k in (0, 1))
    start, longest = np.where(window.best, start, -np.inf), min(longest, size)
    after = np.append(end, np.full(longest - 1, -np.inf))
    both = start[:, None] + np.lib.stride_tricks.sliding_window_view(after, longest)  # first piece, how many follow it
    found: dict[tuple[int, int], float] = {}
    for flat in np.argsort(both, axis=None)[::-1]:
        first, more = divmod(int(flat), longest)
        if len(found) == n or not np.isfinite(both[first, more]):
            break
        found.setdefault((window.offsets[first][0], window.offsets[first + more][1]), float(both[first, more]))
    return found
