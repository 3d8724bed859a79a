"""Recipe -> task: the data read, vocabularies learned, tokens in shards, once for all runs that ask for the same."""

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from jumok.data.corpus import (
    SPLITS,
    Corpus,
    Data,
    DocumentData,
    Example,
    LabelledData,
    ParallelData,
    TaggedData,
    TextData,
    Texts,
    open_shards,
)
from jumok.data.made import SyntheticData, ToyGrammar, ToyNames, ToyReviews, ToyStories
from jumok.data.passages import FIELDS
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
from jumok.tasks.language_model import (
    LanguageModelConfig,
    LanguageModelTask,
    encode_lines,
    encode_texts,
    whole_texts,
)
from jumok.tasks.pretraining import PretrainingConfig, PretrainingTask, encode_documents, read_passages
from jumok.tasks.tagging import TaggingConfig, TaggingTask, collect_tags, encode_tagged
from jumok.tasks.translation import TranslationConfig, TranslationTask, encode_pairs
from jumok.text.documents import Sentence
from jumok.text.formats import Pair
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, GPT, MARIAN, TRAINER, Layout, TokenizerConfig
from jumok.train.checkpoint import write_atomically
from jumok.transfer import extended_tokenizer, read_start
from jumok.version import __version__

CACHE_FOLDER = "JUMOK_CACHE"
AnyTask = TranslationTask | ClassificationTask | TaggingTask | LanguageModelTask | PretrainingTask
LAYOUTS = {"bert": BERT, "gpt": GPT}
"""models with special pieces of their own"""


def prepare(recipe: Recipe, cache: Path) -> AnyTask:
    """Vocabularies and token shards of the recipe's data, and the task that they are for."""
    match recipe.task, recipe.data:
        case TranslationConfig(), ParallelData() | SyntheticData():
            return _prepare_translation(recipe, recipe.task, recipe.data, cache)
        case ClassificationConfig(), LabelledData() | ToyReviews():
            return _prepare_classification(recipe, recipe.task, recipe.data, cache)
        case TaggingConfig(), TaggedData() | ToyNames():
            return _prepare_tagging(recipe, recipe.data, cache)
        case LanguageModelConfig(), TextData() | ToyGrammar() | DocumentData():
            return _prepare_language_model(recipe, recipe.data, cache)
        case PretrainingConfig(), DocumentData() | ToyStories():
            return _prepare_pretraining(recipe, recipe.task, recipe.data, cache)
    raise AssertionError("a recipe refuses data that does not fit its task")


def _prepare_translation(
    recipe: Recipe, config: TranslationConfig, data: ParallelData | SyntheticData, cache: Path
) -> TranslationTask:
    train, dev, test = _read_splits(recipe, data)
    tokenizers = _pair_tokenizers(recipe.tokenizer, train, cache)
    shards = open_shards(
        cache,
        [train.fingerprint(), tokenizers.source.sha256, tokenizers.target.sha256, data.max_len],
        lambda facts: encode_pairs(train, tokenizers, data.max_len, facts),
        fields=("source", "target"),
        vocab_size=max(tokenizers.sizes.values()),
    )
    _refuse_too_long(recipe, tokenizers, [*dev, *test])
    return TranslationTask(
        config,
        tokenizers=tokenizers,
        train=shards,
        dev=dev,
        target_language=data.target,
        lowercase=recipe.tokenizer.lowercase,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def _prepare_classification(
    recipe: Recipe, config: ClassificationConfig, data: LabelledData | ToyReviews, cache: Path
) -> ClassificationTask:
    train, dev, test = _read_splits(recipe, data)
    texts = Texts(train, lambda example: [example.text, *([example.pair] if example.pair else [])])
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, ["labelled"], train, cache, start=recipe.features)
    labels = collect_labels(train)
    label_numbers([*dev, *test], labels)  # an unknown one is named before the training, not after it
    shards = open_shards(
        cache,
        ["labelled", train.fingerprint(), tokenizer.sha256, data.max_len],
        lambda facts: encode_labelled(train, tokenizer, labels, data.max_len, facts),
        fields=("text", "label"),
        vocab_size=max(tokenizer.vocab_size, len(labels)),
    )
    return ClassificationTask(
        config=config,
        tokenizer=tokenizer,
        labels=labels,
        train=shards,
        dev=dev,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def _prepare_tagging(recipe: Recipe, data: TaggedData | ToyNames, cache: Path) -> TaggingTask:
    train, dev, _ = _read_splits(recipe, data)
    texts = Texts(train, lambda sentence: [" ".join(sentence.words)])
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, ["tagged"], train, cache, start=recipe.features)
    tags = collect_tags(train)
    shards = open_shards(
        cache,
        ["tagged", train.fingerprint(), tokenizer.sha256, data.max_len],
        lambda facts: encode_tagged(train, tokenizer, tags, data.max_len, facts),
        fields=("text", "first", "tag"),
        vocab_size=max(tokenizer.vocab_size, len(tags), data.max_len),
    )
    return TaggingTask(
        tokenizer=tokenizer,
        labels=tags,
        train=shards,
        dev=dev,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def _prepare_language_model(
    recipe: Recipe, data: TextData | ToyGrammar | DocumentData, cache: Path
) -> LanguageModelTask:
    # Two kinds of examples: lines, and the sentences of documents.
    train, dev, _ = _read_splits(recipe, cast(Data[str | Sentence], data))
    texts = Texts(train, lambda example: [example if isinstance(example, str) else example.text])
    layout = LAYOUTS.get(recipe.model.kind, MARIAN)
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, ["text"], train, cache, layout=layout, start=recipe.init)
    encode: Any = encode_texts if isinstance(data, DocumentData) else encode_lines
    shards = open_shards(
        cache,
        ["text", train.fingerprint(), tokenizer.sha256, data.max_len],
        lambda facts: encode(train, tokenizer, data.max_len, facts),
        fields=("text",),
        vocab_size=tokenizer.vocab_size,
    )
    return LanguageModelTask(
        tokenizer=tokenizer,
        train=shards,
        dev=whole_texts(dev),
        max_len=data.max_len,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def _prepare_pretraining(
    recipe: Recipe, config: PretrainingConfig, data: DocumentData | ToyStories, cache: Path
) -> PretrainingTask:
    train, dev, _ = _read_splits(recipe, data)
    texts = Texts(train, lambda sentence: [sentence.text])
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, ["documents"], train, cache, layout=BERT, start=recipe.init)
    tokenizer = extended_tokenizer(tokenizer, texts, config.new_pieces)
    shards = open_shards(
        cache,
        ["documents", train.fingerprint(), tokenizer.sha256, data.max_len],
        lambda facts: encode_documents(train, tokenizer, data.max_len, facts),
        fields=FIELDS,
        vocab_size=max(tokenizer.vocab_size, data.max_len),
    )
    return PretrainingTask(
        config,
        tokenizer=tokenizer,
        train=shards,
        dev=read_passages(dev, tokenizer, data.max_len),
        max_len=data.max_len,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
        where=train.name,
    )


def _refuse_too_long(recipe: Recipe, tokenizers: Tokenizers, held_out: Sequence[Pair]) -> None:
    """Training leaves long pairs out; a held-out one is scored, so that learned positions have to reach its end."""
    room = recipe.model.longest if isinstance(recipe.model, TransformerConfig) else None
    for pair in held_out if room is not None else ():
        pieces = max(len(tokenizers.encode_source(pair.source)), len(tokenizers.encode_target(pair.target)))
        if room is not None and pieces >= room:
            raise DataError(
                f"a pair has {pieces} pieces; the model learns {room} positions",
                where=pair.where,
                right=f'model.max_len of at least {pieces + 1}, or model.positions = "sinusoidal"',
            )


def _read_splits(recipe: Recipe, data: Data[Example]) -> tuple[Corpus[Example], list[Example], list[Example]]:
    """The training corpus, and all that will be scored: what cannot be read is named before anything is learned."""
    train, dev, test = (Corpus(data, split, seed=recipe.seed) for split in SPLITS)
    return train, read_split(dev), read_split(test) if test.exists() else []


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
