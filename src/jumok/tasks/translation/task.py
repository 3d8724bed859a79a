"""Train translation: data, batches, loss and evaluation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from jumok.data.batching import Indices, shuffled_batches
from jumok.data.cache import Cache
from jumok.data.corpus import Corpus, Texts
from jumok.data.pages import pad
from jumok.data.shards import Shards, in_texts
from jumok.engines import Done, nobody
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.pairs import Pair
from jumok.models.build import EncoderDecoder
from jumok.models.seq2seq import Seq2Seq
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.tasks.one_text import notes_of_shards
from jumok.tasks.prepare import Recipe, Recorded, prepare_shards, prepare_tokenizer, read_splits, refuse_empty
from jumok.tasks.translation import TranslationConfig, TranslationFacts
from jumok.tasks.translation.predictor import Translator
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID, TokenizerConfig
from jumok.train.loop import Loss

CHARACTERS_PER_TOKEN = 64
"""a side with more for each token of data.max_len is too long without being tokenized"""


def prepare(recipe: Recipe, cache: Cache, *, fresh: bool = True) -> "TranslationTask":
    data = recipe.data
    train, dev, test = read_splits(recipe, fresh=fresh)
    tokenizers = pair_tokenizers(recipe.tokenizer, train, cache)

    def write() -> Recorded:
        facts: dict[str, Any] = {}
        rows = encode_pairs(train, tokenizers, data.max_len, facts)
        return Recorded(rows, ("source", "target"), max(tokenizers.sizes.values()), facts)

    key = [train.fingerprint(), tokenizers.source.sha256, tokenizers.target.sha256, data.max_len]
    shards = prepare_shards(cache, key, write)
    _refuse_too_long(recipe.model.longest, tokenizers, [*dev, *test])
    return TranslationTask(
        config=recipe.task,
        facts=TranslationFacts(
            source=data.source,
            target=data.target,
            decode=recipe.decode,
            lowercase=recipe.tokenizer.lowercase,
            longest=shards.facts["longest"],
        ),
        tokenizers=tokenizers,
        train=shards,
        dev=dev,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def pair_tokenizers(config: TokenizerConfig, corpus: Corpus[Pair], cache: Cache) -> Tokenizers:
    """One vocabulary for each side, or one for both."""

    def learn(side: str, texts: Callable[[Pair], list[str]]) -> Tokenizer:
        return prepare_tokenizer(config, Texts(corpus, texts), [side], corpus, cache)

    if config.joint:
        joint = learn("both", lambda pair: [pair.source, pair.gold])
        return Tokenizers(joint, joint)
    return Tokenizers(learn("source", lambda pair: [pair.source]), learn("target", lambda pair: [pair.gold]))


def _refuse_too_long(room: int | None, tokenizers: Tokenizers, held_out: Sequence[Pair]) -> None:
    """Training skips long pairs, but held-out ones are scored and must fit into the learned positions."""
    for pair in held_out if room is not None else ():
        both = tokenizers.filled(pair.source)
        tokens = max(len(both.encode_source(pair.source)), len(both.encode_target(pair.gold)))
        if room is not None and tokens >= room:
            raise DataError(
                f"a pair of {tokens} tokens: the model learns {room} positions",
                where=pair.where,
                hint=f'set model.max_len to at least {tokens + 1}, or model.positions = "sinusoidal"',
                code="data.too_long",
            )


def encode_pairs(
    corpus: Corpus[Pair], tokenizers: Tokenizers, max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Source and target ids of every pair to train on; `facts` counts those that are skipped."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "longest": 0}
    most = CHARACTERS_PER_TOKEN * max_len
    for read in in_texts(corpus, lambda pair: pair.source + pair.gold):
        pairs = [pair for pair in read if max(len(pair.source), len(pair.gold)) <= most]
        facts["read"] += len(read) - len(pairs)
        facts["too_long"] += len(read) - len(pairs)
        sources = tokenizers.source.encode_batch([pair.source for pair in pairs])
        texts = [pair.source for pair in pairs]
        targets = tokenizers.target.encode_batch([pair.gold for pair in pairs], sources=texts)
        for source, target in zip(sources, targets, strict=True):
            facts["read"] += 1
            if not source or not target:
                facts["empty"] += 1
            elif max(len(source), len(target)) > max_len:
                facts["too_long"] += 1
            else:
                facts["longest"] = max(facts["longest"], len(source) + 1)
                source.append(EOS_ID)
                target.append(EOS_ID)
                yield source, target
    refuse_empty(corpus, facts)


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded ids and the mask of the real source positions."""

    source: Tensor
    source_mask: Tensor
    target_in: Tensor
    """`<pad>` (the start), then the target"""
    target_out: Tensor
    """the target, then `</s>`: the token to predict at each position of `target_in`"""
    positions: Tensor
    """flat indices of the real positions of `target_out`"""
    count: int
    """number of real target tokens, with the end tokens"""

    def to(self, device: torch.device) -> "Batch":
        source, mask = self.source.to(device), self.source_mask.to(device)
        target_in, target_out = self.target_in.to(device), self.target_out.to(device)
        return Batch(source, mask, target_in, target_out, self.positions.to(device), self.count)


def make_batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], tokenizers: Tokenizers) -> Batch:
    source_pad, target_pad = tokenizers.source.pad_id, tokenizers.target.pad_id
    source, target_out = pad(sources, source_pad), pad(targets, target_pad)
    target_in = torch.full_like(target_out, target_pad)
    target_in[:, 1:] = target_out[:, :-1]
    positions = (target_out != target_pad).flatten().nonzero()[:, 0]
    return Batch(source, source != source_pad, target_in, target_out, positions, len(positions))


@dataclass(frozen=True, kw_only=True)
class TranslationTask:
    """Training pairs in shards, and dev pairs as they were read."""

    losses: ClassVar[tuple[str, ...]] = ("cross_entropy",)

    config: TranslationConfig
    facts: TranslationFacts
    tokenizers: Tokenizers
    train: Shards
    dev: Sequence[Pair]
    batch_tokens: int
    seed: int

    def notes(self) -> list[str]:
        """Remarks on training pairs that were skipped."""
        return notes_of_shards(self.train)

    def calibrated(self, predictor: Any, dev: Sequence[Pair]) -> dict[str, Any]:
        return {}

    def batches(self, epoch: int) -> Iterator[Indices]:
        fields = ("source", "target")
        return shuffled_batches(self.train, fields, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def batch(self, examples: Indices) -> Batch:
        source, target = self.train.fields["source"], self.train.fields["target"]
        return make_batch(
            [source[i].tolist() for i in examples], [target[i].tolist() for i in examples], self.tokenizers
        )

    def name(self, examples: Indices) -> str:
        """Describe examples in a message: how many, and the texts of the longest."""
        source, target = self.train.fields["source"], self.train.fields["target"]
        longest = max(examples, key=lambda i: len(source[i]) + len(target[i]))
        texts = (
            self.tokenizers.source.decode(source[longest].tolist()),
            self.tokenizers.target.decode(target[longest].tolist()),
        )
        return f"{len(examples)} pairs, the longest of them {texts[0]!r} -> {texts[1]!r}"

    def loss(self, model: EncoderDecoder, batch: Batch, *, done: float) -> Loss:
        own = self.config.scheduled_sampling * done
        return translation_loss(model, batch, smoothing=self.config.label_smoothing, own=own)

    def evaluate(self, model: EncoderDecoder, *, done: Done = nobody) -> dict[str, float]:
        return Translator(TorchEngine([model], self.tokenizers, done), self.tokenizers, self.facts).quick(self.dev)


def translation_loss(model: EncoderDecoder, batch: Batch, *, smoothing: float, own: float = 0.0) -> Loss:
    """Cross-entropy over the real target positions; no logits are computed at padding."""
    batch = batch.to(model.device)
    options = {"own": own} if own and isinstance(model, Seq2Seq) else {}
    hidden = model(batch.source, batch.source_mask, batch.target_in, **options).flatten(0, 1)
    total = linear_cross_entropy(
        hidden.index_select(0, batch.positions),
        model.projection,
        batch.target_out.flatten().index_select(0, batch.positions),
        smoothing=smoothing,
    )
    return Loss(total, batch.count)
