"""Kinds of targets: one class of several, any number of labels, or a number.

A target knows how labels are read, stored and batched, what a model's outputs mean, and how they are scored. Its loss
is in classification/task.py. Outputs are [n, width]; `believed` turns them into probabilities, or numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from jumok.errors import DataError, listed, nearest
from jumok.examples.labelled import NUMBER
from jumok.score.classification import class_metrics, softmax, temperature_for, temperature_for_labels
from jumok.score.labels import label_metrics
from jumok.score.numbers import number_metrics
from jumok.score.significance import Metrics, Values

Predicts = Literal["class", "labels", "number"]
Array = NDArray[Any]
FEW_LABELS = 20
"""F1 is reported per label only up to this many"""


class HasLabel(Protocol):
    """A labelled example, and the place it was read from."""

    @property
    def gold(self) -> str:
        """Its label; raises an error if it has none."""
        ...

    @property
    def where(self) -> str: ...


class Targets(Protocol):
    @property
    def labels(self) -> list[str]: ...
    @property
    def width(self) -> int:
        """Number of outputs of the model's head."""
        ...

    def gold(self, examples: Sequence[HasLabel]) -> Array:
        """The labels of examples; raises an error for one that does not occur in training."""
        ...

    def stored(self, example: HasLabel) -> list[int]:
        """A label as ids, for the shards."""
        ...

    def balanced(self, counts: Sequence[int], n: int) -> list[float]:
        """Weights that balance rare and frequent labels; `counts` of n examples have each label."""
        ...

    def batch(self, stored: Sequence[Sequence[int]]) -> Array:
        """Labels from the shards as targets of a loss: class indices [n], 0 or 1 [n, width], or numbers [n]."""
        ...

    def believed(self, outputs: Values) -> Values: ...
    def decided(self, believed: Values) -> Array: ...
    def temperature(self, believed: Values, gold: Array) -> float | None:
        """The temperature that calibrates the outputs; None where there is no confidence to calibrate."""
        ...

    def heated(self, believed: Values, temperature: float) -> Values:
        """The probabilities with the outputs divided by this temperature."""
        ...

    def surety(self, believed: Values, gold: Array) -> tuple[Array, Array]:
        """The confidence of each decision, and whether it is right."""
        ...

    def metrics(self, decided: Array, gold: Array, *, by_label: bool = False) -> Metrics:
        """Metrics of the decisions; `by_label` adds F1 of each label, unless there are many."""
        ...


def collect_labels(labels: Iterable[str], *, where: str) -> list[str]:
    """The labels of the training data, sorted; numbers by value, so that 10 follows 9."""
    found = set(labels)
    if len(found) < 2:
        hint = "add examples of at least two labels"
        raise DataError(f"only {len(found)} label in the training data", where=where, hint=hint, code="data.few_labels")

    def place(label: str) -> tuple[bool, int, str]:
        counts = label.isdecimal() and len(label) < 20
        return not counts, int(label) if counts else 0, label

    return sorted(found, key=place)


def number_of(label: str, labels: Mapping[str, int], where: str) -> int:
    if label not in labels:
        what = f"the label {label!r} does not occur in the training data"
        hint = f"{nearest(label, labels)} use one of {listed([*labels], FEW_LABELS)}".lstrip()
        raise DataError(what, where=where, hint=hint, code="data.unknown_label")
    return labels[label]


@dataclass(frozen=True, slots=True)
class Classes:
    """One label of several; `believed` gives the probability of each."""

    labels: list[str]

    @property
    def width(self) -> int:
        return len(self.labels)

    def gold(self, examples: Sequence[HasLabel]) -> Array:
        numbers = {label: i for i, label in enumerate(self.labels)}
        return np.array([number_of(example.gold, numbers, example.where) for example in examples], dtype=np.int64)

    def stored(self, example: HasLabel) -> list[int]:
        return [self.labels.index(example.gold)]

    def balanced(self, counts: Sequence[int], n: int) -> list[float]:
        return [n / (self.width * max(count, 1)) for count in counts]

    def batch(self, stored: Sequence[Sequence[int]]) -> Array:
        return np.array([row[0] for row in stored], dtype=np.int64)

    def believed(self, outputs: Values) -> Values:
        return softmax(outputs)

    def decided(self, believed: Values) -> Array:
        best: Array = believed.argmax(axis=1)
        return best

    def temperature(self, believed: Values, gold: Array) -> float | None:
        return temperature_for(_log(believed, least=1e-300), gold)

    def heated(self, believed: Values, temperature: float) -> Values:
        return self.believed(_log(believed, least=1e-300) / temperature)

    def surety(self, believed: Values, gold: Array) -> tuple[Array, Array]:
        return believed.max(axis=1), self.decided(believed) == gold

    def metrics(self, decided: Array, gold: Array, *, by_label: bool = False) -> Metrics:
        names = _names(self.labels) if by_label else ()
        return class_metrics(decided.tolist(), gold.tolist(), n_labels=self.width, names=names)


@dataclass(frozen=True, slots=True)
class Several:
    """Any number of labels, or none; `believed` gives the probability of each separately."""

    labels: list[str]
    separator: str = "|"

    @property
    def width(self) -> int:
        return len(self.labels)

    def gold(self, examples: Sequence[HasLabel]) -> Array:
        numbers = {label: i for i, label in enumerate(self.labels)}
        rows = np.zeros((len(examples), self.width), dtype=bool)
        for row, example in zip(rows, examples, strict=True):
            for label in split_labels(example.gold, self.separator):
                row[number_of(label, numbers, example.where)] = True
        return rows

    def stored(self, example: HasLabel) -> list[int]:
        return sorted({self.labels.index(label) for label in split_labels(example.gold, self.separator)})

    def balanced(self, counts: Sequence[int], n: int) -> list[float]:
        """Examples with a label count as much as those without it."""
        return [max(n - count, 1) / max(count, 1) for count in counts]

    def batch(self, stored: Sequence[Sequence[int]]) -> Array:
        rows = np.zeros((len(stored), self.width), dtype=np.float32)
        for row, labels in zip(rows, stored, strict=True):
            row[list(labels)] = 1.0
        return rows

    def believed(self, outputs: Values) -> Values:
        probabilities: Values = 1 / (1 + np.exp(-np.clip(outputs, -500, 500)))
        return probabilities

    def decided(self, believed: Values) -> Array:
        return believed > 0.5

    def temperature(self, believed: Values, gold: Array) -> float | None:
        return temperature_for_labels(_log(believed) - _log(1 - believed), gold)

    def heated(self, believed: Values, temperature: float) -> Values:
        return self.believed((_log(believed) - _log(1 - believed)) / temperature)

    def surety(self, believed: Values, gold: Array) -> tuple[Array, Array]:
        return np.maximum(believed, 1 - believed).ravel(), (self.decided(believed) == gold).ravel()

    def metrics(self, decided: Array, gold: Array, *, by_label: bool = False) -> Metrics:
        return label_metrics(decided, gold, names=_names(self.labels) if by_label else ())


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number. Training predicts its distance from the mean in standard deviations; both are folded into the output
    layer afterwards."""

    mean: float = 0.0
    deviation: float = 1.0
    width: ClassVar[int] = 1

    @property
    def labels(self) -> list[str]:
        return []

    @classmethod
    def of(cls, examples: Iterable[HasLabel], *, where: str = "") -> "Numbers":
        """Mean and deviation of training data; refuses numbers that float32 cannot distinguish."""
        values = np.fromiter(map(read_number, examples), dtype=np.float64)
        if not len(values):
            return cls()
        size = float(np.abs(values).max())
        mean, deviation = float(values.mean()), float((values / (size or 1.0)).std()) * size
        if deviation == 0.0:
            hint = "add examples with at least two different numbers"
            what = f"{mean:g} is the only number in the training data"
            raise DataError(what, where=where, hint=hint, code="data.few_labels")
        if not 1e-30 < deviation < 1e30 or abs(mean) > 1e6 * deviation:
            what = f"numbers with mean {mean:.6g} and deviation {deviation:.3g} do not fit float32"
            hint = "subtract a constant from the numbers, or use another unit"
            raise DataError(what, where=where, hint=hint, code="data.number_range")
        return cls(mean, deviation)

    def gold(self, examples: Sequence[HasLabel]) -> Array:
        return np.array([read_number(example) for example in examples])

    def stored(self, example: HasLabel) -> list[int]:
        bits = np.float32((read_number(example) - self.mean) / self.deviation).view(np.uint32)
        return [int(bits)]

    def balanced(self, counts: Sequence[int], n: int) -> list[float]:
        return [1.0]

    def batch(self, stored: Sequence[Sequence[int]]) -> Array:
        return np.array([row[0] for row in stored], dtype=np.uint32).view(np.float32)

    def believed(self, outputs: Values) -> Values:
        return outputs * self.deviation + self.mean

    def decided(self, believed: Values) -> Array:
        return believed[:, 0]

    def temperature(self, believed: Values, gold: Array) -> float | None:
        return None

    def heated(self, believed: Values, temperature: float) -> Values:
        return believed

    def surety(self, believed: Values, gold: Array) -> tuple[Array, Array]:
        return np.zeros(0), np.zeros(0)

    def metrics(self, decided: Array, gold: Array, *, by_label: bool = False) -> Metrics:
        return number_metrics(decided.tolist(), gold.tolist())


def _names(labels: Sequence[str]) -> Sequence[str]:
    """Labels whose F1 is reported."""
    return labels if len(labels) <= FEW_LABELS else ()


def _log(probabilities: Values, *, least: float = 1e-15) -> Values:
    logarithms: Values = np.log(np.maximum(probabilities, least))
    return logarithms


def split_labels(label: str, separator: str) -> list[str]:
    return [part.strip() for part in label.split(separator) if part.strip()]


def read_number(example: HasLabel) -> float:
    value = float(example.gold) if NUMBER.fullmatch(example.gold) else float("nan")
    if not np.isfinite(value):
        what, hint = f"the label {example.gold!r} is not a number", 'write a number, or set task.predicts = "class"'
        raise DataError(what, where=example.where, hint=hint, code="data.not_a_number")
    return value


def targets_of(predicts: Predicts, labels: Sequence[str], *, separator: str = "|") -> Targets:
    """The targets of a model with these labels."""
    match predicts:
        case "class":
            return Classes(list(labels))
        case "labels":
            return Several(list(labels), separator)
        case "number":
            return Numbers()


def learn_targets(predicts: Predicts, examples: Iterable[HasLabel], *, separator: str, where: str) -> Targets:
    """The targets of training data."""
    match predicts:
        case "class":
            return Classes(collect_labels((example.gold for example in examples), where=where))
        case "labels":
            every = (label for example in examples for label in split_labels(example.gold, separator))
            return Several(collect_labels(every, where=where), separator)
        case "number":
            return Numbers.of(examples, where=where)
