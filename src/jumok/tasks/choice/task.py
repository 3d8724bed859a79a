"""Learning to choose: batches, loss and evaluation for the training loop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices, shuffled_batches
from jumok.data.corpus import Corpus
from jumok.data.pages import OnPage, Page, make_page
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.choices import Choice
from jumok.models.bert_heads import BertClassifier
from jumok.models.rnn import RnnClassifier
from jumok.score.classification import accuracy_from, accuracy_statistics
from jumok.tasks.choice.predictor import Chooser, encode_choice
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.prepare import Recipe, Recorded, prepare_shards, read_splits, refuse_long, text_tokenizer
from jumok.tasks.windows import LongTexts, WindowedFacts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyChooser = BertClassifier | RnnClassifier


def prepare(recipe: Recipe, cache: Path, *, fresh: bool = True) -> "ChoiceTask":
    train, dev, test = read_splits(recipe, fresh=fresh)
    tokenizer = text_tokenizer(recipe, train, lambda example: [example.context, *example.endings], "choices", cache)
    long_texts = LongTexts.of(recipe.data)

    def write() -> Recorded:
        n = next((len(example.endings) for example in train), 0)
        facts: dict[str, Any] = {"n_endings": n}
        rows = encode_choices(train, tokenizer, long_texts, facts)
        return Recorded(rows, (*ending_fields(n), "label"), max(tokenizer.vocab_size, n), facts)

    shards = prepare_shards(cache, ["choices", train.fingerprint(), tokenizer.sha256, *long_texts.key], write)
    refuse_long(long_texts, [*dev, *test], lambda example: encode_choice(tokenizer, example, long_texts))
    return ChoiceTask(
        n_endings=shards.facts["n_endings"],
        train=shards,
        dev=dev,
        tokenizer=tokenizer,
        long_texts=long_texts,
        language=recipe.data.language,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def encode_choices(
    corpus: Corpus[Choice], tokenizer: Tokenizer, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The rows of all endings of every window, and which is right."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0, "cut": 0}
    n = 0
    for example in corpus:
        n = n or len(example.endings)
        if len(example.endings) != n:
            hint = f"{n}, as many as the others"
            raise DataError(f"{len(example.endings)} endings", where=example.where, hint=hint, code="data.endings")
        found = encode_choice(tokenizer, example, long_texts)
        facts["read"] += 1
        facts["long"] += found.long
        facts["cut"] += found.cut
        for rows in found.windows:
            yield *rows, [example.gold]
    if not facts["read"]:
        hint = "at least one example to train on"
        raise DataError("empty corpus: no example", where=corpus.name, hint=hint, code="data.empty")


def ending_fields(n: int) -> list[str]:
    return [f"ending{i}" for i in range(n)]


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    """B x E rows, the endings of an example side by side"""
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
        return self.windowed_facts()

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

    def evaluate(self, model: AnyChooser) -> dict[str, float]:
        return Chooser(TorchEngine([model], self.tokenizers), self.tokenizers, self.facts).quick(self.dev)

    def baseline_scores(self, examples: Sequence[Choice]) -> dict[str, dict[str, float]]:
        """What the place where the right ending most often stands would score."""
        places = [int(self.train.fields["label"][i][0]) for i in range(len(self.train))]
        said, gold = [int(np.bincount(places).argmax())] * len(examples), [example.gold for example in examples]
        return {"majority": {"accuracy": float(accuracy_from(accuracy_statistics(said, gold).sum(axis=0)))}}
