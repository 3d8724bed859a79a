"""Which ending fits: a context and endings in, the probability of each ending out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jumok import html
from jumok.engines import Array, Done, Engine, nobody
from jumok.examples.choices import Choice
from jumok.score.classification import accuracy_from, accuracy_statistics, perplexity_of, softmax
from jumok.score.significance import Comparison, Metric, Values, compare, scores_of
from jumok.tasks.protocol import Note, Predictor, scored
from jumok.tasks.windows import Beside, LongTexts, WindowedFacts
from jumok.text.tokenizer import Tokenizer, Tokenizers

Rows = list[list[int]]
"""of each ending its row"""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The ending that fits best."""

    text: str
    """the ending"""
    label: int
    """its number, from 0"""
    probabilities: list[float]
    """of each ending"""
    windows: int = 1
    """in how many parts the context was read"""
    truncated: bool = False
    """whether a part of context or endings was not read"""
    notes: list[Note] = field(default_factory=list)
    """what should be known of it, such as that the text was cut"""

    def _repr_html_(self) -> str:
        shares = {f"ending {i}": p for i, p in enumerate(self.probabilities)}
        return html.block(html.line(self.text), html.bars(shares))


def encode_choice(tokenizer: Tokenizer, example: Choice, long_texts: LongTexts) -> Beside[Rows]:
    """For each window of the context, the row of each ending; endings stay whole, and the context slides.

    An ending that takes more than half of the room is cut there, as everything is that follows it.
    """
    room = long_texts.max_len - len(tokenizer.frame([], []))
    endings = [tokenizer.encode(ending) for ending in example.endings]
    longest = max(map(len, endings))
    cut = longest > room // 2
    if cut:
        long_texts.parts(longest, room // 2, where=example.where)  # refuses, if that is the rule
        endings = [ending[: room // 2] for ending in endings]
    context = tokenizer.encode(example.context)
    room -= max(map(len, endings))
    parts = long_texts.parts(len(context), room, where=example.where)
    rows = [[tokenizer.frame(context[start:end], ending) for ending in endings] for start, end in parts]
    return Beside(rows, len(context) > room, cut)


class Chooser(Predictor[Choice, Chosen]):
    kind = "choice"
    example = Choice
    answers = Chosen

    def __init__(self, engine: Engine, tokenizers: Tokenizers, facts: WindowedFacts) -> None:
        self.engine, self.tokenizers = engine, tokenizers
        self.long_texts = facts.rule(engine.longest)

    def encode(self, example: Choice, options: Any) -> Beside[Rows]:
        return encode_choice(self.tokenizer, example, self.long_texts)

    def answer(
        self, examples: Sequence[Choice], read: Sequence[Beside[Rows]], options: Any, done: Done
    ) -> Iterator[Chosen]:
        believed = self.believed([found.windows for found in read])
        done(len(examples))
        for example, row, found in zip(examples, believed, read, strict=True):
            best, probabilities = int(row.argmax()), [round(float(p), 6) for p in row]
            notes = self.long_texts.notes_beside(found, "endings")
            yield Chosen(example.endings[best], best, probabilities, len(found.windows), found.truncated, notes)

    def completed(self, example: Choice, output: Chosen) -> Choice:
        return replace(example, label=output.label)

    def believed(self, examples: Sequence[Sequence[Rows]]) -> list[Array]:
        """For each example, of which there are windows of rows, the probability of each ending: the mean over windows
        before probabilities are made of them, over models after."""
        scores = iter(self.engine.logits([row for windows in examples for rows in windows for row in rows]))
        found = []
        for windows in examples:
            here = np.array([[next(scores)[:, 0] for _ in rows] for rows in windows])  # [windows, endings, M]
            found.append(softmax(here.mean(axis=0).T).mean(axis=0))
        return found

    def quick(self, examples: Sequence[Choice]) -> dict[str, float]:
        """Dev scores, without intervals."""
        found = self._believed(examples)
        right = np.array([row[example.gold] for row, example in zip(found, examples, strict=True)])
        statistics = self._statistics(found, examples)
        return {"perplexity": perplexity_of(right), "accuracy": float(accuracy_from(statistics.sum(axis=0)))}

    def score(
        self, examples: Sequence[Choice], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        self.wanted(options)
        found = self._believed(examples)
        done(len(examples))
        metric = Metric("accuracy", self._statistics(found, examples), accuracy_from)
        outputs = [example.endings[int(row.argmax())] for example, row in zip(examples, found, strict=True)]
        return scored(examples, scores_of([metric], rule="endings")), outputs

    def compare(
        self, other: "Chooser", examples: Sequence[Choice], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        self.wanted(options)
        ours, theirs = (chooser._statistics(chooser._believed(examples), examples) for chooser in (self, other))
        done(2 * len(examples))
        return [compare(ours, theirs, accuracy_from, metric="accuracy")]

    def _believed(self, examples: Sequence[Choice]) -> list[Array]:
        return self.believed([self.encode(example, None).windows for example in examples])

    def _statistics(self, believed: Sequence[Array], examples: Sequence[Choice]) -> Values:
        return accuracy_statistics([int(row.argmax()) for row in believed], [example.gold for example in examples])
