"""Marian folders that were not written here: read as far as the paper's Transformer can express them."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MarianConfig, MarianMTModel

from jumok.decode.options import DecodeConfig
from jumok.errors import CheckpointError
from jumok.hub.marian import marian_config
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.models.weights import load_tensors
from jumok.nn.positions import sinusoids
from jumok.tasks.stored import read_model
from jumok.tasks.translation import TranslationKind
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import TokenizerConfig

LINES = ["the quick brown fox jumps over the lazy dog", "나는 학교에 갑니다"] * 3
SIZES = {
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 30,
    "activation_function": "relu",
    "scale_embedding": True,
}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TokenizerConfig(vocab_size=300), LINES)


@pytest.fixture
def folder(tokenizer, randomised, tmp_path):
    """A folder of transformers, and its model."""
    pad = tokenizer.pad_id
    ids = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": 0}
    randomised(MarianMTModel(MarianConfig(vocab_size=tokenizer.vocab_size, **SIZES, **ids))).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_json(), "utf-8")
    return tmp_path, MarianMTModel.from_pretrained(tmp_path).eval()  # with its sines again, which are never saved


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def change_tensors(folder, **changes):
    save_file(load_file(folder / "model.safetensors") | changes, folder / "model.safetensors")


@pytest.mark.parametrize(("said", "meant"), [("relu", "relu"), ("swish", "silu"), ("gelu", "gelu")])
def test_we_open_what_transformers_writes(said, meant, folder, tokenizer):
    path, _ = folder
    change_config(path, num_beams=6, activation_function=said)  # the first as old folders say it
    theirs = MarianMTModel.from_pretrained(path).eval()
    (path / "generation_config.json").write_text('{"length_penalty": 1.0, "max_new_tokens": 7}', "utf-8")
    (path / "tokenizer_config.json").write_text('{"source_lang": "en", "target_lang": "ko"}', "utf-8")
    read = read_model(path)
    assert read.config == TransformerConfig(d_model=12, d_ff=20, n_heads=2, n_layers=2, max_len=30, activation=meant)
    assert marian_config(read.config, vocab_size=9)["activation_function"] in (said, meant)
    assert (read.facts["source"], read.facts["target"]) == ("en", "ko")
    assert TranslationKind().read_facts(read.facts).decode == replace(DecodeConfig(), beam=6, length_penalty=1.0)
    ours = Transformer(read.config, **read.tokenizers.sizes).eval()
    load_tensors(ours, read.tensors, where=path)
    source = torch.randint(1, tokenizer.pad_id, (3, 8))
    target = torch.randint(1, tokenizer.pad_id, (3, 6))
    source[1, 5:] = target[:, 0] = tokenizer.pad_id
    mask = source != tokenizer.pad_id
    with torch.inference_mode():
        expected = theirs(input_ids=source, attention_mask=mask.long(), decoder_input_ids=target).logits
        found = ours.logits(ours(source, mask, target))
    assert found.std() > 0.1
    torch.testing.assert_close(found, expected[..., :-1], rtol=1e-5, atol=1e-5)


def test_tied_copies_and_tables_of_sines_are_known_for_what_they_are(folder):
    path, _ = folder
    whole = read_model(path)
    shared = load_file(path / "model.safetensors")["model.shared.weight"]
    table = sinusoids(0, 30, 12)[:, [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]].contiguous()
    copies = ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    change_tensors(path, **{name: shared.clone() for name in copies})
    change_tensors(path, **{f"model.{side}.embed_positions.weight": table.clone() for side in ("encoder", "decoder")})
    read = read_model(path)
    assert read.tensors.keys() == whole.tensors.keys()
    change_tensors(path, **{"model.encoder.embed_positions.weight": table + 1})
    with pytest.raises(CheckpointError) as caught:
        read_model(path)
    assert caught.value.code == "checkpoint.positions"
    assert "model.encoder.embed_positions.weight" in caught.value.what


def test_a_bias_of_the_output_is_refused_unless_it_is_that_of_padding(folder, tokenizer):
    path, _ = folder
    bias = torch.zeros(1, tokenizer.vocab_size)
    bias[0, -1] = -100.0
    change_tensors(path, final_logits_bias=bias)
    read_model(path)
    change_tensors(path, final_logits_bias=bias + 1)
    with pytest.raises(CheckpointError) as caught:
        read_model(path)
    assert caught.value.code == "checkpoint.output_bias"
    assert "final_logits_bias" in caught.value.what


@pytest.mark.parametrize(
    ("changes", "code", "facts"),
    [
        ({"activation_function": "mish"}, "mismatch", ("activation_function", '"mish"', "relu")),
        ({"decoder_layers": 1}, "mismatch", ("encoder_layers", "got 2, 1")),
        ({"decoder_ffn_dim": 24}, "mismatch", ("encoder_ffn_dim", "got 20, 24")),
        ({"scale_embedding": False}, "mismatch", ("scale_embedding", "square root of d_model")),
        ({"share_encoder_decoder_embeddings": False}, "mismatch", ("share_encoder_decoder_embeddings",)),
        ({"tie_word_embeddings": False}, "mismatch", ("share_encoder_decoder_embeddings",)),
        ({"decoder_vocab_size": 7}, "mismatch", ("share_encoder_decoder_embeddings",)),
        ({"normalize_before": True}, "mismatch", ("normalize_before", "LayerNorm")),
        ({"static_position_embeddings": False}, "mismatch", ("static_position_embeddings", "sinusoidal")),
        ({"architectures": ["MarianForCausalLM"]}, "unknown_architecture", ('"MarianForCausalLM"',)),
        ({"d_model": "wide"}, "value", ("d_model", "a whole number", "'wide'")),
    ],
    ids=str,
)
def test_what_the_paper_has_not_is_refused_with_the_reason(changes, code, facts, folder):
    path, _ = folder
    change_config(path, **changes)
    with pytest.raises(CheckpointError) as caught:
        read_model(path)
    assert (caught.value.code, caught.value.where) == (f"checkpoint.{code}", str(path / "config.json"))
    assert all(fact in caught.value.what for fact in facts), caught.value.what


def test_sentencepiece_is_refused_with_what_is_needed(folder):
    path, _ = folder
    (path / "tokenizer.json").unlink()
    for name in ("source.spm", "target.spm", "vocab.json"):
        (path / name).write_bytes(b"")
    with pytest.raises(CheckpointError) as caught:
        read_model(path)
    assert caught.value.code == "checkpoint.no_vocabulary"
    assert all(name in caught.value.what for name in ("source.spm", "target.spm", "vocab.json"))
    assert "tokenizer.json" in caught.value.hint
