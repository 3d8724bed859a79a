"""Classification by a language model: the label is written after the text, and the likeliest label is the answer.

Radford et al. 2018 ("GPT"), section 3.2: the task is given as text, and language modelling continues as an auxiliary
objective. Here the label is text, too, so that the model stays a language model and needs no head.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from jumok.data.batching import Indices
from jumok.data.corpus import Corpus
from jumok.engines import Done, nobody
from jumok.engines.torch import TorchEngine
from jumok.examples.labelled import Labelled
from jumok.models.gpt import Gpt
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.tasks.classification import ClassificationConfig, ClassificationFacts
from jumok.tasks.classification.predictor import Classifier, encode_prompt, label_ids
from jumok.tasks.language_model.task import Batch as TextBatch
from jumok.tasks.language_model.task import make_batch
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.prepare import counted
from jumok.tasks.targets import Classes
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss


def encode_prompts(
    corpus: Corpus[Labelled], tokenizer: Tokenizer, targets: Classes, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The windows of every non-empty text, each with the ids of the label to write after it."""
    labels = label_ids(tokenizer, targets.labels)
    for example in counted(corpus, facts):
        framed = encode_prompt(tokenizer, example, labels, long_texts)
        facts["long"] += framed.long
        if framed.rows == [[]]:
            facts["empty"] += 1
            continue
        for row in framed.rows:
            yield row, labels[targets.stored(example)[0]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts followed by their labels."""

    texts: TextBatch
    is_label: Tensor
    """for each real position, whether a token of the label is predicted there"""
    count: tuple[int, int]
    """number of label tokens and of text tokens"""

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
    def facts(self) -> ClassificationFacts:
        return self.windowed_facts(ClassificationFacts, pair=self.pair)

    def batch(self, examples: Indices) -> Batch:
        text, label = ([self.train.fields[name][i].tolist() for i in examples] for name in ("text", "label"))
        texts = make_batch([a + b for a, b in zip(text, label, strict=True)], self.tokenizer.start_id)
        of_label = [torch.arange(len(a) + len(b)) >= len(a) for a, b in zip(text, label, strict=True)]
        is_label = torch.cat(of_label)
        n = int(is_label.sum())
        return Batch(texts, is_label, (n, len(is_label) - n))

    def loss(self, model: Gpt, batch: Batch, *, done: float) -> Loss:
        """Loss of the label, plus a share of the text's loss, the auxiliary objective of section 3.2."""
        texts, is_label = batch.texts.to(model.device), batch.is_label.to(model.device)
        hidden, targets = model(texts.read)[texts.real], texts.next[texts.real]
        label, text = (
            linear_cross_entropy(hidden[chosen], model.projection, targets[chosen]) for chosen in (is_label, ~is_label)
        )
        return Loss(torch.stack([label, self.config.text_loss * text]), batch.count)

    def evaluate(self, model: Gpt, *, done: Done = nobody) -> dict[str, float]:
        engine = TorchEngine([model], self.tokenizers, done)
        return Classifier(engine, self.tokenizers, self.targets, self.facts).quick(self.dev)
