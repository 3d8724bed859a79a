"""Learning to classify: batches, loss and evaluation for the training loop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices
from jumok.data.corpus import Corpus
from jumok.data.pages import OnPage, Page, make_page
from jumok.data.shards import Shards
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
from jumok.tasks.prepare import Recipe, Recorded, prepare_shards, read_splits, refuse_long, text_tokenizer
from jumok.tasks.targets import Classes, Numbers, Several, Targets, learn_targets, targets_of
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

ReadingClassifier = RnnClassifier | BertClassifier
FLOAT_BITS = 2**32
"""how many ids the bits of a number may be"""
ENOUGH = 30
"""dev texts from which a temperature can be told; one from fewer made other texts worse"""


def prepare(recipe: Recipe, cache: Path, *, fresh: bool = True) -> "ClassificationTask | VerbalTask":
    train, dev, test = read_splits(recipe, fresh=fresh)
    tokenizer = text_tokenizer(recipe, train, texts_of, "labelled", cache)
    config, long_texts = recipe.task, LongTexts.of(recipe.data)
    separator = getattr(recipe.data, "separator", "|")
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

    key = [train.fingerprint(), tokenizer.sha256, *long_texts.key, config.predicts, separator]
    shards = prepare_shards(cache, ["verbal" if verbal else "labelled", *key], write)
    targets = read_targets(config, shards.facts, separator)
    if fresh:
        targets.gold([*dev, *test])  # an unknown label is an error before the training, not after it
    held: dict[str, Any] = {
        "config": config,
        "targets": targets,
        "labels": targets.labels,
        "pair": dev[0].pair is not None,
        "train": shards,
        "dev": dev,
        "tokenizer": tokenizer,
        "long_texts": long_texts,
        "language": recipe.data.language,
        "batch_tokens": recipe.train.batch_tokens,
        "seed": recipe.seed,
    }
    if verbal:
        labels = label_ids(tokenizer, targets.labels)
        refuse_long(long_texts, [*dev, *test], lambda example: encode_prompt(tokenizer, example, labels, long_texts))
        return VerbalTask(**held)
    refuse_long(long_texts, [*dev, *test], lambda example: encode_text(tokenizer, example, long_texts))
    return ClassificationTask(**held, weights=label_weights(config, targets, shards))


def texts_of(example: Labelled) -> list[str]:
    return [example.text, *([example.pair] if example.pair else [])]


def stored_targets(targets: Targets) -> dict[str, Any]:
    """What was learned of the labels, for the facts of the shards."""
    if isinstance(targets, Numbers):
        return {"mean": targets.mean, "deviation": targets.deviation}
    return {"labels": targets.labels}


def read_targets(config: ClassificationConfig, facts: dict[str, Any], separator: str) -> Targets:
    if config.predicts == "number":
        return Numbers(facts["mean"], facts["deviation"])
    return targets_of(config.predicts, facts["labels"], separator=separator)


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    """What is read, and what is to be said of it."""

    page: Page
    targets: Tensor
    count: int


def encode_labelled(
    corpus: Corpus[Labelled], tokenizer: Tokenizer, targets: Targets, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids and label of every window that is to be trained on; `facts` counts what is left out, and long texts."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0, "longest": 0}
    for example in corpus:
        facts["read"] += 1
        if not example.text.strip() and not (example.pair or "").strip():
            facts["empty"] += 1
            continue
        framed = encode_text(tokenizer, example, long_texts)
        facts["long"] += framed.long
        for row in framed.rows:
            facts["longest"] = max(facts["longest"], len(row))
            yield row, targets.stored(example)
    if facts["read"] == facts["empty"]:
        counts = f"{facts['read']} texts read, {facts['empty']} empty"
        hint = "at least one text to train on"
        raise DataError(f"empty corpus: {counts}", where=corpus.name, hint=hint, code="data.empty")


def label_weights(config: ClassificationConfig, targets: Targets, train: Shards) -> list[float] | None:
    """What each label counts for in the loss, if not all the same."""
    if config.class_weights == "none":
        return None
    if isinstance(config.class_weights, dict):
        if unknown := config.class_weights.keys() - set(targets.labels):
            hint = f"labels of the training data: {', '.join(targets.labels)}"
            what = f"no label {', '.join(sorted(unknown))}"
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
        found = self.windowed_facts(kind=ClassificationFacts, pair=self.pair, separator=separator, longest=longest)
        return cast(ClassificationFacts, found)

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

    def evaluate(self, model: ReadingClassifier) -> dict[str, float]:
        engine = TorchEngine([model], self.tokenizers)
        return Classifier(engine, self.tokenizers, self.targets, self.facts).quick(self.dev)

    def calibrated(self, predictor: Classifier, dev: Sequence[Labelled]) -> dict[str, Any]:
        """The temperature by which the model is as sure as it is right (Guo et al. 2017).

        A model that is always right on dev could be ever more sure of itself, and is left as it is.
        """
        if len(dev) < ENOUGH:
            return {}
        believed, gold = predictor.believed(dev), predictor.targets.gold(dev)
        if bool((predictor.targets.decided(believed) == gold).all()):
            return {}
        temperature = predictor.targets.temperature(believed, gold)
        return {} if temperature is None else {"temperature": temperature}

    def final_weights(self, weights: dict[str, Tensor], facts: ClassificationFacts) -> dict[str, Tensor]:
        """With the temperature, or the scale of numbers, in the output layer: the model means the same everywhere."""
        if isinstance(self.targets, Numbers):
            return scaled_output(weights, self.targets.deviation, self.targets.mean)
        return weights if facts.temperature == 1.0 else scaled_output(weights, 1 / facts.temperature)

    def baseline_scores(self, examples: Sequence[Labelled]) -> dict[str, dict[str, float]]:
        """What the most frequent label, or the mean, a bag of words and, of pairs, what they share would score."""
        rows = [encode_text(self.tokenizer, example, self.long_texts).rows for example in examples]
        gold = self.targets.gold(examples)
        text, label = self.train.fields["text"], self.train.fields["label"]
        found = baselines(self.targets, ((text[i], label[i]) for i in range(len(self.train))), rows)
        if self.pair:
            of_pair = partial(share_in_common, end=self.tokenizer.end_id, special=set(self.tokenizer.special_ids))
            train = ((of_pair([text[i].tolist()]), label[i].tolist()) for i in range(len(self.train)))
            found["overlap"] = overlap(self.targets, train, [*map(of_pair, rows)])
        return {name: self.targets.quick(decided, gold) for name, decided in found.items()}


def target_loss(
    kind: Targets, outputs: Tensor, targets: Tensor, *, smoothing: float = 0.0, weights: Tensor | None = None
) -> Tensor:
    """Summed over the examples."""
    match kind:
        case Several():
            soft = targets * (1 - smoothing) + smoothing / 2  # a weight is of the texts that have the label
            return F.binary_cross_entropy_with_logits(outputs, soft, pos_weight=weights, reduction="sum")
        case Numbers():
            return F.mse_loss(outputs[:, 0], targets, reduction="sum")
        case _:
            return F.cross_entropy(outputs, targets, weight=weights, label_smoothing=smoothing, reduction="sum")


def scaled_output(weights: dict[str, Tensor], factor: float, shift: float = 0.0) -> dict[str, Tensor]:
    """A head whose outputs are multiplied and shifted."""
    weight, bias = weights["output.weight"] * factor, weights["output.bias"] * factor + shift
    return {**weights, "output.weight": weight, "output.bias": bias}
