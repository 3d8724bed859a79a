"""Classification: a text, or a pair of texts, gets a class, several labels, or a number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jumok.config import Positive, Share
from jumok.data.batching import Indices
from jumok.data.corpus import Corpus
from jumok.data.shards import Shards
from jumok.errors import DataError
from jumok.models import BertClassifier, RnnClassifier
from jumok.score.classification import perplexity_of
from jumok.score.significance import Values
from jumok.tasks.baseline import baselines, overlap, share_in_common
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import Done, nobody
from jumok.tasks.reading import OnPage, Page, make_page, pages
from jumok.tasks.targets import Array, Classes, Numbers, Predicts, Several, Targets
from jumok.tasks.windows import Framed, LongTexts
from jumok.text.labelled import Labelled
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

ReadingClassifier = RnnClassifier | BertClassifier


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationConfig:
    """The task: a text, or a pair of texts, gets a label."""

    kind: Literal["classification"] = "classification"
    predicts: Predicts = "class"
    """one class, several labels (data.separator stands between them), or a number"""
    label_smoothing: Share = 0.0
    class_weights: Literal["none", "balanced"] | dict[str, Positive] = "none"
    """what a text that has a label counts for in the loss: all the same, the rarer the more, or what is given here"""
    text_loss: Share = 0.5
    """model.kind = "gpt", which writes the label after the text: what the text itself counts for in the loss"""

    def __post_init__(self) -> None:
        if self.predicts == "number" and (self.label_smoothing or self.class_weights != "none"):
            raise ValueError("label_smoothing and class_weights are for labels, not for numbers")


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    """What is read, and what is to be said of it."""

    page: Page
    targets: Tensor
    count: int


def encode_text(tokenizer: Tokenizer, example: Labelled, long_texts: LongTexts) -> Framed:
    """The windows of a text, or of a pair of texts."""
    pair = None if example.pair is None else tokenizer.encode(example.pair)
    return long_texts.framed(tokenizer, tokenizer.encode(example.text), pair, where=example.where)


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
        raise DataError(f"empty corpus: {counts}", where=corpus.name, right="at least one text to train on")


def label_weights(config: ClassificationConfig, targets: Targets, train: Shards) -> list[float] | None:
    """What each label counts for in the loss, if not all the same."""
    if config.class_weights == "none":
        return None
    if isinstance(config.class_weights, dict):
        if unknown := config.class_weights.keys() - set(targets.labels):
            right = f"labels of the training data: {', '.join(targets.labels)}"
            raise DataError(f"no label {', '.join(sorted(unknown))}", where="task.class_weights", right=right)
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
    def facts(self) -> dict[str, Any]:
        return {"pair": self.pair, **target_facts(self.targets)}

    def batch(self, examples: Indices) -> Batch:
        text, label = self.train.fields["text"], self.train.fields["label"]
        targets = self.targets.batch([label[i].tolist() for i in examples])
        page = make_page([text[i].tolist() for i in examples], self.tokenizer)
        return Batch(page, targets, len(examples))

    def loss(self, model: ReadingClassifier, batch: Batch, *, done: float) -> Loss:
        page = batch.page.to(model.device)
        outputs = model(page.ids, page.segments, page.mask)
        weights = None if self.weights is None else torch.tensor(self.weights, device=model.device)
        targets, smoothing = batch.targets.to(model.device), self.config.label_smoothing
        total = self.targets.loss(outputs, targets, smoothing=smoothing, weights=weights)
        return Loss(total, batch.count)

    def evaluate(self, model: ReadingClassifier) -> dict[str, float]:
        """Dev scores, and of labels what they are worth in bits: their perplexity."""
        framed = [encode_text(self.tokenizer, example, self.long_texts) for example in self.dev]
        believed, _ = classify([model], self.tokenizer, framed, self.targets)
        return evaluated(self.targets, believed, self.targets.gold(self.dev))

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


def target_facts(targets: Targets) -> dict[str, Any]:
    match targets:
        case Several():
            return {"separator": targets.separator}
        case Numbers():
            return {"scale": [targets.mean, targets.deviation]}
        case _:
            return {}


def evaluated(targets: Targets, believed: Values, gold: Array) -> dict[str, float]:
    scores = targets.quick(targets.decided(believed), gold)
    if isinstance(targets, Numbers):
        return scores
    one = isinstance(targets, Classes)
    right = believed[np.arange(len(gold)), gold] if one else np.where(gold, believed, 1 - believed)
    return {"perplexity": perplexity_of(right), **scores}


def classify(
    models: Sequence[ReadingClassifier],
    tokenizer: Tokenizer,
    texts: Sequence[Framed],
    targets: Targets,
    *,
    look: bool = False,
    done: Done = nobody,
) -> tuple[Values, list[list[float] | None]]:
    """What is believed of every text [n, width], and with `look` for each the first model's attention over its pieces.

    Windows of a text are averaged before probabilities are made of them, so that a temperature changes no decision;
    models after. Of a text that was too long there is no attention to show.
    """
    rows = [row for framed in texts for row in framed.rows]
    counts = np.array([len(framed.rows) for framed in texts], dtype=np.int64)
    owners, last = np.repeat(np.arange(len(texts)), counts), np.zeros(len(rows), dtype=bool)
    last[np.cumsum(counts) - 1] = True
    outputs = np.zeros((len(models), len(texts), targets.width))
    looked: list[list[float] | None] = [None] * len(texts)
    with torch.inference_mode():
        for some, page in pages(rows, tokenizer, models[0].device):
            weights: list[Tensor] = []
            for of_model, model in zip(outputs, models, strict=True):
                found = model(page.ids, page.segments, page.mask, weights=weights if look else None)
                np.add.at(of_model, owners[some], found.double().cpu().numpy())
            for place, i in enumerate(some):
                if weights and not texts[owners[i]].long:
                    looked[owners[i]] = weights[0][place, : len(rows[i])].tolist()
            done(int(last[some].sum()))
    outputs /= counts[:, None]
    return np.mean([targets.believed(of_model) for of_model in outputs], axis=0), looked
