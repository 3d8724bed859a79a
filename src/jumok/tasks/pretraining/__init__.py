"""BERT's pre-training (Devlin et al. 2019, section 3.1): guess the masked words, and whether B follows A.

    loss = mean cross-entropy of the masked pieces + mean cross-entropy of the pairs

An encoder without these heads, as others publish them, can only be imported: its task is "embedding".
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from jumok.config import Count, CountOrZero
from jumok.data.passages import FRAME_OF_PAIR
from jumok.engines import Engine
from jumok.examples.made.data import ToyStories
from jumok.examples.plain import DocumentData
from jumok.models.head import Head
from jumok.tasks.checks import Checks
from jumok.tasks.protocol import TaskKind
from jumok.text.tokenizer import Tokenizer, Tokenizers

LEAST_PAIR = FRAME_OF_PAIR + 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainingConfig:
    """The task: masked words are guessed, and whether one passage follows another."""

    kind: Literal["pretraining"] = "pretraining"
    next_sentence: bool = True
    """half of the texts are pairs of which the second part follows the first in its document, half are not"""
    mask_share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """of the pieces; 80 % of these become `[MASK]`, 10 % another piece, 10 % stay"""
    whole_words: bool = False
    """mask all pieces of a word or none; each piece is still masked at the rate above"""
    new_pieces: CountOrZero = 0
    """with init: so many words of the training text, those that save most pieces, are added to its vocabulary"""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderFacts:
    """What an encoder has to remember."""

    language: str = ""
    max_len: Count | None = None
    """pieces it reads at once; if not known, as many as it has positions"""


def extended_tokenizer(old: Tokenizer, texts: Iterable[str], new_pieces: int) -> Tokenizer:
    """The vocabulary with so many words of the texts added to it."""
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
            yield f"data.max_len must be at least {LEAST_PAIR}: a piece of each of two texts, and what frames them"
        if recipe.task.new_pieces and recipe.init is None:
            yield "task.new_pieces needs init: a vocabulary of one's own has them anyway"

    def head(self, config: Mapping[str, Any], facts: EncoderFacts) -> Head:
        return Head(asks="masked", next_sentence=config["next_sentence"])

    def does(self, facts: EncoderFacts) -> str:
        return "to guess masked words"

    def checks(self, config: PretrainingConfig, data: Any) -> Checks:
        from jumok.tasks.pretraining.checks import PretrainingChecks

        return PretrainingChecks(config, data)

    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: EncoderFacts) -> Any:
        from jumok.tasks.pretraining.predictor import Encoder

        return Encoder(engine, tokenizers, config, facts)


class EmbeddingKind(TaskKind):
    """An encoder alone, from elsewhere: it gives vectors, and is something to begin training with."""

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
        return "to give vectors for texts"

    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: EncoderFacts) -> Any:
        from jumok.tasks.pretraining.predictor import Encoder

        return Encoder(engine, tokenizers, config, facts)
