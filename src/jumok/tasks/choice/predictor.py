"""Choose an ending: a context and endings in, the probability of each ending out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jumok import html
from jumok.engines import Array, Done, Engine, nobody
from jumok.examples.choices import Choice
from jumok.score.classification import accuracy_from, accuracy_statistics, perplexity_of, softmax
from jumok.score.significance import Metric, Metrics
from jumok.tasks.protocol import Measured, Note, Predictor
from jumok.tasks.windows import Beside, LongTexts, WindowedFacts
from jumok.text.tokenizer import Tokenizer, Tokenizers

Rows = list[list[int]]
"""one row for each ending"""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The ending that fits best."""

    text: str
    """the ending"""
    label: int
    """its index, from 0"""
    probabilities: list[float]
    """probability of each ending"""
    windows: int = 1
    """number of windows that the context was read in"""
    truncated: bool = False
    """whether a part of context or endings was dropped"""
    notes: list[Note] = field(default_factory=list)
    """remarks, such as that the text was truncated"""

    def _repr_html_(self) -> str:
        shares = {f"ending {i}": p for i, p in enumerate(self.probabilities)}
        return html.block(html.line(self.text), html.bars(shares))


def encode_choice(tokenizer: Tokenizer, example: Choice, long_texts: LongTexts) -> Beside[Rows]:
    """For each window of the context, a row for each ending, which is read whole in every window.

    An ending that takes more than half of the room is truncated there.
    """
    room = long_texts.max_len - len(tokenizer.frame([], []))
    endings = [tokenizer.encode(ending) for ending in example.endings]
    longest = max(map(len, endings))
    cut = longest > room // 2
    if cut:
        long_texts.parts(longest, room // 2, where=example.where)  # raises, if the rule is to refuse
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
    columns = ("label", "probability")

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

    def cells(self, example: Choice, output: Chosen) -> dict[str, Any]:
        return {"label": output.label, "probability": output.probabilities[output.label]}

    def believed(self, examples: Sequence[Sequence[Rows]]) -> list[Array]:
        """The probability of each ending, for examples given as windows of rows.

        Logits are averaged over the windows, probabilities over the models.
        """
        scores = iter(self.engine.logits([row for windows in examples for rows in windows for row in rows]))
        found = []
        for windows in examples:
            here = np.array([[next(scores)[:, 0] for _ in rows] for rows in windows])  # [windows, endings, M]
            found.append(softmax(here.mean(axis=0).T).mean(axis=0))
        return found

    def quick(self, examples: Sequence[Choice]) -> dict[str, float]:
        believed = self._believed(examples)
        right = np.array([row[example.gold] for row, example in zip(believed, examples, strict=True)])
        return {"perplexity": perplexity_of(right), **self._metrics(believed, examples).values()}

    def measure(self, examples: Sequence[Choice], *, done: Done = nobody, **options: Any) -> Measured:
        believed = self._believed(examples)
        done(len(examples))
        outputs = [example.endings[int(row.argmax())] for example, row in zip(examples, believed, strict=True)]
        return Measured(self._metrics(believed, examples), outputs)

    def _believed(self, examples: Sequence[Choice]) -> list[Array]:
        return self.believed([self.encode(example, None).windows for example in examples])

    def _metrics(self, believed: Sequence[Array], examples: Sequence[Choice]) -> Metrics:
        return choice_metrics([int(row.argmax()) for row in believed], [example.gold for example in examples])


def choice_metrics(predicted: Sequence[int], gold: Sequence[int]) -> Metrics:
    """`accuracy` of the chosen endings."""
    return Metrics((Metric("accuracy", accuracy_statistics(predicted, gold), accuracy_from),), rule="endings")
