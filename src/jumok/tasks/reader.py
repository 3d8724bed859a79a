"""What the predictors that read one text have in common: their models, and how much they read at once."""

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from jumok.models import BertConfig, GptConfig
from jumok.score.significance import Score
from jumok.tasks.predict import Done, Output, nobody
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer, Tokenizers


class HasConfig(Protocol):
    config: Any


Model = TypeVar("Model", bound=HasConfig)


class Reader(Generic[Model]):
    """One loaded model, or several as an ensemble."""

    def __init__(self, models: Sequence[Model], tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        self.models = list(models)
        self.tokenizer = tokenizer
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        config = models[0].config
        self.long_texts = LongTexts.stored(
            facts, config.max_len if isinstance(config, BertConfig | GptConfig) else None
        )

    def __call__(self, texts: Sequence[str], *, done: Done = nobody) -> list[str]:
        return [output.text for output in self.predict(texts, done=done)]

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> Sequence[Output]:
        """What comes of each text, in their order."""
        raise NotImplementedError


def scored(examples: Sequence[Any], scores: Sequence[Score]) -> dict[str, Any]:
    """Scores as they are stored and shown."""
    return {"sentences": len(examples), "scores": {score.name: score.plain() for score in scores}}
