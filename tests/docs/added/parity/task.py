"""Train parity: data, batches, loss and evaluation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from jumok.examples.labelled import Labelled
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.parity import LABELS
from jumok.tasks.parity.predictor import Counter
from jumok.tasks.prepare import Preparation, Recipe, Recorded, counted, read_splits
from jumok.tasks.windows import LongTexts, WindowedFacts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss


def prepare(recipe: Recipe, cache: Cache, *, fresh: bool = True) -> "ParityTask":
    splits = read_splits(recipe, fresh=fresh)
    prepared = Preparation.of(recipe, cache, splits, lambda example: [example.text], "parity")

    def write() -> Recorded:
        facts: dict[str, Any] = {}
        rows = encode(prepared.train, prepared.tokenizer, prepared.long_texts, facts)
        return Recorded(rows, ("text", "label"), prepared.tokenizer.vocab_size, facts)

    return ParityTask(labels=LABELS, **prepared.arguments(prepared.shards("parity", write)))


def encode(
    corpus: Corpus[Labelled], tokenizer: Tokenizer, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The ids and the label of every text; `facts` counts the texts read, and long ones."""
    for example in counted(corpus, facts):
        framed = long_texts.framed(tokenizer, tokenizer.encode(example.text), where=example.where)
        facts["long"] += framed.long
        for row in framed.rows:
            yield row, [LABELS.index(example.gold)]


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    labels: Tensor
    count: int


@dataclass(frozen=True, kw_only=True)
class ParityTask(OneTextTask[Labelled]):
    @property
    def facts(self) -> WindowedFacts:
        return self.windowed_facts(WindowedFacts)

    def batch(self, examples: Indices) -> Batch:
        text, label = self.train.fields["text"], self.train.fields["label"]
        page = make_page([text[i].tolist() for i in examples], self.tokenizer)
        return Batch(page, torch.tensor([int(label[i][0]) for i in examples]), len(examples))

    def loss(self, model: Any, batch: Batch, *, done: float) -> Loss:
        page = batch.page.to(model.device)
        logits = model(page.ids, page.segments, page.mask)
        return Loss(F.cross_entropy(logits, batch.labels.to(model.device), reduction="sum"), batch.count)

    def evaluate(self, model: Any, *, done: Done = nobody) -> dict[str, float]:
        return Counter(TorchEngine([model], self.tokenizers, done), self.tokenizers, self.facts).quick(self.dev)
