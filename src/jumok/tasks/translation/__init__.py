"""Translation and other text-to-text tasks (Sutskever et al. 2014)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jumok.config import Count, Share
from jumok.decode.options import DecodeConfig
from jumok.engines import Engine
from jumok.examples.made.data import SyntheticData
from jumok.examples.pairs import ParallelData
from jumok.findings import Finding
from jumok.models.head import Head
from jumok.tasks.checks import Checks
from jumok.tasks.protocol import TaskKind
from jumok.text.tokenizer import Tokenizers


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslationConfig:
    """The task: translate a text, or transform it into another one."""

    kind: Literal["translation"] = "translation"
    label_smoothing: Share = 0.1
    scheduled_sampling: Share = 0.0
    """share of the decoder's inputs that are its own predictions, not the target (Bengio et al. 2015); grows linearly
    from zero to this value at the last step"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslationFacts:
    """Facts that a translation model needs for prediction."""

    source: str = ""
    """source language code"""
    target: str = ""
    decode: DecodeConfig = DecodeConfig()
    """default options of the search"""
    lowercase: bool = False
    """whether its vocabulary is lower-case only"""
    longest: Count | None = None
    """length of the longest source in training, in tokens, `</s>` included"""


class TranslationKind(TaskKind):
    name = "translation"
    config = TranslationConfig
    data = (ParallelData, SyntheticData)
    models = ("transformer", "seq2seq")
    facts = TranslationFacts
    pipeline = "translation"
    architectures = {"transformer": "MarianMTModel"}

    def metrics(self, config: TranslationConfig) -> tuple[str, ...]:
        return "perplexity", "bleu", "exact_match"

    def mistakes(self, recipe: Any) -> Iterator[str]:
        if recipe.task.scheduled_sampling and recipe.model.kind != "seq2seq":
            yield 'task.scheduled_sampling needs model.kind = "seq2seq": other models read all inputs at once'

    def head(self, config: Mapping[str, Any], facts: TranslationFacts) -> Head:
        return Head(asks="words")

    def does(self, facts: TranslationFacts) -> str:
        return f"to translate from {facts.source} to {facts.target}"

    def languages(self, facts: TranslationFacts) -> list[str]:
        return [facts.source, facts.target]

    def checks(self, config: TranslationConfig, data: Any) -> Checks:
        from jumok.tasks.translation.checks import TranslationChecks

        return TranslationChecks(config, data)

    def examine_outputs(
        self, predictor: Any, examples: Sequence[Any], outputs: Sequence[str], result: Mapping[str, Any], split: str
    ) -> list[Finding]:
        from jumok.tasks.translation.checks import examine_outputs

        return examine_outputs(examples, outputs, split)

    def predictor(
        self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: TranslationFacts
    ) -> Any:
        from jumok.tasks.translation.predictor import Translator

        return Translator(engine, tokenizers, facts)
