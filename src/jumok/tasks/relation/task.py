"""Train relation extraction: data, batches, loss and evaluation."""

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
from jumok.errors import DataError
from jumok.examples.relations import Related
from jumok.models.bert_heads import BertRelation
from jumok.models.rnn import RnnClassifier
from jumok.tasks.one_text import OneTextTask, notes_of_shards
from jumok.tasks.prepare import Preparation, Recipe, Recorded, counted, read_splits
from jumok.tasks.relation import RelationConfig, RelationFacts
from jumok.tasks.relation.markers import HEAD, TAIL, encode_related, markers
from jumok.tasks.relation.pairs import admissible
from jumok.tasks.relation.predictor import NEAR, Relater, gold_labels
from jumok.tasks.targets import Classes, collect_labels
from jumok.tasks.weights import label_weights
from jumok.tasks.windows import LongTexts, Part
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyRelation = BertRelation | RnnClassifier


def prepare(recipe: Recipe, cache: Cache, *, fresh: bool = True) -> "RelationTask":
    def texts_of(example: Related) -> list[str]:
        return [example.text, f"{HEAD} {TAIL}"]  # a trained vocabulary must contain the markers

    prepared = Preparation.of(recipe, cache, read_splits(recipe, fresh=fresh), texts_of, "relations")
    markers(prepared.tokenizer)

    def write() -> Recorded:
        facts = learned(prepared.train)
        rows = encode_relations(prepared.train, prepared.tokenizer, facts["labels"], prepared.long_texts, facts)
        largest = max(prepared.tokenizer.vocab_size, len(facts["labels"]), prepared.long_texts.max_len + 1)
        return Recorded(rows, ("text", "head", "tail", "label"), largest, facts)

    shards = prepared.shards("relation", write)
    labels: list[str] = shards.facts["labels"]
    if fresh:
        gold_labels(labels, prepared.held_out)  # report unknown labels before training
    config: RelationConfig = recipe.task
    if config.no_relation is not None and config.no_relation not in labels:
        what, hint = f"no example has the label {config.no_relation}", f"set it to one of {', '.join(labels)}"
        raise DataError(what, where="task.no_relation", hint=hint, code="data.unknown_label")
    prepared.refuse_long(encode_related)
    weights = label_weights(config.class_weights, Classes(labels), shards)
    return RelationTask(config=config, labels=labels, weights=weights, **prepared.arguments(shards))


def learned(train: Corpus[Related]) -> dict[str, Any]:
    """The labels of the training data, and the pairs of entity types that it relates."""
    labels: set[str] = set()

    def noted() -> Iterator[Related]:
        for example in train:
            labels.add(example.gold)
            yield example

    pairs = admissible(noted())
    return {"labels": collect_labels(labels, where=train.name), **pairs}


def encode_relations(
    corpus: Corpus[Related], tokenizer: Tokenizer, labels: Sequence[str], long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids, entity positions and label of every example."""
    for example in counted(corpus, facts):
        row = encode_related(tokenizer, example, long_texts)
        facts["long"] += row.long
        yield row.ids, row.head, row.tail, [labels.index(example.gold)]


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    head: Tensor
    """[B, S]: True at the head"""
    tail: Tensor
    labels: Tensor
    count: int


def make_relation_page(
    rows: Sequence[Sequence[int]], head: Sequence[Part], tail: Sequence[Part], tokenizer: Tokenizer
) -> tuple[Page, Tensor, Tensor]:
    """The padded rows, and masks [B, S] of the entities."""
    page = make_page(rows, tokenizer)
    where = torch.arange(page.ids.shape[1])
    spans = [torch.tensor([[int(start), int(end)] for start, end in parts]) for parts in (head, tail)]
    inside = [(where >= span[:, :1]) & (where < span[:, 1:]) for span in spans]
    return page, inside[0], inside[1]


@dataclass(frozen=True, kw_only=True)
class RelationTask(OneTextTask[Related]):
    """Batches, loss and evaluation for the training loop."""

    config: RelationConfig
    weights: list[float] | None = None

    @property
    def facts(self) -> RelationFacts:
        known = {key: self.train.facts[key] for key in ("pairs", "order", "nested")}
        return self.windowed_facts(RelationFacts, **known)

    def notes(self) -> list[str]:
        return notes_of_shards(self.train, self.long_texts, NEAR)

    def batch(self, examples: Indices) -> Batch:
        text, head, tail, label = (
            [self.train.fields[name][i].tolist() for i in examples] for name in ("text", "head", "tail", "label")
        )
        page, at_head, at_tail = make_relation_page(text, head, tail, self.tokenizer)
        return Batch(page, at_head, at_tail, torch.tensor([row[0] for row in label]), len(examples))

    def loss(self, model: AnyRelation, batch: Batch, *, done: float) -> Loss:
        page, labels = batch.page.to(model.device), batch.labels.to(model.device)
        read = page.ids, page.segments, page.mask
        if isinstance(model, BertRelation):
            logits: Tensor = model(*read, batch.head.to(model.device), batch.tail.to(model.device))
        else:
            logits = model(*read)
        weights = None if self.weights is None else torch.tensor(self.weights, device=model.device)
        smoothing = self.config.label_smoothing
        total = F.cross_entropy(logits, labels, weight=weights, label_smoothing=smoothing, reduction="sum")
        return Loss(total, batch.count)

    def evaluate(self, model: AnyRelation, *, done: Done = nobody) -> dict[str, float]:
        engine = TorchEngine([model], self.tokenizers, done)
        return Relater(engine, self.tokenizers, self.facts, no_relation=self.config.no_relation).quick(self.dev)
