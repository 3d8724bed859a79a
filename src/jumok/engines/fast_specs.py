"""jumok's models in the format of CTranslate2.

Each function fills a specification of the library from a model's tensors; nothing is computed but the fused query, key
and value matrix. What the format lacks, `unsuited` names.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from ctranslate2.specs import (
    TransformerDecoderModelSpec,
    TransformerSpec,
)
from ctranslate2.specs.common_spec import Activation, LayerNormSpec, LinearSpec
from ctranslate2.specs.model_spec import ModelSpec
from numpy.typing import NDArray

from jumok.engines.fast_translation import POSITIONS
from jumok.hub.folder import ModelFolder
from jumok.models.build import ModelConfig
from jumok.models.gpt import GptConfig
from jumok.models.transformer import TransformerConfig
from jumok.nn.positions import sinusoids

Arrays = Mapping[str, NDArray[np.float32]]

ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "gelu_tanh": Activation.GELUTanh,
    "silu": Activation.SWISH,
}


def unsuited(config: ModelConfig) -> str | None:
    """What CTranslate2 lacks for such a model; None if it can run it."""
    match config:
        case TransformerConfig() as c:
            if c.neighbourhood is not None:
                return "CTranslate2 has no attention restricted to a neighbourhood"
            if {c.d_k or c.d_model // c.n_heads, c.d_v or c.d_model // c.n_heads} != {c.d_model // c.n_heads}:
                return "the heads of CTranslate2 divide d_model evenly"
            return None
        case GptConfig():
            return None
        case c:
            return f'CTranslate2 has no model of the kind "{c.kind}"'


def write_spec(model: ModelFolder, folder: Path, *, quantization: str | None = None) -> None:
    """Write model.bin, config.json and the vocabularies of a folder that CTranslate2 opens."""
    tensors = {name: tensor.numpy().copy() for name, tensor in model.tensors.items()}  # quantized where they are
    spec = _spec(model, tensors)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def _spec(model: ModelFolder, tensors: Arrays) -> ModelSpec:
    match model.config:
        case TransformerConfig() as c:
            return _translation(c, model, tensors)
        case GptConfig() as c:
            return _gpt(c, model, tensors)
    raise AssertionError(unsuited(model.config))


def _translation(c: TransformerConfig, model: ModelFolder, tensors: Arrays) -> TransformerSpec:
    """Vaswani et al. 2017. The last token, `<pad>`, is left out: decoding starts from its embedding, which is zero."""
    spec = TransformerSpec.from_config(
        c.n_layers, c.n_heads, pre_norm=c.norm == "pre", activation=ACTIVATIONS[c.activation]
    )
    spec.decoder.start_from_zero_embedding = True
    target = tensors["target_embedding.weight"][:-1]
    spec.decoder.embeddings.weight = target
    spec.decoder.projection.weight = tensors.get("output.weight", target)
    spec.encoder.embeddings[0].weight = tensors["source_embedding.weight"][:-1] if c.tie_embeddings != "all" else target
    for side, part in (("source", spec.encoder), ("target", spec.decoder)):
        learned = tensors.get(f"{side}_positions.embedding.weight")
        part.position_encodings.encodings = sinusoids(0, POSITIONS, c.d_model).numpy() if learned is None else learned
    _stack(spec.encoder, tensors, "encoder")
    _stack(spec.decoder, tensors, "decoder")
    source, into = model.tokenizers.source, model.tokenizers.target
    spec.register_source_vocabulary(source.pieces(range(source.vocab_size - 1)))
    spec.register_target_vocabulary(into.pieces(range(into.vocab_size - 1)))
    spec.config.unk_token, spec.config.bos_token = into.layout.unknown, into.layout.end
    spec.config.eos_token = spec.config.decoder_start_token = into.layout.end
    spec.config.layer_norm_epsilon = 1e-5
    return spec


def _gpt(c: GptConfig, model: ModelFolder, tensors: Arrays) -> TransformerDecoderModelSpec:
    spec = TransformerDecoderModelSpec.from_config(
        c.n_layers, c.n_heads, pre_norm=True, activation=ACTIVATIONS[c.activation]
    )
    spec.decoder.scale_embeddings = False
    spec.decoder.embeddings.weight = spec.decoder.projection.weight = tensors["embedding.weight"]
    spec.decoder.position_encodings.encodings = tensors["positions.embedding.weight"]
    _stack(spec.decoder, tensors, "stack")
    tokenizer = model.tokenizers.source
    spec.register_vocabulary(tokenizer.pieces(range(tokenizer.vocab_size)))
    layout = tokenizer.layout
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = layout.unknown, layout.start, layout.end
    spec.config.layer_norm_epsilon = c.norm_eps
    return spec


def _stack(spec: object, tensors: Arrays, name: str) -> None:
    """The layers of an encoder or a decoder, and the LayerNorm after a pre-norm stack."""
    for i, layer in enumerate(spec.layer):  # type: ignore[attr-defined]
        at = f"{name}.layers.{i}"
        _norm(layer.self_attention.layer_norm, tensors, f"{at}.self_norm")
        fused, out = layer.self_attention.linear
        _linear(fused, tensors, *(f"{at}.self_attention.{w}" for w in ("w_q", "w_k", "w_v")))
        _linear(out, tensors, f"{at}.self_attention.w_o")
        if f"{at}.cross_norm.weight" in tensors:
            _norm(layer.attention.layer_norm, tensors, f"{at}.cross_norm")
            query, memory, out = layer.attention.linear
            _linear(query, tensors, f"{at}.cross_attention.w_q")
            _linear(memory, tensors, *(f"{at}.cross_attention.{w}" for w in ("w_k", "w_v")))
            _linear(out, tensors, f"{at}.cross_attention.w_o")
        _norm(layer.ffn.layer_norm, tensors, f"{at}.feed_norm")
        _linear(layer.ffn.linear_0, tensors, f"{at}.feed_forward.w_1")
        _linear(layer.ffn.linear_1, tensors, f"{at}.feed_forward.w_2")
    if f"{name}.final_norm.weight" in tensors:
        _norm(spec.layer_norm, tensors, f"{name}.final_norm")  # type: ignore[attr-defined]


def _linear(spec: LinearSpec, tensors: Arrays, *names: str) -> None:
    spec.weight = np.concatenate([tensors[f"{name}.weight"] for name in names])
    spec.bias = np.concatenate([tensors[f"{name}.bias"] for name in names])


def _norm(spec: LayerNormSpec, tensors: Arrays, name: str) -> None:
    spec.gamma, spec.beta = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
