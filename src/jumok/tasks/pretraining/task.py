"""Pre-train: data, batches, loss and evaluation.

Logits over the vocabulary are computed at masked tokens only.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices, permute
from jumok.data.cache import Cache
from jumok.data.corpus import Corpus, Texts
from jumok.data.packing import Packed, Reader
from jumok.data.pages import packed_states
from jumok.data.passages import FIELDS, FRAME_OF_PAIR, Passages, encode_documents, read_passages
from jumok.data.shards import Shards
from jumok.engines import Done, nobody
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.documents import Sentence
from jumok.models.bert import BertPretraining
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.tasks.one_text import notes_of_shards
from jumok.tasks.prepare import Recipe, Recorded, prepare_shards, prepare_tokenizer, read_split, read_splits
from jumok.tasks.pretraining import EncoderFacts, PretrainingConfig, extended_tokenizer
from jumok.tasks.pretraining.scores import DEV_SEED, dev_scores, judge
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT
from jumok.train.loop import Loss

CHUNK = 4096


def prepare(recipe: Recipe, cache: Cache, *, fresh: bool = True) -> "PretrainingTask":
    train, dev, _ = read_splits(recipe, fresh=fresh)
    if recipe.old_domain is not None and fresh:
        read_split(Corpus(recipe.old_domain, "test", seed=recipe.seed), "old_domain")
    texts, max_len = Texts(train, lambda sentence: [sentence.text]), recipe.data.max_len
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, ["documents"], train, cache, layout=BERT, start=recipe.init)
    tokenizer = extended_tokenizer(tokenizer, texts, recipe.task.new_pieces)

    def write() -> Recorded:
        facts: dict[str, Any] = {}
        rows = encode_documents(train, tokenizer, max_len, facts)
        return Recorded(rows, FIELDS, max(tokenizer.vocab_size, max_len), facts)

    return PretrainingTask(
        recipe.task,
        tokenizer=tokenizer,
        train=prepare_shards(cache, ["documents", train.fingerprint(), tokenizer.sha256, max_len], write),
        dev=read_passages(dev, tokenizer, max_len),
        language=recipe.data.language,
        max_len=max_len,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
        where=train.name,
    )


class PretrainingTask:
    """Passages in shards, and the reader that pairs and masks them."""

    def __init__(
        self,
        config: PretrainingConfig,
        *,
        tokenizer: Tokenizer,
        train: Shards,
        dev: Passages,
        language: str = "",
        max_len: int,
        batch_tokens: int,
        seed: int,
        where: str,
    ) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.train = train
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.dev = dev
        self.facts = EncoderFacts(language=language, max_len=max_len)
        found = Passages.in_shards(train)
        self.reader = Reader(config, tokenizer, found, max_len=max_len, seed=seed)
        if config.next_sentence and not self.reader.pairs.possible:
            raise _no_pairs(len(found.divisible), where)
        self.dev_reader = Reader(config, tokenizer, dev, max_len=max_len, seed=DEV_SEED)
        self.losses = ("masked", "next_sentence") if config.next_sentence else ("masked",)

    def notes(self) -> list[str]:
        """Remarks on skipped training text."""
        return notes_of_shards(self.train)

    def batches(self, epoch: int) -> Iterator[Indices]:
        """[n, 2]: numbers and epochs of examples whose passages have at most `batch_tokens` tokens."""
        text, n = self.train.fields["text"], len(self.train)
        taken: list[npt.NDArray[np.int64]] = []
        tokens = 0
        for start in range(0, n, CHUNK):
            numbers = permute(np.arange(start, min(start + CHUNK, n)), n, seed=self.seed, epoch=epoch)
            sizes = text.lengths(numbers) + FRAME_OF_PAIR
            at = 0
            for k, size in enumerate(sizes.tolist()):
                if tokens and tokens + size > self.batch_tokens:
                    yield _with_epoch([*taken, numbers[at:k]], epoch)
                    taken, tokens, at = [], 0, k
                tokens += size
            taken.append(numbers[at:])
            self.train.release_pages()
        if tokens:
            yield _with_epoch(taken, epoch)

    def batch(self, examples: Indices) -> Packed:
        return self.reader.read((int(i), int(epoch)) for i, epoch in examples)

    def name(self, examples: Indices) -> str:
        """Describe examples in a message: how many, and the beginning of the first."""
        text = self.tokenizer.decode(self.train.fields["text"][int(examples[0][0])].tolist())
        return f"{len(examples)} passages, the first of them {text[:200]!r}"

    def loss(self, model: BertPretraining, batch: Packed, *, done: float) -> Loss:
        return pretraining_loss(model, batch)

    def evaluate(self, model: BertPretraining, *, done: Done = nobody) -> dict[str, float]:
        """Dev perplexity and accuracy at masked tokens, and accuracy of next-sentence prediction."""
        return dev_scores(judge(TorchEngine([model], self.tokenizers, done), self.dev_reader, self.batch_tokens))

    def baseline_scores(self, examples: Sequence[Sentence]) -> dict[str, dict[str, float]]:
        """None: the predictor reports the majority itself."""
        return {}

    def calibrated(self, predictor: Any, dev: Sequence[Sentence]) -> dict[str, Any]:
        return {}


def _no_pairs(n: int, where: str) -> DataError:
    """Say why next-sentence prediction has no pairs, if n passages have two sentences or more."""
    return DataError(
        f"next-sentence prediction needs two passages of two sentences or more, and there is {n or 'none'}"
        if n < 2
        else f"next-sentence prediction has no pairs: of {n} passages of two sentences or more, no two have second"
        " parts of the same length, and a model would recognise any other by its length",
        where=where,
        hint="use --set task.next_sentence=false, or keep the sentences of a document together"
        " (data.format, data.split_sentences)",
        code="data.no_pairs",
    )


def _with_epoch(parts: list[npt.NDArray[np.int64]], epoch: int) -> Indices:
    numbers = np.concatenate(parts)
    return np.stack([numbers, np.full_like(numbers, epoch)], axis=1)


def pretraining_loss(model: BertPretraining, batch: Packed) -> Loss:
    def tensor(array: npt.NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(array).to(model.device)

    hidden = packed_states(model, batch, model.device)
    masked = model.transformed(hidden.index_select(0, tensor(batch.masked)))
    totals = [linear_cross_entropy(masked, model.projection, tensor(batch.targets), bias=model.bias)]
    if len(batch.count) > 1:
        follows = model.follows(hidden.index_select(0, tensor(batch.firsts)))
        totals.append(F.cross_entropy(follows, tensor(batch.follows), reduction="sum"))
    return Loss(torch.stack(totals), batch.count)
