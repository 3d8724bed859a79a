"""Language modelling: predict the next token from the previous ones (Bengio et al. 2003; Radford et al. 2018)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jumok.config import Count
from jumok.decode.options import DecodeConfig
from jumok.engines import Engine
from jumok.examples.made.data import ToyGrammar
from jumok.examples.plain import DocumentData, TextData
from jumok.models.head import Head
from jumok.tasks.checks import Checks, DocumentChecks
from jumok.tasks.protocol import TaskKind
from jumok.text.tokenizer import Tokenizers


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageModelConfig:
    """The task: predict the next token of a text from the previous ones."""

    kind: Literal["language_model"] = "language_model"


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageModelFacts:
    """Facts that a language model needs for prediction."""

    language: str = ""
    max_len: Count | None = None
    """length of the parts in which longer texts are read, in tokens"""
    decode: DecodeConfig = DecodeConfig()
    """default options of generation"""


class LanguageModelKind(TaskKind):
    name = "language_model"
    config = LanguageModelConfig
    data = (TextData, DocumentData, ToyGrammar)
    models = ("rnn", "gpt", "elmo")
    facts = LanguageModelFacts
    learns_from_text = "next"
    pipeline = "text-generation"
    architectures = {"gpt": "GPT2LMHeadModel"}
    own_facts = (*TaskKind.own_facts, "max_len")

    def metrics(self, config: LanguageModelConfig) -> tuple[str, ...]:
        return "perplexity", "bits_per_byte"

    def mistakes(self, recipe: Any) -> Iterator[str]:
        if recipe.model.kind != "rnn":
            return
        if recipe.model.features is not None:
            yield "features see the whole text, which a language model must not"
        if recipe.model.bidirectional:
            yield "model.bidirectional must be false for a language model: it must not see what comes next"

    def head(self, config: Mapping[str, Any], facts: LanguageModelFacts) -> Head:
        return Head(asks="words")

    def does(self, facts: LanguageModelFacts) -> str:
        return "to generate text"

    def checks(self, config: LanguageModelConfig, data: Any) -> Checks:
        from jumok.tasks.language_model.checks import LineChecks

        return DocumentChecks(config, data) if isinstance(data, DocumentData) else LineChecks(config, data)

    def predictor(
        self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: LanguageModelFacts
    ) -> Any:
        from jumok.tasks.language_model.predictor import Generator

        return Generator(engine, tokenizers, facts)
