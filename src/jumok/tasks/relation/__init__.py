"""Relation extraction: which relation holds between two entities of a text.

The entities are marked in the text itself, as in Wu & He 2019 ("R-BERT"): `$` before and after the head, `#` before
and after the tail. So every text classifier can classify relations; BERT also uses the states of the entities' tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jumok.config import Positive, Share
from jumok.engines import Engine
from jumok.examples.made.data import ToyRelations
from jumok.examples.relations import RelationData
from jumok.findings import Finding
from jumok.models.head import Head
from jumok.tasks.checks import Checks
from jumok.tasks.protocol import TaskKind
from jumok.tasks.windows import WindowedFacts
from jumok.text.tokenizer import Tokenizers

Order = Literal["head_first", "tail_first", "any"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationConfig:
    """The task: classify the relation between two entities of a text."""

    kind: Literal["relation"] = "relation"
    no_relation: str | None = None
    """label for no relation, which F1 does not count: "Other" in SemEval-2010"""
    label_smoothing: Share = 0.0
    class_weights: Literal["none", "balanced"] | dict[str, Positive] = "none"
    """weights of the labels in the loss: all equal, higher for rare labels, or as given here"""


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationFacts(WindowedFacts):
    """Also the kinds of entity pairs in the training data: only such pairs are classified."""

    pairs: list[list[str]] = field(default_factory=list)
    """the types of head and tail"""
    order: Order = "any"
    """which comes first in the text"""
    nested: bool = True
    """whether one may be inside the other"""


class RelationKind(TaskKind):
    name = "relation"
    config = RelationConfig
    data = (RelationData, ToyRelations)
    models = ("rnn", "bert")
    facts = RelationFacts
    decides = ("no_relation",)
    pipeline = "text-classification"

    def metrics(self, config: RelationConfig) -> tuple[str, ...]:
        return "perplexity", "macro_f1", "micro_f1", "accuracy"

    def head(self, config: Mapping[str, Any], facts: RelationFacts) -> Head:
        return Head(asks="entities", n_labels=len(facts.labels))

    def has_labels(self, config: Mapping[str, Any]) -> bool:
        return True

    def does(self, facts: RelationFacts) -> str:
        return f"to classify relations as {', '.join(facts.labels)}"

    def checks(self, config: RelationConfig, data: Any) -> Checks:
        from jumok.tasks.relation.checks import RelationChecks

        return RelationChecks(config, data)

    def examine_outputs(
        self, predictor: Any, examples: Sequence[Any], outputs: Sequence[str], result: Mapping[str, Any], split: str
    ) -> list[Finding]:
        from jumok.tasks.relation.checks import examine_outputs

        return examine_outputs(examples, outputs, result, split)

    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: RelationFacts) -> Any:
        from jumok.tasks.relation.predictor import Relater

        return Relater(engine, tokenizers, facts, no_relation=config.get("no_relation"))
