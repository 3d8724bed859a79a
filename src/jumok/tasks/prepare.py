"""Preparation of training data: read the splits, train tokenizers, write token shards; both are cached."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from jumok.data.cache import Cache
from jumok.data.corpus import Corpus, Example, Texts
from jumok.data.shards import FORMAT, Shards, build_shards
from jumok.errors import DataError
from jumok.examples import SPLITS
from jumok.examples.documents import Sentence
from jumok.examples.files import FileData
from jumok.files import verify_folder, write_folder
from jumok.hub.files import model_folder
from jumok.hub.tokenizer import read_tokenizers
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT, GPT, MARIAN, TRAINER, Layout, TokenizerConfig

TOKENIZER = "tokenizer.json"
LAYOUTS = {"bert": BERT, "gpt": GPT}
"""models with their own special tokens"""


class Recipe(Protocol):
    """The part of a recipe that tasks use."""

    @property
    def seed(self) -> int: ...
    @property
    def init(self) -> str | None: ...
    @property
    def features(self) -> str | None: ...
    @property
    def task(self) -> Any: ...
    @property
    def data(self) -> Any: ...
    @property
    def tokenizer(self) -> TokenizerConfig: ...
    @property
    def model(self) -> Any: ...
    @property
    def old_domain(self) -> Any: ...
    @property
    def train(self) -> Any: ...
    @property
    def decode(self) -> Any: ...


def read_splits(recipe: Recipe, *, fresh: bool = True) -> tuple[Corpus[Any], list[Any], list[Any]]:
    """The training corpus, and the examples of dev and test, so that unreadable ones are reported before training.

    A run that resumes has been checked before: its test data is read when it is scored.
    """
    train, dev, test = (Corpus[Any](recipe.data, split, seed=recipe.seed) for split in SPLITS)
    held_out = read_split(dev), read_split(test) if fresh and test.exists() else []
    if next(iter(train), None) is None:
        _refuse_empty_side(train)
    return train, *held_out


def read_split(corpus: Corpus[Any], section: str = "data") -> list[Any]:
    examples = list(corpus)
    if not examples:
        _refuse_empty_side(corpus)
        key = f"{section}.{corpus.split}"
        raise DataError(
            f"the recipe has no {corpus.split} data, or its files are empty",
            where=corpus.name or key,
            hint=f"set {key} to files with examples" + (f", or set {key}_share" if section == "data" else ""),
            code="data.empty",
        )
    return examples


def _refuse_empty_side(corpus: Corpus[Any]) -> None:
    """Refuse a split by shares that put every example into other splits; documents are never divided."""
    data = corpus.data
    if not isinstance(data, FileData) or not data.share(corpus.split):
        return
    whole: Any = replace(data, dev_share=0.0, test_share=0.0, folds=0, fold=None)
    examples = [e for e in whole.read("train", seed=corpus.seed) if not isinstance(e, Sentence) or e.first]
    if examples:
        documents = isinstance(examples[0], Sentence)
        what = f"{len(examples)} {'document' if documents else 'example'}{'s' if len(examples) > 1 else ''}"
        raise DataError(
            f"no {corpus.split} data: {what}, split by a hash of the text, all fell into other splits",
            where=corpus.name,
            hint="set data.dev (and data.test) to separate files, or add data"
            + (", or check data.format, which says how files separate documents" if documents else ""),
            code="data.empty_side",
        )


def text_tokenizer(
    recipe: Recipe, train: Corpus[Any], texts: Callable[[Any], Iterable[str]], key: str, cache: Cache
) -> Tokenizer:
    """The tokenizer of the initial weights, or one trained on the training text."""
    layout, start = LAYOUTS.get(recipe.model.kind, MARIAN), recipe.init or recipe.features
    return prepare_tokenizer(recipe.tokenizer, Texts(train, texts), [key], train, cache, layout=layout, start=start)


def prepare_tokenizer(
    config: TokenizerConfig,
    texts: Iterable[str],
    key: list[str],
    corpus: Corpus[Any],
    cache: Cache,
    *,
    layout: Layout = MARIAN,
    start: str | None = None,
) -> Tokenizer:
    """A tokenizer trained on `texts`, cached by config, corpus and `key`, which names the texts.

    With `start`, a folder with initial weights, the tokenizer stored there.
    """
    if start is not None:
        return read_tokenizers(model_folder(Path(start))).source

    def build(folder: Path) -> None:
        try:
            tokenizer = Tokenizer.train(config, cache.polled(texts), layout)
        except DataError as error:
            where = error.where or corpus.name
            raise DataError(error.what, where=where, hint=error.hint, code=error.code) from error
        write_folder(folder, lambda building: tokenizer.save(building / TOKENIZER), replace=False)

    def read(folder: Path) -> Tokenizer:
        verify_folder(folder, needs=[TOKENIZER])
        return Tokenizer.load(folder / TOKENIZER)

    found = [TRAINER, asdict(config), layout.specials, *key, corpus.fingerprint()]
    return cache.entry("tokenizers", found, read=read, build=build)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The contents of shards; `facts` is stored with the rows and may change while they are generated."""

    rows: Iterator[Any]
    """for each example, a sequence of ids per field"""
    fields: tuple[str, ...]
    largest: int
    """all ids are smaller"""
    facts: dict[str, Any]


def prepare_shards(cache: Cache, key: Sequence[object], write: Callable[[], Recorded]) -> Shards:
    """Token shards from the cache, or written into it; `key` lists everything they depend on.

    What is collected from the training data to write them, such as labels, is stored in their facts.
    """

    def build(folder: Path) -> None:
        found = write()
        rows = cache.polled(found.rows)
        build_shards(folder, rows, fields=found.fields, vocab_size=found.largest, facts=found.facts)

    return cache.entry("shards", [FORMAT, *key], read=Shards, build=build)


def counted(corpus: Corpus[Example], facts: dict[str, Any]) -> Iterator[Example]:
    """Count the examples read; the caller counts those that it leaves out, and may not leave out all of them."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0}
    for example in corpus:
        facts["read"] += 1
        yield example
    refuse_empty(corpus, facts)


def refuse_empty(corpus: Corpus[Any], facts: Mapping[str, int]) -> None:
    """Refuse a corpus without an example to train on."""
    read, empty, too_long = (facts[name] for name in ("read", "empty", "too_long"))
    if read == empty + too_long:
        what = f"empty corpus: {read} examples read, {empty} empty, {too_long} too long"
        raise DataError(what, where=corpus.name, hint="add at least one example to train on", code="data.empty")


@dataclass(frozen=True, slots=True)
class Preparation:
    """The splits of a task over one text, with its tokenizer and its rule for long texts."""

    recipe: Recipe
    cache: Cache
    train: Corpus[Any]
    dev: list[Any]
    test: list[Any]
    tokenizer: Tokenizer
    long_texts: LongTexts

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        cache: Cache,
        splits: tuple[Corpus[Any], list[Any], list[Any]],
        texts: Callable[[Any], Iterable[str]],
        key: str,
    ) -> "Preparation":
        """`texts` are those of an example that the tokenizer is trained on, and `key` is their name in the cache."""
        tokenizer = text_tokenizer(recipe, splits[0], texts, key, cache)
        return cls(recipe, cache, *splits, tokenizer, LongTexts.of(recipe.data))

    @property
    def held_out(self) -> list[Any]:
        return [*self.dev, *self.test]

    def shards(self, key: str, write: Callable[[], Recorded], *more: object) -> Shards:
        """Shards of the training corpus; `key` and `more` are what they depend on beside corpus and tokenizer."""
        parts = [key, self.train.fingerprint(), self.tokenizer.sha256, *self.long_texts.key, *more]
        return prepare_shards(self.cache, parts, write)

    def refuse_long(self, encode: Callable[[Tokenizer, Any, LongTexts], object]) -> None:
        """If long texts are refused, refuse those of dev and test before training, not when they are scored."""
        for example in self.held_out if self.long_texts.rule == "refuse" else ():
            encode(self.tokenizer, example, self.long_texts)

    def arguments(self, shards: Shards) -> dict[str, Any]:
        """Arguments that every `OneTextTask` takes."""
        return {
            "train": shards,
            "dev": self.dev,
            "tokenizer": self.tokenizer,
            "long_texts": self.long_texts,
            "language": self.recipe.data.language,
            "batch_tokens": self.recipe.train.batch_tokens,
            "seed": self.recipe.seed,
        }
