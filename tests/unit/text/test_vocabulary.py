"""The vocabularies of BERT and GPT: their layouts, what they keep of a text, and how they grow."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from jumok.errors import CheckpointError, DataError
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT, GPT, MARIAN, Layout, TokenizerConfig, learn

LINES = [
    "The quick brown fox jumps over the lazy dog.",
    "여우가 게으른 개를 뛰어넘었다! 정말 빨랐다.",
    "A naïve café, déjà vu; tokenisation isn't easy (is it?)",
    "def f(x):\n    return x + 1\n",
    "🦊 fox and 🐶 dog",
] * 4
ODD = ["", " ", "a  b\t\n c", "[MASK] [CLS] </s> <|endoftext|>", "가\u0301 나", "\u1100\u1161", "a▁b", "\x00\x07x"]
text_of_any_kind = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.fixture(scope="module")
def bert() -> Tokenizer:
    return Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=300), LINES, BERT)


@pytest.fixture(scope="module")
def gpt() -> Tokenizer:
    return Tokenizer.train(TokenizerConfig(kind="byte_bpe", vocab_size=320), LINES, GPT)


def test_the_layout_of_bert(bert: Tokenizer) -> None:
    assert bert.pieces(range(5)) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert (bert.pad_id, bert.unk_id, bert.start_id, bert.end_id, bert.mask_id) == (0, 1, 2, 3, 4)
    assert bert.layout is BERT
    assert bert.special_ids == [0, 1, 2, 3, 4]
    assert bert.frame([7, 8]) == [2, 7, 8, 3]
    assert bert.frame([7], [8, 9]) == [2, 7, 3, 8, 9, 3]


def test_the_layout_of_gpt(gpt: Tokenizer) -> None:
    assert gpt.layout is GPT
    assert gpt.start_id == gpt.end_id == gpt.pad_id == gpt.vocab_size - 1
    assert gpt.mask_id is None
    assert gpt.frame([7, 8]) == [7, 8, gpt.end_id]


def test_marians_layout_remains() -> None:
    tokenizer = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=200), LINES)
    assert tokenizer.layout is MARIAN
    assert tokenizer.frame([7], [8]) == [7, 0, 8, 0]


@pytest.mark.parametrize("text", [*LINES[:5], *ODD])
def test_special_tokens_in_a_text_are_text(bert: Tokenizer, gpt: Tokenizer, text: str) -> None:
    for tokenizer in (bert, gpt):
        assert not set(tokenizer.encode(text)) & (set(tokenizer.special_ids) - {tokenizer.unk_id})


def test_hangul_and_accents_survive(bert: Tokenizer) -> None:
    text = "여우가 뛰어넘었다 naïve café"
    assert bert.decode(bert.encode(text)) == text
    composed, decomposed = bert.encode("여우"), bert.encode("\u110b\u1167\u110b\u116e")
    assert composed == decomposed
    assert bert.unk_id not in composed


def test_pieces_that_go_on_with_a_word(bert: Tokenizer) -> None:
    goes_on = bert.continues_word()
    ids = bert.encode("tokenisation jumps")
    words = sum(not goes_on[i] for i in ids)
    assert words == 2
    assert not any(goes_on[i] for i in bert.special_ids)


@settings(max_examples=200, deadline=None)
@given(text_of_any_kind)
def test_gpt_keeps_every_text(gpt: Tokenizer, text: str) -> None:
    import unicodedata

    assert gpt.decode(gpt.encode(text)) == unicodedata.normalize("NFC", text)


def test_offsets_of_byte_pieces_cover_the_text(gpt: Tokenizer) -> None:
    text = "A 여우 🦊 and  more"
    encoded = gpt.encode_with_offsets(text)
    covered = {i for start, end in encoded.offsets for i in range(start, end)}
    assert {i for i, c in enumerate(text) if not c.isspace()} <= covered


@pytest.mark.parametrize(("kind", "layout"), [("wordpiece", BERT), ("byte_bpe", GPT)])
def test_the_pipeline_opens_elsewhere_with_the_same_ids(kind: str, layout: Layout) -> None:
    backend = learn(TokenizerConfig(kind=kind, vocab_size=320), LINES, layout)  # type: ignore[arg-type]
    ours = Tokenizer.from_json(backend.to_str())
    theirs = PreTrainedTokenizerFast(tokenizer_object=backend)
    for text in [*LINES[:5], "a  b", "😀", "가나다라"]:
        assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode(text)
    if layout is BERT:
        both = theirs("fox", "dog", return_token_type_ids=True)
        assert both["input_ids"] == ours.frame(ours.encode("fox"), ours.encode("dog"))
        assert both["token_type_ids"] == [0] * (2 + len(ours.encode("fox"))) + [1] * (1 + len(ours.encode("dog")))


@pytest.mark.parametrize(("kind", "name"), [("wordpiece", "BERT"), ("byte_bpe", "GPT")])
def test_two_processes_learn_the_same_bytes(kind: str, name: str) -> None:
    script = (
        "import sys, json; from jumok.text.tokenizer import Tokenizer; from jumok.text import vocabulary as v\n"
        "lines = json.loads(sys.stdin.read())\n"
        f"t = Tokenizer.train(v.TokenizerConfig(kind='{kind}', vocab_size=350), lines, v.{name})\n"
        "print(t.sha256)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script], input=json.dumps(LINES), capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(found) == 1


def test_new_words_are_the_ones_that_save_most_and_old_ids_stay(bert: Tokenizer) -> None:
    domain = ["immunohistochemistry of tumours", "immunohistochemistry again", "tumours"] * 3 + ["hapaxlegomenon"]
    grown, cut = bert.extended(domain, 2)
    assert grown.vocab_size == bert.vocab_size + 2
    assert grown.pieces(range(bert.vocab_size)) == bert.pieces(range(bert.vocab_size))
    assert set(grown.pieces([bert.vocab_size, bert.vocab_size + 1])) == {"immunohistochemistry", "tumours"}
    assert grown.encode("immunohistochemistry") == [bert.vocab_size]
    assert cut[0] == bert.encode("immunohistochemistry")
    for line in LINES:
        assert grown.encode(line) == bert.encode(line)
    assert Tokenizer.from_json(grown.to_json()).sha256 == grown.sha256


def test_unknown_words_can_be_learned(bert: Tokenizer) -> None:
    assert bert.encode("漢字") == [bert.unk_id, bert.unk_id]  # BERT puts blanks around ideographs
    assert bert.encode("ℵℶℷ") == [bert.unk_id]
    grown, cut = bert.extended(["ℵℶℷ ℵℶℷ"], 5)
    assert cut == [[bert.unk_id]]
    assert grown.encode("ℵℶℷ") == [bert.vocab_size]


def test_words_that_wordpiece_does_not_look_at_take_no_place(bert: Tokenizer) -> None:
    longest, longer = "ox" * 50, "ox" * 50 + "o"
    grown, _ = bert.extended([f"{longer} {longest} {longer} tumours tumours {longest}"] * 3, 2)
    assert set(grown.pieces([bert.vocab_size, bert.vocab_size + 1])) == {longest, "tumours"}
    assert [len(grown.encode(word)) for word in (longest, "tumours")] == [1, 1]
    assert grown.encode(longer) == [bert.unk_id]


def test_a_vocabulary_without_mask_is_refused_with_what_it_lacks(bert: Tokenizer) -> None:
    tree = json.loads(bert.to_json())
    tree["model"]["vocab"] = {k: v for k, v in tree["model"]["vocab"].items() if k != "[MASK]"}
    with pytest.raises(CheckpointError) as caught:
        Tokenizer.from_json(json.dumps(tree))
    assert caught.value.code == "checkpoint.special_pieces"
    assert "[MASK]" in caught.value.what


def test_no_text_to_learn_bytes_from() -> None:
    with pytest.raises(DataError) as caught:
        Tokenizer.train(TokenizerConfig(kind="byte_bpe"), [" ", "\n"], GPT)
    assert caught.value.code == "data.empty_corpus"
    with pytest.raises(ValueError, match="257"):
        TokenizerConfig(kind="byte_bpe", vocab_size=256)
