import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, MarianMTModel, PreTrainedTokenizerFast

from jumok.data.pages import pad
from jumok.decode.options import DecodeConfig
from jumok.engines.torch import TorchEngine
from jumok.errors import CheckpointError
from jumok.hub.folder import ModelFolder
from jumok.hub.marian import fits_marian, from_marian, marian_config, to_marian
from jumok.models.build import build_model
from jumok.models.head import Head
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.models.weights import load_tensors, unique_tensors
from jumok.tasks.stored import read_model, write_model
from jumok.tasks.translation.predictor import translate
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import TokenizerConfig

TINY = TransformerConfig(d_model=12, d_ff=20, n_heads=2, n_layers=2, dropout=0.1)
LINES = ["the quick brown fox jumps over the lazy dog", "나는 학교에 갑니다", "it is 3.5 degrees, isn't it?"] * 3
TEXTS = [
    "the lazy fox",
    "나는 the 학교에",
    "  two   spaces\tand\na line ",
    "unseen: é 漢字 🙂 ▁",
    "\u1102\u1161\u1102\u1173\u11ab",  # jamo that make up two syllables
    "3.5",
    "",
]
OTHER_LAYOUTS = {
    "pre-norm": {"norm": "pre"},
    "learned positions": {"positions": "learned", "max_len": 20},
    "target tied": {"tie_embeddings": "target"},
    "untied": {"tie_embeddings": "none"},
    "neighbourhood": {"neighbourhood": 2},
    "wide keys": {"d_k": 8},
    "wide values": {"d_v": 8},
    "odd width": {"d_model": 9, "n_heads": 3},
}


def train_tokenizer(kind="bpe"):
    return Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=300), LINES)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer()


def model_with_random_weights(config, source, target, seed=1):
    """Every bias and LayerNorm too, so that no wrong permutation goes unseen; large enough to say varied things."""
    torch.manual_seed(seed)
    model = Transformer(config, source_vocab=source.vocab_size, target_vocab=target.vocab_size).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.4)
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.weight[-1].zero_()
    return model


def folder_of(model, source, target):
    facts = {
        "version": "1",
        "task": {"kind": "translation"},
        "source": "en",
        "target": "ko",
        "decode": asdict(DecodeConfig()),
    }
    return ModelFolder(model.config, unique_tensors(model), Tokenizers(source, target), facts)


@pytest.fixture(scope="module")
def ours(tokenizer):
    return model_with_random_weights(TINY, tokenizer, tokenizer)


@pytest.fixture(scope="module")
def folder(ours, tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    write_model(path, folder_of(ours, tokenizer, tokenizer), card="# a model\n")
    return path


@pytest.fixture(scope="module")
def opened(folder):
    return MarianMTModel.from_pretrained(folder, output_loading_info=True)


def test_transformers_finds_every_tensor_and_no_other(opened):
    _, loading = opened
    assert not any(loading.values()), loading


def random_sources(tokenizer, *, n=8):
    torch.manual_seed(2)
    lengths = torch.randint(1, 9, (n,)).tolist()
    return [[*torch.randint(1, tokenizer.pad_id, (length,)).tolist(), 0] for length in lengths]


def test_transformers_computes_the_same_logits_on_padded_batches(ours, opened, tokenizer):
    theirs = opened[0].eval()
    source = pad(random_sources(tokenizer), tokenizer.pad_id)
    mask = source != tokenizer.pad_id
    assert not mask.all()
    target = torch.randint(0, tokenizer.pad_id, (len(source), 7))
    target[:, 0] = tokenizer.pad_id
    with torch.inference_mode():
        expected = theirs(input_ids=source, attention_mask=mask.long(), decoder_input_ids=target).logits
        found = ours.logits(ours(source, mask, target))
    assert found.std() > 0.5
    torch.testing.assert_close(found, expected[..., :-1], rtol=0, atol=1e-5)


def test_transformers_generates_what_our_greedy_search_finds(ours, opened, tokenizer):
    theirs = opened[0].eval()
    sources = random_sources(tokenizer, n=12)
    config = DecodeConfig(method="greedy", max_extra=3)
    found = translate(TorchEngine([ours], Tokenizers(tokenizer, tokenizer)), sources, config)
    assert len({tuple(hypotheses[0].ids) for hypotheses in found}) > 6
    for source, hypotheses in zip(sources, found, strict=True):
        room = len(source) + config.max_extra + 2  # theirs counts the start and the end
        ids = torch.tensor([source])
        generated = theirs.generate(ids, attention_mask=torch.ones_like(ids), num_beams=1, max_length=room)
        assert generated[0].tolist() == [tokenizer.pad_id, *hypotheses[0].ids, 0]


@pytest.mark.parametrize("kind", ["bpe", "character", "word", "wordpiece"])
def test_transformers_cuts_text_as_we_do(kind, tmp_path):
    ours = train_tokenizer(kind)
    model = model_with_random_weights(TINY, ours, ours)
    write_model(tmp_path, folder_of(model, ours, ours), card="")
    for reader in (AutoTokenizer, PreTrainedTokenizerFast):
        theirs = reader.from_pretrained(tmp_path)
        assert (theirs.eos_token_id, theirs.unk_token_id, theirs.pad_token_id) == (0, 1, ours.pad_id)
        assert theirs(TEXTS)["input_ids"] == [[*ours.encode(text), 0] for text in TEXTS]
        ids = ours.encode("the lazy fox")
        assert theirs.decode([ours.pad_id, *ids, 0], skip_special_tokens=True) == ours.decode(ids) == "the lazy fox"


def test_special_tokens_are_plain_text_in_a_text_there_as_here(folder, tokenizer):
    text = "the </s> fox <pad> <unk>"
    ids = tokenizer.encode(text)
    assert not {0, 1, tokenizer.pad_id} & set(ids)
    assert AutoTokenizer.from_pretrained(folder)(text)["input_ids"] == [*ids, 0]


def test_what_their_tokenizer_gives_is_what_their_model_takes(folder, opened):
    inputs = AutoTokenizer.from_pretrained(folder)(["the lazy fox", "나는"], return_tensors="pt", padding=True)
    assert opened[0].generate(**inputs, num_beams=2, max_length=6).shape[0] == 2


def test_there_and_back_is_exact(ours):
    tensors = unique_tensors(ours)
    marian = to_marian(tensors, TINY)
    back = from_marian(marian, TINY, vocab_size=len(tensors["target_embedding.weight"]), where=Path())
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(back[name], tensor), name
    assert len(marian) == len(tensors) + 1
    assert marian["final_logits_bias"].eq(0).all()
    # sines before cosines: the even dimensions, then the odd ones
    order = [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]
    assert torch.equal(marian["model.shared.weight"], tensors["target_embedding.weight"][:, order])


@pytest.mark.parametrize("changes", OTHER_LAYOUTS.values(), ids=OTHER_LAYOUTS)
def test_marian_is_not_claimed_for_what_it_cannot_hold(changes):
    assert fits_marian(TINY)
    assert fits_marian(replace(TINY, d_k=6, d_v=6))
    assert not fits_marian(replace(TINY, **changes))


def test_config_names_our_sizes():
    theirs = marian_config(TINY, vocab_size=50)
    for side in ("encoder", "decoder"):
        assert (theirs[f"{side}_layers"], theirs[f"{side}_attention_heads"], theirs[f"{side}_ffn_dim"]) == (2, 2, 20)
    assert theirs["pad_token_id"] == theirs["decoder_start_token_id"] == 49


@pytest.mark.parametrize("changes", [{}, *OTHER_LAYOUTS.values()], ids=["marian", *OTHER_LAYOUTS])
def test_model_folder_round_trip_is_exact(changes, tokenizer, tmp_path):
    config = replace(TINY, **changes)
    model = model_with_random_weights(config, tokenizer, tokenizer)
    written = folder_of(model, tokenizer, tokenizer)
    write_model(tmp_path, written, card="# card\n")
    layout = json.loads((tmp_path / "config.json").read_text("utf-8"))["model_type"]
    assert layout == ("jumok-transformer" if changes else "marian")
    assert (tmp_path / "README.md").read_text("utf-8") == "# card\n"
    read = read_model(tmp_path)
    assert read.config == config
    assert read.tokenizers.source is read.tokenizers.target
    assert read.tokenizers.target.to_json() == tokenizer.to_json()
    assert {key: read.facts[key] for key in written.facts} == written.facts
    assert read.tensors.keys() == written.tensors.keys()
    assert all(torch.equal(read.tensors[name], tensor) for name, tensor in written.tensors.items())
    again = build_model(read.config, Head(asks="words"), **read.tokenizers.sizes).eval()
    load_tensors(again, read.tensors, where=tmp_path)
    source, target = torch.tensor([[5, 6, 0]]), torch.tensor([[tokenizer.pad_id, 7]])
    mask = torch.ones_like(source, dtype=torch.bool)
    assert torch.equal(again(source, mask, target), model(source, mask, target))


def test_two_vocabularies_make_two_tokenizer_files(tokenizer, tmp_path):
    target = train_tokenizer("word")
    model = model_with_random_weights(replace(TINY, tie_embeddings="none"), tokenizer, target)
    write_model(tmp_path, folder_of(model, tokenizer, target), card="")
    read = read_model(tmp_path)
    assert read.tokenizers.source.to_json() == tokenizer.to_json()
    assert read.tokenizers.target.to_json() == target.to_json()
    assert all(torch.equal(read.tensors[name], tensor) for name, tensor in unique_tensors(model).items())


def break_config(folder):
    (folder / "config.json").write_text("{", "utf-8")


def strangers_config(folder):
    (folder / "config.json").write_text('{"model_type": "marian"}', "utf-8")


def cut_weights(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])


def lose_embedding(folder):
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.shared.weight"]
    save_file(tensors, folder / "model.safetensors")


def other_tokenizer(folder):
    (folder / "tokenizer.json").write_text(train_tokenizer("word").to_json(), "utf-8")


def lose_tokenizer(folder):
    (folder / "tokenizer.json").unlink()


@pytest.mark.parametrize(
    "damage", [break_config, strangers_config, cut_weights, lose_embedding, other_tokenizer, lose_tokenizer]
)
def test_a_damaged_folder_is_refused_with_its_place(damage, ours, tokenizer, tmp_path):
    write_model(tmp_path, folder_of(ours, tokenizer, tokenizer), card="")
    damage(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert caught.value.where.startswith(str(tmp_path))
