"""GPT-2 as a Hugging Face folder.

Its matrices are [in, out], the transpose of ours, and queries, keys and values share one matrix.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.config import Count, Depth, Positive, Share
from jumok.hub.files import CONFIG, known_architecture, read_known
from jumok.hub.heads import Heads, class_of, task_of
from jumok.hub.names import ACTIVATIONS, Name, layer_norm, linear, to_ours, to_theirs, without_copies
from jumok.models.gpt import GptConfig
from jumok.text.tokenizer import Tokenizer

ARCHITECTURES = ("GPT2LMHeadModel", "GPT2Model")
BUFFERS = re.compile(r"\.attn\.(bias|masked_bias)$")  # the causal mask, in old files
QKV = "self_attention.w_qkv"
LINEAR = re.compile(r"\.w_\w+\.weight$")


@dataclass(frozen=True, kw_only=True, slots=True)
class TheirConfig:
    """The network's settings in config.json; the defaults are the smallest GPT-2's."""

    vocab_size: Count = 50257
    n_positions: Count = 1024
    n_embd: Count = 768
    n_layer: Depth = 12
    n_head: Count = 12
    n_inner: Count | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: Share = 0.1
    attn_pdrop: Share = 0.1
    layer_norm_epsilon: Positive = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    add_cross_attention: bool = False

    def __post_init__(self) -> None:
        refused = []
        if self.activation_function not in ACTIVATIONS:
            refused.append(f'activation_function: "{self.activation_function}" is not one of {", ".join(ACTIVATIONS)}')
        if not self.scale_attn_weights or self.scale_attn_by_inverse_layer_idx:
            refused.append("scale_attn_weights: jumok only scales attention by the square root of a head's width")
        if self.add_cross_attention:
            refused.append("add_cross_attention: jumok's GPT has self-attention only (got true)")
        if self.n_embd % self.n_head:
            refused.append("n_embd: must be divisible by n_head")
        if refused:
            raise ValueError("\n".join(refused))

    def ours(self) -> GptConfig:
        return GptConfig(
            d_model=self.n_embd,
            d_ff=self.n_inner or 4 * self.n_embd,
            n_heads=self.n_head,
            n_layers=self.n_layer,
            dropout=self.resid_pdrop,
            attention_dropout=self.attn_pdrop,
            max_len=self.n_positions,
            activation=ACTIVATIONS[self.activation_function],
            norm_eps=self.layer_norm_epsilon,
        )


def open_gpt2(
    tree: dict[str, Any], tensors: Mapping[str, Tensor], folder: Path, heads: Heads
) -> tuple[GptConfig, dict[str, Tensor], dict[str, Any]]:
    """Config, tensors and facts of a folder, ours or foreign."""
    known_architecture(tree, ARCHITECTURES, ARCHITECTURES[0], where=folder / CONFIG)
    theirs = read_known(TheirConfig, tree, where=folder / CONFIG)
    c = theirs.ours()
    tensors = {name: tensor for name, tensor in tensors.items() if not BUFFERS.search(name)}
    # Files converted from OpenAI's omit the prefix even with the head.
    prefix = "transformer." if any(name.startswith("transformer.") for name in tensors) else ""
    tensors = without_copies(tensors, {"lm_head.weight": f"{prefix}wte.weight"}, where=folder)
    found = to_ours(tensors, _names(c, theirs.vocab_size, prefix), where=folder)
    facts = {"task": {"kind": task_of(heads, "gpt", ARCHITECTURES[0])}, "language": "", "max_len": c.max_len}
    return c, _apart(found), facts


def gpt2_obstacle(task: str, heads: Heads) -> str | None:
    """Why a GPT has no Hugging Face layout; None if it has one."""
    return None if class_of(heads, task, "gpt") in ARCHITECTURES else f"transformers has no GPT-2 whose task is {task}"


def to_gpt2(
    tensors: Mapping[str, Tensor], c: GptConfig, tokenizer: Tokenizer
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """config.json and tensors for `transformers`."""
    config = {
        "model_type": "gpt2",
        "architectures": [ARCHITECTURES[0]],
        "vocab_size": tokenizer.vocab_size,
        "n_positions": c.max_len,
        "n_embd": c.d_model,
        "n_layer": c.n_layers,
        "n_head": c.n_heads,
        "n_inner": c.d_ff,
        "activation_function": "gelu_new" if c.activation == "gelu_tanh" else c.activation,
        "resid_pdrop": float(c.dropout),
        "embd_pdrop": float(c.dropout),
        "attn_pdrop": float(c.attention_dropout),
        "layer_norm_epsilon": float(c.norm_eps),
        "initializer_range": 0.02,
        "scale_attn_weights": True,
        "bos_token_id": tokenizer.start_id,
        "eos_token_id": tokenizer.end_id,
        "pad_token_id": tokenizer.pad_id,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
    }
    return config, to_theirs(_together(tensors), _names(c, tokenizer.vocab_size, "transformer."))


def _names(c: GptConfig, vocab: int, prefix: str) -> list[Name]:
    d = c.d_model
    names = [
        Name("embedding.weight", f"{prefix}wte.weight", (vocab, d)),
        Name("positions.embedding.weight", f"{prefix}wpe.weight", (c.max_len, d)),
        *layer_norm("stack.final_norm", f"{prefix}ln_f", d),
    ]
    for i in range(c.n_layers):
        ours, theirs = f"stack.layers.{i}", f"{prefix}h.{i}"
        names += layer_norm(f"{ours}.self_norm", f"{theirs}.ln_1", d)
        names += linear(f"{ours}.{QKV}", f"{theirs}.attn.c_attn", 3 * d, d, transposed=True)
        names += linear(f"{ours}.self_attention.w_o", f"{theirs}.attn.c_proj", d, d, transposed=True)
        names += layer_norm(f"{ours}.feed_norm", f"{theirs}.ln_2", d)
        names += linear(f"{ours}.feed_forward.w_1", f"{theirs}.mlp.c_fc", c.d_ff, d, transposed=True)
        names += linear(f"{ours}.feed_forward.w_2", f"{theirs}.mlp.c_proj", d, c.d_ff, transposed=True)
    return names


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Transpose matrices to [out, in] and split queries, keys and values."""
    found = {}
    for name, tensor in tensors.items():
        tensor = tensor.T if LINEAR.search(name) else tensor
        parts = zip("qkv", tensor.chunk(3), strict=True) if QKV in name else [("qkv", tensor)]
        for letter, part in parts:
            found[name.replace("w_qkv", f"w_{letter}")] = part.contiguous()
    return found


def _together(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `_apart`."""
    found = {}
    for name, tensor in tensors.items():
        if re.search(r"\.w_[kv]\.", name):
            continue
        if ".w_q." in name:
            tensor = torch.cat([tensors[name.replace(".w_q.", f".w_{letter}.")] for letter in "qkv"])
            name = name.replace(".w_q.", ".w_qkv.")
        found[name] = tensor.T if LINEAR.search(name) else tensor
    return found
