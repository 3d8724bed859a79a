"""Text in, text out: searching for translations, alignments, and their scores."""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from math import exp
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from jumok import html
from jumok.config import read_config
from jumok.decode.options import DecodeConfig, Hypothesis, Request
from jumok.engines import Done, Engine, Rows, nobody
from jumok.errors import InputError
from jumok.examples.pairs import Pair
from jumok.score.significance import Comparison
from jumok.score.translation import bleu_by_length, compare_translations, quick_scores, score_translations
from jumok.tasks.protocol import Attention, Note, NoteCounter, Predictor, answered, scored
from jumok.tasks.translation import TranslationFacts
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslateOptions(DecodeConfig):
    """How an output is chosen, and what comes with it; [decode] of the recipe has the defaults."""

    prefix: str = ""
    """the beginning that every output has to have"""
    alignment: bool = False
    """say which piece of the source each piece of the output looked at"""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which piece of the source each piece of the output looked at."""

    source: list[str]
    """the pieces of the source"""
    target: list[str]
    """the pieces of the output"""
    weights: list[list[float]]
    """a row for each target piece: its attention over the source pieces, mean over layers and heads"""
    links: list[tuple[int, int]]
    """(source, target) for the source piece that each target piece looked at most"""
    words: list[tuple[int, int]]
    """the same between words, counted from 0 and split at white space: the usual alignment format"""

    def _repr_html_(self) -> str:
        return html.block(html.matrix(self.target, self.source, self.weights))


@dataclass(frozen=True, slots=True)
class Translation:
    """One text's output: the best, its score (log-probability after the penalties), and the runners-up."""

    text: str
    """the translation"""
    score: float
    """its log-probability, after the penalties"""
    alternatives: "list[Translation]"
    """the runners-up, best first, if `n_best` asks for them"""
    alignment: Alignment | None = None
    """if it was asked for"""
    notes: list[Note] = field(default_factory=list)
    """what should be known of it, such as that the text was cut"""
    ids: Annotated[list[int], Field(exclude=True)] = field(default_factory=list, repr=False)
    """the pieces as the model wrote them; the text encoded again may be cut elsewhere"""

    def _repr_html_(self) -> str:
        others = [html.line(other.text, small=True) for other in self.alternatives]
        looked = (
            html.matrix(self.alignment.target, self.alignment.source, self.alignment.weights) if self.alignment else ""
        )
        return html.block(html.line(self.text), *others, looked)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as the model reads it, its end included, and the pieces that the output begins with."""

    source: list[int]
    prefix: list[int]

    @property
    def empty(self) -> bool:
        return len(self.source) == 1


class Translator(Predictor[Pair, Translation]):
    """One loaded model, or several of the same vocabulary as an ensemble."""

    kind = "translation"
    example = Pair
    answers = Translation
    options = TranslateOptions

    def __init__(self, engine: Engine, tokenizers: Tokenizers, facts: TranslationFacts) -> None:
        self.engine, self.tokenizers, self.facts = engine, tokenizers, facts
        self.source, self.target = facts.source, facts.target

    def read_options(self, options: Mapping[str, Any]) -> TranslateOptions:
        """The stored [decode], with the given options in its place."""
        tree = {**asdict(self.facts.decode), **options}
        found = read_config(TranslateOptions, tree, what="the options", path="")
        if found.coverage_penalty and not self.engine.attends:
            what = "coverage_penalty counts attention, and the model has none"
            raise InputError(what, hint="coverage_penalty = 0", code="input.no_attention")
        return found

    def encode(self, example: Pair, options: TranslateOptions) -> Encoded:
        source = self.tokenizers.encode_source(example.source)
        prefix = self.tokenizers.target.encode(options.prefix) if options.prefix else []
        self._refuse_too_long(source, prefix, where=example.where)
        return Encoded(source, prefix)

    def answer(
        self, examples: Sequence[Pair], read: Sequence[Encoded], options: TranslateOptions, done: Done
    ) -> Iterator[Translation]:
        """An empty text gives an empty output; the model is not asked."""
        asked = [encoded for encoded in read if not encoded.empty]
        sources, prefixes = [encoded.source for encoded in asked], [encoded.prefix for encoded in asked]
        found = iter(translate(self.engine, sources, options, prefixes=prefixes, done=done))
        done(len(read) - len(asked))
        for example, encoded in zip(examples, read, strict=True):
            if encoded.empty:
                yield Translation("", 0.0, [])
                continue
            best, *others = [
                Translation(self.tokenizers.target.decode(h.ids), h.score, [], ids=h.ids) for h in next(found)
            ]
            alignment = self.align(example, best) if options.alignment else None
            yield replace(best, alternatives=others, alignment=alignment, notes=self._notes(encoded))

    def completed(self, example: Pair, output: Translation) -> Pair:
        return replace(example, target=output.text)

    def quick(self, examples: Sequence[Pair]) -> dict[str, float]:
        """Dev perplexity, and BLEU and exact match of greedy outputs."""
        sources = [self.tokenizers.encode_source(pair.source) for pair in examples]
        targets = [self.tokenizers.encode_target(pair.gold) for pair in examples]
        total, count = self.engine.losses(sources, targets)
        found = translate(self.engine, sources, DecodeConfig(method="greedy"))
        outputs = [self.tokenizers.target.decode(hypotheses[0].ids) for hypotheses in found]
        references = [pair.gold for pair in examples]
        scores = quick_scores(outputs, references, target_language=self.target, lowercase=self.facts.lowercase)
        return {"perplexity": exp(min(total / count, 50.0)), **scores}

    def score(
        self, examples: Sequence[Pair], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        sources, references = [pair.source for pair in examples], [pair.gold for pair in examples]
        found, notes = answered(self.predict(examples, done=done, **options)), NoteCounter()
        for output in found:
            notes.add(output)
        outputs = [output.text for output in found]
        result = scored(examples, score_translations(outputs, references, target_language=self.target))
        buckets = bleu_by_length(
            outputs, references, sources, target_language=self.target, lowercase=self.facts.lowercase
        )
        result["bleu_by_source_words"] = [bucket.score.plain() for bucket in buckets]
        return result | ({"notes": notes.told()} if notes.told() else {}), outputs

    def compare(
        self, other: "Translator", examples: Sequence[Pair], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        if (self.source, self.target) != (other.source, other.target):
            what = f"{self.source} to {self.target} and {other.source} to {other.target}"
            raise InputError(f"the runs translate between different languages: {what}", code="input.other_languages")
        ours, theirs = (translator(examples, done=done, **options) for translator in (self, other))
        return compare_translations(ours, theirs, [pair.gold for pair in examples], target_language=self.target)

    def align(self, source: str | Mapping[str, Any] | Pair, output: str | Translation) -> Alignment | None:
        """The attention that the first model pays to a text while it is made to write `output`; None if it has none."""
        text, source_ids, written = self._forced(source, output)
        maps = self.engine.attention(source_ids, written)
        if "cross" not in maps:
            return None
        weights = maps["cross"].mean(axis=(0, 1))
        best = weights[:, : len(source_ids) - 1].argmax(axis=1).tolist() if len(source_ids) > 1 else []
        # The last row is where the end is predicted.
        links = [(s, t) for t, s in enumerate(best[: len(written)])]
        source_words = _words_of_text(self.tokenizers.source, text)
        target_words = _words_of(self.tokenizers.target, written)
        return Alignment(
            source=self.tokenizers.source.pieces(source_ids),
            target=self.tokenizers.target.pieces([*written, EOS_ID]),
            weights=[[round(float(w), 4) for w in row] for row in weights],
            links=links,
            words=sorted({(source_words[s], target_words[t]) for s, t in links}),
        )

    def attention(self, example: Any, output: str | Translation | None = None) -> dict[str, Attention]:
        """Of the encoder, the decoder and between them, while the first model writes `output`, or what it would write.

        A row is named by the piece that is predicted there; the columns of the decoder are what it has read.
        """
        said: str | Translation = answered(self.predict([example]))[0] if output is None else output
        _, source_ids, written = self._forced(example, said)
        maps = self.engine.attention(source_ids, written)
        if not maps:
            raise _no_attention()
        source, target = self.tokenizers.source.pieces(source_ids), self.tokenizers.target.pieces([*written, EOS_ID])
        read = self.tokenizers.target.pieces([self.tokenizers.target.pad_id, *written])
        names = {"encoder": (source, source), "decoder": (target, read), "cross": (target, source)}
        return {name: Attention(*names[name], weights) for name, weights in maps.items()}

    def draw_attention(self, example: Any, picture: Path, *, output: str | None = None) -> dict[str, Any]:
        from jumok.picture import draw_alignment

        pair = self.parse(example)
        said: str | Translation = answered(self.predict([pair]))[0] if output is None else output
        alignment = self.align(pair, said)
        if alignment is None:
            raise _no_attention()
        draw_alignment(alignment, picture)
        text = said if isinstance(said, str) else said.text
        return {"input": pair.source, "output": text, **asdict(alignment)}

    def _forced(
        self, source: str | Mapping[str, Any] | Pair, output: str | Translation
    ) -> tuple[str, list[int], list[int]]:
        """A text, its pieces, and those of an output that the model is made to write."""
        pair = self.parse(source)
        ids = self.tokenizers.encode_source(pair.source)
        written = output.ids if isinstance(output, Translation) else self.tokenizers.target.encode(output)
        self._refuse_too_long(ids, written, where=pair.where)
        return pair.source, ids, written

    def _notes(self, encoded: Encoded) -> list[Note]:
        longest = self.facts.longest
        if longest is None or len(encoded.source) <= longest:
            return []
        text = f"longer than every training text (at most {longest} pieces): the output may be poor"
        return [Note("text.longer_than_training", text)]

    def _refuse_too_long(self, *sides: Sequence[int], where: str) -> None:
        """Learned positions come to an end; an input or a prefix has to leave one for the end."""
        room = sys.maxsize if self.engine.longest is None else self.engine.longest
        for ids in sides:
            if len(ids) >= room:
                raise InputError(
                    f"a text has {len(ids)} pieces; the model learned {room} positions",
                    where=where,
                    hint=f"texts of fewer than {room} pieces, or a model with sinusoidal positions",
                    code="text.too_long",
                )


def _no_attention() -> InputError:
    hint = "a Transformer, or a recurrent model with attention"
    return InputError("the model has no attention to look at", hint=hint, code="input.no_attention")


def translate(
    engine: Engine, sources: Rows, config: DecodeConfig, *, prefixes: Rows | None = None, done: Done = nobody
) -> list[list[Hypothesis]]:
    """The hypotheses of each source (ids with their end), in the order of the sources."""
    room = sys.maxsize if engine.longest is None else engine.longest
    requests = [
        Request(
            source_len=len(source),
            # The start takes a position too, so that the forced end is the last one there is.
            max_len=min(len(source) + config.max_extra, room - 1),
            prefix=prefixes[i] if prefixes else (),
            seed=_sentence_seed(source, config.seed),
        )
        for i, source in enumerate(sources)
    ]
    return engine.search(sources, requests, config, done=done)


def _sentence_seed(source: Sequence[int], seed: int) -> int:
    """From the sentence itself, so that a sample does not depend on the sentences around it."""
    digest = blake2b(np.asarray(source, dtype="<i8").tobytes(), key=str(seed).encode(), digest_size=7)
    return int.from_bytes(digest.digest(), "little")


def _words_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """For each piece the number of the word that it stands in, when the pieces are read one after the other."""
    return [max(len(tokenizer.decode(ids[: i + 1]).split()) - 1, 0) for i in range(len(ids))]


def _words_of_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """For each piece of a text the number of the word that it stands in."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    offsets = tokenizer.encode_with_offsets(text).offsets
    return [max(bisect_right(starts, start) - 1, 0) for start, _ in offsets]
