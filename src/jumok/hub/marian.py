"""The Transformer of the paper as a Marian folder.

Marian's encoder-decoder is the paper's, with one difference: it keeps all sines of a position before all cosines,
where the paper interleaves them. Since nothing else in the network knows one dimension of d_model from another, a
fixed permutation of them turns one into the other.
"""

import re
from typing import Any

import torch
from torch import Tensor

from jumok.models.transformer import TransformerConfig

NAMES = (
    ("self_attention.w_q", "self_attn.q_proj"),
    ("self_attention.w_k", "self_attn.k_proj"),
    ("self_attention.w_v", "self_attn.v_proj"),
    ("self_attention.w_o", "self_attn.out_proj"),
    ("self_norm", "self_attn_layer_norm"),
    ("cross_attention.w_q", "encoder_attn.q_proj"),
    ("cross_attention.w_k", "encoder_attn.k_proj"),
    ("cross_attention.w_v", "encoder_attn.v_proj"),
    ("cross_attention.w_o", "encoder_attn.out_proj"),
    ("cross_norm", "encoder_attn_layer_norm"),
    ("feed_forward.w_1", "fc1"),
    ("feed_forward.w_2", "fc2"),
    ("feed_norm", "final_layer_norm"),
)
EMBEDDING = ("target_embedding.weight", "model.shared.weight")
LOGITS_BIAS = "final_logits_bias"


def fits_marian(c: TransformerConfig) -> bool:
    """Whether Marian has every option of this model."""
    width = c.d_model / c.n_heads
    return (
        c.norm == "post"
        and c.positions == "sinusoidal"
        and c.tie_embeddings == "all"
        and c.neighbourhood is None
        and c.d_k in (None, width)
        and c.d_v in (None, width)
        and c.d_model % 2 == 0
    )


def to_marian(tensors: dict[str, Tensor], c: TransformerConfig) -> dict[str, Tensor]:
    order = _sines_first(c.d_model)
    named = {_to_marian_name(name): _permute(name, tensor, order) for name, tensor in tensors.items()}
    vocab_size = tensors[EMBEDDING[0]].shape[0]
    return named | {LOGITS_BIAS: torch.zeros(1, vocab_size)}


def from_marian(tensors: dict[str, Tensor], c: TransformerConfig) -> dict[str, Tensor]:
    order = _sines_first(c.d_model).argsort()
    named = {_from_marian_name(name): tensor for name, tensor in tensors.items() if name != LOGITS_BIAS}
    return {name: _permute(name, tensor, order) for name, tensor in named.items()}


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
        "activation_function": "relu",
        "dropout": c.dropout,
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


def _sines_first(d_model: int) -> Tensor:
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


def _permute(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """Reorder the axes of a tensor (under our name) that run along d_model."""
    if re.search(r"w_o\.|w_2\.|norm\.", name):  # writes into the residual stream
        return tensor[order].contiguous()
    if tensor.ndim == 2:  # reads from it, or is the embedding
        return tensor[:, order].contiguous()
    return tensor.contiguous()


def _to_marian_name(name: str) -> str:
    if name == EMBEDDING[0]:
        return EMBEDDING[1]
    for ours, theirs in NAMES:
        name = re.sub(rf"(?<=\d\.){re.escape(ours)}(?=\.)", theirs, name)
    return f"model.{name}"


def _from_marian_name(name: str) -> str:
    if name == EMBEDDING[1]:
        return EMBEDDING[0]
    for ours, theirs in NAMES:
        name = re.sub(rf"(?<=\d\.){re.escape(theirs)}(?=\.)", ours, name)
    return name.removeprefix("model.")
