"""Train question answering: data, batches, loss and evaluation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices
from jumok.data.cache import Cache
from jumok.data.corpus import Corpus
from jumok.data.pages import OnPage, Page, make_page
from jumok.engines import Done, nobody
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.questions import Question
from jumok.models.bert_heads import BertTagger
from jumok.models.rnn import RnnTagger
from jumok.tasks.answering import START_AND_END, AnsweringConfig, AnsweringFacts
from jumok.tasks.answering.places import encode_question
from jumok.tasks.answering.predictor import Answerer
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.prepare import Preparation, Recipe, Recorded, counted, read_splits
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyAnswerer = BertTagger | RnnTagger
NOWHERE = (0, 0)


def prepare(recipe: Recipe, cache: Cache, *, fresh: bool = True) -> "AnsweringTask":
    config: AnsweringConfig = recipe.task
    splits = read_splits(recipe, fresh=fresh)
    if fresh and not config.no_answer:
        for example in chain(*splits):
            if not example.gold:
                hint = "set task.no_answer = true, or remove questions without an answer"
                raise DataError("a question without an answer", where=example.where, hint=hint, code="data.no_answer")
    prepared = Preparation.of(recipe, cache, splits, lambda example: [example.question, example.context], "questions")

    def write() -> Recorded:
        facts: dict[str, Any] = {}
        rows = encode_questions(prepared.train, prepared.tokenizer, prepared.long_texts, facts)
        largest = max(prepared.tokenizer.vocab_size, prepared.long_texts.max_len)
        return Recorded(rows, ("text", "place"), largest, facts)

    shards = prepared.shards("questions", write)
    prepared.refuse_long(encode_question)
    return AnsweringTask(config=config, **prepared.arguments(shards))


def encode_questions(
    corpus: Corpus[Question], tokenizer: Tokenizer, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids of every window, and where its answer starts and ends; `facts` counts the windows without one."""
    facts |= {"cut": 0, "without": 0}
    for example in counted(corpus, facts):
        found = encode_question(tokenizer, example, long_texts)
        facts["long"] += found.long
        facts["cut"] += found.cut
        for window in found.windows:
            places = (window.place(*_characters(text, start)) for text, start in example.gold)
            place = next(filter(None, places), NOWHERE)
            facts["without"] += place == NOWHERE
            yield window.row, place


def _characters(text: str, start: int) -> tuple[int, int]:
    """Start and end of an answer without the white space around it, which has no token."""
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

    config: AnsweringConfig
    labels: list[str] = field(default_factory=lambda: list(START_AND_END))

    @property
    def facts(self) -> AnsweringFacts:
        return self.windowed_facts(AnsweringFacts)

    def notes(self) -> list[str]:
        return [*super().notes(), *self.notes_of_cut("questions")]

    def batch(self, examples: Indices) -> Batch:
        text, places = ([self.train.fields[name][i].tolist() for i in examples] for name in ("text", "place"))
        return Batch(make_page(text, self.tokenizer), torch.tensor(places), len(examples))

    def loss(self, model: AnyAnswerer, batch: Batch, *, done: float) -> Loss:
        """The mean of the losses of start and end."""
        page, places = batch.page.to(model.device), batch.places.to(model.device)
        logits = model(page.ids, page.segments, page.mask).masked_fill(~page.mask[..., None], -torch.inf)
        total = F.cross_entropy(logits, places, reduction="sum")  # [B, S, 2] against [B, 2]
        return Loss(total / 2, batch.count)

    def evaluate(self, model: AnyAnswerer, *, done: Done = nobody) -> dict[str, float]:
        return Answerer(TorchEngine([model], self.tokenizers, done), self.tokenizers, self.config, self.facts).quick(
            self.dev
        )

    def calibrated(self, predictor: Answerer, dev: Sequence[Question]) -> dict[str, Any]:
        threshold = predictor.best_threshold(dev)
        return {} if threshold is None else {"threshold": threshold}
