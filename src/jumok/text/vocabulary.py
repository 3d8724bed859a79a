"""Deterministic training of vocabularies, and their special tokens.

The same lines give the same bytes, in any process and with any number of threads.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Annotated, Literal

import tokenizers
from pydantic import Field
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from jumok.config import Count
from jumok.errors import DataError
from jumok.text.slots import SLOTS
from jumok.text.words import Cut, at_spaces, count, count_characters, count_words, with_blanks

TRAINER = f"tokenizers {tokenizers.__version__}"  # another version may learn other tokens from the same text
SPACE = "▁"  # U+2581 marks the start of a word inside a token
BYTE_SPACE = ("Ġ", "Ċ")  # a space and a line break, as byte-level vocabularies write them
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORDPIECE_PREFIX = "##"

Kind = Literal["character", "word", "bpe", "wordpiece", "byte_bpe"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The special tokens of a model family, by role."""

    start: str
    end: str
    unknown: str
    padding: str
    mask: str | None = None
    framed: bool = False
    """texts begin with `start`; otherwise only a decoder starts from it"""

    @property
    def specials(self) -> list[str]:
        return list(dict.fromkeys(t for t in (self.padding, self.unknown, self.start, self.end, self.mask) if t))


MARIAN = Layout(start="<pad>", end="</s>", unknown="<unk>", padding="<pad>")
"""ids: end, unknown, ordinary tokens, and last padding, from which a decoder also starts"""
BERT = Layout(start="[CLS]", end="[SEP]", unknown="[UNK]", padding="[PAD]", mask="[MASK]", framed=True)
ROBERTA = Layout(start="<s>", end="</s>", unknown="<unk>", padding="<pad>", mask="<mask>", framed=True)
GPT = Layout(start="<|endoftext|>", end="<|endoftext|>", unknown="<|endoftext|>", padding="<|endoftext|>")
EOS, UNK, PAD = MARIAN.end, MARIAN.unknown, MARIAN.padding
EOS_ID, UNK_ID = 0, 1
LONG_LINE = 1024  # characters
MIN_PIECES = len(BYTES) + 4  # plus `</s>`, `<unk>`, `<pad>` and the mark of a space
MIN_BYTE_PIECES = len(BYTES) + 1
SLOTTED: tuple[Kind, ...] = ("bpe", "character", "word")
"""kinds that keep the spaces beside marks, and so beside slots"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """How text is split into tokens."""

    kind: Kind = "bpe"
    """character, bpe and byte_bpe encode any text (rare characters become bytes); word and wordpiece have `<unk>`"""
    vocab_size: Annotated[int, Field(ge=8, le=2**20)] = 8000
    """maximum vocabulary size, special tokens and bytes included"""
    joint: bool = True
    """share one vocabulary between source and target"""
    lowercase: bool = False
    """lowercase all text first (outputs are lower-case too)"""
    placeholders: bool = False
    """translation: hide placeholders and markup (`%s`, `{name}`, `<b>`, URLs, roles) from the model, which only places
    them; what is lost or doubled is repaired where that is certain, and noted"""
    sample_lines: Count = 200_000
    """maximum number of lines to train on, sampled uniformly from the whole text"""

    def __post_init__(self) -> None:
        if self.vocab_size < MIN_PIECES and self.kind in ("bpe", "character"):
            raise ValueError(f"vocab_size must be at least {MIN_PIECES}: 256 bytes and 4 special tokens")
        if self.vocab_size < MIN_BYTE_PIECES and self.kind == "byte_bpe":
            raise ValueError(f"vocab_size must be at least {MIN_BYTE_PIECES}: 256 bytes and the end-of-text token")
        if self.placeholders and self.kind not in SLOTTED:
            kinds = " or ".join(f'"{kind}"' for kind in SLOTTED)
            raise ValueError(f"placeholders = true needs kind = {kinds}: others lose the spaces beside placeholders")
        if self.placeholders and self.vocab_size < MIN_PIECES + len(SLOTS):
            raise ValueError(f"vocab_size must be at least {MIN_PIECES + len(SLOTS)} with placeholders = true")


def learn(config: TokenizerConfig, lines: Iterable[str], layout: Layout = MARIAN) -> tokenizers.Tokenizer:
    """Train a pipeline of the `tokenizers` library on the lines, in which slots already hide placeholders."""
    lines = _sample(lines, config.sample_lines)
    normalizer = _normalizer(lowercase=config.lowercase)
    match config.kind:
        case "character" | "bpe":
            backend = _train_bpe(lines, normalizer, config)
        case "word":
            backend = _train_words(lines, normalizer, config)
        case "wordpiece":
            backend = _train_wordpiece(lines, normalizer, config, layout)
        case "byte_bpe":
            return _train_byte_bpe(lines, config)
    end = backend.token_to_id(layout.end)
    start = f"{layout.start} " if layout.framed else ""
    backend.post_processor = processors.TemplateProcessing(
        single=f"{start}$A {layout.end}",
        pair=f"{start}$A {layout.end} $B{':1' if layout.framed else ''} {layout.end}{':1' if layout.framed else ''}",
        special_tokens=[(layout.end, end), *([(layout.start, backend.token_to_id(layout.start))] if start else [])],
    )
    return backend


def _sample(lines: Iterable[str], n: int) -> list[str]:
    """Sample n lines uniformly (a reservoir); return all of them if there are fewer."""
    rng = Random(0)
    kept: list[str] = []
    for i, part in enumerate(part for line in lines for part in _parts(line)):
        if i < n:
            kept.append(part)
        elif (j := rng.randrange(i + 1)) < n:
            kept[j] = part
    return kept


def _parts(line: str) -> Iterator[str]:
    """Split a long line between words, so that a sample of lines fits into memory."""
    start = 0
    while len(line) - start > LONG_LINE:
        space = line.rfind(" ", start + 1, start + LONG_LINE)
        end = space if space > 0 else start + LONG_LINE
        yield line[start:end]
        start = end
    yield line[start:]


def _normalizer(*, lowercase: bool) -> normalizers.Normalizer:
    # NFC composes jamo into syllables and letters with their accents; NFKC and NFD would destroy both.
    steps: list[normalizers.Normalizer] = [
        normalizers.NFC(),
        normalizers.Replace(SPACE, "_"),
        normalizers.Replace(tokenizers.Regex(r"\s+"), " "),
        normalizers.Strip(),
    ]
    if lowercase:
        steps.insert(0, normalizers.Lowercase())  # before NFC: lower-case letters may compose differently
    return normalizers.Sequence(steps)


def _words_with_spaces(slots: str = "") -> pre_tokenizers.PreTokenizer:
    """Words keep the mark of their leading space; punctuation and slots stand alone, so nothing is lost."""
    steps: list[pre_tokenizers.PreTokenizer] = [
        pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=True),
        pre_tokenizers.Punctuation(behavior="isolated"),
    ]
    if slots:
        steps.append(pre_tokenizers.Split(tokenizers.Regex(f"[{slots}]"), behavior="isolated"))
    return pre_tokenizers.Sequence(steps)


def _join_words() -> decoders.Decoder:
    return decoders.Sequence(
        [
            decoders.Replace(UNK, SPACE + UNK),  # an unknown word has lost the mark of its space
            decoders.Replace(SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Replace(tokenizers.Regex(" +"), " "),
            decoders.Strip(content=" ", left=1, right=0),
        ]
    )


def _most_common(counts: Counter[str], n: int) -> list[str]:
    # Break ties by the token itself, not by hash-table order.
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    return ranked[: max(n, 0)]


def _learn_merges(
    words: Counter[str], *, alphabet: list[str], n_pieces: int
) -> tuple[list[str], list[tuple[str, str]]]:
    """Byte-pair encoding: the tokens in order of creation, and the merges."""
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    trainer = trainers.BpeTrainer(
        vocab_size=n_pieces,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        special_tokens=[],
        show_progress=False,
    )
    learner.train_from_iterator(_repeated(words), trainer)
    model = json.loads(learner.to_str())["model"]
    vocab: dict[str, int] = model["vocab"]
    merges = [(left, right) for left, right in model["merges"]]
    return sorted(vocab, key=vocab.__getitem__), merges


def _repeated(words: Counter[str]) -> Iterator[str]:
    """Lines with every word as often as it was counted: the library's trainer counts for itself.

    Words of one character have nothing to merge.
    """
    line: list[str] = []
    for word, n in words.items():
        for repeated in range(0, n if len(word) > 1 else 0, LONG_LINE):
            line.append(f"{word} " * min(n - repeated, LONG_LINE))
            if sum(map(len, line)) > LONG_LINE:
                yield "".join(line)
                line = []
    yield "".join(line)


def _train_bpe(
    lines: Iterable[str], normalizer: normalizers.Normalizer, config: TokenizerConfig
) -> tokenizers.Tokenizer:
    slots = SLOTS if config.placeholders else ""
    room = config.vocab_size - (MIN_PIECES - 1) - len(slots)
    parts = count(lines, at_spaces, normalizer)
    counts = count_characters(parts)
    for character in " " + slots:
        counts.pop(character, None)
    _refuse_empty(counts)
    # At most half of the room, or 64, goes to single characters; rarer ones are spelt as bytes.
    most = room if config.kind == "character" else min(room, max(room // 2, 64))
    alphabet = [SPACE, *_most_common(counts, most - 1)]
    if config.kind == "character":
        pieces: list[str] = sorted(alphabet)
        merges: list[tuple[str, str]] = []
    else:
        words = count_words(parts, _words_with_spaces(slots))
        pieces, merges = _learn_merges(words, alphabet=alphabet, n_pieces=room)
    vocab = {token: i for i, token in enumerate([EOS, UNK, *BYTES, *slots, *pieces, PAD])}
    backend = tokenizers.Tokenizer(
        models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token=UNK, fuse_unk=False)
    )
    backend.normalizer = normalizer
    backend.pre_tokenizer = _words_with_spaces(slots)
    backend.decoder = _join_words()
    return backend


def _train_words(
    lines: Iterable[str], normalizer: normalizers.Normalizer, config: TokenizerConfig
) -> tokenizers.Tokenizer:
    slots = SLOTS if config.placeholders else ""
    cut = _words_with_spaces(slots)
    counts = count_words(count(lines, at_spaces, normalizer), cut)
    for slot in slots:
        counts.pop(slot, None)
    _refuse_empty(counts)
    words = _most_common(counts, config.vocab_size - 3 - len(slots))
    vocab = {token: i for i, token in enumerate([EOS, UNK, *slots, *words, PAD])}
    backend = tokenizers.Tokenizer(models.WordLevel(vocab=vocab, unk_token=UNK))
    backend.normalizer = normalizer
    backend.pre_tokenizer = cut
    backend.decoder = _join_words()
    return backend


def _train_wordpiece(
    lines: Iterable[str], normalizer: normalizers.Normalizer, config: TokenizerConfig, layout: Layout
) -> tokenizers.Tokenizer:
    """Train WordPiece from BPE merges: the library's own WordPiece trainer depends on hash-table order."""
    cut = pre_tokenizers.BertPreTokenizer()
    if layout is BERT:
        normalizer = _bert_normalizer(lowercase=config.lowercase)
    parts = count(lines, at_spaces, normalizer)
    counts = count_characters(parts)
    counts.pop(" ", None)
    _refuse_empty(counts)
    room = config.vocab_size - len(layout.specials)
    characters = _most_common(counts, room // 4)
    # Every kept character can start and continue a word, so that a word of known letters is never unknown.
    pieces = dict.fromkeys(sorted(characters) + [WORDPIECE_PREFIX + c for c in sorted(characters)])
    mark_starts = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=False)
    words = count_words(parts, pre_tokenizers.Sequence([cut, mark_starts]))
    merged, _ = _learn_merges(words, alphabet=[*characters, SPACE], n_pieces=config.vocab_size + len(characters))
    for piece in merged:
        start = piece.startswith(SPACE)
        piece = piece[1:] if start else WORDPIECE_PREFIX + piece
        if piece and len(pieces) < room:
            pieces[piece] = None
    tokens = [*layout.specials, *pieces] if layout is BERT else [EOS, UNK, *pieces, PAD]
    backend = tokenizers.Tokenizer(
        models.WordPiece(
            vocab={token: i for i, token in enumerate(tokens)},
            unk_token=layout.unknown,
            continuing_subword_prefix=WORDPIECE_PREFIX,
        )
    )
    backend.normalizer = normalizer
    backend.pre_tokenizer = cut
    backend.decoder = decoders.WordPiece(prefix=WORDPIECE_PREFIX, cleanup=False)
    return backend


def _bert_normalizer(*, lowercase: bool) -> normalizers.Normalizer:
    # BERT's own, except that accents are kept: stripping them would decompose Hangul syllables.
    bert = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=lowercase
    )
    return normalizers.Sequence([normalizers.NFC(), normalizers.Replace(SPACE, "_"), bert])


def _train_byte_bpe(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    """Train BPE over the 256 bytes (Radford et al. 2019, section 2.2): nothing is unknown or lost."""
    normalizer = _byte_normalizer(lowercase=config.lowercase)
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False)
    parts = count(lines, with_blanks, normalizer)
    _refuse_empty(count_characters(parts))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    pieces, merges = _learn_merges(count_words(parts, cut), alphabet=alphabet, n_pieces=config.vocab_size - 1)
    vocab = {token: i for i, token in enumerate([*pieces, GPT.end])}
    backend = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
    backend.normalizer = normalizer
    backend.pre_tokenizer = cut
    backend.decoder = decoders.ByteLevel()
    # Every text starts with the end of the one before it, also for other tools that open the vocabulary.
    backend.post_processor = processors.TemplateProcessing(
        single=f"{GPT.start} $A", pair=f"{GPT.start} $A $B", special_tokens=[(GPT.start, vocab[GPT.start])]
    )
    return backend


def _byte_normalizer(*, lowercase: bool) -> normalizers.Normalizer:
    composed: list[normalizers.Normalizer] = [normalizers.NFC()]
    return normalizers.Sequence([normalizers.Lowercase(), *composed] if lowercase else composed)


def extend(
    backend: tokenizers.Tokenizer, lines: Iterable[str], n: int, apart: Cut
) -> tuple[tokenizers.Tokenizer, list[list[int]]]:
    """Append the n words that save most tokens to a WordPiece vocabulary; also return the ids each was split into.

    A word is worth its count times the tokens it saves, or times its letters if it was unknown. Words that occur once
    teach nothing, and words above WordPiece's length limit would never match. Old tokens keep their ids.
    """
    counts = count_words(count(lines, apart, backend.normalizer), backend.pre_tokenizer)
    unknown = backend.token_to_id(backend.model.unk_token)
    longest = backend.model.max_input_chars_per_word
    known = [word for word in counts if counts[word] > 1 and len(word) <= longest]
    cut = {word: backend.encode(word, add_special_tokens=False).ids for word in known}
    saved = {word: len(word) if ids == [unknown] else len(ids) - 1 for word, ids in cut.items()}
    words = _most_common(Counter({word: counts[word] * pieces for word, pieces in saved.items() if pieces}), n)
    tree = json.loads(backend.to_str())
    vocab = tree["model"]["vocab"]
    first = backend.get_vocab_size(with_added_tokens=True)
    vocab |= {word: first + i for i, word in enumerate(words)}
    return tokenizers.Tokenizer.from_str(json.dumps(tree)), [cut[word] for word in words]


def _refuse_empty(counts: Counter[str]) -> None:
    if not any(re.search(r"\S", token) for token in counts if token != SPACE):
        hint = "add at least one non-empty line"
        raise DataError("empty corpus: no text to train a tokenizer on", hint=hint, code="data.empty_corpus")
