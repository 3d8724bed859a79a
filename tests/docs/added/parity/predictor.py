"""A text in, whether it has an even number of words out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jumok.engines import Done, Engine, nobody
from jumok.examples.labelled import Labelled
from jumok.score.classification import accuracy_from, accuracy_statistics, softmax
from jumok.score.significance import Comparison, Metric, Values, compare, scores_of
from jumok.tasks.parity import LABELS
from jumok.tasks.protocol import Note, Predictor, answered, scored
from jumok.tasks.windows import Framed, WindowedFacts
from jumok.text.tokenizer import Tokenizers


@dataclass(frozen=True, slots=True)
class Counted:
    """What the model says of one text."""

    text: str
    """even or odd"""
    probability: float
    """of that"""
    notes: list[Note] = field(default_factory=list)


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

    def quick(self, examples: Sequence[Labelled]) -> dict[str, float]:
        """Dev scores, without intervals."""
        return {"accuracy": float(accuracy_from(self._statistics(examples).sum(axis=0)))}

    def score(
        self, examples: Sequence[Labelled], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        lines = self(examples, done=done, **options)
        statistics = accuracy_statistics(lines, [example.gold for example in examples])
        return scored(examples, scores_of([Metric("accuracy", statistics, accuracy_from)], rule="texts")), lines

    def compare(
        self, other: "Counter", examples: Sequence[Labelled], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        ours, theirs = self._statistics(examples, done), other._statistics(examples, done)
        return [compare(ours, theirs, accuracy_from, metric="accuracy")]

    def _statistics(self, examples: Sequence[Labelled], done: Done = nobody) -> Values:
        said = [output.text for output in answered(self.predict(examples, done=done))]
        return accuracy_statistics(said, [example.gold for example in examples])
