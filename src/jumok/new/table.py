"""The settings that `jumok new` chooses from: for each task, sizes of model from the largest to the smallest.

A row is taken if there is enough text for it, and if the minutes are enough to read all of it as often as it needs. The
settings are those of the recipes in recipes/, and benchmarks/new.py measures them against these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from jumok.text.vocabulary import Kind

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Settings for a task."""

    characters: int = 0
    """of training text, from which the row pays off"""
    passes: float = 0
    """over the training data, for which there must be time"""
    tokenizer: Kind
    vocab: int
    vocab_without_spaces: int | None = None
    """for Korean, Japanese and Chinese, whose words have more letters or forms; default: the same"""
    lowercase: bool = False
    model: Settings
    batch_tokens: int
    rate: float
    most_passes: int
    """of more passes, nothing is left to be learned: `epochs` instead of `minutes`"""
    train: Settings = field(default_factory=lambda: MappingProxyType({}))
    """further keys of [train]"""


def _bert(d_model: int, n_layers: int, max_len: int = 256) -> Settings:
    return _stack("bert", d_model, n_layers, max_len)


def _gpt(d_model: int, n_layers: int, max_len: int = 128) -> Settings:
    return _stack("gpt", d_model, n_layers, max_len)


def _stack(kind: str, d_model: int, n_layers: int, max_len: int) -> Settings:
    sizes = {"d_model": d_model, "d_ff": 4 * d_model, "n_heads": d_model // 64, "n_layers": n_layers}
    return {"kind": kind, **sizes, "max_len": max_len, "dropout": 0.1, "attention_dropout": 0.0}


def _bilstm(d_embedding: int, d_hidden: int, **more: Any) -> Settings:
    sizes = {"d_embedding": d_embedding, "d_hidden": d_hidden}
    return {"kind": "rnn", "cell": "lstm", "bidirectional": True, **more, **sizes, "dropout": 0.4}


def _transformer(d_model: int, d_ff: int, n_heads: int, n_layers: int, dropout: float = 0.3) -> Settings:
    sizes = {"d_model": d_model, "d_ff": d_ff, "n_heads": n_heads, "n_layers": n_layers}
    return {"kind": "transformer", **sizes, "norm": "pre", "dropout": dropout}


def _gru(width: int) -> Settings:
    sizes = {"d_embedding": width, "d_hidden": width}
    return {"kind": "seq2seq", "cell": "gru", **sizes, "bidirectional": True, "attention": "bahdanau", "dropout": 0.3}


KEEP_BEST: Settings = {"keep_last": 3, "final": "best", "patience": 4}
"""so few pairs are soon known by heart: what is best for new ones is kept, not what comes last"""

# fmt: off
_ENCODER = (
    Row(characters=150_000, passes=2, tokenizer="wordpiece", vocab=8000, vocab_without_spaces=12000, lowercase=True,
        model=_bert(256, 4), batch_tokens=2048, rate=5e-4, most_passes=15),
    Row(tokenizer="wordpiece", vocab=4000, lowercase=True, model=_bert(128, 2), batch_tokens=1024, rate=1e-3,
        most_passes=30),
)
TABLE: Mapping[str, tuple[Row, ...]] = MappingProxyType({
    "translation": (
        Row(characters=60_000_000, passes=5, tokenizer="bpe", vocab=16000, model=_transformer(512, 2048, 8, 6),
            batch_tokens=4096, rate=7e-4, most_passes=40),
        Row(characters=800_000, passes=6, tokenizer="bpe", vocab=8000, model=_transformer(256, 512, 4, 3),
            batch_tokens=3072, rate=1.5e-3, most_passes=60),
        Row(characters=500_000, tokenizer="bpe", vocab=4000, model=_transformer(128, 256, 4, 2, 0.1),
            batch_tokens=2048, rate=3e-3, most_passes=60),
        Row(characters=100_000, tokenizer="bpe", vocab=4000, model=_gru(256), batch_tokens=1024, rate=2e-3,
            most_passes=40, train=KEEP_BEST),
        Row(tokenizer="bpe", vocab=1000, model=_gru(128), batch_tokens=512, rate=3e-3, most_passes=60, train=KEEP_BEST),
    ),
    "classification": (
        Row(characters=2_000_000, passes=1, tokenizer="bpe", vocab=8000, model=_bilstm(192, 320, pool="attention"),
            batch_tokens=4096, rate=2e-3, most_passes=6),
        Row(characters=200_000, passes=2, tokenizer="bpe", vocab=4000, model=_bilstm(128, 256, pool="attention"),
            batch_tokens=2048, rate=2e-3, most_passes=12),
        Row(tokenizer="bpe", vocab=2000, model=_bilstm(64, 128, pool="attention"), batch_tokens=1024, rate=3e-3,
            most_passes=30),
    ),
    "classification of pairs": _ENCODER,
    "tagging": (
        Row(characters=300_000, passes=2, tokenizer="bpe", vocab=8000, model=_bilstm(128, 256), batch_tokens=2048,
            rate=2e-3, most_passes=25),
        Row(tokenizer="bpe", vocab=2000, model=_bilstm(64, 128), batch_tokens=1024, rate=3e-3, most_passes=40),
    ),
    "relation": _ENCODER,
    "answering": _ENCODER,
    "choice": _ENCODER,
    "language_model": (
        Row(characters=2_000_000, passes=1, tokenizer="byte_bpe", vocab=8000, model=_gpt(256, 4), batch_tokens=4096,
            rate=1e-3, most_passes=20),
        Row(characters=200_000, passes=1, tokenizer="byte_bpe", vocab=2000, model=_gpt(192, 3), batch_tokens=2048,
            rate=1e-3, most_passes=20),
        Row(tokenizer="byte_bpe", vocab=1000, model=_gpt(128, 2), batch_tokens=1024, rate=2e-3, most_passes=40),
    ),
    "pretraining": (
        Row(characters=1_000_000, passes=1, tokenizer="wordpiece", vocab=8000, vocab_without_spaces=12000,
            model=_bert(256, 4, 128), batch_tokens=4096, rate=1e-3, most_passes=40),
        Row(tokenizer="wordpiece", vocab=4000, model=_bert(128, 2, 128), batch_tokens=2048, rate=1e-3, most_passes=60),
    ),
})
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Settings to train weights further, for models up to a width."""

    width: int
    rate: float
    tagging_rate: float
    batch_tokens: int = 2048
    most_passes: int


STARTS = (
    Start(width=256, rate=5e-4, tagging_rate=5e-4, most_passes=10),
    Start(width=512, rate=1e-4, tagging_rate=3e-4, most_passes=6),
    Start(width=768, rate=5e-5, tagging_rate=5e-5, most_passes=4),
    Start(width=1 << 20, rate=2e-5, tagging_rate=3e-5, most_passes=3),
)
MUCH_TEXT = 5_000_000
"""characters, from which on narrow models are trained further at `SLOW_RATE`"""
SLOW_RATE = 1.5e-4
TAGGING_BATCH = 1024
"""tokens of a batch for taggers that start from weights: small batches were better in the same time"""

EFFICIENCY = {"transformer": 0.8, "bert": 0.85, "gpt": 0.8, "elmo": 0.7, "rnn": 0.9, "seq2seq": 0.6}
"""share of the speed of a large matrix product that training reaches"""
