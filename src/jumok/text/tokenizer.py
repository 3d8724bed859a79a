"""Strings to ids and back: character, word, BPE and WordPiece vocabularies, trained deterministically.

All four are pipelines of the `tokenizers` library, so a saved `tokenizer.json` opens elsewhere. The ids of a
sequence-to-sequence vocabulary follow Marian's layout: `</s>` first, then `<unk>`, the pieces, and `<pad>` last.
`<pad>` is also what a decoder starts from. Special tokens are never matched in a user's text.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Literal

import tokenizers
from pydantic import Field
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from jumok.config import Count
from jumok.errors import CheckpointError, DataError
from jumok.text.normalise import compose_with_spans

TRAINER = f"tokenizers {tokenizers.__version__}"  # the same text and config may give other pieces with another
EOS, UNK, PAD = "</s>", "<unk>", "<pad>"
EOS_ID, UNK_ID = 0, 1
SPACE = "▁"  # U+2581 marks the start of a word inside a piece
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORDPIECE_PREFIX = "##"
# Unicode's White_Space, which the pipeline folds; str.isspace() also counts four control characters.
WHITE_SPACE = frozenset(chr(c) for c in range(0x3001) if chr(c).isspace() and not 0x1C <= c <= 0x1F)
MIN_PIECES = len(BYTES) + 4  # and `</s>`, `<unk>`, `<pad>` and the mark of a space

Kind = Literal["character", "word", "bpe", "wordpiece"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """How text is cut into pieces."""

    kind: Kind = "bpe"
    """character and bpe know every text (rare characters become bytes); word and wordpiece have `<unk>`"""
    vocab_size: Annotated[int, Field(ge=8)] = 8000
    """pieces in the vocabulary, special ones and bytes included; an upper bound"""
    joint: bool = True
    """one vocabulary for source and target"""
    lowercase: bool = False
    """fold case before anything else (the output is lower-case too)"""
    sample_lines: Count = 200_000
    """lines it learns from at most, drawn evenly from the whole text"""

    def __post_init__(self) -> None:
        if self.vocab_size < MIN_PIECES and self.kind in ("bpe", "character"):
            raise ValueError(f"vocab_size must be at least {MIN_PIECES}: 256 bytes and 4 special pieces")


@dataclass(frozen=True, slots=True)
class Encoded:
    """Pieces of one text; `text[start:end]` of the original text for each of them."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class Tokenizer:
    """A trained vocabulary with its rules; holds no state beyond them."""

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._backend = backend
        self._backend.no_padding()
        self._backend.no_truncation()
        self.vocab_size: int = backend.get_vocab_size(with_added_tokens=False)
        self.pad_id = self.vocab_size - 1
        for token, expected in ((EOS, EOS_ID), (UNK, UNK_ID), (PAD, self.pad_id)):
            if backend.token_to_id(token) != expected:
                raise CheckpointError(
                    f"tokenizer has {token} at {backend.token_to_id(token)}, not at {expected}",
                    right="a tokenizer.json that jumok trained, or one in Marian's layout",
                )

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        for text in texts:
            _refuse_surrogates(text)
        return [e.ids for e in self._backend.encode_batch_fast(list(texts), add_special_tokens=False)]

    def encode_with_offsets(self, text: str) -> Encoded:
        """Character offsets into `text` as given, also where normalisation joined characters."""
        _refuse_surrogates(text)
        composed, spans = compose_with_spans(text)
        encoding = self._backend.encode(composed, add_special_tokens=False)
        offsets = []
        for piece, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
            # A piece that carries its word's leading space points at the word; a bare space at nothing.
            while start < end and composed[start] in WHITE_SPACE:
                start += 1
            end = start if piece == SPACE else end
            offsets.append((spans[start][0], spans[end - 1][1] if end > start else spans[start][0]))
        return Encoded(encoding.ids, offsets)

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [i for i in ids if i not in (EOS_ID, self.pad_id)]
        text: str = self._backend.decode(pieces, skip_special_tokens=False)
        return text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._backend.id_to_token(i) or UNK for i in ids]

    def to_json(self) -> str:
        text: str = self._backend.to_str(pretty=False)
        return text

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        return cls(tokenizers.Tokenizer.from_str(text))

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        try:
            return cls.from_json(path.read_text("utf-8"))
        except CheckpointError as error:
            raise CheckpointError(error.what, where=path, right=error.right) from error
        except Exception as error:  # the backend raises bare exceptions for anything unreadable
            raise CheckpointError(f"tokenizer cannot be read: {error}", where=path) from error

    @classmethod
    def train(cls, config: TokenizerConfig, lines: Iterable[str]) -> "Tokenizer":
        """The same lines give the same bytes, in any process and with any number of threads."""
        lines = _sample(lines, config.sample_lines)
        normalizer = _normalizer(lowercase=config.lowercase)
        match config.kind:
            case "character" | "bpe":
                backend = _train_bpe(lines, normalizer, config)
            case "word":
                backend = _train_words(lines, normalizer, config)
            case "wordpiece":
                backend = _train_wordpiece(lines, normalizer, config)
        backend.post_processor = processors.TemplateProcessing(
            single=f"$A {EOS}", pair=f"$A {EOS} $B {EOS}", special_tokens=[(EOS, EOS_ID)]
        )
        return cls(backend)


def _sample(lines: Iterable[str], n: int) -> list[str]:
    """n lines, each as likely as any other (a reservoir); all of them if there are fewer."""
    rng = Random(0)
    kept: list[str] = []
    for i, line in enumerate(lines):
        if i < n:
            kept.append(line)
        elif (j := rng.randrange(i + 1)) < n:
            kept[j] = line
    return kept


def _normalizer(*, lowercase: bool) -> normalizers.Normalizer:
    # NFC composes jamo into syllables and letters with their accents; NFKC and NFD would destroy both.
    steps: list[normalizers.Normalizer] = [
        normalizers.NFC(),
        normalizers.Replace(SPACE, "_"),
        normalizers.Replace(tokenizers.Regex(r"\s+"), " "),
        normalizers.Strip(),
    ]
    if lowercase:
        steps.insert(0, normalizers.Lowercase())  # before composition: a small letter may compose otherwise
    return normalizers.Sequence(steps)


def _words_with_spaces() -> pre_tokenizers.PreTokenizer:
    """Words keep the mark of their leading space, punctuation stands alone: nothing is lost."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=True),
            pre_tokenizers.Punctuation(behavior="isolated"),
        ]
    )


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


def _count_characters(lines: Iterable[str], normalizer: normalizers.Normalizer) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(normalizer.normalize_str(line))
    return counts


def _most_common(counts: Counter[str], n: int) -> list[str]:
    # Ties are broken by the token itself, or the order of a hash table would decide.
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    return ranked[: max(n, 0)]


def _learn_merges(
    lines: Iterable[str], normalizer: normalizers.Normalizer, *, alphabet: list[str], n_pieces: int
) -> tuple[list[str], list[tuple[str, str]]]:
    """Byte-pair encoding: the pieces in the order of their making, and the merges."""
    learner = tokenizers.Tokenizer(models.BPE())
    learner.normalizer = normalizer
    learner.pre_tokenizer = _words_with_spaces()
    trainer = trainers.BpeTrainer(
        vocab_size=n_pieces,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        special_tokens=[],
        show_progress=False,
    )
    learner.train_from_iterator(lines, trainer)
    model = json.loads(learner.to_str())["model"]
    vocab: dict[str, int] = model["vocab"]
    merges = [(left, right) for left, right in model["merges"]]
    return sorted(vocab, key=vocab.__getitem__), merges


def _train_bpe(
    lines: Iterable[str], normalizer: normalizers.Normalizer, config: TokenizerConfig
) -> tokenizers.Tokenizer:
    room = config.vocab_size - (MIN_PIECES - 1)
    counts = _count_characters(lines, normalizer)
    counts[SPACE] = counts.pop(" ", 0) + 1
    _refuse_empty(counts)
    # Half of the room (but 64 at least) goes to single characters at most: rarer ones are spelt as bytes.
    alphabet = _most_common(counts, room if config.kind == "character" else min(room, max(room // 2, 64)))
    if SPACE not in alphabet:
        alphabet[-1] = SPACE
    if config.kind == "character":
        pieces: list[str] = sorted(alphabet)
        merges: list[tuple[str, str]] = []
    else:
        pieces, merges = _learn_merges(lines, normalizer, alphabet=alphabet, n_pieces=room)
    vocab = {token: i for i, token in enumerate([EOS, UNK, *BYTES, *pieces, PAD])}
    backend = tokenizers.Tokenizer(
        models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token=UNK, fuse_unk=False)
    )
    backend.normalizer = normalizer
    backend.pre_tokenizer = _words_with_spaces()
    backend.decoder = _join_words()
    return backend


def _train_words(
    lines: Iterable[str], normalizer: normalizers.Normalizer, config: TokenizerConfig
) -> tokenizers.Tokenizer:
    cut = _words_with_spaces()
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(word for word, _ in cut.pre_tokenize_str(normalizer.normalize_str(line)))
    _refuse_empty(counts)
    words = _most_common(counts, config.vocab_size - 3)
    vocab = {token: i for i, token in enumerate([EOS, UNK, *words, PAD])}
    backend = tokenizers.Tokenizer(models.WordLevel(vocab=vocab, unk_token=UNK))
    backend.normalizer = normalizer
    backend.pre_tokenizer = cut
    backend.decoder = _join_words()
    return backend


def _train_wordpiece(
    lines: Iterable[str], normalizer: normalizers.Normalizer, config: TokenizerConfig
) -> tokenizers.Tokenizer:
    """WordPiece from BPE's merges: the library's own WordPiece trainer depends on the order of a hash table."""
    counts = _count_characters(lines, normalizer)
    counts.pop(" ", None)
    _refuse_empty(counts)
    room = config.vocab_size - 3
    characters = _most_common(counts, room // 4)
    # Every kept character starts a word and continues one, so that a word of known letters is never unknown.
    pieces = dict.fromkeys(sorted(characters) + [WORDPIECE_PREFIX + c for c in sorted(characters)])
    merged, _ = _learn_merges(lines, normalizer, alphabet=[*characters, SPACE], n_pieces=config.vocab_size)
    for piece in merged:
        start = piece.startswith(SPACE)
        piece = piece[1:] if start else WORDPIECE_PREFIX + piece
        if piece and len(pieces) < room:
            pieces[piece] = None
    vocab = {token: i for i, token in enumerate([EOS, UNK, *pieces, PAD])}
    backend = tokenizers.Tokenizer(
        models.WordPiece(vocab=vocab, unk_token=UNK, continuing_subword_prefix=WORDPIECE_PREFIX)
    )
    backend.normalizer = normalizer
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix=WORDPIECE_PREFIX, cleanup=False)
    return backend


@dataclass(frozen=True, slots=True)
class Tokenizers:
    """One for each side; the same object twice when the vocabulary is joint."""

    source: Tokenizer
    target: Tokenizer

    @property
    def sizes(self) -> dict[str, int]:
        return {"source_vocab": self.source.vocab_size, "target_vocab": self.target.vocab_size}

    def encode_source(self, text: str) -> list[int]:
        return [*self.source.encode(text), EOS_ID]

    def encode_target(self, text: str) -> list[int]:
        return [*self.target.encode(text), EOS_ID]


def _refuse_surrogates(text: str) -> None:
    """Half a surrogate pair can come out of JSON; it is not a character and has no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"not Unicode text: half a surrogate pair ({text[error.start]!r}) at character {error.start + 1}"
        ) from error


def _refuse_empty(counts: Counter[str]) -> None:
    if not any(re.search(r"\S", token) for token in counts if token != SPACE):
        raise DataError(
            "empty corpus: no text to train a tokenizer on", right="a corpus with at least one non-empty line"
        )
