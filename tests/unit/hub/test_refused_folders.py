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
from jumok.hub.folder import read_model

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

    def refuse(path=folder):
        with pytest.raises(CheckpointError) as caught:
            read_model(path)
        assert caught.value.where.startswith(str(path))
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
    error = refusal()
    assert "bert.encoder.layer.1.output.dense.bias is missing" in str(error)
    assert "config.json of one model" in error.right


def test_extra_tensors_are_named(folder, refusal):
    change_tensors(folder, lambda t: t.update({"bert.adapter.weight": torch.zeros(2)}))
    assert "bert.adapter.weight is unknown" in str(refusal())


def test_wrong_shapes_are_named_with_both_shapes(folder, refusal):
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    change_tensors(folder, lambda t: t.update({name: t[name].T}))
    assert f"{name} has shape [24, 40], not [40, 24]" in str(refusal())


def test_tensors_that_hold_no_fractions_are_named(folder, refusal):
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    change_tensors(folder, lambda t: t.update({name: t[name].to(torch.int8)}))
    assert f"{name} holds int8" in str(refusal())


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_tensors_that_hold_no_numbers_are_named(value, folder, refusal):
    name = "bert.encoder.layer.1.output.dense.bias"
    change_tensors(folder, lambda t: t[name][3:4].fill_(float(value)))
    assert refusal().what == f"{name} has NaN or infinity among its weights"


def test_only_a_handful_is_named(folder, refusal):
    change_config(folder, num_hidden_layers=30)
    error = refusal()
    assert error.what.count("is missing") == 5
    assert f"and {28 * 16 - 5} more" in error.what


@pytest.mark.parametrize(
    "copy", ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"], ids=["weight", "bias"]
)
def test_tied_tensors_that_differ_are_named(copy, folder, refusal, wordpiece):
    shape = (wordpiece.vocab_size, 24) if copy.endswith("weight") else (wordpiece.vocab_size,)
    change_tensors(folder, lambda t: t.update({copy: torch.ones(shape)}))
    error = refusal()
    assert error.what.startswith(f"{copy} is not ")
    assert "tied" in error.right


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "model.ckpt"])
def test_weights_that_would_be_executed_are_refused_with_the_way_out(name, folder, refusal):
    (folder / "model.safetensors").rename(folder / name)
    error = refusal()
    assert name in error.what
    assert "safe_serialization=True" in error.right


def test_no_weights_at_all(folder, refusal):
    (folder / "model.safetensors").unlink()
    assert "no weights" in refusal().what


def test_weights_that_are_something_else(folder, refusal):
    (folder / "model.safetensors").write_bytes(b"\x80\x04\x95" + bytes(100))
    assert "cannot be read" in refusal().what


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "a/b.safetensors", "model.bin", ".."])
def test_an_index_names_only_files_of_its_folder(name, folder, refusal):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"bert.embeddings.word_embeddings.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    error = refusal()
    assert f'no part of the folder: "{name}"' in error.what
    assert error.where.endswith("model.safetensors.index.json")


@pytest.mark.parametrize("index", ["{}", '{"weight_map": {}}', '{"weight_map": {"a": "gone.safetensors"}}', "["])
def test_an_index_that_leads_nowhere(index, folder, refusal):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(index, "utf-8")
    refusal()


def test_an_architecture_that_is_not_supported(folder, refusal, wordpiece):
    their_bert(BertForNextSentencePrediction, wordpiece.vocab_size).save_pretrained(folder)
    error = refusal()
    assert error.what == 'jumok has no model for the architecture "BertForNextSentencePrediction"'
    assert "BertForQuestionAnswering" in error.right


@pytest.mark.parametrize("kind", ["llama", None, 7])
def test_a_type_that_is_not_supported(kind, folder, refusal):
    change_config(folder, model_type=kind)
    error = refusal()
    assert f'no model of the type "{kind}"' in error.what
    assert error.right == "one of bert, gpt2, marian"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"position_embedding_type": "relative_key"}, 'has "absolute" only (got "relative_key")'),
        ({"is_decoder": True}, "is_decoder: jumok's BERT reads in both directions"),
        ({"add_cross_attention": True}, "add_cross_attention: jumok's BERT attends to itself only"),
        ({"hidden_act": "mish"}, 'hidden_act: "mish" is none of gelu, gelu_new'),
        ({"hidden_size": 25}, "hidden_size: must be divisible by num_attention_heads"),
        ({"hidden_size": "24"}, "hidden_size: must be a whole number (got '24')"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers: must be at most 1000"),
        ({"id2label": {"0": "a", "2": "b"}}, 'id2label: must have the keys "0", "1"'),
        ({"architectures": "BertModel!"}, 'no model for the architecture "BertModel!"'),
    ],
    ids=str,
)
def test_a_network_that_jumok_does_not_have(changes, said, folder, refusal):
    change_config(folder, **changes)
    assert said in str(refusal())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"activation_function": "mish"}, 'activation_function: "mish" is none of'),
        ({"scale_attn_weights": False}, "scale_attn_weights: "),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_weights: "),
        ({"add_cross_attention": True}, "add_cross_attention: "),
        ({"architectures": ["GPT2ForSequenceClassification"]}, "GPT2LMHeadModel, GPT2Model"),
        ({"n_inner": 41}, "transformer.h.0.mlp.c_fc.weight has shape [24, 40], not [24, 41]"),
    ],
    ids=str,
)
def test_a_gpt_that_jumok_does_not_have(changes, said, byte_bpe, tmp_path):
    vocab = byte_bpe.vocab_size
    sizes = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 20, "n_inner": 40}
    ids = {"bos_token_id": vocab - 1, "eos_token_id": vocab - 1}
    GPT2LMHeadModel(GPT2Config(vocab_size=vocab, **sizes, **ids)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    change_config(tmp_path, **changes)
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert said in str(caught.value)


def test_an_output_that_is_not_the_embedding(byte_bpe, tmp_path):
    vocab = byte_bpe.vocab_size
    ids = {"bos_token_id": vocab - 1, "eos_token_id": vocab - 1}
    config = GPT2Config(vocab_size=vocab, n_embd=24, n_layer=1, n_head=4, tie_word_embeddings=False, **ids)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    with pytest.raises(CheckpointError, match=r"lm_head\.weight is not transformer\.wte\.weight"):
        read_model(tmp_path)


def test_a_classifier_that_gives_several_numbers(folder, refusal, wordpiece):
    changes = {"problem_type": "regression", "num_labels": 3}
    their_bert(BertForSequenceClassification, wordpiece.vocab_size, **changes).save_pretrained(folder)
    error = refusal()
    assert error.what == 'problem_type "regression" with 3 outputs: jumok predicts one number'
    assert error.where.endswith("config.json")


def test_a_problem_that_nobody_knows(folder, refusal, wordpiece):
    their_bert(BertForSequenceClassification, wordpiece.vocab_size).save_pretrained(folder)
    change_config(folder, problem_type="ranking")
    assert 'problem_type: "ranking" is none of single_label_classification, multi_label' in str(refusal())


def test_a_vocabulary_without_the_mask(folder, refusal, wordpiece):
    their_bert(BertForMaskedLM, wordpiece.vocab_size).save_pretrained(folder)
    tree = json.loads(wordpiece.to_json())
    tree["model"]["vocab"]["mask"] = tree["model"]["vocab"].pop("[MASK]")
    (folder / "tokenizer.json").write_text(json.dumps(tree), "utf-8")
    error = refusal()
    assert "lacks special pieces: [MASK] to be BERT's" in error.what
    assert error.where.endswith("tokenizer.json")


def test_a_list_of_words_without_the_mask(folder, refusal, wordpiece):
    (folder / "tokenizer.json").unlink()
    pieces = ["mask" if piece == "[MASK]" else piece for piece in wordpiece.pieces(range(wordpiece.vocab_size))]
    (folder / "vocab.txt").write_text("\n".join(pieces), "utf-8")
    assert refusal().what == "vocabulary lacks special pieces: [MASK]"


def test_words_that_are_cut_in_another_way(folder, refusal, wordpiece):
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(wordpiece.pieces(range(wordpiece.vocab_size))), "utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_basic_tokenize": false}', "utf-8")
    assert "do_basic_tokenize" in refusal().what


def test_a_vocabulary_of_another_family(folder, refusal, byte_bpe):
    their_bert(BertForPreTraining, byte_bpe.vocab_size).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    assert "lacks BERT's special pieces" in refusal().what


def test_a_vocabulary_of_another_size(folder, refusal, wordpiece):
    their_bert(BertForPreTraining, wordpiece.vocab_size + 1).save_pretrained(folder)
    error = refusal()
    pieces = wordpiece.vocab_size
    assert error.what == f"the tokenizer has {pieces} pieces, the model has embeddings for {pieces + 1}"


@pytest.mark.parametrize(("place", "number"), [(-1, 500), (50, 500), (50, 51)], ids=str)
def test_a_piece_that_has_no_row_of_its_own_is_named(place, number, folder, refusal, wordpiece):
    """As many pieces as rows, but one of them has an id beyond them, or another's."""
    tree = json.loads(wordpiece.to_json())
    vocab = tree["model"]["vocab"]
    piece = sorted(vocab, key=vocab.get)[place]
    said = f"no piece has the id {vocab[piece]}, though there are {len(vocab)}"
    said += f', and "{piece}" has 500' if number == 500 else ""
    vocab[piece] = number
    (folder / "tokenizer.json").write_text(json.dumps(tree), "utf-8")
    error = refusal()
    assert error.what == f"the tokenizer's ids are not those of the embeddings: {said}"
    assert error.right == "the tokenizer that the model was trained with"


def test_no_vocabulary(folder, refusal):
    (folder / "tokenizer.json").unlink()
    error = refusal()
    assert error.what == "no tokenizer.json"
    assert "AutoTokenizer" in error.right


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", "\ufeff{}", '{"a":' * 100_000], ids=range(5))
def test_json_that_cannot_be_read(name, text, folder, refusal):
    (folder / name).write_text(text, "utf-8")
    assert refusal().where == str(folder / name)


def test_generation_config_that_cannot_be_read(byte_bpe, tmp_path):
    vocab = byte_bpe.vocab_size
    ids = {"bos_token_id": vocab - 1, "eos_token_id": vocab - 1}
    GPT2LMHeadModel(GPT2Config(vocab_size=vocab, n_embd=24, n_layer=1, n_head=4, **ids)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    (tmp_path / "generation_config.json").write_text("{", "utf-8")
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert caught.value.where == str(tmp_path / "generation_config.json")


@pytest.mark.parametrize("facts", [7, {}, {"version": "1", "task": {"kind": "cooking"}, "model": {}}], ids=str)
def test_facts_that_jumok_never_wrote(facts, folder, refusal):
    change_config(folder, jumok=facts)
    assert "not a model that jumok wrote" in refusal().what
