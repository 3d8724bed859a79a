"""GPT-2 folders, written here and opened by transformers, and the other way round."""

import json
from dataclasses import asdict

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel, GPT2Model

from jumok.decode.options import DecodeConfig, Request
from jumok.decode.search import search
from jumok.errors import CheckpointError
from jumok.hub.folder import ModelFolder
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.weights import load_tensors, unique_tensors
from jumok.tasks.language_model import LanguageModelKind
from jumok.tasks.stored import obstacle, read_model, write_model
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import TokenizerConfig

SMALL = GptConfig(d_model=24, d_ff=40, n_heads=4, n_layers=2, max_len=20)
LINES = ["the quick brown fox jumps over the lazy dog", "나는 학교에 갑니다"] * 3


def folder_of(model, tokenizer, decode=None):
    facts = {"version": "1", "task": {"kind": "language_model"}, "language": "ko", "max_len": 20}
    facts["decode"] = asdict(decode or DecodeConfig())
    return ModelFolder(model.config, unique_tensors(model), Tokenizers(tokenizer, tokenizer), facts)


def their_model(cls, vocab, **changes):
    sizes = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 20, "n_inner": 40}
    ids = {"bos_token_id": vocab - 1, "eos_token_id": vocab - 1}
    return cls(GPT2Config(vocab_size=vocab, **{**sizes, **ids, **changes}))


def assert_same_logits(ours, theirs, vocab):
    torch.manual_seed(3)
    ids = torch.randint(0, vocab, (3, 12))
    with torch.inference_mode():
        found, expected = ours.logits(ours(ids)), theirs(ids).logits
    assert found.std() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(params=["byte_bpe", "bpe"])
def tokenizer(request, byte_bpe):
    """GPT-2's kind of vocabulary, and jumok's usual one, which starts from its last piece too."""
    if request.param == "byte_bpe":
        return byte_bpe
    return Tokenizer.train(TokenizerConfig(kind="bpe", vocab_size=300), LINES)


def test_transformers_opens_what_we_write(tokenizer, randomised, tmp_path):
    ours = randomised(Gpt(SMALL, vocab=tokenizer.vocab_size))
    write_model(tmp_path, folder_of(ours, tokenizer), card="")
    theirs, loading = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs) is GPT2LMHeadModel
    assert not any(loading.values()), loading
    assert_same_logits(ours, theirs.eval(), tokenizer.vocab_size)
    generation = theirs.generation_config
    assert (generation.bos_token_id, generation.eos_token_id) == (tokenizer.start_id, tokenizer.end_id)
    assert (generation.max_length, generation.num_beams) == (20, 4)
    opened = AutoTokenizer.from_pretrained(tmp_path)
    for text in ["the lazy fox", "나는 é 🙂", "a <|endoftext|> b", ""]:
        assert opened(text, add_special_tokens=False)["input_ids"] == tokenizer.encode(text)
    assert opened.decode(tokenizer.encode("나는 fox")) == "나는 fox"


@pytest.mark.parametrize("cls", [GPT2LMHeadModel, GPT2Model])
@pytest.mark.parametrize("n_inner", [40, None])
def test_we_open_what_transformers_writes(cls, n_inner, byte_bpe, randomised, tmp_path):
    vocab = byte_bpe.vocab_size
    theirs = randomised(their_model(cls, vocab, n_inner=n_inner))
    theirs.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    read = read_model(tmp_path)
    assert read.config == GptConfig(d_model=24, d_ff=n_inner or 96, n_heads=4, n_layers=2, max_len=20)
    assert read.facts["task"] == {"kind": "language_model"}
    assert read.facts["max_len"] == 20
    assert LanguageModelKind().read_facts(read.facts).decode == DecodeConfig()
    ours = Gpt(read.config, vocab=vocab).eval()
    load_tensors(ours, read.tensors, where=tmp_path)
    if cls is GPT2Model:
        head = their_model(GPT2LMHeadModel, vocab, n_inner=n_inner).eval()
        head.transformer.load_state_dict(theirs.state_dict())
        head.tie_weights()
        theirs = head
    assert_same_logits(ours, theirs, vocab)


def test_a_file_of_the_first_years(byte_bpe, randomised, tmp_path):
    """As OpenAI's became: the class with the head, names without its prefix, the causal mask, the head's copy."""
    theirs = randomised(their_model(GPT2LMHeadModel, byte_bpe.vocab_size))
    theirs.save_pretrained(tmp_path)
    tensors = {n.removeprefix("transformer."): t for n, t in load_file(tmp_path / "model.safetensors").items()}
    for i in range(2):
        tensors[f"h.{i}.attn.bias"] = torch.ones(1, 1, 20, 20).tril()
        tensors[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    tensors["lm_head.weight"] = tensors["wte.weight"].clone()
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    ours = Gpt(SMALL, vocab=byte_bpe.vocab_size).eval()
    load_tensors(ours, read_model(tmp_path).tensors, where=tmp_path)
    assert_same_logits(ours, theirs, byte_bpe.vocab_size)


def test_there_and_back_is_exact(tokenizer, randomised, tmp_path):
    written = folder_of(randomised(Gpt(SMALL, vocab=tokenizer.vocab_size)), tokenizer)
    write_model(tmp_path, written, card="")
    read = read_model(tmp_path)
    assert read.config == SMALL
    assert {key: read.facts[key] for key in written.facts} == written.facts
    assert read.tensors.keys() == written.tensors.keys()
    assert all(torch.equal(read.tensors[name], tensor) for name, tensor in written.tensors.items())


def classifier_of(model, tokenizer):
    """A language model that writes one of its labels."""
    facts = {"version": "1", "task": {"kind": "classification", "predicts": "class"}, "labels": ["좋다", "나쁘다"]}
    return ModelFolder(model.config, unique_tensors(model), Tokenizers(tokenizer, tokenizer), facts)


def test_a_classifier_is_a_language_model(tokenizer, randomised, tmp_path):
    ours = randomised(Gpt(SMALL, vocab=tokenizer.vocab_size))
    written = classifier_of(ours, tokenizer)
    assert obstacle(written) is None
    write_model(tmp_path, written, card="")
    assert not (tmp_path / "generation_config.json").exists()
    read = read_model(tmp_path)
    assert read.config == SMALL
    assert {key: read.facts[key] for key in written.facts} == written.facts
    assert all(torch.equal(read.tensors[name], tensor) for name, tensor in written.tensors.items())
    theirs, loading = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs) is GPT2LMHeadModel
    assert not any(loading.values()), loading
    assert_same_logits(ours, theirs.eval(), tokenizer.vocab_size)


def test_a_classifier_without_labels_is_refused(byte_bpe, randomised, tmp_path):
    written = classifier_of(randomised(Gpt(SMALL, vocab=byte_bpe.vocab_size)), byte_bpe)
    del written.facts["labels"]
    write_model(tmp_path, written, card="")
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert (caught.value.code, caught.value.where) == ("checkpoint.missing_key", str(tmp_path / "config.json"))
    assert "jumok.labels" in caught.value.what


@pytest.mark.parametrize("kind", ["tagging", "relation", "choice"])
def test_other_tasks_have_no_gpt_there(kind, byte_bpe, randomised):
    folder = classifier_of(randomised(Gpt(SMALL, vocab=byte_bpe.vocab_size)), byte_bpe)
    folder.facts["task"] = {"kind": kind}
    assert obstacle(folder) == f"transformers has no GPT-2 whose task is {kind}"


def test_transformers_generates_what_our_greedy_search_finds(byte_bpe, randomised, tmp_path):
    ours = randomised(Gpt(SMALL, vocab=byte_bpe.vocab_size))
    write_model(tmp_path, folder_of(ours, byte_bpe, DecodeConfig(method="greedy")), card="")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert theirs.generation_config.num_beams == 1
    torch.manual_seed(4)
    outputs = set()
    for length in (1, 2, 3, 5, 8, 13):
        prefix = torch.randint(0, byte_bpe.start_id, (length,)).tolist()
        request = Request(source_len=0, max_len=18, prefix=prefix)
        ((found,),) = search(ours, ours.start(1), [request], DecodeConfig(method="greedy"), eos_id=byte_bpe.end_id)
        ids = torch.tensor([[byte_bpe.start_id, *prefix]])
        generated = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_length=19)[0].tolist()
        ended = len(found.ids) < 18
        assert generated == [byte_bpe.start_id, *found.ids, *([byte_bpe.end_id] if ended else [])]
        outputs.add(tuple(found.ids))
    assert len(outputs) == 6


def test_texts_begin_there_as_they_do_here(byte_bpe, randomised, tmp_path):
    """Their tokenizer puts what a text begins with before it: a prompt goes on as it does here."""
    write_model(tmp_path, folder_of(randomised(Gpt(SMALL, vocab=byte_bpe.vocab_size)), byte_bpe), card="")
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for text in ("the fox", "나는", "", "<|endoftext|>"):
        assert theirs(text)["input_ids"] == [byte_bpe.start_id, *byte_bpe.encode(text)]


@pytest.mark.parametrize(
    ("generation", "decode"),
    [
        ({}, DecodeConfig()),
        ({"num_beams": 1}, DecodeConfig(method="greedy")),
        ({"num_beams": 6, "length_penalty": 1.0}, DecodeConfig(beam=6, length_penalty=1.0)),
        (
            {"do_sample": True, "top_k": 50, "temperature": 0.7, "max_new_tokens": 30},
            DecodeConfig(method="sample", top_k=50, temperature=0.7, max_extra=30),
        ),
    ],
)
def test_decoding_is_taken_over(generation, decode, byte_bpe, randomised, tmp_path):
    their_model(GPT2LMHeadModel, byte_bpe.vocab_size).save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps(generation), "utf-8")
    (tmp_path / "tokenizer.json").write_text(byte_bpe.to_json(), "utf-8")
    read = read_model(tmp_path)
    assert LanguageModelKind().read_facts(read.facts).decode == decode
    again = tmp_path / "again"
    again.mkdir()
    write_model(again, read, card="")
    written = json.loads((again / "generation_config.json").read_text("utf-8"))
    assert {key: written.get(key) for key in generation if key != "max_new_tokens"}.items() <= generation.items()
    AutoModelForCausalLM.from_pretrained(again)


def test_a_text_has_to_begin_with_the_last_piece(byte_bpe, tmp_path):
    tree = json.loads(byte_bpe.to_json())
    vocab = tree["model"]["vocab"]
    last = next(piece for piece, i in vocab.items() if i == len(vocab) - 2)
    vocab[last], vocab["<|endoftext|>"] = vocab["<|endoftext|>"], vocab[last]
    their_model(GPT2LMHeadModel, len(vocab)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(tree), "utf-8")
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert caught.value.code == "checkpoint.other_vocabulary"
    assert f"token {len(vocab) - 2} (<|endoftext|>)" in caught.value.what
