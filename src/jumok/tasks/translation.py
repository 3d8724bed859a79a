"""Translation, and everything else that has the shape text in, text out."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import exp
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from jumok.config import Share
from jumok.data.batching import POOL, Indices, epoch_batches, sorted_batches
from jumok.data.shards import Shards
from jumok.decode.search import DecodeConfig, Ensemble, EnsembleState, Hypothesis, Request, search
from jumok.models import EncoderDecoder, Seq2Seq
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.score.translation import quick_scores
from jumok.text.formats import Pair
from jumok.text.tokenizer import EOS_ID, Tokenizer
from jumok.train.loop import Loss


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


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    padded = np.full((len(rows), max(map(len, rows))), value, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded)


@dataclass(frozen=True, slots=True)
class Tokenizers:
    """One for each side; the same object twice when the vocabulary is joint."""

    source: Tokenizer
    target: Tokenizer

    @property
    def sizes(self) -> dict[str, int]:
        return {"source_vocab": self.source.vocab_size, "target_vocab": self.target.vocab_size}

    def encode_source(self, text: str) -> list[int]:
        return [*self.source.encode(text), EOS_ID]

    def encode_target(self, text: str) -> list[int]:
        return [*self.target.encode(text), EOS_ID]


def make_batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], tokenizers: Tokenizers) -> Batch:
    source_pad, target_pad = tokenizers.source.pad_id, tokenizers.target.pad_id
    source, target_out = pad(sources, source_pad), pad(targets, target_pad)
    target_in = torch.full_like(target_out, target_pad)
    target_in[:, 1:] = target_out[:, :-1]
    positions = (target_out != target_pad).flatten().nonzero()[:, 0]
    return Batch(source, source != source_pad, target_in, target_out, positions, len(positions))


class TranslationTask:
    """Batches, loss and evaluation for the training loop."""

    def __init__(
        self,
        config: TranslationConfig,
        *,
        tokenizers: Tokenizers,
        train: Shards,
        dev: Sequence[Pair],
        target_language: str,
        batch_tokens: int,
        seed: int,
    ) -> None:
        self.config = config
        self.tokenizers = tokenizers
        self.train = train
        self.dev = dev
        self.target_language = target_language
        self.batch_tokens = batch_tokens
        self.seed = seed

    def batches(self, epoch: int) -> Iterator[Indices]:
        source, target = self.train.fields["source"], self.train.fields["target"]
        taken = 0
        for examples in epoch_batches(
            len(self.train),
            lengths=lambda examples: np.stack([source.lengths(examples), target.lengths(examples)], axis=1),
            batch_tokens=self.batch_tokens,
            seed=self.seed,
            epoch=epoch,
        ):
            yield examples
            taken += len(examples)
            if taken >= POOL:
                self.train.release_pages()
                taken = 0

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
        scores = quick_scores(texts, references, target_language=self.target_language)
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


def translate(
    models: Sequence[EncoderDecoder],
    tokenizers: Tokenizers,
    sources: Sequence[Sequence[int]],
    config: DecodeConfig,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    batch_tokens: int = 4096,
    done: Callable[[int], None] = lambda n: None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each source (ids with their end), in the order of the sources.

    `done` is told how many sentences each batch has finished.
    """
    sizes = np.array([len(source) for source in sources], dtype=np.int64)
    beams = config.beam if config.method == "beam" else 1
    results: list[list[Hypothesis]] = [[] for _ in sources]
    decoder = models[0] if len(models) == 1 else Ensemble(models)
    longest = min((m.config.longest for m in models if m.config.longest is not None), default=sys.maxsize)
    for rows in sorted_batches(sizes, max(batch_tokens // beams, 1)):
        source = pad([sources[i] for i in rows], tokenizers.source.pad_id)
        mask = source != tokenizers.source.pad_id
        source, mask = source.to(decoder.device), mask.to(decoder.device)
        requests = [
            Request(
                source_len=len(sources[i]),
                # The start takes a position too, so that the forced end is the last one there is.
                max_len=min(len(sources[i]) + config.max_extra, longest - 1),
                prefix=() if prefixes is None else prefixes[i],
                seed=_sentence_seed(sources[i], config.seed),
            )
            for i in rows
        ]
        with torch.inference_mode():
            states = [model.start(source, mask) for model in models]
            state = states[0] if len(states) == 1 else EnsembleState(states)
            for i, found in zip(rows, search(decoder, state, requests, config, eos_id=EOS_ID), strict=True):
                results[i] = found
        done(len(rows))
    return results


def _sentence_seed(source: Sequence[int], seed: int) -> int:
    """From the sentence itself, so that a sample does not depend on the sentences around it."""
    digest = blake2b(np.asarray(source, dtype="<i8").tobytes(), key=str(seed).encode(), digest_size=7)
    return int.from_bytes(digest.digest(), "little")
