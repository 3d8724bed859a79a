"""What every preparation needs: splits that can be read, vocabularies that are learned once, shards of both."""

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from jumok.data.corpus import Corpus, Texts
from jumok.data.shards import FORMAT, Shards, build_shards
from jumok.errors import DataError, InputError
from jumok.examples import SPLITS
from jumok.examples.documents import Sentence
from jumok.examples.files import FileData
from jumok.files import write_atomically
from jumok.hub.folder import model_folder
from jumok.hub.tokenizer import read_tokenizers
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT, GPT, MARIAN, TRAINER, Layout, TokenizerConfig
from jumok.version import __version__

CACHE_FOLDER = "JUMOK_CACHE"
LAYOUTS = {"bert": BERT, "gpt": GPT}
"""models with special pieces of their own"""


class Recipe(Protocol):
    """What a task reads of a recipe."""

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
    """The training corpus, and all that will be scored: what cannot be read is named before anything is learned.

    A run that goes on has been looked at before: its test data is read when it is scored.
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
            hint=f"{key} with at least one example" + (f", or {key}_share" if section == "data" else ""),
            code="data.empty",
        )
    return examples


def _refuse_empty_side(corpus: Corpus[Any]) -> None:
    """Say so if there are examples, and shares gave all of them to other splits; they never divide a document."""
    data = corpus.data
    if not isinstance(data, FileData) or not data.share(corpus.split):
        return
    whole: Any = replace(data, dev_share=0.0, test_share=0.0, folds=0, fold=None)
    examples = [e for e in whole.read("train", seed=corpus.seed) if not isinstance(e, Sentence) or e.first]
    if examples:
        documents = isinstance(examples[0], Sentence)
        what = f"{len(examples)} {'document' if documents else 'example'}{'s' if len(examples) > 1 else ''}"
        raise DataError(
            f"no {corpus.split} data: of {what}, divided by a hash of their text, all fell on other sides",
            where=corpus.name,
            hint="data.dev (and data.test) with files of their own, or more to divide"
            + (": data.format says how documents stand in a file" if documents else ""),
            code="data.empty_side",
        )


def text_tokenizer(
    recipe: Recipe, train: Corpus[Any], texts: Callable[[Any], Iterable[str]], key: str, cache: Path
) -> Tokenizer:
    """Of the weights that training begins with, or learned from the training text."""
    layout, start = LAYOUTS.get(recipe.model.kind, MARIAN), recipe.init or recipe.features
    return prepare_tokenizer(recipe.tokenizer, Texts(train, texts), [key], train, cache, layout=layout, start=start)


def prepare_tokenizer(
    config: TokenizerConfig,
    texts: Iterable[str],
    key: list[str],
    corpus: Corpus[Any],
    cache: Path,
    *,
    layout: Layout = MARIAN,
    start: str | None = None,
) -> Tokenizer:
    """Trained on the training text once; the cache knows it by config and corpus, and `key` for which part of it.

    Training that begins with the weights in the folder `start` has the vocabulary of that.
    """
    if start is not None:
        return read_tokenizers(model_folder(Path(start))).source
    digest = json.dumps([__version__, TRAINER, asdict(config), layout.specials, *key, corpus.fingerprint()])
    path = cache / "tokenizers" / f"{hashlib.sha256(digest.encode()).hexdigest()[:32]}.json"
    if path.exists():
        return Tokenizer.load(path)
    try:
        tokenizer = Tokenizer.train(config, texts, layout)
    except DataError as error:
        where = error.where or corpus.name
        raise DataError(error.what, where=where, hint=error.hint, code=error.code) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, tokenizer.to_json())
    return tokenizer


@dataclass(frozen=True, slots=True)
class Recorded:
    """What shards are written from; `facts` is filled while the rows are, and kept with them."""

    rows: Iterator[Any]
    """of each example a sequence of ids for each field"""
    fields: tuple[str, ...]
    largest: int
    """no id is as large as this"""
    facts: dict[str, Any]


def prepare_shards(cache: Path, key: Sequence[object], write: Callable[[], Recorded]) -> Shards:
    """Token shards from the cache, or written into it: `key` is all that they depend on.

    Whatever had to be learned of the training data to write them, such as its labels, is among their facts, so that it
    is read once.
    """
    digest = hashlib.sha256(json.dumps([__version__, FORMAT, *key]).encode()).hexdigest()
    folder = cache / "shards" / digest[:32]
    if folder.exists():
        return Shards(folder)
    found = write()
    return build_shards(folder, found.rows, fields=found.fields, vocab_size=found.largest, facts=found.facts)


def refuse_long(long_texts: LongTexts, held_out: Sequence[Any], read: Callable[[Any], object]) -> None:
    """What would be refused when it is scored is refused before anything is learned."""
    for example in held_out if long_texts.rule == "refuse" else ():
        read(example)


def cache_folder() -> Path:
    """Prepared data that runs share: $JUMOK_CACHE, or jumok's place in the user's cache."""
    own = os.environ.get(CACHE_FOLDER)
    folder = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumok"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, "no permission to write")
    except OSError as error:
        raise InputError(
            f"the folder for prepared data cannot be used: {error.strerror}",
            where=folder,
            hint=f"the environment variable {CACHE_FOLDER} set to a folder that can be written",
            code="input.cache",
        ) from error
    return folder
