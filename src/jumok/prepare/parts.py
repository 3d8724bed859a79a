"""What every preparation needs: splits that can be read, vocabularies that are learned once, a place for both."""

import errno
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jumok.data.corpus import SPLITS, Corpus, Data, Example
from jumok.data.files import FileData
from jumok.errors import DataError, InputError
from jumok.recipe import Recipe
from jumok.text.documents import Sentence
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT, GPT, MARIAN, TRAINER, Layout, TokenizerConfig
from jumok.train.checkpoint import write_atomically
from jumok.transfer import read_start
from jumok.version import __version__

CACHE_FOLDER = "JUMOK_CACHE"
LAYOUTS = {"bert": BERT, "gpt": GPT}
"""models with special pieces of their own"""


def read_splits(recipe: Recipe, data: Data[Example]) -> tuple[Corpus[Example], list[Example], list[Example]]:
    """The training corpus, and all that will be scored: what cannot be read is named before anything is learned."""
    train, dev, test = (Corpus(data, split, seed=recipe.seed) for split in SPLITS)
    held_out = read_split(dev), read_split(test) if test.exists() else []
    if next(iter(train), None) is None:
        _refuse_empty_side(train)
    return train, *held_out


def read_split(corpus: Corpus[Example], section: str = "data") -> list[Example]:
    examples = list(corpus)
    if not examples:
        _refuse_empty_side(corpus)
        key = f"{section}.{corpus.split}"
        raise DataError(
            f"the recipe has no {corpus.split} data, or its files are empty",
            where=corpus.name or key,
            right=f"{key} with at least one example" + (f", or {key}_share" if section == "data" else ""),
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
            right="data.dev (and data.test) with files of their own, or more to divide"
            + (": data.format says how documents stand in a file" if documents else ""),
        )


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
        return read_start(start).tokenizers.source
    digest = json.dumps([__version__, TRAINER, asdict(config), layout.specials, *key, corpus.fingerprint()])
    path = cache / "tokenizers" / f"{hashlib.sha256(digest.encode()).hexdigest()[:32]}.json"
    if path.exists():
        return Tokenizer.load(path)
    try:
        tokenizer = Tokenizer.train(config, texts, layout)
    except DataError as error:
        raise DataError(error.what, where=error.where or corpus.name, right=error.right) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, tokenizer.to_json())
    return tokenizer


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
            right=f"the environment variable {CACHE_FOLDER} set to a folder that can be written",
        ) from error
    return folder
