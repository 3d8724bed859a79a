"""Count words: a text in, whether their number is even or odd out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jumok.engines import Done, Engine, nobody
from jumok.examples.labelled import Labelled
from jumok.score.classification import accuracy_from, accuracy_statistics, softmax
from jumok.score.significance import Metric, Metrics
from jumok.tasks.parity import LABELS
from jumok.tasks.protocol import Measured, Note, Predictor
from jumok.tasks.windows import Framed, WindowedFacts
from jumok.text.tokenizer import Tokenizers


@dataclass(frozen=True, slots=True)
class Counted:
    """The prediction for one text."""

    text: str
    """even or odd"""
    probability: float
    """probability of the prediction"""
    notes: list[Note] = field(default_factory=list)
    """remarks, such as that the text was truncated"""


class Counter(Predictor[Labelled, Counted]):
    kind = "parity"
    example = Labelled
    answers = Counted

    def __init__(self, engine: Engine, tokenizers: Tokenizers, facts: WindowedFacts) -> None:
        self.engine, self.tokenizers = engine, tokenizers
        self.long_texts = facts.rule(engine.longest)

    def encode(self, example: Labelled, options: Any) -> Framed:
        return self.long_texts.framed(self.tokenizer, self.tokenizer.encode(example.text), where=example.where)

    def answer(
        self, examples: Sequence[Labelled], read: Sequence[Framed], options: Any, done: Done
    ) -> Iterator[Counted]:
        for found in read:
            logits = np.mean(self.engine.logits(found.rows), axis=0)  # [M, L], the mean over windows
            believed = softmax(logits).mean(axis=0)
            done(1)
            best = int(believed.argmax())
            yield Counted(LABELS[best], round(float(believed[best]), 6), self.long_texts.notes(found.long))

    def measure(self, examples: Sequence[Labelled], *, done: Done = nobody, **options: Any) -> Measured:
        outputs = self(examples, done=done)
        statistics = accuracy_statistics(outputs, [example.gold for example in examples])
        return Measured(Metrics((Metric("accuracy", statistics, accuracy_from),), rule="texts"), outputs)
