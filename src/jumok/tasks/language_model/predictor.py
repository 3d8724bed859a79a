"""Writing on from a text, and how likely a text is."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import log
from typing import Any

import numpy as np

from jumok import html
from jumok.config import read_config
from jumok.decode.options import DecodeConfig, Request
from jumok.engines import Done, Engine, nobody
from jumok.errors import InputError
from jumok.examples.documents import Sentence
from jumok.examples.plain import Text
from jumok.score.significance import Comparison, Values, compare, score_with_interval
from jumok.tasks.language_model import LanguageModelFacts
from jumok.tasks.protocol import Attention, Note, Predictor, scored
from jumok.text.tokenizer import Tokenizers

Metrics = list[tuple[str, Callable[[Values], Values]]]


@dataclass(frozen=True, slots=True)
class Generated:
    """A text that goes on from the one that was given; `text` has both."""

    text: str
    """the given text and what follows it"""
    log_prob: float
    """the log-probability of what was written"""
    alternatives: list[str]
    """other texts, best first, if `n_best` asks for them"""
    notes: list[Note] = field(default_factory=list)
    """what should be known of it, such as that the text was cut"""

    def _repr_html_(self) -> str:
        return html.block(html.line(self.text), *(html.line(other, small=True) for other in self.alternatives))


def whole_texts(examples: Sequence[Text | Sentence]) -> list[str]:
    """Lines as they are; sentences as the documents that they make, with line breaks between them."""
    texts: list[str] = []
    for example in examples:
        if isinstance(example, Text) or example.first:
            texts.append(example.text)
        else:
            texts[-1] += f"\n{example.text}"
    return texts


def cut(ids: Sequence[int], end_id: int, max_len: int) -> list[list[int]]:
    """A text with its end in parts of `max_len` pieces; an empty one has none."""
    whole = [*ids, end_id] if ids else []
    return [whole[start : start + max_len] for start in range(0, len(whole), max_len)]


class Generator(Predictor[Text, Generated]):
    """One loaded model, or several as an ensemble for scoring; the first one writes."""

    kind = "language_model"
    example = Text
    answers = Generated
    options = DecodeConfig

    def __init__(self, engine: Engine, tokenizers: Tokenizers, facts: LanguageModelFacts) -> None:
        self.engine, self.tokenizers, self.facts = engine, tokenizers, facts
        self.max_len = min(facts.max_len or sys.maxsize, engine.longest or sys.maxsize)

    def read_options(self, options: Mapping[str, Any]) -> DecodeConfig:
        """The stored [decode], with the given options in its place."""
        found = read_config(DecodeConfig, {**asdict(self.facts.decode), **options}, what="the options", path="")
        if found.coverage_penalty:
            what = "coverage_penalty counts attention to a source, and a language model has none"
            raise InputError(what, hint="coverage_penalty = 0", code="input.no_attention")
        return found

    def encode(self, example: Text, options: DecodeConfig) -> Request:
        prefix = self.tokenizer.encode(example.text)
        # The start takes a position, too.
        room = sys.maxsize if self.engine.longest is None else self.engine.longest - 1
        if len(prefix) > room:
            what = f"a text of {len(prefix)} pieces: the model reads {room}"
            raise InputError(what, where=example.where, hint="a shorter text", code="text.too_long")
        end = min(len(prefix) + options.max_extra, room)
        return Request(source_len=0, max_len=end, prefix=prefix, seed=options.seed)

    def answer(
        self, examples: Sequence[Text], read: Sequence[Request], options: DecodeConfig, done: Done
    ) -> Iterator[Generated]:
        for hypotheses in self.engine.search(None, read, options, done=done):
            best, *others = [self.tokenizer.decode(hypothesis.ids) for hypothesis in hypotheses]
            yield Generated(best, hypotheses[0].log_prob, others)

    def completed(self, example: Text, output: Generated) -> Text:
        """The text with what follows it."""
        return replace(example, text=output.text)

    def stream(self, text: str | Mapping[str, Any] | Text, **options: Any) -> Iterator[str]:
        """What comes after a text, bit by bit as it is written; [decode] has to draw or to be greedy."""
        decode = self.wanted(options)
        request = self.encode(self.parse(text), decode)
        ids, said = list(request.prefix), self.tokenizer.decode(request.prefix)
        for token in self.engine.stream(request, decode):
            ids.append(token)
            now = self.tokenizer.decode(ids)
            if not now.endswith("\ufffd"):  # half of a character's bytes
                yield now[len(said) :]
                said = now

    def quick(self, examples: Sequence[Text | Sentence]) -> dict[str, float]:
        """Dev scores, without intervals."""
        statistics, metrics = self._measured(whole_texts(examples), nobody)
        return {name: float(value(statistics.sum(axis=0))) for name, value in metrics}

    def score(
        self, examples: Sequence[Text | Sentence], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Perplexity and bits per byte with intervals; there are no outputs."""
        self.wanted(options)
        texts = whole_texts(examples)
        statistics, metrics = self._measured(texts, done)
        notes = []
        if unknown := self._unknown(texts):
            metrics = [(name, value) for name, value in metrics if name != "bits_per_byte"]
            notes.append(f"{unknown:,} pieces are unknown to the vocabulary: bits per byte would be too low")
        size = f"{self.tokenizer.vocab_size} pieces, texts of at most {self.max_len}"
        signature = f"{size}, bootstrap 1000, seed 12345, 95%"
        scores = [score_with_interval(name, statistics, value, signature=signature) for name, value in metrics]
        return scored(texts, scores) | ({"notes": notes} if notes else {}), []

    def compare(
        self, other: "Generator", examples: Sequence[Text | Sentence], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        """In bits per byte, which do not depend on the vocabulary."""
        self.wanted(options)
        texts = whole_texts(examples)
        if any(g._unknown(texts) for g in (self, other)) and self.tokenizer.sha256 != other.tokenizer.sha256:
            raise InputError(
                "a vocabulary does not know all words of the texts, and what it leaves out costs it nothing",
                hint="runs with the same vocabulary, or with such as know every text (bpe, byte_bpe, character)",
                code="text.unknown_pieces",
            )
        ours, theirs = (g.likelihood(texts, done=done)[:, [0, 0, 2]] for g in (self, other))
        return [compare(ours, theirs, bits_per_byte_from, metric="bits_per_byte")]

    def likelihood(self, texts: Sequence[str], *, done: Done = nobody) -> Values:
        """[n, 5]: of each text minus its log-probability, its pieces with the end, its bytes and its words, each with
        the line's end, and minus its log-probability backwards, if the model has that.

        Nothing is predicted of an empty text, so that nothing of it counts.
        """
        return self._likelihood(texts, done)[0]

    def attention(self, example: Any, output: Generated | str | None = None) -> dict[str, Attention]:
        """Of a GPT, while it reads the text, or the output, which begins with the text."""
        text = self.parse(example).text if output is None else output if isinstance(output, str) else output.text
        ids = self.encode(Text(text), self.facts.decode).prefix
        maps = self.engine.attention(ids)
        if not maps:
            raise InputError("the model has no attention to look at", hint="a GPT", code="input.no_attention")
        pieces = self.tokenizer.pieces([self.tokenizer.start_id, *ids])
        return {name: Attention(pieces, pieces, weights) for name, weights in maps.items()}

    def _measured(self, texts: Sequence[str], done: Done) -> tuple[Values, Metrics]:
        """Likelihoods, and what is told from them. Forwards; words are compared across vocabularies, bytes across
        languages as well. Backwards if there is that."""
        statistics, directions = self._likelihood(texts, done)
        found: Metrics = [
            ("perplexity", perplexity_from),
            ("bits_per_byte", bits_per_byte_from),
            ("word_perplexity", partial(perplexity_from, over=3)),
        ]
        if directions == 2:
            found.append(("backward_perplexity", partial(perplexity_from, of=4)))
        return statistics, found

    def _likelihood(self, texts: Sequence[str], done: Done) -> tuple[Values, int]:
        rows = np.zeros((len(texts), 5))
        encoded = self.tokenizer.encode_batch(texts)
        parts = [(i, part) for i, ids in enumerate(encoded) for part in cut(ids, self.tokenizer.end_id, self.max_len)]
        for i in {i for i, _ in parts}:
            rows[i, 2:4] = len(texts[i].encode()) + 1, len(texts[i].split()) + 1
        found = self.engine.likelihood([part for _, part in parts], done=done)
        owners = np.array([i for i, _ in parts], dtype=np.int64)
        for column, log_probs in zip((0, 4), found.T, strict=False):
            np.subtract.at(rows[:, column], owners, log_probs)
        np.add.at(rows[:, 1], owners, [len(part) for _, part in parts])
        return rows, found.shape[1]

    def _unknown(self, texts: Sequence[str]) -> int:
        """How many pieces of the texts the vocabulary does not know."""
        if self.tokenizer.kind in ("bpe", "byte_bpe"):  # which know every text
            return 0
        return sum(ids.count(self.tokenizer.unk_id) for ids in self.tokenizer.encode_batch(texts))


def perplexity_from(statistics: Values, of: int = 0, over: int = 1) -> Values:
    perplexity: Values = np.exp(np.minimum(statistics[..., of] / np.maximum(statistics[..., over], 1), 50.0))
    return perplexity


def bits_per_byte_from(statistics: Values) -> Values:
    bits: Values = statistics[..., 0] / log(2) / np.maximum(statistics[..., 2], 1)
    return bits
