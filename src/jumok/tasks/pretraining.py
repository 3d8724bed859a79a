"""BERT's pre-training (Devlin et al. 2019, section 3.1): guess the masked words, and whether B follows A.

    loss = mean cross-entropy of the masked pieces + mean cross-entropy of the pairs

Texts are packed: several stand in one row of the batch, each with its own positions, and a mask keeps them apart.
Logits over the vocabulary are computed where a piece is masked and nowhere else.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from jumok.config import CountOrZero
from jumok.data.batching import Indices, permute
from jumok.data.corpus import Corpus
from jumok.data.masking import Masking, pack
from jumok.data.passages import Pairs, Passages, passages
from jumok.data.shards import Shards, in_texts
from jumok.errors import DataError
from jumok.models import BertPretraining
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.score.significance import Values
from jumok.tasks.predict import Done, nobody
from jumok.text.documents import Sentence
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.train.loop import Loss

CHUNK = 4096
DEV_SEED = 12345  # dev and test are masked the same way in every run
FRAME, FRAME_OF_PAIR = 2, 3  # [CLS] A [SEP], [CLS] A [SEP] B [SEP]


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainingConfig:
    """The task: masked words are guessed, and whether one passage follows another."""

    kind: Literal["pretraining"] = "pretraining"
    next_sentence: bool = True
    """half of the texts are pairs of which the second part follows the first in its document, half are not"""
    mask_share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """of the pieces; 80 % of these become `[MASK]`, 10 % another piece, 10 % stay"""
    whole_words: bool = False
    """mask all pieces of a word or none; each piece is still masked at the rate above"""
    new_pieces: CountOrZero = 0
    """with init: so many words of the training text, those that save most pieces, are added to its vocabulary"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Packed rows: R rows of W positions."""

    ids: Tensor
    """[R, W]"""
    segments: Tensor
    positions: Tensor
    """[R, W]: from zero in every text"""
    text: Tensor
    """[R, W]: the number of the text in its row; -1 where there is none"""
    masked: Tensor
    """[M]: flat indices of the masked pieces"""
    targets: Tensor
    """[M]: what they are"""
    firsts: Tensor
    """[P]: flat indices of `[CLS]` of the texts of which it is asked whether B follows A"""
    follows: Tensor
    """[P]: 0 it does, 1 it does not"""
    text_of_masked: Tensor
    """[M]: the number of the text that each masked piece stands in"""
    text_of_pair: Tensor
    """[P]"""
    count: tuple[int, ...]
    tokens: int

    def sees(self) -> Tensor:
        """[R, W, W]: a position sees those of its own text."""
        return self.text[:, :, None] == self.text[:, None]


class Reader:
    """Examples into batches: pairs made, framed, masked and packed."""

    def __init__(self, config: PretrainingConfig, tokenizer: Tokenizer, found: Passages, *, max_len: int, seed: int):
        self.config, self.tokenizer, self.passages, self.max_len = config, tokenizer, found, max_len
        self.pairs = Pairs(found, seed=seed, next_sentence=config.next_sentence)
        ordinary = np.setdiff1d(np.arange(tokenizer.vocab_size), tokenizer.special_ids)
        if not len(ordinary):
            right = "a larger tokenizer.vocab_size, which is at present too small for a single character"
            raise DataError("the vocabulary has special pieces and nothing else", right=right)
        goes_on = np.array(tokenizer.continues_word()) if config.whole_words else None
        assert tokenizer.mask_id is not None
        self.masking = Masking(config.mask_share, tokenizer.mask_id, ordinary, goes_on)

    def read(self, numbers: Iterable[tuple[int, int]]) -> Batch:
        """The examples with these (number, epoch)."""
        texts = [self._text(int(i), int(epoch)) for i, epoch in numbers]
        lengths = np.array([len(ids) for ids, *_ in texts])
        rows = pack(lengths, self.max_len)
        width = max(int(lengths[row].sum()) for row in rows)
        ids = np.full((len(rows), width), self.tokenizer.pad_id)
        segments, positions = np.zeros_like(ids), np.zeros_like(ids)
        text = np.full_like(ids, -1)
        masked, targets, owners = [], [], []
        firsts, follows, pair_owners = [], [], []
        for r, row in enumerate(rows):
            at = 0
            for k, i in enumerate(row):
                hidden, segment, where, what, follow = texts[i]
                part = slice(at, at + len(hidden))
                ids[r, part], segments[r, part], text[r, part] = hidden, segment, k
                positions[r, part] = np.arange(len(hidden))
                masked.append(where + r * width + at)
                targets.append(what)
                owners.append(np.full(len(what), i))
                if follow is not None:
                    firsts.append(r * width + at)
                    follows.append(int(not follow))
                    pair_owners.append(i)
                at += len(hidden)
        n = sum(map(len, masked))
        return Batch(
            torch.from_numpy(ids),
            torch.from_numpy(segments),
            torch.from_numpy(positions),
            torch.from_numpy(text),
            torch.from_numpy(np.concatenate(masked)),
            torch.from_numpy(np.concatenate(targets)),
            torch.tensor(firsts, dtype=torch.long),
            torch.tensor(follows, dtype=torch.long),
            torch.from_numpy(np.concatenate(owners)),
            torch.tensor(pair_owners, dtype=torch.long),
            (n, len(follows)) if self.config.next_sentence else (n,),
            int(lengths.sum()),
        )

    def _text(self, i: int, epoch: int) -> tuple[npt.NDArray[np.int64], ...]:
        """Ids with some of them hidden, segments, where they are hidden, what was there, whether B follows A."""
        pair = self.pairs.make(i, epoch=epoch)
        ids = np.array(self.tokenizer.frame(pair.a, pair.b))
        segments = (np.arange(len(ids)) >= len(pair.a) + FRAME).astype(np.int64)
        rng = np.random.Generator(np.random.PCG64([self.pairs.seed, epoch, i, 1]))
        hidden, where = self.masking.hide(ids, rng=rng)
        return hidden, segments, where, ids[where], pair.follows  # type: ignore[return-value]


def encode_documents(
    corpus: Corpus[Sentence], tokenizer: Tokenizer, max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The passages of the documents; `facts` counts what they were made of."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "documents": 0, "passages": 0, "alone": 0, "pieces": 0, "words": 0}
    for found in passages(_sentences(corpus, tokenizer, facts), max_len - FRAME_OF_PAIR):
        facts["passages"] += 1
        facts["alone"] += len(found[1]) == 1
        facts["pieces"] += len(found[0])
        yield found
    if not facts["passages"]:
        what = f"empty corpus: {facts['read']} sentences read, none with a word"
        raise DataError(what, where=corpus.name, right="at least one document to train on")


def _sentences(
    corpus: Iterable[Sentence], tokenizer: Tokenizer, facts: dict[str, Any]
) -> Iterator[tuple[list[int], bool]]:
    begins = False  # an empty sentence may have begun the document
    for sentences in in_texts(corpus, lambda sentence: sentence.text):
        for sentence, ids in zip(sentences, tokenizer.encode_batch([s.text for s in sentences]), strict=True):
            begins = begins or sentence.first
            facts["read"] += 1
            facts["empty"] += not ids
            facts["words"] += len(sentence.text.split())
            if ids:
                facts["documents"] += begins
                yield ids, begins
                begins = False


def read_passages(sentences: Iterable[Sentence], tokenizer: Tokenizer, max_len: int) -> Passages:
    """Of documents that are held in memory."""
    facts: dict[str, Any] = {"read": 0, "empty": 0, "words": 0, "documents": 0}
    return Passages.of(passages(_sentences(sentences, tokenizer, facts), max_len - FRAME_OF_PAIR))


class PretrainingTask:
    """Batches, loss and evaluation for the training loop."""

    def __init__(
        self,
        config: PretrainingConfig,
        *,
        tokenizer: Tokenizer,
        train: Shards,
        dev: Passages,
        max_len: int,
        batch_tokens: int,
        seed: int,
        where: str,
    ) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.labels: list[str] = []
        self.train = train
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.dev = dev
        found = Passages.in_shards(train)
        self.reader = Reader(config, tokenizer, found, max_len=max_len, seed=seed)
        if config.next_sentence and not self.reader.pairs.possible:
            n = len(found.divisible)
            raise DataError(
                f"next-sentence prediction needs two passages of two sentences or more, and there is {n or 'none'}"
                if n < 2
                else f"next-sentence prediction has nothing to ask: of {n} passages of two sentences or more no two"
                " have second parts of one length, and any other would be known by its length",
                where=where,
                right="--set task.next_sentence=false, or documents whose sentences stand together"
                " (data.format, data.split_sentences)",
            )
        self.dev_reader = Reader(config, tokenizer, dev, max_len=max_len, seed=DEV_SEED)
        self.losses = ("masked", "next_sentence") if config.next_sentence else ("masked",)

    def batches(self, epoch: int) -> Iterator[Indices]:
        """[n, 2]: numbers and epochs of examples whose passages have `batch_tokens` pieces together."""
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

    def batch(self, examples: Indices) -> Batch:
        return self.reader.read([(int(i), int(epoch)) for i, epoch in examples])

    def name(self, examples: Indices) -> str:
        """Examples as a person knows them: how many, and the beginning of the first."""
        text = self.tokenizer.decode(self.train.fields["text"][int(examples[0][0])].tolist())
        return f"{len(examples)} passages, the first of them {text[:200]!r}"

    def loss(self, model: BertPretraining, batch: Batch, *, done: float) -> Loss:
        return pretraining_loss(model, batch)

    def evaluate(self, model: BertPretraining) -> dict[str, float]:
        """Dev perplexity and accuracy at masked pieces, and accuracy of next-sentence prediction."""
        rows = judge(model, self.dev_reader, self.batch_tokens)
        return summary(rows.sum(axis=0))


def _with_epoch(parts: list[npt.NDArray[np.int64]], epoch: int) -> Indices:
    numbers = np.concatenate(parts)
    return np.stack([numbers, np.full_like(numbers, epoch)], axis=1)


def hidden_states(model: BertPretraining, batch: Batch) -> Tensor:
    """[R * W, D]"""
    device = model.device
    hidden: Tensor = model(
        batch.ids.to(device), batch.segments.to(device), batch.sees().to(device), positions=batch.positions.to(device)
    )
    return hidden.flatten(0, 1)


def pretraining_loss(model: BertPretraining, batch: Batch) -> Loss:
    device = model.device
    hidden = hidden_states(model, batch)
    masked = model.transformed(hidden.index_select(0, batch.masked.to(device)))
    totals = [linear_cross_entropy(masked, model.projection, batch.targets.to(device), bias=model.bias)]
    if len(batch.count) > 1:
        follows = model.follows(hidden.index_select(0, batch.firsts.to(device)))
        totals.append(F.cross_entropy(follows, batch.follows.to(device), reduction="sum"))
    return Loss(torch.stack(totals), batch.count)


STATISTICS = ("masked_loss", "masked_right", "masked", "pairs_right", "pairs", "pairs_strange")


def judge(model: BertPretraining, reader: Reader, batch_tokens: int, *, done: Done = nobody) -> Values:
    """[passages, 6]: the STATISTICS of every passage, each read once."""
    rows = np.zeros((len(reader.passages), len(STATISTICS)))
    sizes = reader.passages.text.lengths(np.arange(len(rows))) + FRAME_OF_PAIR
    bounds = np.cumsum(sizes) // batch_tokens
    with torch.inference_mode():
        for b in np.unique(bounds):
            numbers = np.flatnonzero(bounds == b)
            batch = reader.read((int(i), 0) for i in numbers)
            hidden = hidden_states(model, batch)
            masked = model.logits(hidden.index_select(0, batch.masked.to(model.device))).cpu()
            loss = F.cross_entropy(masked, batch.targets, reduction="none")
            right = masked.argmax(dim=-1) == batch.targets
            of = numbers[batch.text_of_masked.numpy()]
            for column, values in enumerate((loss, right, torch.ones_like(loss))):
                np.add.at(rows[:, column], of, values.double().numpy())
            if len(batch.follows):
                said = model.follows(hidden.index_select(0, batch.firsts.to(model.device))).argmax(dim=-1).cpu()
                of = numbers[batch.text_of_pair.numpy()]
                rows[of, 3:] = torch.stack([said == batch.follows, torch.ones_like(said), batch.follows], dim=1).numpy()
            done(len(numbers))
    return rows


def summary(totals: Values) -> dict[str, float]:
    s = dict(zip(STATISTICS, totals.tolist(), strict=True))
    loss = s["masked_loss"] / max(s["masked"], 1)
    found = {
        "masked_loss": loss,
        "perplexity": exp(min(loss, 50.0)),
        "masked_accuracy": 100 * s["masked_right"] / max(s["masked"], 1),
    }
    if s["pairs"]:
        found["next_sentence_accuracy"] = 100 * s["pairs_right"] / s["pairs"]
        found["next_sentence_majority"] = 100 * max(s["pairs_strange"], s["pairs"] - s["pairs_strange"]) / s["pairs"]
    return found
