"""Train language models: data, batches, loss and evaluation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from jumok.data.batching import Indices
from jumok.data.cache import Cache
from jumok.data.corpus import Corpus
from jumok.data.pages import pad
from jumok.data.shards import in_texts
from jumok.decode.options import DecodeConfig
from jumok.engines import Done, nobody
from jumok.engines.torch import TorchEngine
from jumok.examples.documents import Sentence
from jumok.examples.plain import DocumentData, Text
from jumok.models.build import LanguageModel
from jumok.models.elmo import Elmo
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.tasks.language_model import LanguageModelFacts
from jumok.tasks.language_model.predictor import Generator, cut
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.prepare import Recipe, Recorded, prepare_shards, read_splits, refuse_empty, text_tokenizer
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss


def prepare(recipe: Recipe, cache: Cache, *, fresh: bool = True) -> "LanguageModelTask":
    data = recipe.data
    train, dev, _ = read_splits(recipe, fresh=fresh)
    tokenizer = text_tokenizer(recipe, train, lambda example: [example.text], "text", cache)

    def write() -> Recorded:
        facts: dict[str, Any] = {}
        encode = encode_texts if isinstance(data, DocumentData) else encode_lines
        return Recorded(encode(train, tokenizer, data.max_len, facts), ("text",), tokenizer.vocab_size, facts)

    key = ["text", train.fingerprint(), tokenizer.sha256, data.max_len]
    return LanguageModelTask(
        tokenizer=tokenizer,
        train=prepare_shards(cache, key, write),
        dev=dev,
        max_len=data.max_len,
        decode=recipe.decode,
        language=data.language,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )


def encode_lines(
    corpus: Corpus[Text], tokenizer: Tokenizer, max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The ids of every line with its end token; long lines are split into parts of `max_len`."""
    facts |= {"read": 0, "empty": 0, "too_long": 0}
    for lines in in_texts(corpus, lambda line: line.text):
        for ids in tokenizer.encode_batch([line.text for line in lines]):
            facts["read"] += 1
            facts["empty"] += not ids
            for part in cut(ids, tokenizer.end_id, max_len):
                yield (part,)
    refuse_empty(corpus, facts)


def encode_texts(
    corpus: Corpus[Sentence], tokenizer: Tokenizer, max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The ids of every document with its end token, in parts of `max_len`; its lines are joined by line breaks."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "documents": 0}
    part: list[int] = []
    for sentences in in_texts(corpus, lambda sentence: sentence.text):
        texts = [sentence.text if sentence.first else f"\n{sentence.text}" for sentence in sentences]
        for sentence, ids in zip(sentences, tokenizer.encode_batch(texts), strict=True):
            if sentence.first and facts["documents"]:
                yield ([*part, tokenizer.end_id],)
                part = []
            facts["documents"] += sentence.first
            facts["read"] += 1
            part = [*part, *ids]
            whole = len(part) - len(part) % max_len  # an incomplete part has room for the end token
            for at in range(0, whole, max_len):
                yield (part[at : at + max_len],)
            part = part[whole:]
    refuse_empty(corpus, facts)
    yield ([*part, tokenizer.end_id],)


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded ids: inputs, targets, and the mask of real positions."""

    read: Tensor
    """the start token, then the text"""
    next: Tensor
    """the text, then the end token"""
    real: Tensor
    """False at padding"""
    count: int

    def to(self, device: torch.device) -> "Batch":
        return Batch(self.read.to(device), self.next.to(device), self.real.to(device), self.count)


def make_batch(rows: Sequence[Sequence[int]], start_id: int) -> Batch:
    lengths = torch.tensor([len(row) for row in rows])
    out = pad(rows, start_id)
    read = torch.full_like(out, start_id)
    read[:, 1:] = out[:, :-1]
    return Batch(read, out, torch.arange(out.shape[1]) < lengths[:, None], int(lengths.sum()))


def directions(model: LanguageModel, batch: Batch) -> list[Tensor]:
    """The states [N, H] that predict the N real tokens: one of a forward model, two of ELMo."""
    if isinstance(model, Elmo):
        return [hidden[batch.real] for hidden in model(batch.next, batch.real)]
    return [model(batch.read)[batch.real]]


@dataclass(frozen=True, kw_only=True)
class LanguageModelTask(OneTextTask[Text | Sentence]):
    """Batches, loss and evaluation for the training loop."""

    things = "lines"

    max_len: int
    decode: DecodeConfig

    @property
    def facts(self) -> LanguageModelFacts:
        return LanguageModelFacts(language=self.language, max_len=self.max_len, decode=self.decode)

    def batch(self, examples: Indices) -> Batch:
        text = self.train.fields["text"]
        return make_batch([text[i].tolist() for i in examples], self.tokenizer.start_id)

    def loss(self, model: LanguageModel, batch: Batch, *, done: float) -> Loss:
        """The mean over the directions of the model."""
        batch = batch.to(model.device)
        found, targets = directions(model, batch), batch.next[batch.real]
        total = linear_cross_entropy(torch.cat(found), model.projection, targets.repeat(len(found)))
        return Loss(total / len(found), batch.count)

    def evaluate(self, model: LanguageModel, *, done: Done = nobody) -> dict[str, float]:
        return Generator(TorchEngine([model], self.tokenizers, done), self.tokenizers, self.facts).quick(self.dev)
