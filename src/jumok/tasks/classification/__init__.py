"""Classification: a text, or a pair of texts, gets a class, several labels, or a number.

A recurrent network or BERT has one output per label; GPT writes the label after the text (verbal.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jumok.config import Count, Positive, Share
from jumok.engines import Engine
from jumok.examples.labelled import LabelledData
from jumok.examples.made.data import ToyReviews, ToySimilarity, ToyTopics
from jumok.findings import Finding
from jumok.models.head import Head
from jumok.tasks.checks import Checks
from jumok.tasks.protocol import TaskKind
from jumok.tasks.targets import Predicts
from jumok.tasks.windows import WindowedFacts
from jumok.text.tokenizer import Tokenizers

METRICS: dict[Predicts, tuple[str, ...]] = {
    "class": ("perplexity", "accuracy", "macro_f1", "mcc"),
    "labels": ("perplexity", "micro_f1", "macro_f1", "exact_match"),
    "number": ("pearson", "spearman", "mean_absolute_error"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationConfig:
    """The task: classify a text or a pair of texts."""

    kind: Literal["classification"] = "classification"
    predicts: Predicts = "class"
    """one class, several labels (separated by data.separator), or a number"""
    label_smoothing: Share = 0.0
    class_weights: Literal["none", "balanced"] | dict[str, Positive] = "none"
    """weights of the labels in the loss: all equal, higher for rare labels, or as given here"""
    text_loss: Share = 0.5
    """model.kind = "gpt", which writes the label after the text: weight of the text itself in the loss"""

    def __post_init__(self) -> None:
        if self.predicts == "number" and (self.label_smoothing or self.class_weights != "none"):
            raise ValueError("label_smoothing and class_weights apply to labels, not to numbers")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationFacts(WindowedFacts):
    """Facts that a classifier needs for prediction."""

    pair: bool | None = None
    """whether it was trained on pairs of texts; None for an imported model"""
    separator: str = "|"
    """between several labels"""
    temperature: Positive = 1.0
    """calibration: its outputs were divided by this after training; already part of the weights"""
    mean: float = 0.0
    deviation: Positive = 1.0
    """of the numbers it was trained on, in units of which it learned them; already part of the weights"""
    longest: Count | None = None
    """length of the longest row of the training data, in tokens"""


class ClassificationKind(TaskKind):
    name = "classification"
    config = ClassificationConfig
    data = (LabelledData, ToyReviews, ToyTopics, ToySimilarity)
    models = ("rnn", "bert", "gpt")
    facts = ClassificationFacts
    decides = ("predicts",)
    own_facts = (*TaskKind.own_facts, "mean", "deviation")
    pipeline = "text-classification"
    architectures = {"bert": "BertForSequenceClassification", "gpt": "GPT2LMHeadModel"}

    def metrics(self, config: ClassificationConfig) -> tuple[str, ...]:
        return METRICS[config.predicts]

    def mistakes(self, recipe: Any) -> Iterator[str]:
        task: ClassificationConfig = recipe.task
        if recipe.model.kind != "gpt":
            return
        if task.predicts != "class":
            yield 'model.kind = "gpt" needs task.predicts = "class": it writes the label after the text'
        if task.label_smoothing or task.class_weights != "none":
            yield 'model.kind = "gpt" supports neither label_smoothing nor class_weights: it writes the label'

    def head(self, config: Mapping[str, Any], facts: ClassificationFacts) -> Head:
        return Head(asks="text", n_labels=1 if config.get("predicts") == "number" else len(facts.labels))

    def has_labels(self, config: Mapping[str, Any]) -> bool:
        return config.get("predicts") != "number"

    def final_weights(self, weights: dict[str, Any], facts: ClassificationFacts) -> dict[str, Any]:
        """Fold the temperature, or the scale of numbers, into the output layer: other programs need not know them."""
        factor, shift = facts.deviation / facts.temperature, facts.mean
        if (factor, shift) == (1.0, 0.0):
            return weights
        weight, bias = weights["output.weight"] * factor, weights["output.bias"] * factor + shift
        return {**weights, "output.weight": weight, "output.bias": bias}

    def does(self, facts: ClassificationFacts) -> str:
        return f"to classify texts as {', '.join(facts.labels)}" if facts.labels else "to predict a number"

    def checks(self, config: ClassificationConfig, data: Any) -> Checks:
        from jumok.tasks.classification.checks import ClassificationChecks

        return ClassificationChecks(config, data)

    def examine_outputs(
        self, predictor: Any, examples: Sequence[Any], outputs: Sequence[str], result: Mapping[str, Any], split: str
    ) -> list[Finding]:
        from jumok.tasks.classification.checks import examine_outputs

        separator = getattr(predictor.targets, "separator", None)
        return examine_outputs(examples, outputs, result, split, separator=separator)

    def predictor(
        self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: ClassificationFacts
    ) -> Any:
        from jumok.tasks.classification.predictor import Classifier
        from jumok.tasks.targets import targets_of

        targets = targets_of(config.get("predicts", "class"), facts.labels, separator=facts.separator)
        return Classifier(engine, tokenizers, targets, facts)
