"""Every kind of vocabulary: nothing is lost, offsets are exact, special tokens are out of reach, training is exact."""

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import get_args

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import models

from jumok.config import read_config
from jumok.errors import CheckpointError, DataError, InputError, RecipeError
from jumok.examples.made.numbers import generate
from jumok.text.tokenizer import Encoded, Tokenizer
from jumok.text.vocabulary import BYTES, EOS, EOS_ID, MIN_PIECES, PAD, SPACE, UNK, UNK_ID, Kind, TokenizerConfig

# byte_bpe has another layout, and keeps blanks: see test_vocabulary.py
KINDS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind != "byte_bpe")
BOB_EUL = unicodedata.normalize("NFD", "밥을")
COMPLETE: tuple[Kind, ...] = ("character", "bpe")
LINES = [
    "The quick brown fox jumps over the lazy dog, twice; it's a café!",
    "한국어 문장은 짧다. 나는 밥을 먹었다 (2024년).",
    "<s> </s> <pad> <unk> <0x41> ## ##a",
    *(text for pair in generate("korean_numbers", "train", n=60, seed=1) for text in pair),
]

# What Unicode calls white space; Python's isspace() and split() also count four separators of ASCII (1C to 1F).
WHITE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"

any_character = st.characters(exclude_categories=["Cs", "Cn"])  # this Python may not know the newest, so no Cn
known_character = st.sampled_from("thequickbrownfox,.'0123 <>/#_" + SPACE)
korean = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), max_size=12)
jamo = korean.map(lambda text: unicodedata.normalize("NFD", text))
emoji = st.text(st.sampled_from("😀👩\u200d👧🏽❤\ufe0f🇰🇷"), max_size=6)
controls = st.text(st.characters(categories=["Cc", "Cf"]), max_size=6)
blanks = st.text(st.sampled_from(WHITE), max_size=3)
texts = st.one_of(
    st.text(any_character, max_size=30),
    st.lists(
        st.one_of(korean, jamo, emoji, controls, blanks, st.text(known_character), st.text(any_character, max_size=4)),
        max_size=8,
    ).map("".join),
)
# Text whose every cluster composes into one character: here an offset can be compared letter by letter.
simple_text = st.lists(
    st.one_of(korean, jamo, blanks, st.text(known_character), st.text(st.sampled_from("eE😀\x01\x1c\x7f"), max_size=3)),
    max_size=8,
).map(lambda parts: re.sub("[eE]", "e\u0301", "".join(parts)))

many = settings(max_examples=150, deadline=None)
every_kind = pytest.mark.parametrize("kind", KINDS)
every_complete_kind = pytest.mark.parametrize("kind", COMPLETE)


def train(kind: Kind, **options: object) -> Tokenizer:
    config = TokenizerConfig(kind=kind, **{"vocab_size": 420, **options})  # type: ignore[arg-type]
    return Tokenizer.train(config, LINES)


@pytest.fixture(scope="module")
def trained() -> dict[Kind, Tokenizer]:
    return {kind: train(kind) for kind in KINDS}


def folded(text: str) -> str:
    """What a vocabulary that knows every text gives back: composed, blanks folded, the space mark taken away."""
    composed = unicodedata.normalize("NFC", text).replace(SPACE, "_")
    return re.sub(f"[{WHITE}]+", " ", composed).strip(" ")


def spans_of(encoded: Encoded, text: str) -> list[str]:
    return [text[start:end] for start, end in encoded.offsets]


def letters_of(piece: str, kind: Kind) -> str:
    return piece.removeprefix("##" if kind == "wordpiece" and len(piece) > 2 else SPACE)


# ids


@every_kind
def test_ids_follow_marians_layout(kind: Kind, trained: dict[Kind, Tokenizer]) -> None:
    tokenizer = trained[kind]
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    assert pieces[0] == EOS
    assert pieces[1] == UNK
    assert pieces[-1] == PAD
    assert tokenizer.pad_id == tokenizer.vocab_size - 1
    assert len(set(pieces)) == tokenizer.vocab_size
    assert (pieces[2:258] == BYTES) == (kind in COMPLETE)


@every_kind
def test_vocab_size_is_an_upper_bound(kind: Kind) -> None:
    sizes = (MIN_PIECES, MIN_PIECES + 1, 280, 300, 340, 1000) if kind in COMPLETE else (8, 9, 13, 40, 200, 1000)
    reached = [train(kind, vocab_size=size).vocab_size for size in sizes]
    assert [size for size, got in zip(sizes, reached, strict=True) if got > size] == []
    assert reached == sorted(reached)
    assert reached[-1] > reached[0]


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_vocab_size_is_used(kind: Kind) -> None:
    assert train(kind, vocab_size=360 if kind == "bpe" else 60).vocab_size == (360 if kind == "bpe" else 60)


@pytest.mark.parametrize("kind", COMPLETE)
def test_vocab_size_has_room_for_bytes(kind: Kind) -> None:
    with pytest.raises(ValueError, match=f"at least {MIN_PIECES}"):
        TokenizerConfig(kind=kind, vocab_size=MIN_PIECES - 1)


def test_vocab_size_and_sample_have_a_least_value() -> None:
    least = {"vocab_size": 8, "sample_lines": 1}
    assert read_config(TokenizerConfig, {"kind": "word", **least}, what="[tokenizer]").vocab_size == 8
    for key, value in least.items():
        with pytest.raises(RecipeError) as caught:
            read_config(TokenizerConfig, {"kind": "word", key: value - 1}, what="[tokenizer]")
        assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [(key, "recipe.value")]


@every_kind
def test_batches_change_nothing(kind: Kind, trained: dict[Kind, Tokenizer]) -> None:
    lines = [*LINES, "", " \t ", "한", "zzz"]
    assert trained[kind].encode_batch(lines) == [trained[kind].encode(line) for line in lines]
    assert trained[kind].encode("") == trained[kind].encode(" \u3000\n") == []


# nothing is lost


@every_complete_kind
@many
@given(text=texts)
@example(text="\x00\x1c \x1d\x7f\u200b\u200d\ufeff\ufffd")
@example(text="<0x41> <0xFF> ▁ _ ▁▁")
@example(text="\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 한국어 👩‍👩‍👧‍👦 e\u0301\u0323")
def test_decoding_gives_the_text_back(kind: Kind, text: str, trained: dict[Kind, Tokenizer]) -> None:
    tokenizer = trained[kind]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == folded(text)
    assert UNK_ID not in ids
    assert EOS_ID not in ids
    assert tokenizer.pad_id not in ids


@every_complete_kind
@many
@given(text=texts)
def test_nfd_and_nfc_have_the_same_ids(kind: Kind, text: str, trained: dict[Kind, Tokenizer]) -> None:
    # NFD of NFC: the text as a Mac's file names would have it.
    composed = unicodedata.normalize("NFC", text)
    assert trained[kind].encode(unicodedata.normalize("NFD", composed)) == trained[kind].encode(composed)


def test_known_words_come_back(trained: dict[Kind, Tokenizer]) -> None:
    for line in LINES:
        assert trained["word"].decode(trained["word"].encode(line)) == line
    words = "the quick fox over the lazy dog"
    assert trained["wordpiece"].decode(trained["wordpiece"].encode(words)) == words


def test_an_unknown_word_keeps_its_place(trained: dict[Kind, Tokenizer]) -> None:
    ids = trained["word"].encode("The zebra fox")
    assert ids[1] == UNK_ID
    assert trained["word"].decode(ids) == "The <unk> fox"


def test_words_of_known_letters_are_known_to_wordpiece(trained: dict[Kind, Tokenizer]) -> None:
    # A word of more than a hundred letters is unknown all the same: the library looks no further.
    tokenizer = trained["wordpiece"]
    known = sorted({piece for piece in tokenizer.pieces(range(2, tokenizer.vocab_size - 1)) if len(piece) == 1})
    assert len(known) > 20
    for i in range(len(known)):
        assert UNK_ID not in tokenizer.encode("".join(known[i:] + known[:i]))


def test_decoding_leaves_ends_and_padding_out(trained: dict[Kind, Tokenizer]) -> None:
    tokenizer = trained["bpe"]
    ids = tokenizer.encode("한국어 fox")
    assert tokenizer.decode([tokenizer.pad_id, *ids, EOS_ID, tokenizer.pad_id]) == "한국어 fox"


@every_kind
def test_half_a_surrogate_pair_is_the_users_mistake(kind: Kind, trained: dict[Kind, Tokenizer]) -> None:
    # A JSON string may hold one ("\ud83d"); it is no character and has no bytes.
    for encode in (trained[kind].encode, trained[kind].encode_with_offsets):
        with pytest.raises(InputError) as caught:
            encode("a \ud83d b")
        assert caught.value.code == "data.encoding"
        assert r"'\ud83d'" in caught.value.what
    with pytest.raises(InputError) as caught:
        trained[kind].encode_batch(["a", "a \ud83d b"])
    assert caught.value.code == "data.encoding"


# special tokens


@every_kind
@pytest.mark.parametrize("text", ["</s> <pad> <unk>", "</s>", "<pad>", "a</s>b", "</s></s> <pad><pad>"])
def test_special_tokens_of_a_user_are_text(kind: Kind, text: str, trained: dict[Kind, Tokenizer]) -> None:
    tokenizer = trained[kind]
    ids = tokenizer.encode(text)
    assert len(ids) > 2
    assert {EOS_ID, tokenizer.pad_id}.isdisjoint(ids)
    assert ids == tokenizer.encode_batch([text])[0] == tokenizer.encode_with_offsets(text).ids
    if kind in COMPLETE:
        assert tokenizer.decode(ids) == text


def test_bytes_of_a_user_are_text(trained: dict[Kind, Tokenizer]) -> None:
    for kind in COMPLETE:
        pieces = trained[kind].pieces(trained[kind].encode("<0x41>"))
        assert len(pieces) > 4
        assert "<0x41>" not in pieces


# offsets


@every_kind
@many
@given(text=texts)
@example(text="a\x1c b\x1f")
@example(text=" \u0308a\u0308\u0308 \u212b \u0958 e\u0301\u0323")
def test_offsets_ascend_and_leave_nothing_out(kind: Kind, text: str, trained: dict[Kind, Tokenizer]) -> None:
    encoded = trained[kind].encode_with_offsets(text)
    assert encoded.ids == trained[kind].encode(text)
    starts, ends = [start for start, _ in encoded.offsets], [end for _, end in encoded.offsets]
    assert starts == sorted(starts)
    assert ends == sorted(ends)
    assert all(0 <= start <= end <= len(text) for start, end in encoded.offsets)
    covered = {i for start, end in encoded.offsets for i in range(start, end)}
    assert [i for i, character in enumerate(text) if character not in WHITE and i not in covered] == []


@every_kind
@many
@given(text=simple_text)
@example(text="\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 cafe\u0301 quick\x1c")
def test_offsets_are_exact(kind: Kind, text: str, trained: dict[Kind, Tokenizer]) -> None:
    tokenizer = trained[kind]
    encoded = tokenizer.encode_with_offsets(text)
    spelt: dict[tuple[int, int], bytes] = {}
    for piece, (start, end) in zip(tokenizer.pieces(encoded.ids), encoded.offsets, strict=True):
        part = folded(text[start:end])
        if kind in COMPLETE and piece in BYTES:
            spelt[start, end] = spelt.get((start, end), b"") + bytes([BYTES.index(piece)])
        elif piece == UNK:
            assert part
        else:
            assert part == letters_of(piece, kind)
    # The bytes of a character all point at the whole of it.
    assert {span: folded(text[slice(*span)]).encode() for span in spelt} == spelt


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        ("word", "  the\ttwenty  dogs ", ["the", "twenty", "dogs"]),
        ("word", "cafe\u0301! 7", ["cafe\u0301", "!", "7"]),
        ("wordpiece", "the  twentyths", ["the", "twenty", "t", "h", "s"]),
        ("character", "te n", ["", "t", "e", "", "n"]),
        ("character", BOB_EUL, ["", BOB_EUL[:3], BOB_EUL[3:]]),
        ("character", "t😀s", ["", "t", "😀", "😀", "😀", "😀", "s"]),
        ("bpe", "the 😀", ["the", "", "😀", "😀", "😀", "😀"]),
        ("bpe", "twenty,twenty", ["twenty", ",", "t", "wen", "ty"]),
        ("bpe", f"the cafe\u0301 {BOB_EUL}", ["the", "cafe\u0301", BOB_EUL]),
    ],
)
def test_known_offsets(kind: Kind, text: str, parts: list[str]) -> None:
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=600), ["the twenty café dogs, 밥을 7!"] * 9)
    assert spans_of(tokenizer.encode_with_offsets(text), text) == parts


# training


def test_training_is_the_same_in_every_process() -> None:
    script = (
        "import sys; from jumok.text.tokenizer import Tokenizer; from jumok.text.vocabulary import TokenizerConfig\n"
        "lines = sys.stdin.read().split('\\n')\n"
        "for kind in sys.argv[1:]:\n"
        "    sys.stdout.write(Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=380), lines).sha256 + '\\n')\n"
    )
    environments = (
        {"PYTHONHASHSEED": "1", "RAYON_NUM_THREADS": "1"},
        {"PYTHONHASHSEED": "2", "RAYON_NUM_THREADS": "2"},
    )
    processes = [
        subprocess.run(
            [sys.executable, "-c", script, *KINDS],
            input="\n".join(LINES),
            env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
        for environment in environments
    ]
    here = [train(kind, vocab_size=380).sha256 for kind in KINDS]
    assert processes[0].stdout.split() == processes[1].stdout.split() == here
    assert len(set(here)) == len(KINDS)


def test_lines_may_be_read_only_once() -> None:
    config = TokenizerConfig(vocab_size=400)
    assert Tokenizer.train(config, iter(LINES)).sha256 == Tokenizer.train(config, LINES).sha256


def test_a_sample_is_drawn_from_the_whole_text() -> None:
    config = TokenizerConfig(kind="word", vocab_size=2000, sample_lines=50)
    lines = [f"word{chr(0xAC00 + i)}" for i in range(1000)]
    tokenizer = Tokenizer.train(config, lines)
    known = [i for i, line in enumerate(lines) if UNK_ID not in tokenizer.encode(line)]
    assert len(known) == 50
    assert min(known) < 250
    assert max(known) > 750
    assert Tokenizer.train(config, lines).sha256 == tokenizer.sha256


@every_kind
def test_one_long_line_teaches_the_same_as_its_words_in_short_ones(kind: Kind) -> None:
    words = [word for line in LINES for word in line.split()] * 100
    config = TokenizerConfig(kind=kind, vocab_size=400)
    short = [" ".join(words[:1])] + [f" {word}" for word in words[1:]]  # a word's space belongs to it in byte_bpe
    assert Tokenizer.train(config, [" ".join(words)]).sha256 == Tokenizer.train(config, short).sha256


def test_of_one_line_of_any_length_a_sample_is_kept() -> None:
    config = TokenizerConfig(kind="word", vocab_size=2000, sample_lines=3)
    words = [f"word{chr(0xAC00 + i)}" for i in range(1000)]
    tokenizer = Tokenizer.train(config, [" ".join(words)])
    assert len([word for word in words if UNK_ID not in tokenizer.encode(word)]) * len("word가 ") < 3 * 1024


@every_kind
def test_no_text_to_train_on(kind: Kind) -> None:
    for lines in ([], [""], ["  ", "\u3000\n", "\t"]):
        with pytest.raises(DataError) as caught:
            Tokenizer.train(TokenizerConfig(kind=kind), lines)
        assert caught.value.code == "data.empty_corpus"


@every_kind
def test_lowercase(kind: Kind) -> None:
    tokenizer = train(kind, lowercase=True)
    assert tokenizer.encode("THE QUICK Fox") == tokenizer.encode("the quick fox")
    assert tokenizer.decode(tokenizer.encode("The QUICK fox")) == "the quick fox"
    assert train(kind).encode("THE") != train(kind).encode("the")


@many
@given(text=texts)
@example(text="H\u0331")  # has no composed form, but its lower case has one
def test_lowercase_text_is_composed(text: str, trained_lowercase: Tokenizer) -> None:
    once = trained_lowercase.decode(trained_lowercase.encode(text))
    assert once == unicodedata.normalize("NFC", once)
    assert trained_lowercase.decode(trained_lowercase.encode(once)) == once


@pytest.fixture(scope="module")
def trained_lowercase() -> Tokenizer:
    return train("bpe", lowercase=True)


# files


@every_kind
def test_saved_and_loaded(kind: Kind, trained: dict[Kind, Tokenizer], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(trained[kind].to_json(), "utf-8")
    loaded = Tokenizer.load(path)
    assert loaded.sha256 == trained[kind].sha256
    assert loaded.vocab_size == trained[kind].vocab_size
    for line in [*LINES, "zebra 😀 뷁 </s>"]:
        assert loaded.encode(line) == trained[kind].encode(line)
        assert loaded.decode(loaded.encode(line)) == trained[kind].decode(trained[kind].encode(line))


def test_saved_files_open_in_the_library(trained: dict[Kind, Tokenizer]) -> None:
    backend = tokenizers.Tokenizer.from_str(trained["bpe"].to_json())
    assert backend.encode("한국어 fox").ids == [*trained["bpe"].encode("한국어 fox"), EOS_ID]


def alien_layout() -> str:
    vocab = {token: i for i, token in enumerate(["[PAD]", "[UNK]", "the", "fox"])}
    text: str = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token="[UNK]")).to_str()
    return text


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (alien_layout(), "checkpoint.special_pieces"),
        ("", "checkpoint.unreadable"),
        ("{}", "checkpoint.unreadable"),
        ('{"version": "1.0", "model"', "checkpoint.unreadable"),
        (b"\xff\xfe\x00", "checkpoint.unreadable"),
        (None, "checkpoint.unreadable"),
    ],
    ids=["other layout", "empty", "no model", "torn", "no text", "missing"],
)
def test_alien_files_are_refused(content: str | bytes | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(CheckpointError) as caught:
        Tokenizer.load(path)
    assert (caught.value.code, caught.value.where) == (code, str(path))


# vocabularies of strangers


def stored(folder: Path, **changes: object) -> Path:
    trained = Tokenizer.train(TokenizerConfig(kind="bpe", vocab_size=300), ["the cat sat on the mat"] * 5)
    tree = json.loads(trained.to_json())
    tree["model"] |= changes.pop("model", {})
    (folder / "tokenizer.json").write_text(json.dumps({**tree, **changes}), "utf-8")
    return folder / "tokenizer.json"


def test_dropout_of_merges_is_for_training(tmp_path):
    tokenizer = Tokenizer.load(stored(tmp_path, model={"dropout": 0.9}))
    whole = Tokenizer.load(stored(tmp_path))
    assert {tuple(tokenizer.encode("the cat sat")) for _ in range(30)} == {tuple(whole.encode("the cat sat"))}
    assert tokenizer.sha256 == whole.sha256


def test_a_panic_of_the_backend_is_an_error_of_the_file(tmp_path):
    """pyo3 raises it as a BaseException, which nobody expects."""
    path = stored(tmp_path, normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"})
    with pytest.raises(CheckpointError) as caught:
        Tokenizer.load(path)
    assert (caught.value.code, caught.value.where) == ("checkpoint.unreadable", str(path))


@pytest.mark.parametrize("use", [Tokenizer.encode, Tokenizer.encode_with_offsets])
def test_a_panic_in_use_is_an_error_of_the_file(tmp_path, use):
    path = stored(tmp_path, pre_tokenizer={"type": "FixedLength", "length": 0})
    tokenizer = Tokenizer.load(path)
    with pytest.raises(CheckpointError) as caught:
        use(tokenizer, "the cat")
    assert (caught.value.code, caught.value.where) == ("checkpoint.tokenizer", str(path))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_is_not_taken_for_a_panic(tmp_path, error, monkeypatch):
    class Backend:
        def encode(self, *_, **__):
            raise error

    tokenizer = Tokenizer.load(stored(tmp_path))
    monkeypatch.setattr(tokenizer, "_backend", Backend())
    with pytest.raises(error):
        tokenizer.encode("the cat")


# composition, in one place

MARKED = [
    text
    for mark in (chr(c) for c in range(0x110000) if unicodedata.combining(chr(c)))
    for text in (f"e{mark}\u0301", f"e\u0301{mark}", f"e\u0323{mark}\u0301", f"{mark}e\u0315{mark}")
]


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("lowercase", [False, True])
def test_every_combining_mark_has_the_same_ids_with_offsets_and_without(kind: Kind, lowercase: bool) -> None:
    tokenizer = train(kind, lowercase=lowercase)
    with_offsets = [tokenizer.encode_with_offsets(text).ids for text in MARKED]
    assert with_offsets == tokenizer.encode_batch(MARKED)
    composed = [unicodedata.normalize("NFC", text) for text in MARKED]
    assert with_offsets == tokenizer.encode_batch(composed)


def bert_from_elsewhere(strip_accents: bool) -> tokenizers.Tokenizer:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "e", "##\u0301", "##\u0323", "\xe9", "\u1112", "##\u1161"]
    model = models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    backend = tokenizers.Tokenizer(model)
    backend.normalizer = tokenizers.normalizers.BertNormalizer(strip_accents=strip_accents, lowercase=strip_accents)
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return backend


def bytes_from_elsewhere() -> tokenizers.Tokenizer:
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: i for i, piece in enumerate([*alphabet, "<|endoftext|>"])}
    backend = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return backend


@pytest.mark.parametrize(
    "backend",
    [bert_from_elsewhere(False), bert_from_elsewhere(True), bytes_from_elsewhere()],
    ids=["cased", "", "gpt"],
)
def test_a_vocabulary_from_elsewhere_composes_nothing_that_it_did_not(backend: tokenizers.Tokenizer) -> None:
    given = [*MARKED, "e\u0301", "\xe9", unicodedata.normalize("NFD", "하")]
    expected = [backend.encode(text, add_special_tokens=False).ids for text in given]
    tokenizer = Tokenizer(backend)
    assert tokenizer.encode_batch(given) == expected
    assert [tokenizer.encode_with_offsets(text).ids for text in given] == expected


@every_kind
def test_a_word_of_a_hundred_thousand_letters_can_be_divided(kind: Kind, trained: dict[Kind, Tokenizer]) -> None:
    """Also if all of it may be endings: the work grows with its length."""
    text = "는" * 100_000
    found = trained[kind].encode_with_offsets(text, {"는"})
    assert (found.offsets[0][0], found.offsets[-1][1]) == (0, len(text))
