"""Parity: has a text an even number of words, or an odd one?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal
from zlib import crc32

from jumok.data.cache import Cache
from jumok.engines import Engine
from jumok.examples import Split
from jumok.examples.labelled import Labelled, LabelledData
from jumok.examples.made.data import WindowedToy
from jumok.models.head import Head
from jumok.tasks.checks import Checks
from jumok.tasks.protocol import TaskKind
from jumok.tasks.windows import WindowedFacts
from jumok.text.tokenizer import Tokenizers

LABELS = ["even", "odd"]
WORDS = [a + b for a in ("ba", "do", "ki", "mu", "te") for b in "bdklmnrst"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParityConfig:
    """The task: a text has an even number of words, or an odd one."""

    kind: Literal["parity"] = "parity"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyParity(WindowedToy):
    """Made texts of two to five words; dev and test have texts that are never made for training."""

    kind: Literal["toy_parity"] = "toy_parity"

    def for_files(self, files: list[str]) -> LabelledData:
        return LabelledData(language=self.language, test=files)

    def read(self, split: Split, *, seed: int) -> Iterator[Labelled]:
        rng, made = Random(f"{split} {seed if split == 'train' else 0}"), set[str]()
        while len(made) < self.count(split):
            words = rng.choices(WORDS, k=rng.randint(2, 5))
            text = " ".join(words)
            side = {0: "dev", 1: "test"}.get(crc32(text.encode()) % 10, "train")
            if side == split and text not in made:
                made.add(text)
                yield Labelled(text, None, LABELS[len(words) % 2], f"parity {split} {len(made)}")


class ParityKind(TaskKind):
    name = "parity"
    config = ParityConfig
    data = (LabelledData, ToyParity)
    models = ("rnn",)
    facts = WindowedFacts
    pipeline = "text-classification"

    def metrics(self, config: ParityConfig) -> tuple[str, ...]:
        return ("accuracy",)

    def head(self, config: Mapping[str, Any], facts: WindowedFacts) -> Head:
        return Head(asks="text", n_labels=len(LABELS))

    def does(self, facts: WindowedFacts) -> str:
        return "to tell an even number of words from an odd one"

    def prepare(self, recipe: Any, cache: Cache, *, fresh: bool = True) -> Any:
        from jumok.tasks.parity.task import prepare

        return prepare(recipe, cache, fresh=fresh)

    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: WindowedFacts) -> Any:
        from jumok.tasks.parity.predictor import Counter

        return Counter(engine, tokenizers, facts)

    def checks(self, config: ParityConfig, data: Any) -> Checks:
        from jumok.tasks.parity.checks import ParityChecks

        return ParityChecks(config, data)
