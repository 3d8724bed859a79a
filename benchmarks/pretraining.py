"""BERT's pre-training: real (not padding) tokens a second, against transformers' BertForPreTraining.

    JUMOK_DATA=... python benchmarks/pretraining.py [--rounds 12]

The same texts with the same masks, pairs and labels: 4 layers, d_model 256, vocabulary 30,000, length 128; loss,
backward, clipping and a fused AdamW. The peer gets its batch as its collators make it, padded to the longest text, and
computes logits at every position, as it does. Weights are the same at the start, and it is checked that the losses are,
before anything is timed. On WikiText-2 as it comes, headings and all; on its passages that fill the length, where there
is nothing to gain from packing; and on Korean reviews, a review a document, which are short (without next-sentence
prediction: one review follows no other).

Two threads. Dropout 0.1 everywhere as published; and once without dropout on attention weights, for both: the CPU's
fused attention has none.
"""

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from interleave import Row, interleave, middle, write
from torch import Tensor, nn
from transformers import BertForMaskedLM, BertForPreTraining

from jumok.data.corpus import Corpus
from jumok.data.packing import Packed, Reader
from jumok.data.passages import Passages, read_passages
from jumok.examples.plain import DocumentData
from jumok.hub.folder import ModelFolder
from jumok.models.bert import BertConfig, BertPretraining
from jumok.models.weights import unique_tensors
from jumok.tasks.pretraining import PretrainingConfig
from jumok.tasks.pretraining.task import pretraining_loss
from jumok.tasks.stored import write_model
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig
from jumok.train.optimizer import OptimizerConfig, make_optimizer

VOCAB, LENGTH, BATCH_TOKENS, BATCHES, SENTENCES = 30_000, 128, 4096, 3, 30_000
SIZE = {"d_model": 256, "d_ff": 1024, "n_heads": 4, "n_layers": 4, "max_len": LENGTH}
RATE = 1e-4


def padded(batch: Packed) -> dict[str, Tensor]:
    """The texts of a packed batch, one a row, as the peer wants them."""
    width = batch.ids.shape[1]
    labels = np.full(batch.ids.size, -100)
    labels[batch.masked] = batch.targets
    labels = labels.reshape(batch.ids.shape)
    follows = dict(zip(batch.firsts.tolist(), batch.follows.tolist(), strict=True))
    rows: list[tuple[Tensor, ...]] = []
    answers = []
    for r in range(len(batch.ids)):
        for k in range(int(batch.text[r].max()) + 1):
            here = np.flatnonzero(batch.text[r] == k)
            row = batch.ids[r, here], batch.segments[r, here], np.ones_like(here), labels[r, here]
            rows.append(tuple(map(torch.from_numpy, row)))
            answers.append(follows.get(r * width + int(here[0]), -100))
    names, fills = ("input_ids", "token_type_ids", "attention_mask", "labels"), (0, 0, 0, -100)
    found = {
        name: nn.utils.rnn.pad_sequence(list(column), batch_first=True, padding_value=fill)
        for name, fill, column in zip(names, fills, zip(*rows, strict=True), strict=True)
    }
    return found | ({"next_sentence_label": torch.tensor(answers)} if follows else {})


def their_model(ours: BertPretraining, tokenizer: Tokenizer) -> nn.Module:
    """The same weights, by way of a folder."""
    task = {"kind": "pretraining", "next_sentence": ours.next_sentence is not None}
    facts = {"version": "", "task": task, "max_len": LENGTH}
    model = ModelFolder(ours.config, unique_tensors(ours), Tokenizers(tokenizer, tokenizer), facts)
    kind = BertForMaskedLM if ours.next_sentence is None else BertForPreTraining
    with TemporaryDirectory() as folder:
        write_model(Path(folder), model, card="")
        return kind.from_pretrained(folder)


def our_loss(model: BertPretraining, batch: Packed) -> Tensor:
    loss = pretraining_loss(model, batch)
    return (loss.total / torch.tensor(loss.count)).sum()


def training(model: nn.Module, loss_of, optimizer: torch.optim.Optimizer, batches: list):  # type: ignore[no-untyped-def, type-arg]
    def work() -> None:
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            loss_of(model, batch).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    return work


def make_batches(found: Passages, tokenizer: Tokenizer, task: PretrainingConfig, at_least: int) -> list[Packed]:
    reader = Reader(task, tokenizer, found, max_len=LENGTH, seed=1)
    order = np.random.default_rng(1).permutation(len(found))
    order = order[found.text.lengths(order) >= at_least]
    batches, at = [], 0
    for _ in range(BATCHES):
        taken, tokens = [], 0
        while tokens < BATCH_TOKENS:
            taken.append((int(order[at]), 0))
            tokens += len(found.text[int(order[at])]) + 3
            at += 1
        batches.append(reader.read(taken))
    return batches


def measure(
    name: str, data: DocumentData, task: PretrainingConfig, attention_dropout: float, rounds: int, at_least: int = 0
) -> Row:
    sentences = [s for s, _ in zip(Corpus(data, "train", seed=1), range(SENTENCES), strict=False)]
    tokenizer = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=VOCAB), [s.text for s in sentences], BERT)
    batches = make_batches(read_passages(sentences, tokenizer, LENGTH), tokenizer, task, at_least)
    c = BertConfig(**SIZE, dropout=0.1, attention_dropout=attention_dropout)
    torch.manual_seed(1)
    ours = BertPretraining(c, vocab=tokenizer.vocab_size, next_sentence=task.next_sentence).eval()
    theirs = their_model(ours, tokenizer).eval()
    peers = [padded(batch) for batch in batches]
    for batch, peer in zip(batches, peers, strict=True):
        with torch.no_grad():
            torch.testing.assert_close(our_loss(ours, batch), theirs(**peer).loss, rtol=0, atol=1e-4)
    adamw = OptimizerConfig(kind="adamw", schedule="constant", learning_rate=RATE, warmup=0, weight_decay=0.01)
    our_optimizer = make_optimizer(ours, adamw)
    for group in our_optimizer.param_groups:
        group["lr"] = RATE
    their_optimizer = torch.optim.AdamW(theirs.parameters(), lr=RATE, weight_decay=0.01, fused=True)
    works = {
        "jumok": training(ours.train(), our_loss, our_optimizer, batches),
        "transformers": training(theirs.train(), lambda m, b: m(**b).loss, their_optimizer, peers),
    }
    times = interleave(works, rounds=rounds, repeat={})
    ratio, low, high = middle([b / a for a, b in zip(times["jumok"], times["transformers"], strict=True)])
    tokens = sum(batch.tokens for batch in batches)
    slots = sum(peer["input_ids"].numel() for peer in peers)
    speed = {work: tokens / float(np.median(seconds)) for work, seconds in times.items()}
    return Row(
        work=f"pre-training step, {name}, vocabulary {tokenizer.vocab_size:,}, attention dropout {attention_dropout:g}",
        against=f"transformers' {type(theirs).__name__}, {100 * (1 - tokens / slots):.0f} % padding",
        ratio=ratio,
        low=low,
        high=high,
        target=3.0,
        unit_jumok=f"{speed['jumok']:.0f} real tokens/s",
        unit_peer=f"{speed['transformers']:.0f} real tokens/s",
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    folder = Path(os.environ["JUMOK_DATA"])
    torch.set_num_threads(2)
    articles = DocumentData(train=[str(folder / "wikitext2" / "train.txt.gz")])
    reviews = DocumentData(train=[str(folder / "nsmc_unlabelled" / "train.txt.gz")], format="line")
    rows = [measure("WikiText-2", articles, PretrainingConfig(), dropout, rounds) for dropout in (0.1, 0.0)]
    rows.append(measure("WikiText-2, full passages", articles, PretrainingConfig(), 0.1, rounds, at_least=115))
    rows.append(measure("Korean reviews", reviews, PretrainingConfig(next_sentence=False), 0.1, rounds))
    write("pretraining", rows)


if __name__ == "__main__":
    main()
