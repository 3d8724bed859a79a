"""What the tasks over one text have in common: of training their examples and the order in which these come, of
prediction their models and how much they read at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from jumok.data.batching import Indices, shuffled_batches
from jumok.data.corpus import Example
from jumok.data.shards import Shards
from jumok.models import BertConfig, GptConfig
from jumok.score.significance import Score
from jumok.tasks.predict import Done, Output, nobody
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer, Tokenizers


@dataclass(frozen=True, kw_only=True)
class OneTextTask(Generic[Example]):
    """Training examples with a field `text` in shards, and dev examples as they were read."""

    losses: ClassVar[tuple[str, ...]] = ("cross_entropy",)
    things: ClassVar[str] = "texts"
    """what a person calls the examples"""

    tokenizer: Tokenizer
    labels: list[str] = field(default_factory=list)
    train: Shards
    dev: Sequence[Example]
    batch_tokens: int
    seed: int

    @property
    def width(self) -> int:
        """How many outputs a model needs."""
        return len(self.labels)

    @property
    def facts(self) -> dict[str, Any]:
        """What prediction has to know, beside labels, for the model's folder."""
        return {}

    @property
    def tokenizers(self) -> Tokenizers:
        return Tokenizers(self.tokenizer, self.tokenizer)

    def baseline_scores(self, examples: Sequence[Example]) -> dict[str, dict[str, float]]:
        """What a score on these examples has to be held against, if there is anything simple."""
        return {}

    def batches(self, epoch: int) -> Iterator[Indices]:
        return shuffled_batches(self.train, ["text"], batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def name(self, examples: Indices) -> str:
        """Examples as a person knows them: how many, and the text of the longest."""
        text = self.train.fields["text"]
        longest = max(examples, key=lambda i: len(text[i]))
        return f"{len(examples)} {self.things}, the longest of them {self.tokenizer.decode(text[longest].tolist())!r}"


class HasConfig(Protocol):
    config: Any


Model = TypeVar("Model", bound=HasConfig)


class OneTextPredictor(Generic[Model]):
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
