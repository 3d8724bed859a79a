"""Translate: a text in, a text out, with alignments and scores."""

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import blake2b
from math import exp
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from jumok import html
from jumok.config import read_config
from jumok.decode.options import DecodeConfig, Hypothesis, Request
from jumok.engines import Array, Done, Engine, Rows, nobody
from jumok.errors import InputError
from jumok.examples.pairs import Pair
from jumok.tasks.attention import Attention
from jumok.tasks.baseline import Baselines
from jumok.tasks.notes import NoteCounter
from jumok.tasks.protocol import Measured, Note, Predictor, answered
from jumok.tasks.translation import TranslationFacts
from jumok.tasks.translation.baselines import learn_baselines
from jumok.tasks.translation.repair import repaired
from jumok.tasks.translation.words import Word, beginnings, sure_words, words_of
from jumok.text.placeholders import Unit, compare, find_units
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslateOptions(DecodeConfig):
    """Options of prediction; [decode] of the recipe has the defaults."""

    prefix: str = ""
    """text that every output starts with"""
    alignment: bool = False
    """return the alignment of output and source tokens"""
    words: bool = False
    """return the words of the output with their probabilities"""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Attention of each output token over the source tokens."""

    source: list[str]
    """source tokens"""
    target: list[str]
    """output tokens"""
    weights: list[list[float]]
    """a row for each output token: its attention over the source tokens, mean over layers and heads"""
    links: list[tuple[int, int]]
    """(source, target): the source token with the most attention for each output token"""
    words: list[tuple[int, int]]
    """the same between words, split at white space and numbered from 0: the usual alignment format"""

    def _repr_html_(self) -> str:
        return html.block(html.matrix(self.target, self.source, self.weights))


@dataclass(frozen=True, slots=True)
class Translation:
    """The best translation of a text, its score, and the runners-up."""

    text: str
    """the translation"""
    score: float
    """its log-probability, after the penalties"""
    alternatives: "list[Translation]"
    """the runners-up, best first, if `n_best` is more than 1"""
    alignment: Alignment | None = None
    """if the option is set"""
    words: list[Word] | None = None
    """if the option is set"""
    notes: list[Note] = field(default_factory=list)
    """remarks, such as that the text was truncated"""
    ids: Annotated[list[int], Field(exclude=True)] = field(default_factory=list, repr=False)
    """the generated tokens; encoding the text again may split it differently"""

    def _repr_html_(self) -> str:
        others = [html.line(other.text, small=True) for other in self.alternatives]
        aligned = (
            html.matrix(self.alignment.target, self.alignment.source, self.alignment.weights) if self.alignment else ""
        )
        return html.block(html.line(self.text), *others, aligned)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A source text with its end token, and the tokens of the prefix."""

    source: list[int]
    prefix: list[int]
    tokenizers: Tokenizers
    """with the source's placeholders in their slots"""
    units: list[Unit]
    """those placeholders, if the vocabulary has slots"""

    @property
    def empty(self) -> bool:
        return len(self.source) == 1


class Translator(Predictor[Pair, Translation]):
    """One loaded model, or several of the same vocabulary as an ensemble."""

    kind = "translation"
    example = Pair
    answers = Translation
    columns = ("translation",)
    options = TranslateOptions
    max_characters = 20_000

    def __init__(self, engine: Engine, tokenizers: Tokenizers, facts: TranslationFacts) -> None:
        self.engine, self.tokenizers, self.facts = engine, tokenizers, facts
        self.source, self.target = facts.source, facts.target

    def read_options(self, options: Mapping[str, Any]) -> TranslateOptions:
        """The stored [decode], overridden by the given options."""
        tree = {**asdict(self.facts.decode), **options}
        found = read_config(TranslateOptions, tree, what="the options", path="")
        if found.coverage_penalty and not self.engine.attends:
            what = "coverage_penalty needs attention, which the model does not have"
            raise InputError(what, hint="set coverage_penalty = 0", code="input.no_attention")
        return found

    def encode(self, example: Pair, options: TranslateOptions) -> Encoded:
        tokenizers = self.tokenizers.filled(example.source)
        source = tokenizers.encode_source(example.source)
        prefix = tokenizers.target.encode(options.prefix) if options.prefix else []
        self._refuse_too_long(source, prefix, where=example.where)
        units = find_units(example.source) if tokenizers.target.slot_ids else []
        return Encoded(source, prefix, tokenizers, units)

    def answer(
        self, examples: Sequence[Pair], read: Sequence[Encoded], options: TranslateOptions, done: Done
    ) -> Iterator[Translation]:
        """An empty text gives an empty output without running the model."""
        asked = [encoded for encoded in read if not encoded.empty]
        sources = [encoded.source for encoded in asked]
        requests = [_request(self.engine, one.source, options, one.prefix, faults=_faults(one)) for one in asked]
        found = iter(self.engine.search(sources, requests, options, done=done))
        done(len(read) - len(asked))
        for example, encoded in zip(examples, read, strict=True):
            if encoded.empty:
                yield Translation("", 0.0, [])
                continue
            best, *others = next(found)
            alternatives = [self._translation(encoded, other) for other in others]
            yield self._looked_at(example, encoded, self._translation(encoded, best), options, alternatives)

    def _translation(self, encoded: Encoded, hypothesis: Hypothesis) -> Translation:
        """The text of a hypothesis, with the placeholders of its source as far as it is certain where they belong."""
        ids, target = hypothesis.ids, encoded.tokenizers.target
        if target.slot_ids and not encoded.prefix:

            def attention(written: Sequence[int]) -> Array | None:
                found = self.engine.attention(encoded.source, written) if self.engine.attends else {}
                return found["cross"].mean(axis=(0, 1)) if "cross" in found else None

            ids = repaired(ids, encoded.source, encoded.tokenizers, attention)
        return Translation(target.decode(ids), hypothesis.score, [], ids=ids)

    def begin(self, example: Pair, options: TranslateOptions) -> tuple[list[int], Request]:
        """What the engine searches with for this text: its tokens, and the request."""
        encoded = self.encode(example, options)
        return encoded.source, _request(self.engine, encoded.source, options, encoded.prefix)

    def _looked_at(
        self,
        example: Pair,
        encoded: Encoded,
        output: Translation,
        options: TranslateOptions,
        alternatives: Sequence[Translation] = (),
    ) -> Translation:
        """The output with what the options ask for."""
        words = (
            sure_words(self.engine, encoded.tokenizers.target, encoded.source, output.ids) if options.words else None
        )
        return Translation(
            output.text,
            output.score,
            [*alternatives],
            alignment=self.align(example, output) if options.alignment else None,
            words=words,
            notes=self._notes(encoded, output.text),
            ids=output.ids,
        )

    def alternatives(self, example: Any, prefix: str = "", *, n: int = 6, **options: Any) -> list[Translation]:
        """Translations that start with `prefix` and differ in the word after it, or in the end of the word that the
        prefix has only the beginning of; the likeliest word first."""
        asked, pair = self.wanted({**options, "n_best": 1, "words": True}), self.parse(example)
        encoded = self.encode(pair, replace(asked, prefix=prefix))
        if encoded.empty:
            return []
        target = encoded.tokenizers.target
        starts, place = beginnings(self.engine, target, encoded.source, prefix, n)
        hypotheses = translate(self.engine, [encoded.source] * len(starts), asked, prefixes=starts)
        found: dict[str, Translation] = {}
        for best, *_ in hypotheses:
            output = Translation(target.decode(best.ids), best.score, [], ids=best.ids)
            words = output.text.split()
            if place < len(words) and words[place] not in found and len(found) < n:
                found[words[place]] = self._looked_at(pair, encoded, output, asked)
        return sorted(found.values(), key=lambda output: -(output.words or [])[place].probability)

    def about(self) -> dict[str, Any]:
        return {"attends": self.engine.attends, "decode": asdict(self.facts.decode), "longest": self.facts.longest}

    def completed(self, example: Pair, output: Translation) -> Pair:
        return replace(example, target=output.text)

    def cells(self, example: Pair, output: Translation) -> dict[str, Any]:
        return {"translation": output.text}

    def quick(self, examples: Sequence[Pair]) -> dict[str, float]:
        """Perplexity, and BLEU and exact match of greedy outputs."""
        from jumok.score.translation import translation_metrics

        both = [self.tokenizers.filled(pair.source) for pair in examples]
        sources = [each.encode_source(pair.source) for each, pair in zip(both, examples, strict=True)]
        targets = [each.encode_target(pair.gold) for each, pair in zip(both, examples, strict=True)]
        total, count = self.engine.losses(sources, targets)
        found = translate(self.engine, sources, DecodeConfig(method="greedy"))
        outputs = [each.target.decode(hypotheses[0].ids) for each, hypotheses in zip(both, found, strict=True)]
        references = [pair.gold for pair in examples]
        if self.facts.lowercase:  # cased scores of a model without capitals mean nothing
            outputs, references = [text.lower() for text in outputs], [text.lower() for text in references]
        metrics = translation_metrics(outputs, references, target_language=self.target)
        return {"perplexity": exp(min(total / count, 50.0)), **metrics.values("bleu", "exact_match")}

    def measure(self, examples: Sequence[Pair], *, done: Done = nobody, **options: Any) -> Measured:
        from jumok.score.translation import bleu_by_length, translation_metrics

        sources, references = [pair.source for pair in examples], [pair.gold for pair in examples]
        found, notes = answered(self.predict(examples, done=done, **options)), NoteCounter()
        for output in found:
            notes.add(output)
        outputs = [output.text for output in found]
        metrics = translation_metrics(outputs, references, target_language=self.target)
        by_length = bleu_by_length(metrics, sources, lowercase=self.facts.lowercase)
        more: dict[str, Any] = {"bleu_by_source_words": [score.plain() for score in by_length.scores()]}
        return Measured(metrics, outputs, more | ({"notes": notes.told()} if notes.told() else {}))

    def baselines(self, train: Iterable[Pair]) -> Baselines:
        from jumok.score.translation import translation_metrics

        return learn_baselines(train, partial(translation_metrics, target_language=self.target))

    def require_comparable(self, other: "Translator", examples: Sequence[Pair]) -> None:
        if (self.source, self.target) != (other.source, other.target):
            what = f"{self.source} to {self.target} and {other.source} to {other.target}"
            raise InputError(f"the runs translate between different languages: {what}", code="input.other_languages")

    def align(self, source: str | Mapping[str, Any] | Pair, output: str | Translation) -> Alignment | None:
        """Alignment of a text with `output`, forced through the first model; None without attention."""
        text, tokenizers, source_ids, written = self._forced(source, output)
        maps = self.engine.attention(source_ids, written)
        if "cross" not in maps:
            return None
        weights = maps["cross"].mean(axis=(0, 1))
        best = weights[:, : len(source_ids) - 1].argmax(axis=1).tolist() if len(source_ids) > 1 else []
        # The last row predicts the end token.
        links = [(s, t) for t, s in enumerate(best[: len(written)])]
        source_words = _words_of_text(tokenizers.source, text)
        target_words = words_of(tokenizers.target, written)
        return Alignment(
            source=tokenizers.source.pieces(source_ids),
            target=tokenizers.target.pieces([*written, EOS_ID]),
            weights=[[round(float(w), 4) for w in row] for row in weights],
            links=links,
            words=sorted({(source_words[s], target_words[t]) for s, t in links}),
        )

    def attention(self, example: Any, output: str | Translation | None = None) -> dict[str, Attention]:
        """Attention of encoder and decoder, and between them, while the first model generates `output`.

        Without `output`, the model's own prediction. Rows are the predicted tokens; the columns of the decoder are the
        tokens it reads.
        """
        target_text: str | Translation = answered(self.predict([example]))[0] if output is None else output
        _, tokenizers, source_ids, written = self._forced(example, target_text)
        maps = self.engine.attention(source_ids, written)
        if not maps:
            raise _no_attention()
        source, target = tokenizers.source.pieces(source_ids), tokenizers.target.pieces([*written, EOS_ID])
        read = tokenizers.target.pieces([tokenizers.target.pad_id, *written])
        names = {"encoder": (source, source), "decoder": (target, read), "cross": (target, source)}
        return {name: Attention(*names[name], weights) for name, weights in maps.items()}

    def draw_attention(self, example: Any, picture: Path, *, output: str | None = None) -> dict[str, Any]:
        from jumok.picture import draw_alignment

        pair = self.parse(example)
        translation: str | Translation = answered(self.predict([pair]))[0] if output is None else output
        alignment = self.align(pair, translation)
        if alignment is None:
            raise _no_attention()
        draw_alignment(alignment, picture)
        text = translation if isinstance(translation, str) else translation.text
        return {"input": pair.source, "output": text, **asdict(alignment)}

    def _forced(
        self, source: str | Mapping[str, Any] | Pair, output: str | Translation
    ) -> tuple[str, Tokenizers, list[int], list[int]]:
        """A text, the tokenizers with its placeholders, its tokens, and those of an output to force on the model."""
        pair = self.parse(source)
        tokenizers = self.tokenizers.filled(pair.source)
        ids = tokenizers.encode_source(pair.source)
        written = output.ids if isinstance(output, Translation) else tokenizers.target.encode(output)
        self._refuse_too_long(ids, written, where=pair.where)
        return pair.source, tokenizers, ids, written

    def _notes(self, encoded: Encoded, text: str) -> list[Note]:
        longest, notes = self.facts.longest, []
        if longest is not None and len(encoded.source) > longest:
            told = f"longer than any training text (at most {longest} tokens): the output may be poor"
            notes.append(Note("text.longer_than_training", told))
        if encoded.tokenizers.target.slot_ids and (found := compare(encoded.units, find_units(text))):
            facts = {"missing": found.missing, "extra": found.extra}
            told = "placeholders or markup differ from the source: check the output"
            notes.append(
                Note("translation.placeholders", told, facts | ({"reordered": found.order} if found.order else {}))
            )
        return notes

    def _refuse_too_long(self, *sides: Sequence[int], where: str) -> None:
        """Learned positions are limited, and the end token needs one."""
        room = sys.maxsize if self.engine.longest is None else self.engine.longest
        for ids in sides:
            if len(ids) >= room:
                raise InputError(
                    f"a text of {len(ids)} tokens: the model learned {room} positions",
                    where=where,
                    hint=f"shorten the text to fewer than {room} tokens, or use a model with sinusoidal positions",
                    code="text.too_long",
                )


def _no_attention() -> InputError:
    hint = "use a Transformer, or a recurrent model with attention"
    return InputError("the model has no attention", hint=hint, code="input.no_attention")


def translate(
    engine: Engine, sources: Rows, config: DecodeConfig, *, prefixes: Rows | None = None, done: Done = nobody
) -> list[list[Hypothesis]]:
    """The hypotheses for each source (ids with their end token)."""
    requests = [_request(engine, source, config, prefixes[i] if prefixes else ()) for i, source in enumerate(sources)]
    return engine.search(sources, requests, config, done=done)


def _faults(encoded: Encoded) -> Callable[[Sequence[int]], int] | None:
    """How many placeholders of a source a hypothesis has lost, added or put in the wrong order."""
    if not encoded.units:
        return None

    def faults(ids: Sequence[int]) -> int:
        return compare(encoded.units, find_units(encoded.tokenizers.target.decode(ids))).count

    return faults


def _request(
    engine: Engine,
    source: Sequence[int],
    config: DecodeConfig,
    prefix: Sequence[int],
    *,
    faults: Callable[[Sequence[int]], int] | None = None,
) -> Request:
    room = sys.maxsize if engine.longest is None else engine.longest
    # The start token takes a position, too, so the forced end takes the last one.
    most = min(len(source) + config.max_extra, room - 1)
    seed = _sentence_seed(source, config.seed) if config.method == "sample" else 0
    return Request(len(source), most, prefix, seed, faults=faults)


def _sentence_seed(source: Sequence[int], seed: int) -> int:
    """Derived from the sentence, so that a sample does not depend on its neighbours."""
    digest = blake2b(np.asarray(source, dtype="<i8").tobytes(), key=str(seed).encode(), digest_size=7)
    return int.from_bytes(digest.digest(), "little")


def _words_of_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """The index of the word of each token of a text."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    offsets = tokenizer.encode_with_offsets(text).offsets
    return [max(bisect_right(starts, start) - 1, 0) for start, _ in offsets]
