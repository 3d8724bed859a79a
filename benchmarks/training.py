"""Training throughput of the Transformer: share of the matrix-multiply peak, and against torch.nn.Transformer.

    python benchmarks/training.py [--rounds 12]

The same padding-free batch, the same size (d_model 256, d_ff 1024, 4 heads, 3 + 3 layers, vocabulary 8,000, dropout
0.1, label smoothing 0.1), Adam, two threads. The peak is what this machine shows for 2048 x 2048 matrices in the same
round, and a training step's arithmetic counts matrix products only.
"""

import argparse
from math import sqrt

import torch
from interleave import Row, interleave, middle, peak_memory, write
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.models.transformer import Transformer, TransformerConfig
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.nn.positions import sinusoids

VOCAB, B, S, T = 8000, 160, 24, 24
D, FF, HEADS, LAYERS = 256, 1024, 4, 3
SMOOTHING, DROPOUT = 0.1, 0.1


def step_flops() -> int:
    """Matrix products of one step: two operations a multiplication forward, twice that backward."""
    encoder = B * S * (4 * D * D + 2 * D * FF + 2 * S * D)
    decoder = B * T * (6 * D * D + 2 * D * FF + 2 * T * D + 2 * S * D) + B * S * 2 * D * D
    return 6 * (LAYERS * (encoder + decoder) + B * T * D * VOCAB)


class Peer(nn.Module):
    """The same model from the library's own layers, as its tutorials put them together."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, D)
        self.register_buffer("positions", sinusoids(0, max(S, T), D), persistent=False)
        self.transformer = nn.Transformer(D, HEADS, LAYERS, LAYERS, FF, DROPOUT, norm_first=True, batch_first=True)
        self.dropout = nn.Dropout(DROPOUT)

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * sqrt(D) + self.positions[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(T)
        hidden = self.transformer(self.embed(source), self.embed(target), tgt_mask=mask, tgt_is_causal=True)
        return hidden @ self.embedding.weight.T


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(2)
    torch.manual_seed(1)
    source, target = torch.randint(2, VOCAB - 1, (B, S)), torch.randint(2, VOCAB - 1, (B, T))
    mask = torch.ones(B, S, dtype=torch.bool)
    config = TransformerConfig(d_model=D, d_ff=FF, n_heads=HEADS, n_layers=LAYERS, norm="pre", dropout=DROPOUT)
    ours = Transformer(config, source_vocab=VOCAB, target_vocab=VOCAB).train()
    peer = Peer().train()
    our_adam = torch.optim.Adam(ours.parameters(), lr=1e-4, fused=True)
    peer_adam = torch.optim.Adam(peer.parameters(), lr=1e-4)
    square = torch.randn(2048, 2048)

    def jumok_step() -> None:
        hidden = ours(source, mask, target).flatten(0, 1)
        loss = linear_cross_entropy(hidden, ours.projection, target.flatten(), smoothing=SMOOTHING) / target.numel()
        our_adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(ours.parameters(), 1.0)
        our_adam.step()

    def peer_step() -> None:
        loss = F.cross_entropy(peer(source, target).flatten(0, 1), target.flatten(), label_smoothing=SMOOTHING)
        peer_adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        peer_adam.step()

    works = {
        "peak": lambda: square @ square,
        "jumok": jumok_step,
        "torch.nn": peer_step,
        "after": lambda: square @ square,
    }
    times = interleave(works, rounds=rounds, repeat={"peak": 8, "jumok": 2, "torch.nn": 2, "after": 8})
    # The peak before and after a step, averaged: it drifts on a shared machine.
    peaks = [2 * 2048**3 / ((a + b) / 2) for a, b in zip(times["peak"], times["after"], strict=True)]
    shares = [step_flops() / t / peak for t, peak in zip(times["jumok"], peaks, strict=True)]
    speedups = [b / a for a, b in zip(times["jumok"], times["torch.nn"], strict=True)]
    tokens = {name: B * T / sorted(times[name])[rounds // 2] for name in ("jumok", "torch.nn")}
    peak = sorted(peaks)[rounds // 2] / 1e9
    share, low, high = middle(shares)
    speedup, slow, fast = middle(speedups)
    rows = [
        Row(
            work="training step, d256/ff1024/3+3, share of the matrix-multiply peak",
            against="2048 x 2048 matrix product",
            ratio=share,
            low=low,
            high=high,
            target=0.55,
            unit_jumok=f"{share * peak:.0f} GFLOP/s, {tokens['jumok']:.0f} target tokens/s",
            unit_peer=f"{peak:.0f} GFLOP/s",
            rss_jumok=peak_memory(),
        ),
        Row(
            work="training step, d256/ff1024/3+3, speed",
            against="torch.nn.Transformer",
            ratio=speedup,
            low=slow,
            high=fast,
            target=None,
            unit_jumok=f"{tokens['jumok']:.0f} target tokens/s",
            unit_peer=f"{tokens['torch.nn']:.0f} target tokens/s",
        ),
    ]
    write("training", rows)


if __name__ == "__main__":
    main()
