"""A real BERT from elsewhere: the same pieces, the same numbers, and out again tensor by tensor."""

import os
import sys
from pathlib import Path
from random import Random

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from jumok.cli import main
from jumok.models.bert import Bert
from jumok.models.weights import load_tensors
from jumok.tasks.stored import read_model

WORDS = "The quick brown foxes didn't jump over 3.5 lazy dogs, and nobody's unbelievable antidisestablishmentarianism"
KOREAN = "나는 어제 학교에서 친구를 만났습니다 트랜스포머의 어텐션은 아름답다"
ACCENTS = "naïve café Ångström façade Über señor Dvořák e\u0301 o\u0308 ẞ İstanbul ﬁ Ⅻ ½"
EMOJI = "🙂 👩‍👩‍👧 🇰🇷 👍🏽 ☃️ ❤"
PUNCTUATION = "… — “ ” 、 。 ¿ § $ € ~ ` ^ | < > [ ] ## ▁ _ / \\ \"' ·"
SCRIPTS = "漢字 ひらがな カタカナ Привет मानक عربي עברית ไทย"
CONTROL = "\t \r \x00 \x07 \x7f \x85 \xa0 \xad \u200b \u200d \u2028 \u3000 \ufeff \ufffd \U000e0001"
KINDS = [WORDS, KOREAN, ACCENTS, EMOJI, PUNCTUATION, SCRIPTS, CONTROL]


def made_up_lines(n):
    """Words, syllables and everything else, stuck together with and without spaces."""
    rng = Random(7)
    samples = [kind.split(" ") for kind in KINDS]
    lines = ["", " ", "a" * 101, "가" * 300, "".join(KINDS)]
    while len(lines) < n:
        parts = [rng.choice(rng.choice(samples)) for _ in range(rng.randrange(1, 25))]
        if rng.random() < 0.3:
            parts += [chr(rng.randrange(0xAC00, 0xD7A4)) for _ in range(rng.randrange(8))]
        if rng.random() < 0.1:
            parts.append(chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)])))
        lines.append(rng.choice(["", " ", " ", " "]).join(parts))
    return lines


def lines_of_corpora(n):
    """The first lines of every plain text under JUMOK_DATA; none if it is not set."""
    root = os.environ.get("JUMOK_DATA")
    endings = {".en", ".ko", ".de", ".fr", ".tsv", ".txt"}
    lines = []
    for path in sorted(Path(root).rglob("*")) if root else ():
        if path.suffix in endings:
            lines += path.read_text("utf-8", errors="replace").splitlines()[:n]
    return lines


@pytest.fixture(scope="module")
def folder(minilm):
    return read_model(minilm)


def test_ten_thousand_lines_have_the_same_pieces(folder, minilm):
    ours, theirs = folder.tokenizers.source, AutoTokenizer.from_pretrained(minilm)
    lines = [*made_up_lines(10_000), *lines_of_corpora(500)]
    found = [ours.frame(ids) for ids in ours.encode_batch(lines)]
    expected = theirs(lines)["input_ids"]
    assert [line for line, a, b in zip(lines, found, expected, strict=True) if a != b] == []
    assert len({i for ids in found for i in ids}) > 200


def test_vocab_txt_alone_gives_the_same_pieces(folder, minilm, tmp_path):
    for name in ("config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"):
        (tmp_path / name).symlink_to(minilm / name)  # as in the cache of huggingface_hub
    lines = made_up_lines(1_000)
    assert read_model(tmp_path).tokenizers.source.encode_batch(lines) == folder.tokenizers.source.encode_batch(lines)


def test_the_hidden_states_are_the_same(folder, minilm):
    tokenizer = folder.tokenizers.source
    texts = ["That is a happy person.", "나는 학교에 간다", "", "A much longer sentence, with a naïve café in it!" * 3]
    rows = [tokenizer.frame(tokenizer.encode(text)) for text in texts]
    rows.append(tokenizer.frame(tokenizer.encode("does it rain?"), tokenizer.encode("it does.")))
    width = max(map(len, rows))
    ids = torch.tensor([row + [tokenizer.pad_id] * (width - len(row)) for row in rows])
    mask = torch.arange(width) < torch.tensor([[len(row)] for row in rows])
    segments = torch.zeros_like(ids)
    segments[-1, rows[-1].index(tokenizer.end_id) + 1 : len(rows[-1])] = 1
    ours = Bert(folder.config, vocab=tokenizer.vocab_size).eval()
    load_tensors(ours, folder.tensors, where=minilm)
    theirs = AutoModel.from_pretrained(minilm).eval()
    states = []
    with torch.inference_mode():
        pooled = ours.pool(ours(ids, segments, mask, states=states)[:, 0])
        said = theirs(ids, attention_mask=mask.long(), token_type_ids=segments, output_hidden_states=True)
    for found, expected in zip(states, said.hidden_states, strict=True):
        torch.testing.assert_close(found[mask], expected[mask], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(pooled, said.pooler_output, rtol=1e-4, atol=1e-5)


def test_in_and_out_again_tensor_by_tensor(minilm, tmp_path, monkeypatch, capsys):
    run, out = tmp_path / "run", tmp_path / "out"
    for arguments in (["import", minilm, run], ["export", run, out, "--to", "huggingface"]):
        monkeypatch.setattr(sys, "argv", ["jumok", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
    assert f"{run}: bert, embedding, 22,713,216 parameters, 30,522 tokens" in capsys.readouterr().out
    before, after = load_file(minilm / "model.safetensors"), load_file(out / "model.safetensors")
    assert before.keys() - after.keys() == {"embeddings.position_ids"}  # numbers from 0 to 511, no weights
    assert not after.keys() - before.keys()
    for name, tensor in after.items():
        assert (tensor.dtype, tensor.shape) == (torch.float32, before[name].shape)
        assert torch.equal(tensor, before[name]), name
    lines = made_up_lines(200)
    assert AutoTokenizer.from_pretrained(out)(lines) == AutoTokenizer.from_pretrained(minilm)(lines)
    _, loading = AutoModel.from_pretrained(out, output_loading_info=True)
    assert not any(loading.values())
    assert (out / "vocab.txt").read_bytes() == (minilm / "vocab.txt").read_bytes()
    assert (out / "README.md").read_bytes() == (minilm / "README.md").read_bytes()
