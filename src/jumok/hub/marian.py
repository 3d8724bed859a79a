"""The paper's Transformer as a Marian folder.

Marian's encoder-decoder is the paper's, with one difference: it puts all sines of a position before all cosines, where
the paper interleaves them. Nothing else in the network distinguishes the dimensions of d_model, so a fixed permutation
converts one into the other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.config import Count, Depth, Share
from jumok.errors import CheckpointError
from jumok.hub.files import CONFIG, known_architecture, read_known
from jumok.hub.heads import Heads, task_of
from jumok.hub.names import ACTIVATIONS, Name, layer_norm, linear, to_ours, to_theirs, without_copies
from jumok.models.transformer import TransformerConfig
from jumok.nn.positions import sinusoids

ARCHITECTURES = ("MarianMTModel",)
EMBEDDING, SHARED = "target_embedding.weight", "model.shared.weight"
COPIES = ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
LOGITS_BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


@dataclass(frozen=True, kw_only=True, slots=True)
class TheirConfig:
    """The network's settings in config.json; the defaults are those of transformers."""

    vocab_size: Count = 58101
    decoder_vocab_size: Count | None = None
    d_model: Count = 1024
    encoder_layers: Depth = 12
    decoder_layers: Count = 12
    encoder_attention_heads: Count = 16
    decoder_attention_heads: Count = 16
    encoder_ffn_dim: Count = 4096
    decoder_ffn_dim: Count = 4096
    max_position_embeddings: Count = 1024
    activation_function: str = "gelu"
    dropout: Share = 0.1
    scale_embedding: bool = False
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    normalize_before: bool = False
    normalize_embedding: bool = False
    add_final_layer_norm: bool = False
    static_position_embeddings: bool = True

    def __post_init__(self) -> None:
        refused = []
        if self.activation_function not in ACTIVATIONS:
            refused.append(f'activation_function: "{self.activation_function}" is not one of {", ".join(ACTIVATIONS)}')
        for part in ("layers", "attention_heads", "ffn_dim"):
            encoder, decoder = getattr(self, f"encoder_{part}"), getattr(self, f"decoder_{part}")
            if encoder != decoder:
                refused.append(
                    f"encoder_{part}: jumok's encoder and decoder have the same size (got {encoder}, {decoder})"
                )
        if not self.scale_embedding:
            refused.append("scale_embedding: jumok multiplies embeddings by the square root of d_model (got false)")
        shared = self.share_encoder_decoder_embeddings and self.tie_word_embeddings
        if not shared or self.decoder_vocab_size not in (None, self.vocab_size):
            refused.append("share_encoder_decoder_embeddings: source, target and output must share one matrix")
        if self.normalize_before or self.normalize_embedding or self.add_final_layer_norm:
            refused.append("normalize_before: LayerNorm must be after each sub-layer and nowhere else")
        if not self.static_position_embeddings:
            refused.append("static_position_embeddings: positions must be sinusoidal (got false)")
        if self.d_model % 2 or self.d_model % self.encoder_attention_heads:
            refused.append("d_model: must be even, and divisible by encoder_attention_heads")
        if refused:
            raise ValueError("\n".join(refused))

    def ours(self) -> TransformerConfig:
        return TransformerConfig(
            d_model=self.d_model,
            d_ff=self.encoder_ffn_dim,
            n_heads=self.encoder_attention_heads,
            n_layers=self.encoder_layers,
            dropout=self.dropout,
            activation=ACTIVATIONS[self.activation_function],
            max_len=self.max_position_embeddings,
        )


def open_marian(
    tree: dict[str, Any], tensors: Mapping[str, Tensor], folder: Path, heads: Heads
) -> tuple[TransformerConfig, dict[str, Tensor], dict[str, Any]]:
    """Config, tensors and facts of a folder, ours or foreign."""
    known_architecture(tree, ARCHITECTURES, ARCHITECTURES[0], where=folder / CONFIG)
    theirs = read_known(TheirConfig, tree, where=folder / CONFIG)
    c = theirs.ours()
    ours = from_marian(tensors, c, vocab_size=theirs.vocab_size, where=folder)
    return c, ours, {"task": {"kind": task_of(heads, "transformer", ARCHITECTURES[0])}}


def marian_obstacle(c: TransformerConfig) -> str | None:
    """The options of a Transformer that Marian lacks; None if it has them all."""
    width = c.d_model / c.n_heads
    lacking = {
        'norm = "pre"': c.norm != "post",
        'positions = "learned"': c.positions != "sinusoidal",
        f'tie_embeddings = "{c.tie_embeddings}"': c.tie_embeddings != "all",
        "neighbourhood": c.neighbourhood is not None,
        "d_k": c.d_k not in (None, width),
        "d_v": c.d_v not in (None, width),
        "an odd d_model": c.d_model % 2 != 0,
    }
    found = [option for option, lacks in lacking.items() if lacks]
    return f"Marian does not support {' or '.join(found)}" if found else None


def fits_marian(c: TransformerConfig) -> bool:
    """Whether Marian has every option of this model."""
    return marian_obstacle(c) is None


def to_marian(tensors: Mapping[str, Tensor], c: TransformerConfig) -> dict[str, Tensor]:
    order = _sines_first(c.d_model)
    vocab_size = tensors[EMBEDDING].shape[0]
    permuted = {name: _permute(name, tensor, order) for name, tensor in tensors.items()}
    return to_theirs(permuted, _names(c, vocab_size)) | {LOGITS_BIAS: torch.zeros(1, vocab_size)}


def from_marian(
    tensors: Mapping[str, Tensor], c: TransformerConfig, *, vocab_size: int, where: Path
) -> dict[str, Tensor]:
    tensors = without_copies(tensors, dict.fromkeys(COPIES, SHARED), where=where)
    order = _sines_first(c.d_model)
    for name in POSITIONS:
        table = tensors.pop(name, None)
        if table is not None and not _is_sinusoidal(table, c.d_model, order):
            hint = "use a model with the paper's sinusoidal positions"
            raise CheckpointError(f"{name} is not sinusoidal", where=where, hint=hint, code="checkpoint.positions")
    bias = tensors.pop(LOGITS_BIAS, torch.zeros(1, 1))
    if bias.flatten()[:-1].count_nonzero():  # the last belongs to <pad>, which is never predicted
        raise CheckpointError(
            f"{LOGITS_BIAS} is not zero: jumok's output layer is the embedding matrix and has no bias",
            where=where,
            hint="use a model trained without an output bias",
            code="checkpoint.output_bias",
        )
    back = order.argsort()
    named = to_ours(tensors, _names(c, vocab_size), where=where)
    return {name: _permute(name, tensor, back) for name, tensor in named.items()}


def marian_config(c: TransformerConfig, *, vocab_size: int) -> dict[str, Any]:
    pad = vocab_size - 1
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "vocab_size": vocab_size,
        "decoder_vocab_size": vocab_size,
        "d_model": c.d_model,
        "encoder_layers": c.n_layers,
        "decoder_layers": c.n_layers,
        "encoder_attention_heads": c.n_heads,
        "decoder_attention_heads": c.n_heads,
        "encoder_ffn_dim": c.d_ff,
        "decoder_ffn_dim": c.d_ff,
        "max_position_embeddings": c.max_len,
        "activation_function": next(theirs for theirs, ours in ACTIVATIONS.items() if ours == c.activation),
        "dropout": float(c.dropout),
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
        "torch_dtype": "float32",
    }


def _names(c: TransformerConfig, vocab: int) -> list[Name]:
    d = c.d_model
    names = [Name(EMBEDDING, SHARED, (vocab, d))]
    for side in ("encoder", "decoder"):
        attentions = [("self", "self_attn"), ("cross", "encoder_attn")][: 1 if side == "encoder" else 2]
        for i in range(c.n_layers):
            ours, theirs = f"{side}.layers.{i}", f"model.{side}.layers.{i}"
            for kind, attention in attentions:
                for letter, word in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "out")):
                    names += linear(f"{ours}.{kind}_attention.w_{letter}", f"{theirs}.{attention}.{word}_proj", d, d)
                names += layer_norm(f"{ours}.{kind}_norm", f"{theirs}.{attention}_layer_norm", d)
            names += linear(f"{ours}.feed_forward.w_1", f"{theirs}.fc1", c.d_ff, d)
            names += linear(f"{ours}.feed_forward.w_2", f"{theirs}.fc2", d, c.d_ff)
            names += layer_norm(f"{ours}.feed_norm", f"{theirs}.final_layer_norm", d)
    return names


def _sines_first(d_model: int) -> Tensor:
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


def _is_sinusoidal(table: Tensor, d_model: int, order: Tensor) -> bool:
    if table.ndim != 2 or table.shape[1] != d_model:
        return False
    return torch.allclose(table, sinusoids(0, len(table), d_model)[:, order], rtol=0, atol=1e-3)


def _permute(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """Permute the d_model axis of a tensor, given under our name."""
    if re.search(r"w_o\.|w_2\.|norm\.", name):  # writes into the residual stream
        return tensor[order].contiguous()
    if tensor.ndim == 2:  # reads from it, or is the embedding
        return tensor[:, order].contiguous()
    return tensor.contiguous()
