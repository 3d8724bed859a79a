"""Recipe -> task: the data read, vocabularies learned, tokens in shards, once for all runs that ask for the same."""

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jumok.data.corpus import (
    SPLITS,
    Corpus,
    Example,
    LabelledData,
    ParallelData,
    Split,
    SyntheticData,
    TaggedData,
    TextData,
    Texts,
    ToyGrammar,
    ToyNames,
    ToyReviews,
    open_shards,
)
from jumok.errors import DataError, InputError
from jumok.models import TransformerConfig
from jumok.recipe import Recipe
from jumok.tasks.classification import (
    ClassificationConfig,
    ClassificationTask,
    collect_labels,
    encode_labelled,
    label_numbers,
)
from jumok.tasks.language_model import LanguageModelConfig, LanguageModelTask, encode_lines
from jumok.tasks.tagging import TaggingConfig, TaggingTask, collect_tags, encode_tagged
from jumok.tasks.translation import TranslationConfig, TranslationTask, encode_pairs
from jumok.text.formats import Pair
from jumok.text.tokenizer import TRAINER, Tokenizer, TokenizerConfig, Tokenizers
from jumok.train.checkpoint import write_atomically
from jumok.version import __version__

CACHE_FOLDER = "JUMOK_CACHE"
AnyTask = TranslationTask | ClassificationTask | TaggingTask | LanguageModelTask


def prepare(recipe: Recipe, cache: Path) -> AnyTask:
    """Vocabularies and token shards of the recipe's data, and the task that they are for."""
    match recipe.task, recipe.data:
        case TranslationConfig(), ParallelData() | SyntheticData():
            return _prepare_translation(recipe, recipe.task, recipe.data, cache)
        case ClassificationConfig(), LabelledData() | ToyReviews():
            return _prepare_classification(recipe, recipe.task, recipe.data, cache)
        case TaggingConfig(), TaggedData() | ToyNames():
            return _prepare_tagging(recipe, recipe.task, recipe.data, cache)
        case LanguageModelConfig(), TextData() | ToyGrammar():
            return _prepare_language_model(recipe, recipe.task, recipe.data, cache)
    raise AssertionError("a recipe refuses data that does not fit its task")


def _prepare_translation(
    recipe: Recipe, config: TranslationConfig, data: ParallelData | SyntheticData, cache: Path
) -> TranslationTask:
    corpora = {split: Corpus(data, split, seed=recipe.seed) for split in SPLITS}
    tokenizers = _pair_tokenizers(recipe.tokenizer, corpora["train"], cache)
    train = open_shards(
        cache,
        [corpora["train"].fingerprint(), tokenizers.source.sha256, tokenizers.target.sha256, data.max_len],
        lambda facts: encode_pairs(corpora["train"], tokenizers, data.max_len, facts),
        fields=("source", "target"),
        vocab_size=max(tokenizers.sizes.values()),
    )
    _refuse_too_long(recipe, tokenizers, corpora)
    return TranslationTask(
        config,
        tokenizers=tokenizers,
        train=train,
        dev=read_split(corpora["dev"]),
        target_language=data.target,
        lowercase=recipe.tokenizer.lowercase,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def _prepare_classification(
    recipe: Recipe, config: ClassificationConfig, data: LabelledData | ToyReviews, cache: Path
) -> ClassificationTask:
    corpora = {split: Corpus(data, split, seed=recipe.seed) for split in SPLITS}
    texts = Texts(corpora["train"], lambda example: [example.text, *([example.pair] if example.pair else [])])
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, ["labelled"], corpora["train"], cache)
    labels = collect_labels(corpora["train"])
    train = open_shards(
        cache,
        ["labelled", corpora["train"].fingerprint(), tokenizer.sha256, data.max_len],
        lambda facts: encode_labelled(corpora["train"], tokenizer, labels, data.max_len, facts),
        fields=("text", "label"),
        vocab_size=max(tokenizer.vocab_size, len(labels)),
    )
    label_numbers(list(corpora["test"]), labels)  # an unknown one is named before the training, not after it
    return ClassificationTask(
        config,
        tokenizer=tokenizer,
        labels=labels,
        train=train,
        dev=read_split(corpora["dev"]),
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def _prepare_tagging(recipe: Recipe, config: TaggingConfig, data: TaggedData | ToyNames, cache: Path) -> TaggingTask:
    corpora = {split: Corpus(data, split, seed=recipe.seed) for split in SPLITS}
    texts = Texts(corpora["train"], lambda sentence: [" ".join(sentence.words)])
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, ["tagged"], corpora["train"], cache)
    tags = collect_tags(corpora["train"])
    train = open_shards(
        cache,
        ["tagged", corpora["train"].fingerprint(), tokenizer.sha256, data.max_len],
        lambda facts: encode_tagged(corpora["train"], tokenizer, tags, data.max_len, facts),
        fields=("text", "first", "tag"),
        vocab_size=max(tokenizer.vocab_size, len(tags), data.max_len),
    )
    return TaggingTask(
        config,
        tokenizer=tokenizer,
        labels=tags,
        train=train,
        dev=read_split(corpora["dev"]),
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def _prepare_language_model(
    recipe: Recipe, config: LanguageModelConfig, data: TextData | ToyGrammar, cache: Path
) -> LanguageModelTask:
    corpora = {split: Corpus(data, split, seed=recipe.seed) for split in SPLITS}
    texts = Texts(corpora["train"], lambda line: [line])
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, ["text"], corpora["train"], cache)
    train = open_shards(
        cache,
        ["text", corpora["train"].fingerprint(), tokenizer.sha256, data.max_len],
        lambda facts: encode_lines(corpora["train"], tokenizer, data.max_len, facts),
        fields=("text",),
        vocab_size=tokenizer.vocab_size,
    )
    return LanguageModelTask(
        config,
        tokenizer=tokenizer,
        train=train,
        dev=read_split(corpora["dev"]),
        max_len=data.max_len,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def _refuse_too_long(recipe: Recipe, tokenizers: Tokenizers, corpora: Mapping[Split, Corpus[Pair]]) -> None:
    """Training leaves long pairs out; a held-out one is scored, so that learned positions have to reach its end."""
    room = recipe.model.longest if isinstance(recipe.model, TransformerConfig) else None
    for split, corpus in corpora.items():
        if room is None or split == "train":
            continue
        for pair in corpus:
            pieces = max(len(tokenizers.encode_source(pair.source)), len(tokenizers.encode_target(pair.target)))
            if pieces >= room:
                raise DataError(
                    f"a pair has {pieces} pieces; the model learns {room} positions",
                    where=pair.where,
                    right=f'model.max_len of at least {pieces + 1}, or model.positions = "sinusoidal"',
                )


def read_split(corpus: Corpus[Example]) -> list[Example]:
    examples = list(corpus)
    if not examples:
        raise DataError(
            f"the recipe has no {corpus.split} data, or its files are empty",
            where=corpus.name or f"data.{corpus.split}",
            right=f"data.{corpus.split} with at least one example, or data.{corpus.split}_share",
        )
    return examples


def _pair_tokenizers(config: TokenizerConfig, corpus: Corpus[Pair], cache: Path) -> Tokenizers:
    def learn(side: str, texts: Callable[[Pair], list[str]]) -> Tokenizer:
        return prepare_tokenizer(config, Texts(corpus, texts), [side], corpus, cache)

    if config.joint:
        joint = learn("both", lambda pair: [pair.source, pair.target])
        return Tokenizers(joint, joint)
    return Tokenizers(learn("source", lambda pair: [pair.source]), learn("target", lambda pair: [pair.target]))


def prepare_tokenizer(
    config: TokenizerConfig, texts: Iterable[str], key: list[str], corpus: Corpus[Any], cache: Path
) -> Tokenizer:
    """Trained on the training text once; the cache knows it by config and corpus, and `key` for which part of it."""
    digest = json.dumps([__version__, TRAINER, asdict(config), *key, corpus.fingerprint()])
    path = cache / "tokenizers" / f"{hashlib.sha256(digest.encode()).hexdigest()[:32]}.json"
    if path.exists():
        return Tokenizer.load(path)
    try:
        tokenizer = Tokenizer.train(config, texts)
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
