"""Training of tasks over one text: everything that they share but the loss."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from jumok.data.batching import Indices, shuffled_batches
from jumok.data.corpus import Example
from jumok.data.shards import Shards
from jumok.tasks.windows import LongTexts, WindowedFacts
from jumok.text.tokenizer import Tokenizer, Tokenizers

Facts = TypeVar("Facts", bound=WindowedFacts)


@dataclass(frozen=True, kw_only=True)
class OneTextTask(Generic[Example]):
    """Training examples in shards, with a field `text`, and dev examples as they were read."""

    losses: ClassVar[tuple[str, ...]] = ("cross_entropy",)
    things: ClassVar[str] = "texts"
    """name of the examples in messages"""

    tokenizer: Tokenizer
    labels: list[str] = field(default_factory=list)
    train: Shards
    dev: Sequence[Example]
    long_texts: LongTexts | None = None
    language: str = ""
    batch_tokens: int
    seed: int

    @property
    def width(self) -> int:
        """Number of outputs of the model's head."""
        return len(self.labels)

    @property
    def facts(self) -> Any:
        """Facts that prediction needs, for the model folder."""
        return {}

    def windowed_facts(self, kind: type[Facts], **more: Any) -> Facts:
        """Facts of a task whose texts may be too long for the model."""
        assert self.long_texts is not None
        rule, max_len = self.long_texts.as_fact, self.long_texts.max_len
        return kind(language=self.language, labels=self.labels, max_len=max_len, long_texts=rule, **more)

    def notes(self) -> list[str]:
        """Remarks on training examples that were left out, or too long."""
        return notes_of_shards(self.train, self.long_texts)

    def notes_of_cut(self, things: str) -> list[str]:
        assert self.long_texts is not None
        cut, read = self.train.facts["cut"], self.train.facts["read"]
        return [f"{cut:,} of {read:,}: {self.long_texts.became_cut(things)}"] if cut else []

    @property
    def tokenizers(self) -> Tokenizers:
        return Tokenizers(self.tokenizer, self.tokenizer)

    def baseline_scores(self, examples: Sequence[Example]) -> dict[str, dict[str, float]]:
        """Scores of simple baselines on these examples."""
        return {}

    def batches(self, epoch: int) -> Iterator[Indices]:
        return shuffled_batches(self.train, ["text"], batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def name(self, examples: Indices) -> str:
        """Describe examples in a message: how many, and the text of the longest."""
        return self.named(examples, "text")

    def named(self, examples: Indices, field_name: str) -> str:
        text = self.train.fields[field_name]
        longest = max(examples, key=lambda i: len(text[i]))
        return f"{len(examples)} {self.things}, the longest of them {self.tokenizer.decode(text[longest].tolist())!r}"

    def calibrated(self, predictor: Any, dev: Sequence[Example]) -> dict[str, Any]:
        """Facts that are fitted on dev after training."""
        return {}


DROPPED = {"empty": "with an empty side", "too_long": "longer than data.max_len"}


def notes_of_shards(train: Shards, long_texts: LongTexts | None = None, how: str | None = None) -> list[str]:
    """Remarks on training examples that are empty or too long; `how` long texts are read, if not by the rule."""
    counted = train.facts
    dropped = [f"{counted[k]:,} {words}" for k, words in DROPPED.items() if counted[k]]
    notes = [f"left out of {counted['read']:,} training examples: {', '.join(dropped)}"] if dropped else []
    if counted.get("long") and long_texts is not None:
        notes.append(f"{counted['long']:,} of {counted['read']:,}: {long_texts.became(how)}")
    return notes
