"""Train classification: data, batches, loss and evaluation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices
from jumok.data.cache import Cache
from jumok.data.corpus import Corpus
from jumok.data.pages import OnPage, Page, make_page
from jumok.data.shards import Shards
from jumok.engines import Done, nobody
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.labelled import Labelled
from jumok.models.bert_heads import BertClassifier
from jumok.models.rnn import RnnClassifier
from jumok.tasks.baseline import baselines, overlap, share_in_common
from jumok.tasks.classification import ClassificationConfig, ClassificationFacts
from jumok.tasks.classification.predictor import Classifier, encode_prompt, encode_text, label_ids
from jumok.tasks.classification.verbal import VerbalTask, encode_prompts
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.prepare import Preparation, Recipe, Recorded, counted, read_splits
from jumok.tasks.targets import Classes, Numbers, Several, Targets, learn_targets, targets_of
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

ReadingClassifier = RnnClassifier | BertClassifier
FLOAT_BITS = 2**32
"""number of ids that the bits of a number can be"""
ENOUGH = 30
"""dev texts that a temperature needs; with fewer, calibration got worse on other texts"""


def prepare(recipe: Recipe, cache: Cache, *, fresh: bool = True) -> "ClassificationTask | VerbalTask":
    prepared = Preparation.of(recipe, cache, read_splits(recipe, fresh=fresh), texts_of, "labelled")
    train, tokenizer, long_texts = prepared.train, prepared.tokenizer, prepared.long_texts
    config, separator = recipe.task, getattr(recipe.data, "separator", "|")
    verbal = recipe.model.kind == "gpt"

    def write() -> Recorded:
        targets = learn_targets(config.predicts, train, separator=separator, where=train.name)
        facts = stored_targets(targets)
        if verbal:
            assert isinstance(targets, Classes)  # a recipe refuses the others
            rows = encode_prompts(train, tokenizer, targets, long_texts, facts)
            return Recorded(rows, ("text", "label"), tokenizer.vocab_size, facts)
        rows = encode_labelled(train, tokenizer, targets, long_texts, facts)
        largest = FLOAT_BITS if isinstance(targets, Numbers) else max(tokenizer.vocab_size, targets.width)
        return Recorded(rows, ("text", "label"), largest, facts)

    shards = prepared.shards("verbal" if verbal else "labelled", write, config.predicts, separator)
    targets = read_targets(config, shards.facts, separator)
    if fresh:
        targets.gold(prepared.held_out)  # report unknown labels before training
    arguments = {"config": config, "targets": targets, "labels": targets.labels, **prepared.arguments(shards)}
    arguments["pair"] = prepared.dev[0].pair is not None
    if verbal:
        labels = label_ids(tokenizer, targets.labels)
        prepared.refuse_long(lambda _, example, rule: encode_prompt(tokenizer, example, labels, rule))
        return VerbalTask(**arguments)
    prepared.refuse_long(encode_text)
    return ClassificationTask(**arguments, weights=label_weights(config, targets, shards))


def texts_of(example: Labelled) -> list[str]:
    return [example.text, *([example.pair] if example.pair else [])]


def stored_targets(targets: Targets) -> dict[str, Any]:
    """The targets as facts of the shards."""
    if isinstance(targets, Numbers):
        return {"mean": targets.mean, "deviation": targets.deviation}
    return {"labels": targets.labels}


def read_targets(config: ClassificationConfig, facts: dict[str, Any], separator: str) -> Targets:
    if config.predicts == "number":
        return Numbers(facts["mean"], facts["deviation"])
    return targets_of(config.predicts, facts["labels"], separator=separator)


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    targets: Tensor
    count: int


def encode_labelled(
    corpus: Corpus[Labelled], tokenizer: Tokenizer, targets: Targets, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids and label of every window; `facts` counts empty and long texts, and has the length of the longest row."""
    facts |= {"longest": 0}
    for example in counted(corpus, facts):
        if not example.text.strip() and not (example.pair or "").strip():
            facts["empty"] += 1
            continue
        framed = encode_text(tokenizer, example, long_texts)
        facts["long"] += framed.long
        for row in framed.rows:
            facts["longest"] = max(facts["longest"], len(row))
            yield row, targets.stored(example)


def label_weights(config: ClassificationConfig, targets: Targets, train: Shards) -> list[float] | None:
    """The weight of each label in the loss; None if all weigh the same."""
    if config.class_weights == "none":
        return None
    if isinstance(config.class_weights, dict):
        if unknown := config.class_weights.keys() - set(targets.labels):
            hint = f"use labels of the training data: {', '.join(targets.labels)}"
            what = f"unknown label {', '.join(sorted(unknown))}"
            raise DataError(what, where="task.class_weights", hint=hint, code="data.unknown_label")
        return [config.class_weights.get(label, 1.0) for label in targets.labels]
    counts = np.bincount(train.fields["label"].tokens.astype(np.int64), minlength=targets.width)
    return targets.balanced(counts.tolist(), len(train))


@dataclass(frozen=True, kw_only=True)
class ClassificationTask(OneTextTask[Labelled]):
    """Batches, loss and evaluation for the training loop."""

    config: ClassificationConfig
    targets: Targets
    long_texts: LongTexts
    pair: bool
    weights: list[float] | None = None

    @property
    def width(self) -> int:
        return self.targets.width

    @property
    def facts(self) -> ClassificationFacts:
        separator = self.targets.separator if isinstance(self.targets, Several) else "|"
        longest = self.train.facts["longest"]
        numbers = stored_targets(self.targets) if isinstance(self.targets, Numbers) else {}
        more = {"pair": self.pair, "separator": separator, "longest": longest, **numbers}
        return self.windowed_facts(ClassificationFacts, **more)

    def batch(self, examples: Indices) -> Batch:
        text, label = self.train.fields["text"], self.train.fields["label"]
        targets = self.targets.batch([label[i].tolist() for i in examples])
        page = make_page([text[i].tolist() for i in examples], self.tokenizer)
        return Batch(page, torch.from_numpy(targets), len(examples))

    def loss(self, model: ReadingClassifier, batch: Batch, *, done: float) -> Loss:
        page = batch.page.to(model.device)
        outputs = model(page.ids, page.segments, page.mask)
        weights = None if self.weights is None else torch.tensor(self.weights, device=model.device)
        targets, smoothing = batch.targets.to(model.device), self.config.label_smoothing
        return Loss(target_loss(self.targets, outputs, targets, smoothing=smoothing, weights=weights), batch.count)

    def evaluate(self, model: ReadingClassifier, *, done: Done = nobody) -> dict[str, float]:
        engine = TorchEngine([model], self.tokenizers, done)
        return Classifier(engine, self.tokenizers, self.targets, self.facts).quick(self.dev)

    def calibrated(self, predictor: Classifier, dev: Sequence[Labelled]) -> dict[str, Any]:
        """The temperature that calibrates the model (Guo et al. 2017).

        A model without errors on dev has no best temperature, and is left unchanged.
        """
        if len(dev) < ENOUGH:
            return {}
        believed, gold = predictor.believed(dev), predictor.targets.gold(dev)
        if bool((predictor.targets.decided(believed) == gold).all()):
            return {}
        temperature = predictor.targets.temperature(believed, gold)
        return {} if temperature is None else {"temperature": temperature}

    def baseline_scores(self, examples: Sequence[Labelled]) -> dict[str, dict[str, float]]:
        """Scores of the most frequent label or the mean, of a bag of words and, for pairs, of their overlap."""
        rows = [encode_text(self.tokenizer, example, self.long_texts).rows for example in examples]
        gold = self.targets.gold(examples)
        text, label = self.train.fields["text"], self.train.fields["label"]
        found = baselines(self.targets, ((text[i], label[i]) for i in range(len(self.train))), rows)
        if self.pair:
            of_pair = partial(share_in_common, end=self.tokenizer.end_id, special=set(self.tokenizer.special_ids))
            train = ((of_pair([text[i].tolist()]), label[i].tolist()) for i in range(len(self.train)))
            found["overlap"] = overlap(self.targets, train, [*map(of_pair, rows)])
        return {name: self.targets.metrics(decided, gold).values() for name, decided in found.items()}


def target_loss(
    kind: Targets, outputs: Tensor, targets: Tensor, *, smoothing: float = 0.0, weights: Tensor | None = None
) -> Tensor:
    """The loss, summed over the examples."""
    match kind:
        case Several():
            soft = targets * (1 - smoothing) + smoothing / 2  # a weight applies to texts with the label
            return F.binary_cross_entropy_with_logits(outputs, soft, pos_weight=weights, reduction="sum")
        case Numbers():
            return F.mse_loss(outputs[:, 0], targets, reduction="sum")
        case _:
            return F.cross_entropy(outputs, targets, weight=weights, label_smoothing=smoothing, reduction="sum")
