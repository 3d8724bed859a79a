"""Train multiple choice: data, batches, loss and evaluation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices, shuffled_batches
from jumok.data.cache import Cache
from jumok.data.corpus import Corpus
from jumok.data.pages import OnPage, Page, make_page
from jumok.engines import Done, nobody
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.choices import Choice
from jumok.models.bert_heads import BertClassifier
from jumok.models.rnn import RnnClassifier
from jumok.tasks.choice.predictor import Chooser, encode_choice
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.prepare import Preparation, Recipe, Recorded, counted, read_splits
from jumok.tasks.windows import LongTexts, WindowedFacts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyChooser = BertClassifier | RnnClassifier


def prepare(recipe: Recipe, cache: Cache, *, fresh: bool = True) -> "ChoiceTask":
    def texts_of(example: Choice) -> list[str]:
        return [example.context, *example.endings]

    prepared = Preparation.of(recipe, cache, read_splits(recipe, fresh=fresh), texts_of, "choices")

    def write() -> Recorded:
        n = next((len(example.endings) for example in prepared.train), 0)
        facts: dict[str, Any] = {"n_endings": n}
        rows = encode_choices(prepared.train, prepared.tokenizer, prepared.long_texts, facts)
        return Recorded(rows, (*ending_fields(n), "label"), max(prepared.tokenizer.vocab_size, n), facts)

    shards = prepared.shards("choices", write)
    prepared.refuse_long(encode_choice)
    return ChoiceTask(n_endings=shards.facts["n_endings"], **prepared.arguments(shards))


def encode_choices(
    corpus: Corpus[Choice], tokenizer: Tokenizer, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The rows of all endings of every window, and the index of the right one."""
    facts |= {"cut": 0}
    n = 0
    for example in counted(corpus, facts):
        n = n or len(example.endings)
        if len(example.endings) != n:
            hint = f"give every example {n} endings, as the first one has"
            raise DataError(f"{len(example.endings)} endings", where=example.where, hint=hint, code="data.endings")
        found = encode_choice(tokenizer, example, long_texts)
        facts["long"] += found.long
        facts["cut"] += found.cut
        for rows in found.windows:
            yield *rows, [example.gold]


def ending_fields(n: int) -> list[str]:
    return [f"ending{i}" for i in range(n)]


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    """B x E rows: the endings of an example follow each other"""
    labels: Tensor
    count: int


@dataclass(frozen=True, kw_only=True)
class ChoiceTask(OneTextTask[Choice]):
    """Batches, loss and evaluation for the training loop."""

    n_endings: int

    @property
    def fields(self) -> list[str]:
        return ending_fields(self.n_endings)

    @property
    def facts(self) -> WindowedFacts:
        return self.windowed_facts(WindowedFacts)

    def notes(self) -> list[str]:
        return [*super().notes(), *self.notes_of_cut("endings")]

    def batches(self, epoch: int) -> Iterator[Indices]:
        tokens = max(self.batch_tokens // self.n_endings, 1)
        return shuffled_batches(self.train, self.fields, batch_tokens=tokens, seed=self.seed, epoch=epoch)

    def name(self, examples: Indices) -> str:
        return self.named(examples, self.fields[0])

    def batch(self, examples: Indices) -> Batch:
        rows = [self.train.fields[name][i].tolist() for i in examples for name in self.fields]
        labels = torch.tensor([int(self.train.fields["label"][i][0]) for i in examples])
        return Batch(make_page(rows, self.tokenizer), labels, len(examples))

    def loss(self, model: AnyChooser, batch: Batch, *, done: float) -> Loss:
        page = batch.page.to(model.device)
        logits = model(page.ids, page.segments, page.mask).reshape(len(batch.labels), self.n_endings)
        return Loss(F.cross_entropy(logits, batch.labels.to(model.device), reduction="sum"), batch.count)

    def evaluate(self, model: AnyChooser, *, done: Done = nobody) -> dict[str, float]:
        return Chooser(TorchEngine([model], self.tokenizers, done), self.tokenizers, self.facts).quick(self.dev)
