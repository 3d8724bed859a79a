"""Translation, and everything else that has the shape text in, text out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jumok.config import Share
from jumok.data.batching import Indices, shuffled_batches, sorted_batches
from jumok.data.corpus import Corpus
from jumok.data.shards import Shards, in_chunks
from jumok.decode.search import DecodeConfig
from jumok.errors import DataError
from jumok.models import EncoderDecoder, Seq2Seq
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.score.translation import quick_scores
from jumok.tasks.batch import pad
from jumok.tasks.translator import translate
from jumok.text.formats import Pair
from jumok.text.tokenizer import Tokenizers
from jumok.text.vocabulary import EOS_ID
from jumok.train.loop import Loss

CHUNK = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslationConfig:
    """The task: a text is turned into a text."""

    kind: Literal["translation"] = "translation"
    label_smoothing: Share = 0.1
    scheduled_sampling: Share = 0.0
    """share of the decoder's inputs that are its own words rather than the target's (Bengio et al. 2015), at the last
    step; it grows from zero in a straight line"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded ids and the mask of the real source positions."""

    source: Tensor
    source_mask: Tensor
    target_in: Tensor
    """`<pad>` (the start), then the target"""
    target_out: Tensor
    """the target, then `</s>`: what is to be predicted at each position of `target_in`"""
    positions: Tensor
    """flat indices of the real positions of `target_out`"""
    count: int
    """real target pieces, the ends included"""

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


def encode_pairs(
    corpus: Corpus[Pair], tokenizers: Tokenizers, max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Source and target ids of every pair that is to be trained on; `facts` counts the others."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "longest": 0}
    for pairs in in_chunks(corpus, CHUNK):
        sources = tokenizers.source.encode_batch([pair.source for pair in pairs])
        targets = tokenizers.target.encode_batch([pair.target for pair in pairs])
        for source, target in zip(sources, targets, strict=True):
            facts["read"] += 1
            if not source or not target:
                facts["empty"] += 1
            elif max(len(source), len(target)) > max_len:
                facts["too_long"] += 1
            else:
                facts["longest"] = max(facts["longest"], len(source) + 1)
                yield [*source, EOS_ID], [*target, EOS_ID]
    if facts["read"] == facts["empty"] + facts["too_long"]:
        counts = f"{facts['read']} pairs read, {facts['empty']} empty, {facts['too_long']} too long"
        raise DataError(f"empty corpus: {counts}", where=corpus.name, right="at least one pair to train on")


class TranslationTask:
    """Batches, loss and evaluation for the training loop."""

    losses = ("cross_entropy",)

    def __init__(
        self,
        config: TranslationConfig,
        *,
        tokenizers: Tokenizers,
        train: Shards,
        dev: Sequence[Pair],
        target_language: str,
        lowercase: bool = False,
        batch_tokens: int,
        seed: int,
    ) -> None:
        self.config = config
        self.labels: list[str] = []
        self.tokenizers = tokenizers
        self.train = train
        self.dev = dev
        self.target_language = target_language
        self.lowercase = lowercase
        self.batch_tokens = batch_tokens
        self.seed = seed

    def batches(self, epoch: int) -> Iterator[Indices]:
        fields = ("source", "target")
        return shuffled_batches(self.train, fields, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def batch(self, examples: Indices) -> Batch:
        source, target = self.train.fields["source"], self.train.fields["target"]
        return make_batch(
            [source[i].tolist() for i in examples], [target[i].tolist() for i in examples], self.tokenizers
        )

    def name(self, examples: Indices) -> str:
        """Examples as a person knows them: how many, and the texts of the longest."""
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

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        """Dev perplexity, and BLEU and exact match of greedy outputs."""
        sources = [self.tokenizers.encode_source(pair.source) for pair in self.dev]
        targets = [self.tokenizers.encode_target(pair.target) for pair in self.dev]
        sizes = np.array([max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)])
        total, count = 0.0, 0
        with torch.inference_mode():
            for rows in sorted_batches(sizes, self.batch_tokens):
                batch = make_batch([sources[i] for i in rows], [targets[i] for i in rows], self.tokenizers)
                total += float(translation_loss(model, batch, smoothing=0.0).total)
                count += batch.count
        outputs = translate([model], self.tokenizers, sources, DecodeConfig(method="greedy"))
        texts = [self.tokenizers.target.decode(output[0].ids) for output in outputs]
        references = [pair.target for pair in self.dev]
        language, lowercase = self.target_language, self.lowercase
        scores = quick_scores(texts, references, target_language=language, lowercase=lowercase)
        return {"perplexity": exp(min(total / count, 50.0)), **scores}


def translation_loss(model: EncoderDecoder, batch: Batch, *, smoothing: float, own: float = 0.0) -> Loss:
    """Cross-entropy over the real target positions; nothing is computed for the vocabulary at padding."""
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
