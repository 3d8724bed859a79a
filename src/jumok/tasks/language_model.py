"""Language modelling: what comes next, and next, and next."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import log
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jumok.data.batching import Indices, sorted_batches
from jumok.data.corpus import Corpus
from jumok.data.shards import in_texts
from jumok.decode.search import DecodeConfig, Request, follow_one, search
from jumok.errors import DataError, InputError
from jumok.models import Elmo, GptConfig, LanguageModel
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.score.significance import Comparison, Values, compare, score_with_interval
from jumok.tasks.batch import pad
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import Done, nobody, place, refuse_one_text, stored_decoding, wanted_decoding
from jumok.text.documents import Sentence
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.train.loop import Loss

PREDICT_TOKENS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageModelConfig:
    """The task: the next piece of a text is predicted from those before it."""

    kind: Literal["language_model"] = "language_model"


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded ids: what is read, what is to be predicted at each position, and which positions are real."""

    read: Tensor
    """the start, then the text"""
    next: Tensor
    """the text, then its end"""
    real: Tensor
    """which positions are not padding"""
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
    """The states [N, H] from which the N real pieces are predicted: one of a model that reads forwards, two of ELMo."""
    if isinstance(model, Elmo):
        return [hidden[batch.real] for hidden in model(batch.next, batch.real)]
    return [model(batch.read)[batch.real]]


def encode_lines(
    corpus: Corpus[str], tokenizer: Tokenizer, max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The ids of every line with its end; longer lines are cut into parts of `max_len`, and nothing is left out."""
    facts |= {"read": 0, "empty": 0, "too_long": 0}
    for lines in in_texts(corpus, str):
        for ids in tokenizer.encode_batch(lines):
            facts["read"] += 1
            facts["empty"] += not ids
            for part in _parts(ids, tokenizer.end_id, max_len):
                yield (part,)
    if facts["read"] == facts["empty"]:
        what = f"empty corpus: {facts['read']} lines read, {facts['empty']} empty"
        raise DataError(what, where=corpus.name, right="at least one line to train on")


def encode_texts(
    corpus: Corpus[Sentence], tokenizer: Tokenizer, max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The ids of every document with its end, in parts of `max_len`; a line break stands between its lines."""
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
            whole = len(part) - len(part) % max_len  # a part that is not whole has room for the end
            for at in range(0, whole, max_len):
                yield (part[at : at + max_len],)
            part = part[whole:]
    if not facts["documents"]:
        raise DataError("empty corpus: no document", where=corpus.name, right="at least one document to train on")
    yield ([*part, tokenizer.end_id],)


def whole_texts(examples: Sequence[Sentence | str]) -> list[str]:
    """Lines as they are; sentences as the documents that they make, with line breaks between them."""
    texts: list[str] = []
    for example in examples:
        if isinstance(example, str) or example.first:
            texts.append(example if isinstance(example, str) else example.text)
        else:
            texts[-1] += f"\n{example.text}"
    return texts


def _parts(ids: list[int], end_id: int, max_len: int) -> list[list[int]]:
    whole = [*ids, end_id] if ids else []
    return [whole[start : start + max_len] for start in range(0, len(whole), max_len)]


@dataclass(frozen=True, kw_only=True)
class LanguageModelTask(OneTextTask[str]):
    """Batches, loss and evaluation for the training loop."""

    things = "lines"

    max_len: int

    def batch(self, examples: Indices) -> Batch:
        text = self.train.fields["text"]
        return make_batch([text[i].tolist() for i in examples], self.tokenizer.start_id)

    def loss(self, model: LanguageModel, batch: Batch, *, done: float) -> Loss:
        """The mean over the directions in which the model reads."""
        batch = batch.to(model.device)
        found, targets = directions(model, batch), batch.next[batch.real]
        total = linear_cross_entropy(torch.cat(found), model.projection, targets.repeat(len(found)))
        return Loss(total / len(found), batch.count)

    def evaluate(self, model: LanguageModel) -> dict[str, float]:
        """Dev perplexity and bits per byte."""
        statistics = likelihood([model], self.tokenizer, self.dev, self.max_len).sum(axis=0)
        return {name: float(value(statistics)) for name, value in metrics([model])}


def likelihood(
    models: Sequence[LanguageModel], tokenizer: Tokenizer, lines: Sequence[str], max_len: int, *, done: Done = nobody
) -> Values:
    """[n, 5]: of each line minus its log-probability, its pieces with the end, its bytes and its words, each with the
    line's end, and minus its log-probability backwards, if the model has that.

    Nothing is predicted of an empty line, so that nothing of it counts.
    """
    rows = np.zeros((len(lines), 5))
    encoded = tokenizer.encode_batch(lines)
    parts = [(i, part) for i, ids in enumerate(encoded) for part in _parts(ids, tokenizer.end_id, max_len)]
    for i in {i for i, _ in parts}:
        rows[i, 2:4] = len(lines[i].encode()) + 1, len(lines[i].split()) + 1
    sizes = np.array([len(part) for _, part in parts], dtype=np.int64)
    with torch.inference_mode():
        for chosen in sorted_batches(sizes, PREDICT_TOKENS):
            batch = make_batch([parts[k][1] for k in chosen], tokenizer.start_id).to(models[0].device)
            owners = np.repeat([parts[k][0] for k in chosen], sizes[chosen])
            targets = batch.next[batch.real][:, None]
            by_direction = zip(*(directions(model, batch) for model in models), strict=True)
            for column, hidden in zip((0, 4), by_direction, strict=False):
                found = [model.logits(h).log_softmax(dim=-1) for model, h in zip(models, hidden, strict=True)]
                log_probs = torch.stack(found).logsumexp(dim=0) - log(len(models))
                picked = log_probs.gather(1, targets)[:, 0].double().cpu().numpy()
                np.subtract.at(rows[:, column], owners, picked)
            np.add.at(rows[:, 1], owners, 1)
            done(len(chosen))
    return rows


def perplexity_from(statistics: Values, of: int = 0, over: int = 1) -> Values:
    perplexity: Values = np.exp(np.minimum(statistics[..., of] / np.maximum(statistics[..., over], 1), 50.0))
    return perplexity


def bits_per_byte_from(statistics: Values) -> Values:
    bits: Values = statistics[..., 0] / log(2) / np.maximum(statistics[..., 2], 1)
    return bits


def metrics(models: Sequence[LanguageModel]) -> list[tuple[str, Callable[[Values], Values]]]:
    """Forwards; words are compared across vocabularies, bytes across languages as well. Backwards if there is that."""
    found: list[tuple[str, Callable[[Values], Values]]] = [
        ("perplexity", perplexity_from),
        ("bits_per_byte", bits_per_byte_from),
        ("word_perplexity", partial(perplexity_from, over=3)),
    ]
    if all(isinstance(model, Elmo) for model in models):
        found.append(("backward_perplexity", partial(perplexity_from, of=4)))
    return found


@dataclass(frozen=True, slots=True)
class Generated:
    """A text that goes on from the one that was given; `text` has both."""

    text: str
    log_prob: float
    alternatives: list[str]


class Generator:
    """One loaded model, or several as an ensemble for scoring; the first one writes."""

    def __init__(
        self, models: Sequence[LanguageModel], tokenizer: Tokenizer, facts: dict[str, Any], *, where: Path
    ) -> None:
        self.models = list(models)
        self.tokenizer = tokenizer
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.max_len: int = facts["max_len"]
        self.decode = stored_decoding(facts, where=where)

    def __call__(self, texts: Sequence[str], *, done: Done = nobody) -> list[str]:
        return [generated.text for generated in self.predict(texts, done=done)]

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[Generated]:
        """Every text and what may come after it; `options` replace fields of the recipe's [decode]."""
        refuse_one_text(texts)
        decode = wanted_decoding(self.decode, options, attends=False)
        model, outputs = self.models[0], []
        for text in texts:
            request = self._request(text, decode)
            (found,) = search(model, model.start(1), [request], decode, eos_id=self.tokenizer.end_id)
            best, *others = [self.tokenizer.decode(hypothesis.ids) for hypothesis in found]
            outputs.append(Generated(best, found[0].log_prob, others))
            done(1)
        return outputs

    def stream(self, text: str, **options: Any) -> Iterator[str]:
        """What comes after the text, bit by bit as it is written; [decode] has to draw or to be greedy."""
        decode = wanted_decoding(self.decode, options, attends=False)
        model, request = self.models[0], self._request(text, decode)
        ids, said = list(request.prefix), self.tokenizer.decode(request.prefix)
        for token in follow_one(model, model.start(1), request, decode, eos_id=self.tokenizer.end_id):
            ids.append(token)
            now = self.tokenizer.decode(ids)
            if not now.endswith("�"):  # half of a character's bytes
                yield now[len(said) :]
                said = now

    def _request(self, text: str, decode: DecodeConfig) -> Request:
        prefix, c = self.tokenizer.encode(text), self.models[0].config
        end = len(prefix) + decode.max_extra
        if isinstance(c, GptConfig):
            end = min(end, c.max_len - 1)
            if len(prefix) > end:
                what = f"a text of {len(prefix)} pieces: the model reads {end}"
                raise InputError(what, where=place(text), right="a shorter text")
        return Request(source_len=0, max_len=end, prefix=prefix, seed=decode.seed)

    def score(
        self, examples: Sequence[Sentence | str], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Perplexity and bits per byte with intervals; there are no outputs."""
        texts = whole_texts(examples)
        statistics = likelihood(self.models, self.tokenizer, texts, self.max_len, done=done)
        signature = (
            f"{self.tokenizer.vocab_size} pieces, texts of at most {self.max_len}, bootstrap 1000, seed 12345, 95%"
        )
        found = metrics(self.models)
        if unknown := self._unknown(texts):
            found = [(name, score) for name, score in found if name != "bits_per_byte"]
            said = f"{unknown:,} pieces are unknown to the vocabulary, so that there are no bits per byte to tell"
            warnings.warn(said, stacklevel=2)
        scores = [score_with_interval(name, statistics, score, signature=signature) for name, score in found]
        return {"sentences": len(texts), "scores": {score.name: score.plain() for score in scores}}, []

    def compare(
        self, other: "Generator", examples: Sequence[Sentence | str], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        """In bits per byte, which do not depend on the vocabulary."""
        texts = whole_texts(examples)
        if any(g._unknown(texts) for g in (self, other)) and self.tokenizer.sha256 != other.tokenizer.sha256:
            raise InputError(
                "a vocabulary does not know all words of the texts, and what it leaves out costs it nothing",
                right="runs with the same vocabulary, or with such as know every text (bpe, byte_bpe, character)",
            )
        ours, theirs = (
            likelihood(g.models, g.tokenizer, texts, g.max_len, done=done)[:, [0, 0, 2]] for g in (self, other)
        )
        return [compare(ours, theirs, bits_per_byte_from, metric="bits_per_byte")]

    def _unknown(self, texts: Sequence[str]) -> int:
        """How many pieces of the texts the vocabulary does not know."""
        unknown = self.tokenizer.unk_id
        return (
            0
            if self.tokenizer.kind in ("bpe", "byte_bpe")
            else sum(ids.count(unknown) for ids in self.tokenizer.encode_batch(texts))
        )

    def plain(self, text: str, output: Generated) -> dict[str, Any]:
        return asdict(output)
