"""Learning to answer: batches, loss and evaluation for the training loop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices
from jumok.data.corpus import Corpus
from jumok.data.pages import OnPage, Page, make_page
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.questions import Question
from jumok.models.bert_heads import BertTagger
from jumok.models.rnn import RnnTagger
from jumok.tasks.answering import START_AND_END, AnsweringConfig, AnsweringFacts
from jumok.tasks.answering.places import encode_question
from jumok.tasks.answering.predictor import Answerer
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.prepare import Recipe, Recorded, prepare_shards, read_splits, refuse_long, text_tokenizer
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyAnswerer = BertTagger | RnnTagger
NOWHERE = (0, 0)


def prepare(recipe: Recipe, cache: Path, *, fresh: bool = True) -> "AnsweringTask":
    train, dev, test = read_splits(recipe, fresh=fresh)
    config: AnsweringConfig = recipe.task
    if fresh and not config.no_answer:
        for example in chain(train, dev, test):
            if not example.gold:
                hint = "task.no_answer = true, or questions that all have one"
                raise DataError("a question without an answer", where=example.where, hint=hint, code="data.no_answer")
    tokenizer = text_tokenizer(recipe, train, lambda example: [example.question, example.context], "questions", cache)
    long_texts = LongTexts.of(recipe.data)

    def write() -> Recorded:
        facts: dict[str, Any] = {}
        rows = encode_questions(train, tokenizer, long_texts, facts)
        return Recorded(rows, ("text", "place"), max(tokenizer.vocab_size, long_texts.max_len), facts)

    shards = prepare_shards(cache, ["questions", train.fingerprint(), tokenizer.sha256, *long_texts.key], write)
    refuse_long(long_texts, [*dev, *test], lambda example: encode_question(tokenizer, example, long_texts))
    return AnsweringTask(
        config=config,
        train=shards,
        dev=dev,
        tokenizer=tokenizer,
        long_texts=long_texts,
        language=recipe.data.language,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


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
            places = (window.place(*_characters(text, start)) for text, start in example.gold)
            place = next(filter(None, places), NOWHERE)
            facts["without"] += place == NOWHERE
            yield window.row, place
    if facts["read"] == 0:
        hint = "at least one question to train on"
        raise DataError("empty corpus: no question", where=corpus.name, hint=hint, code="data.empty")


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

    config: AnsweringConfig
    labels: list[str] = field(default_factory=lambda: list(START_AND_END))

    @property
    def facts(self) -> AnsweringFacts:
        found = self.windowed_facts(kind=AnsweringFacts)
        assert isinstance(found, AnsweringFacts)
        return found

    def notes(self) -> list[str]:
        return [*super().notes(), *self.notes_of_cut("questions")]

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
        return Answerer(TorchEngine([model], self.tokenizers), self.tokenizers, self.config, self.facts).quick(self.dev)

    def calibrated(self, predictor: Answerer, dev: Sequence[Question]) -> dict[str, Any]:
        threshold = predictor.best_threshold(dev)
        return {} if threshold is None else {"threshold": threshold}
