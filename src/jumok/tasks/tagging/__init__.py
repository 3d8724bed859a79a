"""Tagging: every unit of a text, a word or a token, gets a tag; entities are runs of tags.

A conditional random field over the tags is an option (Lample et al. 2016). units.py splits a text into units.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jumok.engines import Engine
from jumok.examples.made.data import ToyJosa, ToyNames
from jumok.examples.spans import TaggedData
from jumok.findings import Finding
from jumok.models.head import Head
from jumok.tasks.checks import Checks
from jumok.tasks.protocol import TaskKind
from jumok.tasks.windows import WindowedFacts
from jumok.text.tokenizer import Tokenizers


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggingConfig:
    """The task: tag every word, or find entities marked by characters."""

    kind: Literal["tagging"] = "tagging"
    crf: bool = False
    """add a conditional random field, which learns what tags follow each other"""
    mark_capitals: bool = False
    """for vocabularies that fold case: put a mark after a word with capitals, two if it is all capitals"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggingFacts(WindowedFacts):
    """Facts that a tagger needs for prediction."""

    units: dict[str, Any] = field(default_factory=dict)
    """what carries a tag, from `Units.plain`; words for an imported model"""


class TaggingKind(TaskKind):
    name = "tagging"
    config = TaggingConfig
    data = (TaggedData, ToyNames, ToyJosa)
    models = ("rnn", "bert")
    facts = TaggingFacts
    pipeline = "token-classification"
    architectures = {"bert": "BertForTokenClassification"}

    def metrics(self, config: TaggingConfig) -> tuple[str, ...]:
        return "perplexity", "span_f1", "tag_accuracy"

    def head(self, config: Mapping[str, Any], facts: TaggingFacts) -> Head:
        return Head(asks="pieces", n_labels=len(facts.labels), crf=config.get("crf", False))

    def has_labels(self, config: Mapping[str, Any]) -> bool:
        return True

    def does(self, facts: TaggingFacts) -> str:
        types = types_of(facts.labels)
        return f"to find entities ({', '.join(types)})" if types else "to tag words"

    def checks(self, config: TaggingConfig, data: Any) -> Checks:
        from jumok.tasks.tagging.checks import TaggingChecks

        return TaggingChecks(config, data)

    def examine_outputs(
        self, predictor: Any, examples: Sequence[Any], outputs: Sequence[str], result: Mapping[str, Any], split: str
    ) -> list[Finding]:
        from jumok.tasks.tagging.checks import examine_outputs

        return examine_outputs(examples, outputs, result, split)

    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: TaggingFacts) -> Any:
        from jumok.tasks.tagging.predictor import Tagger

        return Tagger(engine, tokenizers, facts)


def types_of(labels: list[str]) -> list[str]:
    """The entity types among the tags."""
    return sorted({label[2:] for label in labels if label[1:2] == "-"})
