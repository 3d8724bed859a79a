"""Parts that a pipeline treats alike: the ids and merges of a corpus are those that its whole texts have."""

import json
import sys
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers

import jumok.text.tokenizer as tokenizer_module
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT, GPT, MARIAN, SPACE, Kind, Layout, TokenizerConfig
from jumok.text.words import WHITE_SPACE, at_spaces, cut_of, with_blanks

LINES = [
    "The quick brown fox jumps over the lazy dog, twice; it's a café! The end.",
    "한국어 문장은 짧다. 나는 밥을 먹었다 (2024년). 밥을 또 먹었다.",
    "def f(x):\n    return x + 1  # [MASK] </s>\t\tx\x0by\x85z",
    "漢字 ΣΑΣ İstanbul e\u0301 \u0301e \u1112\u1161\u11ab ▁a _b ##c",
] * 3
PIPELINES: list[tuple[Kind, Layout, bool]] = [
    (kind, layout, lowercase)
    for kind, layout in (
        ("bpe", MARIAN),
        ("character", MARIAN),
        ("word", MARIAN),
        ("wordpiece", MARIAN),
        ("wordpiece", BERT),
        ("byte_bpe", GPT),
    )
    for lowercase in (False, True)
]
STRANGE = [*sorted(WHITE_SPACE), "\x00", "\x1c", "\x1f", "\u180e", "\u200b", "\ufeff", "\ufffd", "\u0301", "\u0345"]
parts = st.one_of(
    st.sampled_from([*STRANGE, " ", "  ", "the", "밥을", "Σ", "é", "e\u0301", "漢", "'s", ",", ".", "▁", "<unk>"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
texts = st.lists(parts, max_size=10).map("".join)


def train(kind: Kind, layout: Layout, lowercase: bool) -> Tokenizer:
    return Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=400, lowercase=lowercase), LINES, layout)


@pytest.fixture(scope="module")
def trained() -> list[Tokenizer]:
    return [train(*pipeline) for pipeline in PIPELINES]


def whole(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a text that the library sees in one piece."""
    return tokenizer._encode_each([text])[0]


def test_every_pipeline_of_ours_is_known(trained: list[Tokenizer]) -> None:
    found = [cut_of(json.loads(tokenizer.to_json())) for tokenizer in trained]
    assert found == [with_blanks if kind == "byte_bpe" else at_spaces for kind, *_ in PIPELINES]


@settings(max_examples=150, deadline=None)
@given(batch=st.lists(texts, max_size=4))
def test_a_batch_has_the_ids_of_its_texts(batch: list[str], trained: list[Tokenizer]) -> None:
    for tokenizer in trained:
        assert tokenizer.encode_batch(batch) == [whole(tokenizer, text) for text in batch]


def test_every_character_stands_alike_beside_a_space(trained: list[Tokenizer]) -> None:
    characters = [c for c in map(chr, range(sys.maxunicode)) if unicodedata.category(c) not in ("Lo", "Co", "Cs", "Cn")]
    batch = [f"{c}a {c} {c}\t{c}" for c in characters]
    for tokenizer in trained[::2]:
        assert tokenizer.encode_batch(batch) == [whole(tokenizer, text) for text in batch]


@pytest.mark.parametrize("most", [0, 3, 200_000])
def test_words_seen_before_change_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "MOST_REMEMBERED", most)
    for pipeline in PIPELINES:
        tokenizer = train(*pipeline)
        found = [tokenizer.encode(line) for line in LINES]
        assert found == [whole(tokenizer, line) for line in LINES]
        assert sum(map(len, tokenizer._words._known)) <= most + max(len(line) for line in LINES)


def test_a_word_that_was_seen_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    encode_each = Tokenizer._encode_each
    monkeypatch.setattr(Tokenizer, "_encode_each", lambda self, batch: asked.extend(batch) or encode_each(self, batch))
    tokenizer = train(*PIPELINES[0])
    tokenizer.encode_batch(["a dog", "a fox a dog"])
    tokenizer.encode("the dog a")
    assert asked == ["a", "dog", "fox", "the"]


def test_threads_share_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "MOST_REMEMBERED", 40)  # forgotten again and again
    tokenizer = train(*PIPELINES[0])
    lines = LINES * 40
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(tokenizer.encode, lines))
    assert found == [whole(tokenizer, line) for line in lines]


@pytest.mark.parametrize(
    ("normalizer", "rule"),
    [
        (normalizers.NFC(), pre_tokenizers.Metaspace()),
        (normalizers.Replace(Regex("a b"), "c"), pre_tokenizers.BertPreTokenizer()),
        (normalizers.Strip(), pre_tokenizers.ByteLevel(add_prefix_space=False)),
        (None, pre_tokenizers.ByteLevel(add_prefix_space=True)),
        (None, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)),
        (None, None),
    ],
)
def test_other_pipelines_get_whole_texts(
    normalizer: normalizers.Normalizer | None, rule: pre_tokenizers.PreTokenizer | None, trained: list[Tokenizer]
) -> None:
    backend = tokenizers.Tokenizer.from_str(trained[-2].to_json())
    assert cut_of(json.loads(backend.to_str())) is with_blanks
    backend.normalizer = normalizer
    backend.pre_tokenizer = rule
    assert cut_of(json.loads(backend.to_str())) is None
    found = Tokenizer(backend)
    assert found.encode_batch(LINES) == [found.encode(line) for line in LINES]


def test_tokens_added_across_words_are_found(trained: list[Tokenizer]) -> None:
    backend = tokenizers.Tokenizer.from_str(train("wordpiece", BERT, False).to_json())
    backend.add_tokens(["lazy dog"])
    found = Tokenizer(backend)
    assert found.encode_batch(["the lazy dog"])[0][-1] == backend.token_to_id("lazy dog")


@pytest.mark.parametrize("lowercase", [False, True])
def test_counted_words_teach_the_merges_of_their_lines(lowercase: bool) -> None:
    ours = json.loads(train("bpe", MARIAN, lowercase).to_json())
    theirs = tokenizers.Tokenizer(models.BPE())
    backend = tokenizers.Tokenizer.from_str(json.dumps(ours))
    theirs.normalizer, theirs.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    characters = Counter(c for line in LINES for c in theirs.normalizer.normalize_str(line) if c != " ")
    room = 400 - 259
    ranked = sorted(characters, key=lambda c: (-characters[c], c))[: room // 2 - 1]
    trainer = trainers.BpeTrainer(
        vocab_size=room, initial_alphabet=[SPACE, *ranked], limit_alphabet=len(ranked) + 1, show_progress=False
    )
    theirs.train_from_iterator(LINES, trainer)
    assert ours["model"]["merges"] == json.loads(theirs.to_str())["model"]["merges"]
    assert len(ours["model"]["merges"]) > 30
