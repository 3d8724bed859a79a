"""Language modelling: what comes next, and next, and next."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jumok.config import read_config
from jumok.data.batching import Indices, shuffled_batches, sorted_batches
from jumok.data.corpus import Corpus
from jumok.data.shards import Shards, in_chunks
from jumok.decode.search import DecodeConfig, Request, search
from jumok.errors import CheckpointError, DataError, InputError
from jumok.models import RnnLanguageModel
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.score.significance import Comparison, Values, compare, score_with_interval
from jumok.tasks.batch import pad
from jumok.tasks.predict import Done, nobody
from jumok.text.tokenizer import EOS_ID, Tokenizer, Tokenizers
from jumok.train.loop import Loss

CHUNK = 4096
PREDICT_TOKENS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageModelConfig:
    """The task: the next piece of a text is predicted from those before it."""

    kind: Literal["language_model"] = "language_model"


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded ids: what is read, what is to be predicted at each position, and which positions are real."""

    read: Tensor
    """`<pad>` (the start), then the text"""
    next: Tensor
    """the text, then `</s>`"""
    positions: Tensor
    """flat indices of the real positions"""
    count: int


def make_batch(rows: Sequence[Sequence[int]], pad_id: int) -> Batch:
    out = pad(rows, pad_id)
    read = torch.full_like(out, pad_id)
    read[:, 1:] = out[:, :-1]
    positions = (out != pad_id).flatten().nonzero()[:, 0]
    return Batch(read, out, positions, len(positions))


def encode_lines(
    corpus: Corpus[str], tokenizer: Tokenizer, max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The ids of every line with its end; longer lines are cut into parts of `max_len`, and nothing is left out."""
    facts |= {"read": 0, "empty": 0, "too_long": 0}
    for lines in in_chunks(corpus, CHUNK):
        for ids in tokenizer.encode_batch(lines):
            facts["read"] += 1
            facts["empty"] += not ids
            for part in _parts(ids, max_len):
                yield (part,)
    if facts["read"] == facts["empty"]:
        what = f"empty corpus: {facts['read']} lines read, {facts['empty']} empty"
        raise DataError(what, where=corpus.name, right="at least one line to train on")


def _parts(ids: list[int], max_len: int) -> list[list[int]]:
    whole = [*ids, EOS_ID] if ids else []
    return [whole[start : start + max_len] for start in range(0, len(whole), max_len)]


class LanguageModelTask:
    """Batches, loss and evaluation for the training loop."""

    def __init__(
        self,
        config: LanguageModelConfig,
        *,
        tokenizer: Tokenizer,
        train: Shards,
        dev: Sequence[str],
        max_len: int,
        batch_tokens: int,
        seed: int,
    ) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.labels: list[str] = []
        self.train = train
        self.dev = dev
        self.max_len = max_len
        self.batch_tokens = batch_tokens
        self.seed = seed

    def batches(self, epoch: int) -> Iterator[Indices]:
        return shuffled_batches(self.train, ["text"], batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def batch(self, examples: Indices) -> Batch:
        text = self.train.fields["text"]
        return make_batch([text[i].tolist() for i in examples], self.tokenizer.pad_id)

    def name(self, examples: Indices) -> str:
        """Examples as a person knows them: how many, and the longest."""
        text = self.train.fields["text"]
        longest = max(examples, key=lambda i: len(text[i]))
        return f"{len(examples)} lines, the longest of them {self.tokenizer.decode(text[longest].tolist())!r}"

    def loss(self, model: RnnLanguageModel, batch: Batch, *, done: float) -> Loss:
        device = model.device
        hidden = model(batch.read.to(device)).flatten(0, 1).index_select(0, batch.positions.to(device))
        targets = batch.next.to(device).flatten().index_select(0, batch.positions.to(device))
        return Loss(linear_cross_entropy(hidden, model.projection, targets), batch.count)

    def evaluate(self, model: RnnLanguageModel) -> dict[str, float]:
        """Dev perplexity and bits per byte."""
        statistics = likelihood([model], self.tokenizer, self.dev, self.max_len).sum(axis=0)
        return {
            "perplexity": float(perplexity_from(statistics)),
            "bits_per_byte": float(bits_per_byte_from(statistics)),
        }


def likelihood(
    models: Sequence[RnnLanguageModel], tokenizer: Tokenizer, lines: Sequence[str], max_len: int, *, done: Done = nobody
) -> Values:
    """[n, 3]: of each line minus its log-probability, its pieces with the end, and its bytes with the line's end.

    Nothing is predicted of an empty line, so that nothing of it counts.
    """
    rows = np.zeros((len(lines), 3))
    parts = [(i, part) for i, line in enumerate(lines) for part in _parts(tokenizer.encode(line), max_len)]
    for i in {i for i, _ in parts}:
        rows[i, 2] = len(lines[i].encode()) + 1
    sizes = np.array([len(part) for _, part in parts], dtype=np.int64)
    with torch.inference_mode():
        for chosen in sorted_batches(sizes, PREDICT_TOKENS):
            batch = make_batch([parts[k][1] for k in chosen], tokenizer.pad_id)
            read, target = batch.read.to(models[0].device), batch.next.to(models[0].device)
            found = [model.logits(model(read)).log_softmax(dim=-1) for model in models]
            log_probs = torch.stack(found).logsumexp(dim=0) - log(len(models))
            real = target != tokenizer.pad_id
            picked = log_probs.gather(2, target.masked_fill(~real, 0)[..., None])[..., 0].masked_fill(~real, 0.0)
            for k, value in zip(chosen, picked.double().sum(dim=1).tolist(), strict=True):
                rows[parts[k][0], 0] -= value
                rows[parts[k][0], 1] += len(parts[k][1])
            done(len(chosen))
    return rows


def perplexity_from(statistics: Values) -> Values:
    perplexity: Values = np.exp(np.minimum(statistics[..., 0] / np.maximum(statistics[..., 1], 1), 50.0))
    return perplexity


def bits_per_byte_from(statistics: Values) -> Values:
    bits: Values = statistics[..., 0] / log(2) / np.maximum(statistics[..., 2], 1)
    return bits


_METRICS = (("perplexity", perplexity_from), ("bits_per_byte", bits_per_byte_from))


@dataclass(frozen=True, slots=True)
class Generated:
    """A text that goes on from the one that was given; `text` has both."""

    text: str
    log_prob: float
    alternatives: list[str]


class Generator:
    """One loaded model, or several as an ensemble for scoring; the first one writes."""

    def __init__(
        self, models: Sequence[RnnLanguageModel], tokenizer: Tokenizer, facts: dict[str, Any], *, where: Path
    ) -> None:
        self.models = list(models)
        self.tokenizer = tokenizer
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.max_len: int = facts["max_len"]
        self.decode = read_config(
            DecodeConfig,
            facts["decode"],
            what="the model's config",
            where=where,
            path="jumok.decode",
            error=CheckpointError,
        )

    def __call__(self, texts: Sequence[str], *, done: Done = nobody) -> list[str]:
        return [generated.text for generated in self.predict(texts, done=done)]

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[Generated]:
        """Every text and what may come after it; `options` replace fields of the recipe's [decode]."""
        decode = self.decode
        if options:
            decode = read_config(DecodeConfig, {**asdict(decode), **options}, what="[decode]", path="decode")
        if decode.coverage_penalty:
            raise InputError("decode.coverage_penalty counts attention, and the model has none", right="a penalty of 0")
        model, outputs = self.models[0], []
        for text in texts:
            prefix = self.tokenizer.encode(text)
            request = Request(source_len=0, max_len=len(prefix) + decode.max_extra, prefix=prefix, seed=decode.seed)
            (found,) = search(model, model.start(1), [request], decode, eos_id=EOS_ID)
            best, *others = [self.tokenizer.decode(hypothesis.ids) for hypothesis in found]
            outputs.append(Generated(best, found[0].log_prob, others))
            done(1)
        return outputs

    def score(
        self, examples: Sequence[str], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Perplexity and bits per byte with intervals; there are no outputs."""
        statistics = likelihood(self.models, self.tokenizer, examples, self.max_len, done=done)
        signature = (
            f"{self.tokenizer.vocab_size} pieces, lines of at most {self.max_len}, bootstrap 1000, seed 12345, 95%"
        )
        scores = [score_with_interval(name, statistics, score, signature=signature) for name, score in _METRICS]
        return {"sentences": len(examples), "scores": {score.name: score.plain() for score in scores}}, []

    def compare(
        self, other: "Generator", examples: Sequence[str], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        """In bits per byte, which do not depend on the vocabulary."""
        ours, theirs = (
            likelihood(g.models, g.tokenizer, examples, g.max_len, done=done)[:, [0, 0, 2]] for g in (self, other)
        )
        return [compare(ours, theirs, bits_per_byte_from, metric="bits_per_byte")]

    def plain(self, text: str, output: Generated) -> dict[str, Any]:
        return asdict(output)
