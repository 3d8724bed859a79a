"""BERT's pre-training (Devlin et al. 2019, section 3.1): predict masked tokens, and whether B follows A.

    loss = mean cross-entropy of the masked tokens + mean cross-entropy of the pairs

Published encoders without these heads can only be imported: their task is "embedding".
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from jumok.config import Count, CountOrZero
from jumok.data.passages import FRAME_OF_PAIR
from jumok.engines import Engine
from jumok.errors import RecipeError
from jumok.examples.made.data import ToyStories
from jumok.examples.plain import DocumentData
from jumok.models.head import Head
from jumok.tasks.checks import Checks
from jumok.tasks.protocol import TaskKind
from jumok.text.tokenizer import Tokenizer, Tokenizers

LEAST_PAIR = FRAME_OF_PAIR + 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainingConfig:
    """The task: predict masked tokens, and whether one passage follows another."""

    kind: Literal["pretraining"] = "pretraining"
    next_sentence: bool = True
    """also predict whether the second part of a pair follows the first in its document, as it does in half of them"""
    mask_share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """share of tokens to predict; 80 % of them become `[MASK]`, 10 % another token, 10 % stay"""
    whole_words: bool = False
    """mask all tokens of a word or none; each token is still masked at the rate above"""
    new_pieces: CountOrZero = 0
    """with init: number of words to add to its vocabulary, those of the training text that save most tokens"""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderFacts:
    """Facts that an encoder needs for prediction."""

    language: str = ""
    max_len: Count | None = None
    """tokens read at once; None means as many as it has positions"""


def extended_tokenizer(old: Tokenizer, texts: Iterable[str], new_pieces: int) -> Tokenizer:
    """The vocabulary with `new_pieces` words of the texts added."""
    if new_pieces and old.kind != "wordpiece":
        what = f"words can only be added to a WordPiece vocabulary, and that of init is {old.kind}"
        raise RecipeError(what, where="task.new_pieces", hint="leave out task.new_pieces", code="recipe.new_pieces")
    return old.extended(texts, new_pieces)[0] if new_pieces else old


class PretrainingKind(TaskKind):
    name = "pretraining"
    config = PretrainingConfig
    data = (DocumentData, ToyStories)
    models = ("bert",)
    facts = EncoderFacts
    learns_from_text = "masked"
    pipeline = "fill-mask"
    architectures = {"bert": "BertForPreTraining"}
    adapts = True
    ensembles = False

    def metrics(self, config: PretrainingConfig) -> tuple[str, ...]:
        return "perplexity", "masked_accuracy"

    def mistakes(self, recipe: Any) -> Iterator[str]:
        if recipe.data.max_len < LEAST_PAIR:
            yield f"data.max_len must be at least {LEAST_PAIR}: a token from each of two texts, and the special tokens"
        if recipe.task.new_pieces and recipe.init is None:
            yield "task.new_pieces needs init: without it the vocabulary is learned from the text anyway"

    def head(self, config: Mapping[str, Any], facts: EncoderFacts) -> Head:
        return Head(asks="masked", next_sentence=config["next_sentence"])

    def does(self, facts: EncoderFacts) -> str:
        return "to predict masked words"

    def checks(self, config: PretrainingConfig, data: Any) -> Checks:
        from jumok.tasks.pretraining.checks import PretrainingChecks

        return PretrainingChecks(config, data)

    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: EncoderFacts) -> Any:
        from jumok.tasks.pretraining.predictor import Encoder

        return Encoder(engine, tokenizers, config, facts)


class EmbeddingKind(TaskKind):
    """An imported encoder without a head: it embeds texts, and training can start from it."""

    name = "embedding"
    facts = EncoderFacts
    pipeline = "feature-extraction"
    architectures = {"bert": "BertModel"}
    ensembles = False

    def metrics(self, config: Any) -> tuple[str, ...]:
        return ()

    def head(self, config: Mapping[str, Any], facts: EncoderFacts) -> Head:
        return Head(asks="nothing", pooler=config["pooler"])

    def does(self, facts: EncoderFacts) -> str:
        return "to embed texts"

    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: EncoderFacts) -> Any:
        from jumok.tasks.pretraining.predictor import Encoder

        return Encoder(engine, tokenizers, config, facts)
