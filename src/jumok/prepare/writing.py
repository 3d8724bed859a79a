"""Preparing text that models learn to write or to guess: translation, language modelling, pre-training."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from jumok.data.corpus import Corpus, Data, Texts, open_shards
from jumok.data.made import SyntheticData, ToyGrammar, ToyStories
from jumok.data.passages import FIELDS
from jumok.data.sources import DocumentData, ParallelData, TextData
from jumok.errors import DataError
from jumok.models import TransformerConfig
from jumok.prepare.parts import LAYOUTS, prepare_tokenizer, read_split, read_splits
from jumok.recipe import Recipe
from jumok.tasks.language_model import LanguageModelTask, encode_lines, encode_texts, whole_texts
from jumok.tasks.pretraining import PretrainingConfig, PretrainingTask, encode_documents, read_passages
from jumok.tasks.translation import TranslationConfig, TranslationTask, encode_pairs
from jumok.text.documents import Sentence
from jumok.text.formats import Pair
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, MARIAN, TokenizerConfig
from jumok.transfer import extended_tokenizer


def prepare_translation(
    recipe: Recipe, config: TranslationConfig, data: ParallelData | SyntheticData, cache: Path
) -> TranslationTask:
    train, dev, test = read_splits(recipe, data)
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


def prepare_language_model(
    recipe: Recipe, data: TextData | ToyGrammar | DocumentData, cache: Path
) -> LanguageModelTask:
    # Two kinds of examples: lines, and the sentences of documents.
    train, dev, _ = read_splits(recipe, cast(Data[str | Sentence], data))
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


def prepare_pretraining(
    recipe: Recipe, config: PretrainingConfig, data: DocumentData | ToyStories, cache: Path
) -> PretrainingTask:
    train, dev, _ = read_splits(recipe, data)
    if recipe.old_domain is not None:
        read_split(Corpus(recipe.old_domain, "test", seed=recipe.seed), "old_domain")
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


def _pair_tokenizers(config: TokenizerConfig, corpus: Corpus[Pair], cache: Path) -> Tokenizers:
    def learn(side: str, texts: Callable[[Pair], list[str]]) -> Tokenizer:
        return prepare_tokenizer(config, Texts(corpus, texts), [side], corpus, cache)

    if config.joint:
        joint = learn("both", lambda pair: [pair.source, pair.target])
        return Tokenizers(joint, joint)
    return Tokenizers(learn("source", lambda pair: [pair.source]), learn("target", lambda pair: [pair.target]))
