"""Strings to ids and back: character, word, BPE, byte-level BPE, WordPiece and Unigram vocabularies.

All are pipelines of the `tokenizers` library, so `tokenizer.json` files can be exchanged with other tools. Special
tokens are never matched in a user's text.
"""

import copy
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal

import tokenizers
from tokenizers.models import BPE, Unigram, WordLevel, WordPiece

from jumok.errors import CheckpointError, DataError
from jumok.text.backend import backend_errors, id_of, layout_of
from jumok.text.normalise import compose, compose_with_spans, spans_of_characters
from jumok.text.slots import SLOTS, Fillings, Hidden, fill, hide
from jumok.text.vocabulary import (
    BERT,
    BYTE_SPACE,
    EOS_ID,
    MARIAN,
    ROBERTA,
    SPACE,
    WORDPIECE_PREFIX,
    Kind,
    Layout,
    TokenizerConfig,
    extend,
    learn,
)
from jumok.text.words import WHITE_SPACE, Cut, cut_of

FEW = 64
"""texts or words that are not worth waking the library's threads for"""
MOST_REMEMBERED = 200_000
"""characters of words whose ids a tokenizer remembers: some 25,000 words, in 8 MB"""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of one text, each with its (start, end) offsets into the original text."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class _Words:
    """The ids of words that were encoded before: most words of a text are repetitions."""

    def __init__(self) -> None:
        self._known: dict[str, list[int]] = {}
        self._characters = 0

    def ids(
        self, texts: Sequence[Sequence[str]], encode: Callable[[list[str]], list[list[int]]]
    ) -> Mapping[str, Sequence[int]]:
        """The ids of all words of these texts. What is returned is only added to, so that threads can share it."""
        if self._characters > MOST_REMEMBERED:
            self._known, self._characters = {}, 0
        known = self._known
        new = [word for word in dict.fromkeys(chain.from_iterable(texts)) if word not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
            self._characters += sum(map(len, new))
        return known


class Tokenizer:
    """A trained vocabulary and its rules. It remembers the ids of words, which never differ, and nothing else.

    If it has slots for placeholders, `filled` binds it to a source, whose placeholders they then stand for.
    """

    def __init__(self, backend: tokenizers.Tokenizer, *, where: Path | None = None) -> None:
        """`where` is the file of a stored vocabulary, for errors."""
        self._backend, self._where = backend, where
        self._backend.no_padding()
        self._backend.no_truncation()
        self._backend.encode_special_tokens = True  # a special token in a user's text is plain text
        if isinstance(backend.model, BPE):
            backend.model.dropout = None  # merges left out at random are for training: the same text, the same ids
        self.vocab_size: int = backend.get_vocab_size(with_added_tokens=True)
        self.layout = layout_of(backend)
        pipeline = json.loads(backend.to_str())
        self._cut: Cut | None = cut_of(pipeline)
        self._words = _Words()
        self._bytes = '"ByteLevel"' in json.dumps(pipeline["pre_tokenizer"])
        # Composed here, with Python's tables, and again by the backend: its tables are older, and leave it as it is.
        self._composes = '"NFC"' in json.dumps(pipeline["normalizer"])
        self._longest = max(map(len, backend.get_vocab(with_added_tokens=True)))  # characters of a token
        slotted = backend.token_to_id(SLOTS[0]) is not None
        self.slot_ids: list[int] = [id_of(backend, slot) for slot in SLOTS] if slotted else []
        """of placeholders; none in most vocabularies"""
        self._fillings: Fillings | None = None
        self.special_ids: list[int] = [id_of(backend, token) for token in self.layout.specials]
        ids = dict(zip(self.layout.specials, self.special_ids, strict=True))
        self.start_id: int = ids[self.layout.start]
        self.end_id: int = ids[self.layout.end]
        self.unk_id: int = ids[self.layout.unknown]
        self.pad_id: int = ids[self.layout.padding]
        self.mask_id: int | None = None if self.layout.mask is None else ids[self.layout.mask]
        if self.layout is MARIAN and (self.end_id, self.unk_id, self.pad_id) != (0, 1, self.vocab_size - 1):
            raise CheckpointError(
                f"tokenizer has {MARIAN.end}, {MARIAN.unknown}, {MARIAN.padding} at ids {self.end_id}, {self.unk_id},"
                f" {self.pad_id}, not at 0, 1, {self.vocab_size - 1}",
                hint="use a tokenizer.json trained by jumok, or one in Marian's layout",
                code="checkpoint.special_pieces",
            )

        self.ends_between, self.second_segment = self._framing(pipeline["post_processor"] is not None)
        self._at_masks = self._mask_pattern(pipeline["added_tokens"])

    def _framing(self, processed: bool) -> tuple[int, int]:
        """End tokens between two texts, and the segment of the second one, as the vocabulary's own pipeline has."""
        if not self.layout.framed or not processed:
            return (2, 0) if self.layout is ROBERTA else (1, 1)
        start, end = self.start_id, self.end_id
        one, two = map(self._around_nothing, (None, ""))
        for ends, second in ((1, 1), (1, 0), (2, 0)):
            if one == [(start, 0), (end, 0)] and two == [(start, 0), *[(end, 0)] * ends, (end, second)]:
                return ends, second
        shown = " ".join(f"{self._backend.id_to_token(i)}:{segment}" for i, segment in two)
        raise CheckpointError(
            f"the tokenizer's post-processor writes {shown or 'nothing'} around two empty texts",
            hint=f"jumok has {BERT.start} A {BERT.end} B {BERT.end} and {ROBERTA.start} A {ROBERTA.end} {ROBERTA.end} B"
            f" {ROBERTA.end}",
            code="checkpoint.frame",
        )

    def _around_nothing(self, pair: str | None) -> list[tuple[int, int]]:
        """The special tokens that the pipeline adds to an empty text or two, each with its segment."""
        e = self._backend.encode("", pair)
        return [(i, s) for i, s, added in zip(e.ids, e.type_ids, e.special_tokens_mask, strict=True) if added]

    def _mask_pattern(self, added: list[dict[str, Any]]) -> re.Pattern[str] | None:
        """The mask in a text, with the white space beside it that belongs to it."""
        if self.layout.mask is None:
            return None
        takes = next((token for token in added if token["content"] == self.layout.mask), {})
        blank = f"[{re.escape(''.join(sorted(WHITE_SPACE)))}]*"
        before, after = (blank if takes.get(side) else "" for side in ("lstrip", "rstrip"))
        return re.compile(before + re.escape(self.layout.mask) + after)

    @property
    def kind(self) -> Kind | Literal["unigram"]:
        """The kind of vocabulary, as far as the backend reveals it."""
        match self._backend.model:
            case WordLevel():
                return "word"
            case WordPiece():
                return "wordpiece"
            case Unigram():
                return "unigram"
            case _:
                return "byte_bpe" if self._bytes else "bpe"

    def frame(self, ids: Sequence[int], pair: Sequence[int] | None = None) -> list[int]:
        """Add the start and end tokens to a text or a pair of texts."""
        start = [self.start_id] if self.layout.framed else []
        if pair is None:
            return [*start, *ids, self.end_id]
        return [*start, *ids, *[self.end_id] * self.ends_between, *pair, self.end_id]

    def second_at(self, n: int) -> int:
        """Where the second text of a pair begins in its frame, after a first one of n tokens."""
        return int(self.layout.framed) + n + self.ends_between

    def filled(self, source: str) -> "Tokenizer":
        """The same vocabulary with the placeholders of `source` in its slots, to read and write what translates it."""
        if not self.slot_ids:
            return self
        bound = copy.copy(self)
        bound._fillings = hide(source).fillings
        return bound

    @property
    def empty_slots(self) -> list[int]:
        """The ids of slots without a placeholder."""
        return [] if self._fillings is None else self.slot_ids[len(self._fillings) :]

    def _hidden(self, text: str) -> Hidden:
        return hide(text, self._fillings) if self.slot_ids else Hidden(text, ())

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str], *, sources: Sequence[str] | None = None) -> list[list[int]]:
        """The ids of each text. `sources` are what the texts translate, and number their placeholders."""
        for text in texts:
            _refuse_surrogates(text)
        if self.slot_ids and sources is None:
            texts = [self._hidden(text).text for text in texts]
        elif self.slot_ids and sources is not None:
            texts = [hide(text, hide(source).fillings).text for text, source in zip(texts, sources, strict=True)]
        if self._cut is None:
            return self._encode_each(texts)
        words = [self._cut(text) for text in texts]
        known = self._words.ids(words, self._encode_each)
        return [list(chain.from_iterable(map(known.__getitem__, each))) for each in words]

    def encode_masked(self, text: str) -> list[int]:
        """The ids of a text in which the name of the mask token means the token itself."""
        assert self._at_masks is not None
        assert self.mask_id is not None
        first, *others = self.encode_batch(self._at_masks.split(text))
        return first + [i for ids in others for i in (self.mask_id, *ids)]

    def _encode_each(self, texts: Sequence[str]) -> list[list[int]]:
        composed = [compose(text) for text in texts] if self._composes else list(texts)
        with self._in_use():
            if len(composed) < FEW:
                return [self._backend.encode(text, add_special_tokens=False).ids for text in composed]
            return [e.ids for e in self._backend.encode_batch_fast(composed, add_special_tokens=False)]

    def encode_with_offsets(self, text: str, endings: Collection[str] = ()) -> Encoded:
        """Encode with character offsets into the original `text`, even where normalisation joined characters.

        No token reaches into one of the `endings` of its word if the vocabulary has tokens for both parts.
        """
        _refuse_surrogates(text)
        hidden = self._hidden(text)
        text = hidden.text
        composed, spans = compose_with_spans(text) if self._composes else (text, spans_of_characters(text))
        if hidden.slots:
            places = hidden.spans()
            spans = [(places[start][0], places[max(start, end - 1)][1]) for start, end in spans]
        with self._in_use():
            encoding = self._backend.encode(composed, add_special_tokens=False)
        cuts = _before_endings(composed, endings) if endings else set()
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for number, piece, (start, end) in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True):
            # A token that carries its word's leading space points at the word; a bare space at nothing.
            while start < end and composed[start] in WHITE_SPACE:
                start += 1
            end = start if piece == SPACE else end
            inner = [cut for cut in range(start + 1, end) if cut in cuts] if cuts else []
            divided = self._divided(number, piece, composed, [start, *inner, end]) if inner else [(number, start, end)]
            for part, first, last in divided:
                ids.append(part)
                offsets.append((spans[first][0], spans[last - 1][1] if last > first else spans[first][0]))
        return Encoded(ids, offsets)

    def _divided(self, number: int, piece: str, text: str, edges: list[int]) -> list[tuple[int, int, int]]:
        """Split a token at the edges into the longest tokens of the vocabulary; keep it whole if that fails."""
        whole = [(number, edges[0], edges[-1])]
        lead = next((mark for mark in (WORDPIECE_PREFIX, SPACE) if piece.startswith(mark)), "")
        body = text[edges[0] : edges[-1]] if number == self.unk_id else piece.removeprefix(lead)
        if len(body) != edges[-1] - edges[0]:  # bytes, or normalised to another length
            return whole
        continuing = WORDPIECE_PREFIX if isinstance(self._backend.model, WordPiece) else ""
        found: list[tuple[int, int, int]] = []
        for first, last in pairwise(edges):
            while first < last:
                part = body[first - edges[0] : last - edges[0]][: self._longest]
                for n in range(len(part), 0, -1):
                    known = self._backend.token_to_id((continuing if found else lead) + part[:n])
                    if known is not None or number == self.unk_id and n == 1:
                        break
                else:
                    return whole
                found.append((self.unk_id if known is None else known, first, first + n))
                first += n
        return found

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [i for i in ids if i not in (self.start_id, self.end_id, self.pad_id)]
        with self._in_use():
            text: str = self._backend.decode(pieces, skip_special_tokens=False)
        return fill(text, self._fillings) if self.slot_ids else text

    def _in_use(self) -> AbstractContextManager[None]:
        return backend_errors("tokenizer fails on a text", where=self._where, code="checkpoint.tokenizer")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        found = [self._backend.id_to_token(i) or self.layout.unknown for i in ids]
        if not self.slot_ids:
            return found
        named = {
            i: fill(slot, self._fillings) or fill(slot, None) for i, slot in zip(self.slot_ids, SLOTS, strict=True)
        }
        return [named.get(i, piece) for i, piece in zip(ids, found, strict=True)]

    def written(self, number: int) -> str:
        """A token without the marks of a word's start or continuation."""
        if isinstance(self._backend.model, WordPiece):
            return self.pieces([number])[0].removeprefix(WORDPIECE_PREFIX)
        return self.decode([number]).strip()

    def continues_word(self) -> list[bool]:
        """For every id, whether its token continues a word."""
        pieces = self.pieces(range(self.vocab_size))
        if self.layout is not ROBERTA or self.kind == "wordpiece":
            return [piece.startswith(WORDPIECE_PREFIX) for piece in pieces]
        mark = BYTE_SPACE if self._bytes else (SPACE,)
        return [not piece.startswith(mark) for piece in pieces]

    def extended(self, lines: Iterable[str], n: int) -> "tuple[Tokenizer, list[list[int]]]":
        """Add n words from the lines; return the new tokenizer and the ids each word was split into before."""
        lines = map(compose, lines) if self._composes else lines
        backend, cut = extend(self._backend, lines, n, self._cut or (lambda line: [line]))
        return Tokenizer(backend), cut

    def to_json(self) -> str:
        text: str = self._backend.to_str(pretty=False)
        return text

    def save(self, path: Path) -> None:
        path.write_text(self.to_json(), "utf-8")

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str, *, where: Path | None = None) -> "Tokenizer":
        return cls(tokenizers.Tokenizer.from_str(text), where=where)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        try:
            with backend_errors("tokenizer cannot be read", where=path, code="checkpoint.unreadable"):
                return cls.from_json(path.read_text("utf-8-sig"), where=path)
        except CheckpointError as error:
            raise CheckpointError(error.what, where=path, hint=error.hint, code=error.code) from error

    @classmethod
    def train(cls, config: TokenizerConfig, lines: Iterable[str], layout: Layout = MARIAN) -> "Tokenizer":
        lines = (hide(line).text for line in lines) if config.placeholders else lines
        return cls(learn(config, map(compose, lines), layout))


@dataclass(frozen=True, slots=True)
class Tokenizers:
    """The source and target tokenizers; one object if the vocabulary is joint."""

    source: Tokenizer
    target: Tokenizer

    @property
    def sizes(self) -> dict[str, int]:
        return {"source_vocab": self.source.vocab_size, "target_vocab": self.target.vocab_size}

    def filled(self, source: str) -> "Tokenizers":
        """Both with the placeholders of `source` in their slots."""
        if not (self.source.slot_ids or self.target.slot_ids):
            return self
        target = self.target.filled(source)
        return Tokenizers(target if self.source is self.target else self.source.filled(source), target)

    @property
    def hashes(self) -> list[str]:
        return [self.source.sha256, self.target.sha256]

    def encode_source(self, text: str) -> list[int]:
        return [*self.source.encode(text), EOS_ID]

    def encode_target(self, text: str) -> list[int]:
        return [*self.target.encode(text), EOS_ID]


def _before_endings(text: str, endings: Collection[str]) -> set[int]:
    """Where the endings of words start, stacked ones included: 서울-에서-는. A word is never all ending."""
    found: set[int] = set()
    longest = max(map(len, endings))
    for word in re.finditer(r"\w+", text):
        for start in range(word.end() - 1, word.start(), -1):
            ends = (end for end in range(start + 1, min(start + longest, word.end()) + 1))
            if any((end in found or end == word.end()) and text[start:end] in endings for end in ends):
                found.add(start)
    return found


def _refuse_surrogates(text: str) -> None:
    """JSON can contain unpaired surrogates, which are not characters and have no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"not Unicode text: unpaired surrogate ({text[error.start]!r}) at character {error.start + 1}"
        raise DataError(what, code="data.encoding") from error
