"""Text in, text out: searching for translations, alignments, and their scores."""

import re
import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jumok.data.batching import sorted_batches
from jumok.decode.search import DecodeConfig, Ensemble, EnsembleState, Hypothesis, Request, search
from jumok.errors import InputError
from jumok.models import EncoderDecoder
from jumok.score.significance import Comparison
from jumok.score.translation import bleu_by_length, compare_translations, score_translations
from jumok.tasks.batch import pad
from jumok.tasks.predict import Done, nobody, place, refuse_one_text, stored_decoding, wanted_decoding, warn_if_longer
from jumok.text.formats import Pair
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID


@dataclass(frozen=True, slots=True)
class Prediction:
    """One text's output: the best, its score (log-probability after the penalties), and the runners-up."""

    text: str
    score: float
    alternatives: list["Prediction"]
    ids: list[int] = field(repr=False)
    """the pieces as the model wrote them; the text encoded again may be cut elsewhere"""

    def plain(self) -> dict[str, Any]:
        return {"text": self.text, "score": self.score, "alternatives": [a.plain() for a in self.alternatives]}


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which piece of the source each piece of the output looked at."""

    source: list[str]
    target: list[str]
    weights: list[list[float]]
    """a row for each target piece: its attention over the source pieces, mean over layers and heads"""
    links: list[tuple[int, int]]
    """(source, target) for the source piece that each target piece looked at most"""
    words: list[tuple[int, int]]
    """the same between words, counted from 0 and split at white space: the usual alignment format"""


class Translator:
    """One loaded model, or several of the same vocabulary as an ensemble."""

    def __init__(
        self, models: Sequence[EncoderDecoder], tokenizers: Tokenizers, facts: dict[str, Any], *, where: Path
    ) -> None:
        self.models = list(models)
        self.tokenizers = tokenizers
        self.source: str = facts["source"]
        self.target: str = facts["target"]
        self.longest: int | None = facts.get("longest")
        self.lowercase: bool = facts.get("lowercase", False)
        self.decode = stored_decoding(facts, where=where)

    def __call__(self, texts: Sequence[str], *, done: Done = nobody) -> list[str]:
        return [prediction.text for prediction in self.predict(texts, done=done)]

    def predict(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        done: Done = nobody,
        **options: Any,
    ) -> list[Prediction]:
        """Predictions in the order of the texts; `options` replace fields of the recipe's [decode].

        An empty text gives an empty output without asking the model. `prefixes` are beginnings that the outputs
        have to have; `done` is told how many texts have been finished since it was told last.
        """
        refuse_one_text(texts)
        attends = all(model.config.attends for model in self.models)
        decode = wanted_decoding(self.decode, options, attends=attends)
        sources = [self.tokenizers.encode_source(text) for text in texts]
        asked = [i for i, source in enumerate(sources) if len(source) > 1]
        forced = None
        if prefixes is not None:
            forced = [self.tokenizers.target.encode(prefixes[i]) for i in asked]
        self._refuse_too_long([sources[i] for i in asked] + (forced or []), [texts[i] for i in asked])
        self.longest = warn_if_longer([sources[i] for i in asked], self.longest)
        found = translate(self.models, self.tokenizers, [sources[i] for i in asked], decode, prefixes=forced, done=done)
        predictions = [Prediction("", 0.0, [], []) for _ in texts]
        for i, hypotheses in zip(asked, found, strict=True):
            ranked = [Prediction(self.tokenizers.target.decode(h.ids), h.score, [], h.ids) for h in hypotheses]
            predictions[i] = replace(ranked[0], alternatives=ranked[1:])
        return predictions

    def score(
        self, examples: Sequence[Pair], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Scores with intervals and signatures of the outputs for the examples' sources, and the outputs."""
        sources, references = [pair.source for pair in examples], [pair.target for pair in examples]
        outputs = [prediction.text for prediction in self.predict(sources, done=done, **options)]
        scores = score_translations(outputs, references, target_language=self.target)
        buckets = bleu_by_length(outputs, references, sources, target_language=self.target, lowercase=self.lowercase)
        return {
            "sentences": len(examples),
            "scores": {score.name: score.plain() for score in scores},
            "bleu_by_source_words": [bucket.score.plain() for bucket in buckets],
        }, outputs

    def compare(
        self, other: "Translator", examples: Sequence[Pair], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        if (self.source, self.target) != (other.source, other.target):
            what = f"{self.source} to {self.target} and {other.source} to {other.target}"
            raise InputError(f"the runs translate between different languages: {what}")
        sources, references = [pair.source for pair in examples], [pair.target for pair in examples]
        ours, theirs = (
            [prediction.text for prediction in translator.predict(sources, done=done, **options)]
            for translator in (self, other)
        )
        return compare_translations(ours, theirs, references, target_language=self.target)

    def plain(self, text: str, output: Prediction) -> dict[str, Any]:
        alignment = self.align(text, output) if output.ids else None
        return {**output.plain(), "alignment": None if alignment is None else asdict(alignment)}

    def align(self, text: str, output: str | Prediction) -> Alignment | None:
        """The attention that the first model pays to `text` while it is made to write `output`; None if it has none."""
        tokenizers, model = self.tokenizers, self.models[0]
        source_ids = tokenizers.encode_source(text)
        written = output.ids if isinstance(output, Prediction) else tokenizers.target.encode(output)
        target_ids = [*written, EOS_ID]
        self._refuse_too_long([source_ids, written])
        source = pad([source_ids], tokenizers.source.pad_id).to(model.device)
        target = pad([[tokenizers.target.pad_id, *written]], tokenizers.target.pad_id).to(model.device)
        with torch.inference_mode():
            found = model.alignment(source, torch.ones_like(source, dtype=torch.bool), target)
        if found is None:
            return None
        weights = found[0]
        best = weights[:, : len(source_ids) - 1].argmax(dim=-1).tolist() if len(source_ids) > 1 else []
        links = [(s, t) for t, s in enumerate(best) if target_ids[t] != EOS_ID]
        source_words, target_words = _words_of_text(tokenizers.source, text), _words_of(tokenizers.target, written)
        return Alignment(
            source=tokenizers.source.pieces(source_ids),
            target=tokenizers.target.pieces(target_ids),
            weights=[[round(w, 4) for w in row] for row in weights.tolist()],
            links=links,
            words=sorted({(source_words[s], target_words[t]) for s, t in links}),
        )

    def _refuse_too_long(self, encoded: Sequence[Sequence[int]], texts: Sequence[str] = ()) -> None:
        """Learned positions come to an end; an input or a prefix has to leave one for the end."""
        for model in self.models:
            room = model.config.longest
            for ids, text in zip_longest(encoded, texts, fillvalue=""):
                if room is not None and len(ids) >= room:
                    raise InputError(
                        f"a text has {len(ids)} pieces; the model learned {room} positions",
                        where=place(text),
                        right=f"texts of fewer than {room} pieces, or a model with sinusoidal positions",
                    )


def _words_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """For each piece the number of the word that it stands in, when the pieces are read one after the other."""
    return [max(len(tokenizer.decode(ids[: i + 1]).split()) - 1, 0) for i in range(len(ids))]


def _words_of_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """For each piece of a text the number of the word that it stands in."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    offsets = tokenizer.encode_with_offsets(text).offsets
    return [max(bisect_right(starts, start) - 1, 0) for start, _ in offsets]


def translate(
    models: Sequence[EncoderDecoder],
    tokenizers: Tokenizers,
    sources: Sequence[Sequence[int]],
    config: DecodeConfig,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    batch_tokens: int = 4096,
    done: Done = nobody,
) -> list[list[Hypothesis]]:
    """The hypotheses of each source (ids with their end), in the order of the sources.

    `done` is told how many sentences each batch has finished.
    """
    sizes = np.array([len(source) for source in sources], dtype=np.int64)
    beams = config.beam if config.method == "beam" else 1
    results: list[list[Hypothesis]] = [[] for _ in sources]
    decoder = models[0] if len(models) == 1 else Ensemble(models)
    longest = min((m.config.longest for m in models if m.config.longest is not None), default=sys.maxsize)
    for rows in sorted_batches(sizes, max(batch_tokens // beams, 1)):
        source = pad([sources[i] for i in rows], tokenizers.source.pad_id)
        mask = source != tokenizers.source.pad_id
        source, mask = source.to(decoder.device), mask.to(decoder.device)
        requests = [
            Request(
                source_len=len(sources[i]),
                # The start takes a position too, so that the forced end is the last one there is.
                max_len=min(len(sources[i]) + config.max_extra, longest - 1),
                prefix=() if prefixes is None else prefixes[i],
                seed=_sentence_seed(sources[i], config.seed),
            )
            for i in rows
        ]
        with torch.inference_mode():
            states = [model.start(source, mask) for model in models]
            state = states[0] if len(states) == 1 else EnsembleState(states)
            for i, found in zip(rows, search(decoder, state, requests, config, eos_id=EOS_ID), strict=True):
                results[i] = found
        done(len(rows))
    return results


def _sentence_seed(source: Sequence[int], seed: int) -> int:
    """From the sentence itself, so that a sample does not depend on the sentences around it."""
    digest = blake2b(np.asarray(source, dtype="<i8").tobytes(), key=str(seed).encode(), digest_size=7)
    return int.from_bytes(digest.digest(), "little")
