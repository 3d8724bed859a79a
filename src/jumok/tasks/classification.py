"""Classification: a text, or a pair of texts, gets one of a closed set of labels."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.config import Share
from jumok.data.batching import Indices, sorted_batches
from jumok.data.corpus import Corpus
from jumok.data.shards import in_chunks
from jumok.errors import DataError, InputError
from jumok.models import RnnClassifier
from jumok.score.classification import calibration_error, compare_classes, quick_scores, score_classes
from jumok.score.significance import Comparison
from jumok.tasks.batch import pad
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import Done, nobody, warn_if_longer
from jumok.text.labelled import Labelled
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID
from jumok.train.loop import Loss

CHUNK = 4096
PREDICT_TOKENS = 16384


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationConfig:
    """The task: a text, or a pair of texts, gets a label."""

    kind: Literal["classification"] = "classification"
    label_smoothing: Share = 0.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded ids, the mask of the real positions, and the labels' numbers."""

    ids: Tensor
    mask: Tensor
    labels: Tensor
    count: int


def encode_text(tokenizer: Tokenizer, text: str, pair: str | None = None) -> list[int]:
    """A text and its end; of a pair, one after the other with the end between them."""
    ids = [*tokenizer.encode(text), EOS_ID]
    return ids if pair is None else [*ids, *tokenizer.encode(pair), EOS_ID]


def collect_labels(corpus: Corpus[Labelled]) -> list[str]:
    """The labels of the training data, sorted; numbers by value, so that 10 follows 9."""
    labels = {example.label for example in corpus}
    if len(labels) < 2:
        right = "at least two labels to tell apart"
        raise DataError(f"{len(labels)} label in the training data", where=corpus.name, right=right)
    return sorted(labels, key=lambda label: (not label.isdecimal(), int(label) if label.isdecimal() else 0, label))


def encode_labelled(
    corpus: Corpus[Labelled], tokenizer: Tokenizer, labels: Sequence[str], max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids and label of every example that is to be trained on; `facts` counts the others."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "longest": 0}
    number = {label: i for i, label in enumerate(labels)}
    for examples in in_chunks(corpus, CHUNK):
        for example in examples:
            ids = encode_text(tokenizer, example.text, example.pair)
            facts["read"] += 1
            if len(ids) == (1 if example.pair is None else 2):
                facts["empty"] += 1
            elif len(ids) > max_len:
                facts["too_long"] += 1
            else:
                facts["longest"] = max(facts["longest"], len(ids))
                yield ids, [number[example.label]]
    if facts["read"] == facts["empty"] + facts["too_long"]:
        counts = f"{facts['read']} texts read, {facts['empty']} empty, {facts['too_long']} too long"
        raise DataError(f"empty corpus: {counts}", where=corpus.name, right="at least one text to train on")


def label_numbers(examples: Sequence[Labelled], labels: Sequence[str]) -> list[int]:
    number = {label: i for i, label in enumerate(labels)}
    for example in examples:
        if example.label not in number:
            raise DataError(
                f"the label {example.label!r} does not occur in the training data",
                where=example.where,
                right=f"one of {', '.join(labels)}",
            )
    return [number[example.label] for example in examples]


def _joined(example: Labelled) -> str:
    """As a line of input: a pair of texts has a tab between them."""
    return example.text if example.pair is None else f"{example.text}\t{example.pair}"


@dataclass(frozen=True, kw_only=True)
class ClassificationTask(OneTextTask[Labelled]):
    """Batches, loss and evaluation for the training loop."""

    config: ClassificationConfig

    def batch(self, examples: Indices) -> Batch:
        text, label = self.train.fields["text"], self.train.fields["label"]
        ids = pad([text[i].tolist() for i in examples], self.tokenizer.pad_id)
        labels = torch.tensor([int(label[i][0]) for i in examples])
        return Batch(ids, ids != self.tokenizer.pad_id, labels, len(labels))

    def loss(self, model: RnnClassifier, batch: Batch, *, done: float) -> Loss:
        logits = model(batch.ids.to(model.device), batch.mask.to(model.device))
        labels, smoothing = batch.labels.to(model.device), self.config.label_smoothing
        return Loss(F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum"), batch.count)

    def evaluate(self, model: RnnClassifier) -> dict[str, float]:
        """Dev perplexity of the labels, accuracy and macro-F1."""
        texts = [encode_text(self.tokenizer, example.text, example.pair) for example in self.dev]
        probabilities, _ = classify([model], self.tokenizer, texts)
        predicted, gold = probabilities.argmax(axis=1).tolist(), label_numbers(self.dev, self.labels)
        likelihood = probabilities[np.arange(len(texts)), gold]
        perplexity = float(np.exp(-np.log(np.maximum(likelihood, 1e-12)).mean()))
        return {"perplexity": perplexity, **quick_scores(predicted, gold, n_labels=len(self.labels))}


def classify(
    models: Sequence[RnnClassifier],
    tokenizer: Tokenizer,
    texts: Sequence[Sequence[int]],
    *,
    done: Done = nobody,
) -> tuple[np.ndarray[Any, Any], list[list[float] | None]]:
    """Probabilities [n, L], mean over the models, and for each text the first model's attention over its pieces."""
    sizes = np.array([len(ids) for ids in texts], dtype=np.int64)
    probabilities: list[Any] = [None] * len(texts)
    looked: list[list[float] | None] = [None] * len(texts)
    with torch.inference_mode():
        for rows in sorted_batches(sizes, PREDICT_TOKENS):
            ids = pad([texts[i] for i in rows], tokenizer.pad_id).to(models[0].device)
            mask = ids != tokenizer.pad_id
            weights: list[Tensor] = []
            found = [model(ids, mask, weights=weights).softmax(dim=-1) for model in models]
            mean = torch.stack(found).mean(dim=0).double().cpu().numpy()
            for place, i in enumerate(rows):
                probabilities[i] = mean[place]
                if weights:
                    looked[i] = weights[0][place, : len(texts[i])].tolist()
            done(len(rows))
    return np.stack(probabilities), looked


@dataclass(frozen=True, slots=True)
class Classified:
    """One text's label, how sure the model is of each, and which words decided, if the model attends."""

    text: str
    """the label: what a line of output says"""
    probability: float
    probabilities: dict[str, float]
    words: list[tuple[str, float]] | None
    """the words of the text with the attention that they got"""


class Classifier:
    """One loaded model, or several as an ensemble."""

    def __init__(self, models: Sequence[RnnClassifier], tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        self.models = list(models)
        self.tokenizer = tokenizer
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.labels: list[str] = facts["labels"]
        self.longest: int | None = facts.get("longest")

    def __call__(self, texts: Sequence[str], *, done: Done = nobody) -> list[str]:
        return [classified.text for classified in self.predict(texts, done=done)]

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[Classified]:
        """Labels in the order of the texts; of a pair, a tab stands between the two texts."""
        if options:
            raise InputError(f"a classifier has no option {next(iter(options))}", right="no --set for this run")
        parts = [text.partition("\t") for text in texts]
        ids = [encode_text(self.tokenizer, a, b if tab else None) for a, tab, b in parts]
        if not ids:
            return []
        self.longest = warn_if_longer(ids, self.longest)
        probabilities, looked = classify(self.models, self.tokenizer, ids, done=done)
        return [
            Classified(
                self.labels[int(row.argmax())],
                float(row.max()),
                {label: round(float(p), 6) for label, p in zip(self.labels, row, strict=True)},
                None if weights is None else self._words(text, weights),
            )
            for text, row, weights in zip(texts, probabilities, looked, strict=True)
        ]

    def score(
        self, examples: Sequence[Labelled], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Scores with intervals of the labels for the examples' texts, and the labels."""
        gold = label_numbers(examples, self.labels)
        texts = [_joined(example) for example in examples]
        found = self.predict(texts, done=done, **options)
        number = {label: i for i, label in enumerate(self.labels)}
        predicted = [number[classified.text] for classified in found]
        scores = score_classes(predicted, gold, n_labels=len(self.labels))
        right = [p == g for p, g in zip(predicted, gold, strict=True)]
        return {
            "sentences": len(examples),
            "scores": {score.name: score.plain() for score in scores},
            "calibration_error": round(calibration_error([f.probability for f in found], right), 4),
        }, [classified.text for classified in found]

    def compare(
        self, other: "Classifier", examples: Sequence[Labelled], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        if self.labels != other.labels:
            raise InputError(f"the runs have different labels: {', '.join(self.labels)} and {', '.join(other.labels)}")
        gold = label_numbers(examples, self.labels)
        texts = [_joined(example) for example in examples]
        ours, theirs = (
            [self.labels.index(classified.text) for classified in classifier.predict(texts, done=done, **options)]
            for classifier in (self, other)
        )
        return compare_classes(ours, theirs, gold, n_labels=len(self.labels))

    def plain(self, text: str, output: Classified) -> dict[str, Any]:
        return asdict(output)

    def _words(self, text: str, weights: Sequence[float]) -> list[tuple[str, float]]:
        """Words split at white space, each with the attention of its pieces together."""
        words = text.replace("\t", " ").split()
        found = [0.0] * len(words)
        starts, at = [], 0
        for word in words:
            at = text.index(word, at)
            starts.append(at)
            at += len(word)
        first, tab, _ = text.partition("\t")
        offsets = self.tokenizer.encode_with_offsets(text.replace("\t", " ")).offsets
        if tab:  # the end of the first text is no word's
            end = len(self.tokenizer.encode(first))
            weights = [*weights[:end], *weights[end + 1 :]]
        for (start, _), weight in zip(offsets, weights, strict=False):
            place = int(np.searchsorted(starts, start, side="right")) - 1
            if words:
                found[max(place, 0)] += weight
        return [(word, round(weight, 4)) for word, weight in zip(words, found, strict=True)]
