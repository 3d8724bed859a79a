"""Continue texts, and compute their likelihood."""

import sys
from collections.abc import Iterator, Mapping, Sequence
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
from jumok.score.significance import Metric, Metrics, ScoreFunction, Values
from jumok.tasks.attention import Attention
from jumok.tasks.language_model import LanguageModelFacts
from jumok.tasks.protocol import Measured, Note, Predictor
from jumok.text.tokenizer import Tokenizers


@dataclass(frozen=True, slots=True)
class Generated:
    """A text and its continuation."""

    text: str
    """the given text and its continuation"""
    log_prob: float
    """log-probability of the continuation; with beam search, of the whole text and its end"""
    alternatives: list[str]
    """other texts, best first, if `n_best` is more than 1"""
    notes: list[Note] = field(default_factory=list)
    """remarks on the output"""

    def _repr_html_(self) -> str:
        return html.block(html.line(self.text), *(html.line(other, small=True) for other in self.alternatives))


def whole_texts(examples: Sequence[Text | Sentence]) -> list[str]:
    """Lines unchanged; the sentences of a document joined by line breaks."""
    texts: list[str] = []
    for example in examples:
        if isinstance(example, Text) or example.first:
            texts.append(example.text)
        else:
            texts[-1] += f"\n{example.text}"
    return texts


def cut(ids: Sequence[int], end_id: int, max_len: int) -> list[list[int]]:
    """Split a text, with its end token, into parts of `max_len` tokens; an empty text has none."""
    whole = [*ids, end_id] if ids else []
    return [whole[start : start + max_len] for start in range(0, len(whole), max_len)]


class Generator(Predictor[Text, Generated]):
    """One loaded model, or several as an ensemble for scoring; the first one generates."""

    kind = "language_model"
    example = Text
    answers = Generated
    options = DecodeConfig
    max_characters = 20_000

    def __init__(self, engine: Engine, tokenizers: Tokenizers, facts: LanguageModelFacts) -> None:
        self.engine, self.tokenizers, self.facts = engine, tokenizers, facts
        self.max_len = min(facts.max_len or sys.maxsize, engine.longest or sys.maxsize)

    def read_options(self, options: Mapping[str, Any]) -> DecodeConfig:
        """The stored [decode], overridden by the given options."""
        found = read_config(DecodeConfig, {**asdict(self.facts.decode), **options}, what="the options", path="")
        if found.coverage_penalty:
            what = "coverage_penalty needs attention to a source, which a language model does not have"
            raise InputError(what, hint="set coverage_penalty = 0", code="input.no_attention")
        return found

    def encode(self, example: Text, options: DecodeConfig) -> Request:
        prefix = self.tokenizer.encode(example.text)
        # The start token takes a position, too.
        room = sys.maxsize if self.engine.longest is None else self.engine.longest - 1
        if len(prefix) > room:
            what = f"a text of {len(prefix)} tokens: the model reads at most {room}"
            raise InputError(what, where=example.where, hint="shorten the text", code="text.too_long")
        end = min(len(prefix) + options.max_extra, room)
        return Request(source_len=0, max_len=end, prefix=prefix, seed=options.seed)

    def begin(self, example: Text, options: DecodeConfig) -> tuple[None, Request]:
        """What the engine searches with for this text: no source, and the request."""
        return None, self.encode(example, options)

    def answer(
        self, examples: Sequence[Text], read: Sequence[Request], options: DecodeConfig, done: Done
    ) -> Iterator[Generated]:
        for hypotheses in self.engine.search(None, read, options, done=done):
            best, *others = [self.tokenizer.decode(hypothesis.ids) for hypothesis in hypotheses]
            yield Generated(best, hypotheses[0].log_prob, others)

    def about(self) -> dict[str, Any]:
        return {"decode": asdict(self.facts.decode)}

    def completed(self, example: Text, output: Generated) -> Text:
        """The text with its continuation."""
        return replace(example, text=output.text)

    def stream(self, text: str | Mapping[str, Any] | Text, **options: Any) -> Iterator[str]:
        """Yield the continuation of a text while it is generated; [decode] must sample or be greedy."""
        decode = self.wanted(options)
        request = self.encode(self.parse(text), decode)
        ids, said = list(request.prefix), self.tokenizer.decode(request.prefix)
        for token in self.engine.stream(request, decode):
            ids.append(token)
            now = self.tokenizer.decode(ids)
            if not now.endswith("\ufffd"):  # an incomplete character
                yield now[len(said) :]
                said = now

    def quick(self, examples: Sequence[Text | Sentence]) -> dict[str, float]:
        return self._metrics(whole_texts(examples), nobody).values()

    def measure(self, examples: Sequence[Text | Sentence], *, done: Done = nobody, **options: Any) -> Measured:
        """Compared in bits per byte, which do not depend on the vocabulary; there are no outputs."""
        texts = whole_texts(examples)
        metrics = self._metrics(texts, done)
        compared = metrics.only(["bits_per_byte"])
        more: dict[str, Any] = {"sentences": len(texts)}
        if unknown := self._unknown(texts):
            metrics = metrics.only([name for name in metrics.names if name != "bits_per_byte"])
            more["notes"] = [f"{unknown:,} tokens are unknown to the vocabulary: bits per byte would be too low"]
        return Measured(metrics, [], more, compared)

    def require_comparable(self, other: "Generator", examples: Sequence[Text | Sentence]) -> None:
        texts = whole_texts(examples)
        if any(g._unknown(texts) for g in (self, other)) and self.tokenizer.sha256 != other.tokenizer.sha256:
            raise InputError(
                "a vocabulary lacks words of the texts, and unknown words cost too few bits",
                hint="compare runs with the same vocabulary, or with complete ones (bpe, byte_bpe, character)",
                code="text.unknown_pieces",
            )

    def likelihood(self, texts: Sequence[str], *, done: Done = nobody) -> Values:
        """[n, 5]: for each text, its negative log-probability, its tokens, bytes and words, each with the end of the
        line, and its negative log-probability backwards, if the model is bidirectional.

        The row of an empty text is 0, because nothing is predicted.
        """
        return self._likelihood(texts, done)[0]

    def attention(self, example: Any, output: Generated | str | None = None) -> dict[str, Attention]:
        """Attention of a GPT while it reads the text, or the output, which starts with the text."""
        text = self.parse(example).text if output is None else output if isinstance(output, str) else output.text
        ids = self.encode(Text(text), self.facts.decode).prefix
        maps = self.engine.attention(ids)
        if not maps:
            raise InputError("the model has no attention", hint="use a GPT", code="input.no_attention")
        tokens = self.tokenizer.pieces([self.tokenizer.start_id, *ids])
        return {name: Attention(tokens, tokens, weights) for name, weights in maps.items()}

    def _metrics(self, texts: Sequence[str], done: Done) -> Metrics:
        """Word perplexity is comparable across vocabularies, bits per byte across languages as well."""
        statistics, directions = self._likelihood(texts, done)
        functions: dict[str, ScoreFunction] = {
            "perplexity": perplexity_from,
            "bits_per_byte": bits_per_byte_from,
            "word_perplexity": partial(perplexity_from, over=3),
        }
        if directions == 2:
            functions["backward_perplexity"] = partial(perplexity_from, of=4)
        metrics = tuple(Metric(name, statistics, function) for name, function in functions.items())
        return Metrics(metrics, rule=f"{self.tokenizer.vocab_size} pieces, texts of at most {self.max_len}")

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
        """Number of tokens of the texts that are unknown to the vocabulary."""
        if self.tokenizer.kind in ("bpe", "byte_bpe"):  # which encode any text
            return 0
        return sum(ids.count(self.tokenizer.unk_id) for ids in self.tokenizer.encode_batch(texts))


def perplexity_from(statistics: Values, of: int = 0, over: int = 1) -> Values:
    perplexity: Values = np.exp(np.minimum(statistics[..., of] / np.maximum(statistics[..., over], 1), 50.0))
    return perplexity


def bits_per_byte_from(statistics: Values) -> Values:
    bits: Values = statistics[..., 0] / log(2) / np.maximum(statistics[..., 2], 1)
    return bits
