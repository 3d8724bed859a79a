"""Classification by a language model: the label is written after the text, and the likeliest label is the answer.

Radford et al. 2018 ("GPT"), section 3.2: a text model takes the task as text, and goes on learning the text itself
beside it. Here the label is text, too, so that the model stays the language model that it was, and needs no head.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from jumok.data.batching import Indices, sorted_batches
from jumok.data.corpus import Corpus
from jumok.errors import DataError
from jumok.models import Gpt
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.score.classification import softmax
from jumok.score.significance import Values
from jumok.tasks.baseline import baselines
from jumok.tasks.classification import ClassificationConfig, evaluated
from jumok.tasks.language_model import Batch as TextBatch
from jumok.tasks.language_model import make_batch
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import Done, nobody
from jumok.tasks.reading import PREDICT_TOKENS
from jumok.tasks.targets import Classes
from jumok.tasks.windows import Framed, LongTexts
from jumok.text.labelled import Labelled
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss


def label_ids(tokenizer: Tokenizer, labels: Sequence[str]) -> list[list[int]]:
    """Each label on a line of its own, and its end, without which 1 would be the beginning of 10."""
    found: dict[tuple[int, ...], str] = {}
    for label in labels:
        other = found.setdefault((*tokenizer.encode(f"\n{label}"), tokenizer.end_id), label)
        if other != label:
            what = f"the vocabulary reads the labels {other!r} and {label!r} alike, so that a model cannot write both"
            raise DataError(what, right="labels that differ in what the vocabulary knows and does not fold")
    return [*map(list, found)]


def encode_prompt(
    tokenizer: Tokenizer, example: Labelled, labels: Sequence[Sequence[int]], long_texts: LongTexts
) -> Framed:
    """The windows of a text, the second text of a pair on a line of its own, with room for the longest label."""
    room = long_texts.max_len - max(map(len, labels))
    text, pair = tokenizer.encode(example.text), [] if example.pair is None else tokenizer.encode(f"\n{example.pair}")
    parts = long_texts.pair_parts(len(text), len(pair), room, where=example.where)
    rows = [[*text[slice(*first)], *pair[slice(*second)]] for first, second in parts]
    return Framed(rows, len(text) + len(pair) > room)


def encode_prompts(
    corpus: Corpus[Labelled], tokenizer: Tokenizer, targets: Classes, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The windows of every text that is not empty, each with the ids of the label that is to be written after it."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0}
    labels = label_ids(tokenizer, targets.labels)
    for example in corpus:
        framed = encode_prompt(tokenizer, example, labels, long_texts)
        facts["read"] += 1
        facts["long"] += framed.long
        if framed.rows == [[]]:
            facts["empty"] += 1
            continue
        for row in framed.rows:
            yield row, labels[targets.stored(example)[0]]
    if facts["read"] == facts["empty"]:
        what = f"empty corpus: {facts['read']} texts read, all of them empty"
        raise DataError(what, where=corpus.name, right="at least one text to train on")


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts with their labels after them."""

    texts: TextBatch
    is_label: Tensor
    """of the real positions, whether a piece of the label is predicted there"""
    count: tuple[int, int]
    """pieces of labels, pieces of texts"""

    @property
    def tokens(self) -> int:
        return self.texts.count


@dataclass(frozen=True, kw_only=True)
class VerbalTask(OneTextTask[Labelled]):
    """Batches, loss and evaluation for the training loop."""

    losses: ClassVar[tuple[str, ...]] = ("label", "text")

    config: ClassificationConfig
    targets: Classes
    long_texts: LongTexts
    pair: bool

    @property
    def facts(self) -> dict[str, Any]:
        return {"pair": self.pair}

    def batch(self, examples: Indices) -> Batch:
        text, label = ([self.train.fields[name][i].tolist() for i in examples] for name in ("text", "label"))
        texts = make_batch([a + b for a, b in zip(text, label, strict=True)], self.tokenizer.start_id)
        of_label = [torch.arange(len(a) + len(b)) >= len(a) for a, b in zip(text, label, strict=True)]
        is_label = torch.cat(of_label)
        n = int(is_label.sum())
        return Batch(texts, is_label, (n, len(is_label) - n))

    def loss(self, model: Gpt, batch: Batch, *, done: float) -> Loss:
        """Of the label, and a share of that of the text, the auxiliary objective of section 3.2."""
        texts, is_label = batch.texts.to(model.device), batch.is_label.to(model.device)
        hidden, targets = model(texts.read)[texts.real], texts.next[texts.real]
        label, text = (
            linear_cross_entropy(hidden[chosen], model.projection, targets[chosen]) for chosen in (is_label, ~is_label)
        )
        return Loss(torch.stack([label, self.config.text_loss * text]), batch.count)

    def evaluate(self, model: Gpt) -> dict[str, float]:
        labels = label_ids(self.tokenizer, self.targets.labels)
        prompts = [encode_prompt(self.tokenizer, example, labels, self.long_texts) for example in self.dev]
        believed = classify_in_words([model], self.tokenizer, prompts, self.targets.labels)
        return evaluated(self.targets, believed, self.targets.gold(self.dev))

    def baseline_scores(self, examples: Sequence[Labelled]) -> dict[str, dict[str, float]]:
        """What the most frequent label, and a bag of words, would score."""
        text, label = self.train.fields["text"], self.train.fields["label"]
        labels = label_ids(self.tokenizer, self.targets.labels)
        number = {tuple(ids): i for i, ids in enumerate(labels)}
        train = ((text[i], [number[tuple(label[i].tolist())]]) for i in range(len(self.train)))
        rows = [encode_prompt(self.tokenizer, example, labels, self.long_texts).rows for example in examples]
        gold = self.targets.gold(examples)
        found = baselines(self.targets, train, rows)
        return {name: self.targets.quick(decided, gold) for name, decided in found.items()}


def classify_in_words(
    models: Sequence[Gpt], tokenizer: Tokenizer, texts: Sequence[Framed], labels: Sequence[str], *, done: Done = nobody
) -> Values:
    """[n, labels]: how likely each label is to be what the model writes after a text.

    As with other classes, windows are merged before they become probabilities, models after.
    """
    ends = label_ids(tokenizer, labels)
    prompts = [row for framed in texts for row in framed.rows]
    rows = [[*prompt, *end] for prompt in prompts for end in ends]
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    found = np.zeros((len(models), len(rows)))
    with torch.inference_mode():
        for some in sorted_batches(sizes, PREDICT_TOKENS):
            batch = make_batch([rows[i] for i in some], tokenizer.start_id).to(models[0].device)
            at_label = torch.cat([torch.arange(sizes[i]) >= sizes[i] - len(ends[i % len(ends)]) for i in some]).to(
                models[0].device
            )
            owner = np.repeat(some, [len(ends[i % len(ends)]) for i in some])
            targets = batch.next[batch.real][at_label][:, None]
            for m, model in enumerate(models):
                log_probs = model.logits(model(batch.read)[batch.real][at_label]).log_softmax(dim=-1)
                np.add.at(found[m], owner, log_probs.gather(1, targets)[:, 0].double().cpu().numpy())
    logits = found.reshape(len(models), len(prompts), len(ends))
    windows = np.array([len(framed.rows) for framed in texts], dtype=np.int64)
    means = np.add.reduceat(logits, np.cumsum(windows) - windows, axis=1) / windows[:, None]
    done(len(texts))
    believed: Values = softmax(means).mean(axis=0)
    return believed
