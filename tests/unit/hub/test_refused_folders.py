"""Folders that cannot be used: what is wrong, where, and what would be right."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig as TheirBertConfig
from transformers import (
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
)

from jumok.errors import CheckpointError
from jumok.predictor import load
from jumok.tasks.stored import read_model

SIZES = {"hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 4, "num_hidden_layers": 2}


def their_bert(cls, vocab, **changes):
    return cls(TheirBertConfig(vocab_size=vocab, max_position_embeddings=20, **{**SIZES, **changes}))


@pytest.fixture
def folder(wordpiece, tmp_path):
    their_bert(BertForPreTraining, wordpiece.vocab_size).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(wordpiece.to_json(), "utf-8")
    return tmp_path


@pytest.fixture
def refusal(folder):
    """The error of reading the folder, which has to name a place in it."""

    def refuse(code, path=folder):
        with pytest.raises(CheckpointError) as caught:
            read_model(path)
        assert caught.value.where.startswith(str(path))
        assert caught.value.code == f"checkpoint.{code}"
        return caught.value

    read_model(folder)
    return refuse


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def change_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")


def test_missing_tensors_are_named(folder, refusal):
    change_tensors(folder, lambda t: t.pop("bert.encoder.layer.1.output.dense.bias"))
    error = refusal("tensors")
    assert "bert.encoder.layer.1.output.dense.bias is missing" in error.what


def test_extra_tensors_are_named(folder, refusal):
    change_tensors(folder, lambda t: t.update({"bert.adapter.weight": torch.zeros(2)}))
    assert "bert.adapter.weight is unknown" in refusal("tensors").what


def test_wrong_shapes_are_named_with_both_shapes(folder, refusal):
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    change_tensors(folder, lambda t: t.update({name: t[name].T}))
    assert f"{name} has shape [24, 40], not [40, 24]" in refusal("tensors").what


def test_tensors_that_hold_no_fractions_are_named(folder, refusal):
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    change_tensors(folder, lambda t: t.update({name: t[name].to(torch.int8)}))
    assert f"{name} has dtype int8" in refusal("dtype").what


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_tensors_that_hold_no_numbers_are_named(value, folder, refusal):
    name = "bert.encoder.layer.1.output.dense.bias"
    change_tensors(folder, lambda t: t[name][3:4].fill_(float(value)))
    assert name in refusal("not_finite").what


def test_only_a_handful_is_named(folder, refusal):
    change_config(folder, num_hidden_layers=30)
    error = refusal("tensors")
    assert error.what.count("is missing") == 5
    assert f"and {28 * 16 - 5} more" in error.what


@pytest.mark.parametrize(
    "copy", ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"], ids=["weight", "bias"]
)
def test_tied_tensors_that_differ_are_named(copy, folder, refusal, wordpiece):
    shape = (wordpiece.vocab_size, 24) if copy.endswith("weight") else (wordpiece.vocab_size,)
    change_tensors(folder, lambda t: t.update({copy: torch.ones(shape)}))
    assert refusal("not_tied").what.startswith(copy)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "model.ckpt"])
def test_weights_that_would_be_executed_are_refused_with_the_way_out(name, folder, refusal):
    (folder / "model.safetensors").rename(folder / name)
    error = refusal("unsafe")
    assert name in error.what
    assert "safe_serialization=True" in error.hint


def test_no_weights_at_all(folder, refusal):
    (folder / "model.safetensors").unlink()
    refusal("no_weights")


def test_weights_that_are_something_else(folder, refusal):
    (folder / "model.safetensors").write_bytes(b"\x80\x04\x95" + bytes(100))
    assert refusal("unreadable").where == str(folder / "model.safetensors")


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "a/b.safetensors", "model.bin", ".."])
def test_an_index_names_only_files_of_its_folder(name, folder, refusal):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"bert.embeddings.word_embeddings.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    error = refusal("index")
    assert f'"{name}"' in error.what
    assert error.where.endswith("model.safetensors.index.json")


@pytest.mark.parametrize(
    ("index", "code"),
    [
        ("{}", "index"),
        ('{"weight_map": {}}', "index"),
        ('{"weight_map": {"a": "gone.safetensors"}}', "unreadable"),
        ("[", "unreadable"),
    ],
)
def test_an_index_that_leads_nowhere(index, code, folder, refusal):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(index, "utf-8")
    refusal(code)


def test_an_architecture_that_is_not_supported(folder, refusal, wordpiece):
    their_bert(BertForNextSentencePrediction, wordpiece.vocab_size).save_pretrained(folder)
    error = refusal("unknown_architecture")
    assert '"BertForNextSentencePrediction"' in error.what
    assert "BertForQuestionAnswering" in error.hint


@pytest.mark.parametrize("kind", ["llama", None, 7])
def test_a_type_that_is_not_supported(kind, folder, refusal):
    change_config(folder, model_type=kind)
    error = refusal("unknown_model")
    assert f'"{kind}"' in error.what
    assert all(known in error.hint for known in ("bert", "gpt2", "marian"))


@pytest.mark.parametrize(
    ("changes", "code", "facts"),
    [
        (
            {"position_embedding_type": "relative_key"},
            "mismatch",
            ("position_embedding_type", '"absolute"', '"relative_key"'),
        ),
        ({"is_decoder": True}, "mismatch", ("is_decoder",)),
        ({"add_cross_attention": True}, "mismatch", ("add_cross_attention",)),
        ({"hidden_act": "mish"}, "mismatch", ("hidden_act", '"mish"', "gelu, gelu_new")),
        ({"hidden_size": 25}, "mismatch", ("hidden_size", "num_attention_heads")),
        ({"hidden_size": "24"}, "value", ("hidden_size", "'24'")),
        ({"num_hidden_layers": 10**9}, "value", ("num_hidden_layers", "at most 1000")),
        ({"id2label": {"0": "a", "2": "b"}}, "mismatch", ("id2label", '"0", "1"')),
        ({"architectures": "BertModel!"}, "unknown_architecture", ('"BertModel!"',)),
    ],
    ids=str,
)
def test_a_network_that_jumok_does_not_have(changes, code, facts, folder, refusal):
    change_config(folder, **changes)
    error = refusal(code)
    assert error.where == str(folder / "config.json")
    assert all(fact in error.what for fact in facts), error.what


@pytest.mark.parametrize(
    ("changes", "code", "facts"),
    [
        ({"activation_function": "mish"}, "mismatch", ("activation_function", '"mish"')),
        ({"scale_attn_weights": False}, "mismatch", ("scale_attn_weights",)),
        ({"scale_attn_by_inverse_layer_idx": True}, "mismatch", ("scale_attn_weights",)),
        ({"add_cross_attention": True}, "mismatch", ("add_cross_attention",)),
        (
            {"architectures": ["GPT2ForSequenceClassification"]},
            "unknown_architecture",
            ("GPT2ForSequenceClassification", "GPT2LMHeadModel, GPT2Model"),
        ),
        ({"n_inner": 41}, "tensors", ("transformer.h.0.mlp.c_fc.weight has shape [24, 40], not [24, 41]",)),
    ],
    ids=str,
)
def test_a_gpt_that_jumok_does_not_have(changes, code, facts, byte_bpe, tmp_path):
    vocab = byte_bpe.vocab_size
    sizes = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 20, "n_inner": 40}
    ids = {"bos_token_id": vocab - 1, "eos_token_id": vocab - 1}
    GPT2LMHeadModel(GPT2Config(vocab_size=vocab, **sizes, **ids)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    change_config(tmp_path, **changes)
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert caught.value.code == f"checkpoint.{code}"
    assert all(fact in str(caught.value) for fact in facts), caught.value


def test_an_output_that_is_not_the_embedding(byte_bpe, tmp_path):
    vocab = byte_bpe.vocab_size
    ids = {"bos_token_id": vocab - 1, "eos_token_id": vocab - 1}
    config = GPT2Config(vocab_size=vocab, n_embd=24, n_layer=1, n_head=4, tie_word_embeddings=False, **ids)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert caught.value.code == "checkpoint.not_tied"
    assert all(name in caught.value.what for name in ("lm_head.weight", "transformer.wte.weight"))


def test_a_classifier_that_gives_several_numbers(folder, refusal, wordpiece):
    changes = {"problem_type": "regression", "num_labels": 3}
    their_bert(BertForSequenceClassification, wordpiece.vocab_size, **changes).save_pretrained(folder)
    error = refusal("outputs")
    assert '"regression" with 3 outputs' in error.what
    assert error.where.endswith("config.json")


def test_a_problem_that_nobody_knows(folder, refusal, wordpiece):
    their_bert(BertForSequenceClassification, wordpiece.vocab_size).save_pretrained(folder)
    change_config(folder, problem_type="ranking")
    error = refusal("mismatch")
    assert all(fact in error.what for fact in ("problem_type", '"ranking"', "single_label_classification"))


def test_a_vocabulary_without_the_mask(folder, refusal, wordpiece):
    their_bert(BertForMaskedLM, wordpiece.vocab_size).save_pretrained(folder)
    tree = json.loads(wordpiece.to_json())
    tree["model"]["vocab"]["mask"] = tree["model"]["vocab"].pop("[MASK]")
    (folder / "tokenizer.json").write_text(json.dumps(tree), "utf-8")
    error = refusal("special_pieces")
    assert "[MASK]" in error.what
    assert error.where.endswith("tokenizer.json")


def test_a_list_of_words_without_the_mask(folder, refusal, wordpiece):
    (folder / "tokenizer.json").unlink()
    pieces = ["mask" if piece == "[MASK]" else piece for piece in wordpiece.pieces(range(wordpiece.vocab_size))]
    (folder / "vocab.txt").write_text("\n".join(pieces), "utf-8")
    error = refusal("special_pieces")
    assert error.what.endswith(": [MASK]")
    assert error.where == str(folder / "vocab.txt")


def test_words_that_are_cut_in_another_way(folder, refusal, wordpiece):
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(wordpiece.pieces(range(wordpiece.vocab_size))), "utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_basic_tokenize": false}', "utf-8")
    assert "do_basic_tokenize" in refusal("pretokenizer").what


def test_a_vocabulary_of_another_family(folder, refusal, byte_bpe):
    their_bert(BertForPreTraining, byte_bpe.vocab_size).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    assert "[MASK]" in refusal("other_vocabulary").what


def test_a_vocabulary_of_another_size(folder, refusal, wordpiece):
    their_bert(BertForPreTraining, wordpiece.vocab_size + 1).save_pretrained(folder)
    error = refusal("other_vocabulary")
    pieces = wordpiece.vocab_size
    assert f"{pieces} tokens" in error.what
    assert error.what.endswith(f" {pieces + 1}")


@pytest.mark.parametrize(("place", "number"), [(-1, 500), (50, 500), (50, 51)], ids=str)
def test_a_piece_that_has_no_row_of_its_own_is_named(place, number, folder, refusal, wordpiece):
    """As many pieces as rows, but one of them has an id beyond them, or another's."""
    tree = json.loads(wordpiece.to_json())
    vocab = tree["model"]["vocab"]
    piece = sorted(vocab, key=vocab.get)[place]
    said = f"there are {len(vocab)} tokens but none has id {vocab[piece]}"
    said += f', and "{piece}" has id 500' if number == 500 else ""
    vocab[piece] = number
    (folder / "tokenizer.json").write_text(json.dumps(tree), "utf-8")
    assert refusal("other_vocabulary").what.endswith(said)


def test_no_vocabulary(folder, refusal):
    (folder / "tokenizer.json").unlink()
    error = refusal("no_vocabulary")
    assert "tokenizer.json" in error.what
    assert "AutoTokenizer" in error.hint


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", "\ufeff", '{"a":' * 100_000], ids=range(5))
def test_json_that_cannot_be_read(name, text, folder, refusal):
    (folder / name).write_text(text, "utf-8")
    assert refusal("unreadable").where == str(folder / name)


def test_a_byte_order_mark_is_skipped(folder):
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_text((folder / name).read_text("utf-8"), "utf-8-sig")
    assert read_model(folder).config.d_model == SIZES["hidden_size"]


def test_generation_config_that_cannot_be_read(byte_bpe, tmp_path):
    vocab = byte_bpe.vocab_size
    ids = {"bos_token_id": vocab - 1, "eos_token_id": vocab - 1}
    GPT2LMHeadModel(GPT2Config(vocab_size=vocab, n_embd=24, n_layer=1, n_head=4, **ids)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    (tmp_path / "generation_config.json").write_text("{", "utf-8")
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert caught.value.code == "checkpoint.unreadable"
    assert caught.value.where == str(tmp_path / "generation_config.json")


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        (7, "version"),
        ({}, "version"),
        ({"version": "1", "model": {}}, "task"),
        ({"version": "1", "task": {}, "model": {}}, "task.kind"),
        ({"version": "1", "task": {"kind": 3}, "model": {}}, "task.kind"),
    ],
    ids=str,
)
def test_facts_that_jumok_never_wrote(facts, missing, folder, refusal):
    change_config(folder, jumok=facts)
    error = refusal("not_ours")
    assert error.what.endswith(f" jumok.{missing}")
    assert error.where == str(folder / "config.json")


@pytest.mark.parametrize(
    ("kind", "hint"), [("cooking", "classification, tagging"), ("pretrain", "did you mean pretraining?")]
)
def test_a_task_that_jumok_does_not_know(kind, hint, folder, refusal):
    """Of a later version, say: what the rest of config.json says is not taken for it."""
    change_config(folder, jumok={"version": "7.0", "task": {"kind": kind}, "model": {}})
    error = refusal("unknown_task")
    assert f'"{kind}"' in error.what
    assert "7.0" in error.what
    assert hint in error.hint
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    assert caught.value.code == "checkpoint.unknown_task"
