"""Training speed of the recurrent models: against plain loops, against torch's own, and beside the Transformer.

    python benchmarks/recurrent.py [--rounds 12]

1. The same encoder-decoder, D = H = 256, as one writes it down: cells called step by step over padded sentences,
   attention step by step, a linear layer and a cross-entropy at every position, AdamW with its defaults. Both have the
   same weights, and it is checked that they have the same loss before they are timed. Once on jumok's own batches,
   and once on batches of 128 sentences in the order of the file, with the padding that this brings to both.
2. nn.RNN, nn.LSTM and nn.GRU over packed sentences, forward and backward, against jumok's layer, which is tested to
   equal them. D = H = 256, 128 sentences of 8 to 16 words.
3. All rungs of recipes/ladder, which have about the same number of parameters, against their Transformer.

Training steps have everything that a training's have: loss with label smoothing, backward, clipping, AdamW. The ids
are random; lengths are Multi30k's (16 pieces a sentence, standard deviation 5, the other side within about 3 of it).
jumok's own batches have at most 2,560 tokens, padding included, and sentences of one length together. Two threads.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from interleave import Row, interleave, middle, write
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from jumok.data.batching import Indices, epoch_batches
from jumok.models.build import EncoderDecoder
from jumok.models.seq2seq import Seq2Seq, Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.nn.recurrent import Recurrent
from jumok.recipe import load_recipe
from jumok.tasks.translation.task import Batch, make_batch, translation_loss
from jumok.text.vocabulary import EOS_ID
from jumok.train.optimizer import OptimizerConfig, make_optimizer

LADDER = Path(__file__).parents[1] / "recipes" / "ladder" / "de-en"
VOCAB, PAD, SMOOTHING = 4000, 3999, 0.1
PAIRS, BATCH_TOKENS, BATCH_SENTENCES, BATCHES = 29_000, 2560, 128, 3
RATE = 1e-4
ADAMW = OptimizerConfig(kind="adamw", schedule="constant", learning_rate=RATE, warmup=0, weight_decay=1e-4)
SAME_LOSS = 1e-4

Work = Callable[[], object]

PLAIN = {
    "LSTM, no attention": Seq2SeqConfig(cell="lstm"),
    "LSTM, Luong general": Seq2SeqConfig(cell="lstm", attention="luong", score="general"),
    "GRU, Luong dot": Seq2SeqConfig(cell="gru", attention="luong", score="dot"),
    "LSTM, Luong concat": Seq2SeqConfig(cell="lstm", attention="luong", score="concat"),
}
LIBRARY = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
RUNGS = (
    "lstm",
    "lstm-reversed",
    "gru",
    "bahdanau",
    "luong-dot",
    "luong-general",
    "luong-concat",
    "luong-local-m",
    "luong-local-p",
    "luong-input-feeding",
)


class Plain(nn.Module):
    """The encoder-decoder of one layer, word by word."""

    def __init__(self, c: Seq2SeqConfig) -> None:
        super().__init__()
        self.config, d = c, c.d_hidden
        cell = nn.LSTMCell if c.cell == "lstm" else nn.GRUCell
        self.source_embedding = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.target_embedding = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.encoder, self.decoder = cell(d, d), cell(d, d)
        self.output = nn.Linear(d, VOCAB - 1, bias=False)
        self.dropout = nn.Dropout(c.dropout)
        if c.attention == "luong":
            self.w_c = nn.Linear(2 * d, d)
        match c.score:
            case "general":
                self.score = nn.ModuleDict({"w": nn.Linear(d, d, bias=False)})
            case "concat":
                u, v = nn.Linear(d, d, bias=False), nn.Linear(d, 1, bias=False)
                self.score = nn.ModuleDict({"w": nn.Linear(d, d), "u": u, "v": v})

    def load(self, ours: Seq2Seq) -> None:
        """The weights of jumok's model; its LSTM has one bias where the library's has two."""
        for cell in (self.encoder, self.decoder):
            nn.init.zeros_(cell.bias_hh)
        weights = {}
        for name, weight in ours.state_dict().items():
            for old, new in (("layers.0.0.w_", ""), ("x.weight", "weight_ih"), ("h.weight", "weight_hh")):
                name = name.replace(old, new)
            weights[name.replace("x.bias", "bias_ih").replace("h.bias", "bias_hh")] = weight
        found = self.load_state_dict(weights, strict=False)
        assert not found.unexpected_keys
        assert set(found.missing_keys) <= {"encoder.bias_hh", "decoder.bias_hh"}

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        lstm = self.config.cell == "lstm"
        h = source.new_zeros(len(source), self.config.d_hidden, dtype=torch.float)
        c = h
        e, memory, hidden = self.dropout(self.source_embedding(source)), [], []
        for t in range(source.shape[1]):
            going_on = source_mask[:, t, None]
            if lstm:
                new, new_c = self.encoder(e[:, t], (h, c))
                c = torch.where(going_on, new_c, c)
            else:
                new = self.encoder(e[:, t], h)
            h = torch.where(going_on, new, h)
            memory.append(h)
        values = torch.stack(memory, dim=1)
        keys = self.keys(values)
        e = self.dropout(self.target_embedding(target))
        for t in range(target.shape[1]):
            if lstm:
                h, c = self.decoder(e[:, t], (h, c))
            else:
                h = self.decoder(e[:, t], h)
            hidden.append(self.dropout(self.look(h, keys, values, source_mask)))
        return self.output(torch.stack(hidden, dim=1))

    def keys(self, values: Tensor) -> Tensor:
        match self.config.score:
            case "general":
                return self.score["w"](values)
            case "concat":
                return self.score["u"](values)
        return values

    def look(self, h: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        if self.config.attention == "none":
            return h
        if self.config.score == "concat":
            scores = self.score["v"](torch.tanh(self.score["w"](h)[:, None] + keys))[..., 0]
        else:
            scores = torch.bmm(keys, h[:, :, None])[..., 0]
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        context = torch.bmm(weights[:, None], values)[:, 0]
        return torch.tanh(self.w_c(torch.cat([context, h], dim=-1)))


def multi30k_batches() -> tuple[list[Batch], list[Batch]]:
    """Batches of random ids: as jumok makes them, short, middling and long, and in the order of the file."""
    rng = np.random.default_rng(1)
    source = rng.normal(16, 5, PAIRS)
    sizes = np.stack([source, source + rng.normal(0, 2.9, PAIRS)], axis=1).round().clip(4, 50).astype(np.int64)
    tokenizers = SimpleNamespace(source=SimpleNamespace(pad_id=PAD), target=SimpleNamespace(pad_id=PAD))

    def batch(rows: slice | Indices) -> Batch:
        sides = [[[*rng.integers(3, PAD, n - 1).tolist(), EOS_ID] for n in sizes[rows, side]] for side in (0, 1)]
        return make_batch(*sides, tokenizers)

    found = epoch_batches(PAIRS, lengths=lambda rows: sizes[rows], batch_tokens=BATCH_TOKENS, seed=1, epoch=0)
    by_length = sorted(found, key=lambda rows: sizes[rows].max())
    own = [batch(by_length[(2 * i + 1) * len(by_length) // (2 * BATCHES)]) for i in range(BATCHES)]
    return own, [batch(slice(i * BATCH_SENTENCES, (i + 1) * BATCH_SENTENCES)) for i in range(BATCHES)]


def jumok_loss(model: EncoderDecoder, batch: Batch) -> Tensor:
    loss = translation_loss(model, batch, smoothing=SMOOTHING)
    return loss.total / loss.count


def plain_loss(model: Plain, batch: Batch) -> Tensor:
    logits = model(batch.source, batch.source_mask, batch.target_in).flatten(0, 1)
    return F.cross_entropy(logits, batch.target_out.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING)


def jumok_adamw(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = make_optimizer(model, ADAMW)
    for group in optimizer.param_groups:
        group["lr"] = RATE
    return optimizer


def plain_adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=RATE, betas=(ADAMW.beta1, ADAMW.beta2), eps=ADAMW.epsilon)


def training(
    model: nn.Module,
    loss_of: Callable[[nn.Module, Batch], Tensor],
    optimizer: torch.optim.Optimizer,
    batches: list[Batch],
) -> Work:
    """One training step on each batch."""

    def work() -> None:
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            loss_of(model, batch).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    return work


def ratios(times: dict[str, list[float]], ours: str, theirs: str) -> list[float]:
    return [b / a for a, b in zip(times[ours], times[theirs], strict=True)]


def speed(times: list[float], tokens: int) -> str:
    return f"{tokens / float(np.median(times)):.0f} target tokens/s"


def against_plain_loops(rounds: int, batches: list[Batch], which: str) -> list[Row]:
    works: dict[str, Work] = {}
    for name, config in PLAIN.items():
        config = replace(config, dropout=0.3, tie_embeddings="none")
        ours = Seq2Seq(config, source_vocab=VOCAB, target_vocab=VOCAB).eval()
        plain = Plain(config).eval()
        plain.load(ours)
        for batch in batches:
            with torch.no_grad():
                torch.testing.assert_close(jumok_loss(ours, batch), plain_loss(plain, batch), rtol=0, atol=SAME_LOSS)
        works[f"jumok {name}"] = training(ours.train(), jumok_loss, jumok_adamw(ours), batches)
        works[f"plain {name}"] = training(plain.train(), plain_loss, plain_adamw(plain), batches)
    times = interleave(works, rounds=rounds, repeat={})
    tokens = sum(batch.count for batch in batches)
    rows = []
    for name in PLAIN:
        ratio, low, high = middle(ratios(times, f"jumok {name}", f"plain {name}"))
        row = Row(
            work=f"training step, {name}, {which}",
            against="the same model as a plain loop over cells",
            ratio=ratio,
            low=low,
            high=high,
            target=2.0,
            unit_jumok=speed(times[f"jumok {name}"], tokens),
            unit_peer=speed(times[f"plain {name}"], tokens),
        )
        rows.append(row)
    return rows


def against_the_library(rounds: int) -> list[Row]:
    b, s, d = 128, 16, 256
    lengths = torch.randint(8, s + 1, (b,))
    lengths[0] = s
    x, gradient = torch.randn(b, s, d, requires_grad=True), torch.randn(b, s, d)

    def jumok_layer(network: Recurrent) -> Work:
        def work() -> None:
            network.zero_grad()
            network(x, lengths)[0].backward(gradient)
            x.grad = None

        return work

    def library_layer(network: nn.RNNBase) -> Work:
        def work() -> None:
            network.zero_grad()
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            pad_packed_sequence(network(packed)[0], batch_first=True)[0].backward(gradient)
            x.grad = None

        return work

    works: dict[str, Work] = {}
    for cell, kind in LIBRARY.items():
        works[f"jumok {cell}"] = jumok_layer(Recurrent(cell, d, d))
        works[f"torch {cell}"] = library_layer(kind(d, d, batch_first=True))
    times = interleave(works, rounds=rounds, repeat=dict.fromkeys(works, 5))
    rows = []
    for cell, kind in LIBRARY.items():
        ratio, low, high = middle(ratios(times, f"jumok {cell}", f"torch {cell}"))
        row = Row(
            work=f"{cell} layer, forward and backward, {b} sentences, D = H = {d}",
            against=f"nn.{kind.__name__} over packed sentences",
            ratio=ratio,
            low=low,
            high=high,
            target=None,
            unit_jumok=f"{np.median(times[f'jumok {cell}']) * 1e3:.1f} ms",
            unit_peer=f"{np.median(times[f'torch {cell}']) * 1e3:.1f} ms",
        )
        rows.append(row)
    return rows


def beside_the_transformer(rounds: int, batches: list[Batch]) -> list[Row]:
    works: dict[str, Work] = {}
    millions: dict[str, float] = {}
    for rung in ("transformer", *RUNGS):
        config = load_recipe(LADDER / f"{rung}.toml", find_data=False).model
        kind = Transformer if isinstance(config, TransformerConfig) else Seq2Seq
        model = kind(config, source_vocab=VOCAB, target_vocab=VOCAB)
        millions[rung] = sum(parameter.numel() for parameter in model.parameters()) / 1e6
        works[rung] = training(model.train(), jumok_loss, jumok_adamw(model), batches)
    times = interleave(works, rounds=rounds, repeat={})
    tokens = sum(batch.count for batch in batches)
    rows = []
    for rung in RUNGS:
        ratio, low, high = middle(ratios(times, rung, "transformer"))
        row = Row(
            work=f"training step, ladder {rung}, {millions[rung]:.1f} M parameters",
            against=f"jumok's Transformer, {millions['transformer']:.1f} M parameters",
            ratio=ratio,
            low=low,
            high=high,
            target=None,
            unit_jumok=speed(times[rung], tokens),
            unit_peer=speed(times["transformer"], tokens),
        )
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(2)
    torch.manual_seed(1)
    own, mixed = multi30k_batches()
    rows = [
        *against_plain_loops(rounds, own, "sentences of one length together"),
        *against_plain_loops(rounds, mixed, "sentences as they come"),
        *against_the_library(rounds),
        *beside_the_transformer(rounds, own),
    ]
    write("recurrent", rows)


if __name__ == "__main__":
    main()
