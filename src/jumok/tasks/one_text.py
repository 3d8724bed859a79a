"""What the tasks over one text have in common: of training their examples and the order in which these come, of
prediction their models and how much they read at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic

from torch import Tensor

from jumok.data.batching import Indices, shuffled_batches
from jumok.data.corpus import Example
from jumok.data.shards import Shards
from jumok.tasks.windows import LongTexts, WindowedFacts
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
    long_texts: LongTexts | None = None
    language: str = ""
    batch_tokens: int
    seed: int

    @property
    def width(self) -> int:
        """How many outputs a model needs."""
        return len(self.labels)

    @property
    def facts(self) -> Any:
        """What prediction has to know, for the model's folder."""
        return {}

    def windowed_facts(self, **more: Any) -> WindowedFacts:
        """The facts that all tasks have whose texts may be too long."""
        kind = more.pop("kind", WindowedFacts)
        assert self.long_texts is not None
        rule, max_len = self.long_texts.as_fact, self.long_texts.max_len
        found: WindowedFacts = kind(
            language=self.language, labels=self.labels, max_len=max_len, long_texts=rule, **more
        )
        return found

    def notes(self) -> list[str]:
        """What became of training examples that were left out, or too long."""
        return notes_of_shards(self.train, self.long_texts)

    def notes_of_cut(self, things: str) -> list[str]:
        counted = self.train.facts
        assert self.long_texts is not None
        return [f"{counted['cut']:,} of {counted['read']:,}: {self.long_texts.became_cut(things)}"] * bool(
            counted["cut"]
        )

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
        return self.named(examples, "text")

    def named(self, examples: Indices, field_name: str) -> str:
        text = self.train.fields[field_name]
        longest = max(examples, key=lambda i: len(text[i]))
        return f"{len(examples)} {self.things}, the longest of them {self.tokenizer.decode(text[longest].tolist())!r}"

    def calibrated(self, predictor: Any, dev: Sequence[Example]) -> dict[str, Any]:
        """Facts that only show on dev, once the model is trained."""
        return {}

    def final_weights(self, weights: dict[str, Tensor], facts: Any) -> dict[str, Tensor]:
        """The weights as they are stored: what was found on dev may be part of them."""
        return weights


DROPPED = {"empty": "with an empty side", "too_long": "longer than data.max_len"}


def notes_of_shards(train: Shards, long_texts: LongTexts | None = None, how: str | None = None) -> list[str]:
    """What became of training examples that are empty, too long, or marked where no piece ends."""
    counted = train.facts
    dropped = [f"{counted[k]:,} {words}" for k, words in DROPPED.items() if counted[k]]
    notes = [f"left out of {counted['read']:,} training examples: {', '.join(dropped)}"] if dropped else []
    if counted.get("long") and long_texts is not None:
        notes.append(f"{counted['long']:,} of {counted['read']:,}: {long_texts.became(how)}")
    return notes
