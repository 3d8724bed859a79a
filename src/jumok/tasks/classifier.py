"""A trained classifier: texts, or pairs of texts, in; a class, several labels or a number out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jumok.errors import DataError, InputError
from jumok.models import BertClassifier, Gpt, RnnClassifier
from jumok.score.classification import calibration_error
from jumok.score.significance import Comparison, Values
from jumok.tasks.classification import classify, encode_text
from jumok.tasks.one_text import OneTextPredictor, scored
from jumok.tasks.predict import Done, line_places, nobody, plain_output, refuse_options, warn_if_longer
from jumok.tasks.targets import Classes, Numbers, targets_of
from jumok.tasks.verbal import classify_in_words, encode_prompt, label_ids
from jumok.tasks.windows import Framed
from jumok.text.labelled import Labelled
from jumok.text.tokenizer import Tokenizer

AnyClassifier = RnnClassifier | BertClassifier | Gpt


@dataclass(frozen=True, slots=True)
class Classified:
    """What is said of one text, how sure the model is of it, and which words decided, if the model attends."""

    text: str
    """the class, the labels with the separator between them, or the number: what a line of output says"""
    probability: float | None
    """of the class"""
    probabilities: dict[str, float]
    """of each label"""
    value: float | None
    """the number"""
    words: list[tuple[str, float]] | None
    """the words of the text with the attention that they got"""
    windows: int = 1
    """in how many parts the text was read"""
    truncated: bool = False
    """whether only its beginning was"""


class Classifier(OneTextPredictor[AnyClassifier]):
    """One loaded model, or several as an ensemble."""

    def __init__(self, models: Sequence[AnyClassifier], tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        super().__init__(models, tokenizer, facts)
        self.separator = facts.get("separator", "|")
        self.targets = targets_of(
            facts["task"].get("predicts", "class"),
            facts["labels"],
            separator=self.separator,
        )
        self.labels = self.targets.labels
        self.pair: bool | None = facts.get("pair")
        """whether it was trained on pairs; a model from elsewhere does not say"""
        self.temperature: float = facts.get("temperature", 1.0)
        """what its outputs were divided by after training, so that it is as sure as it is right"""
        self.longest: int | None = facts.get("longest") if isinstance(models[0], RnnClassifier) else None

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[Classified]:
        """In the order of the texts; of a pair, a tab stands between the two texts."""
        refuse_options(options, "a classifier")
        framed = [self._framed(self._asked(text, where)) for text, where in zip(texts, line_places(texts), strict=True)]
        if not framed:
            return []
        self.long_texts.warn(sum(found.long for found in framed), len(framed))
        self.longest = warn_if_longer([row for found in framed for row in found.rows], self.longest)
        believed, looked = self._believed(framed, look=True, done=done)
        return [
            replace(self._said(text, row, weights), windows=len(found.rows), truncated=found.truncated)
            for text, row, weights, found in zip(texts, believed, looked, framed, strict=True)
        ]

    def believed(self, examples: Sequence[Labelled], *, done: Done = nobody) -> Values:
        """[n, width]: probabilities, or the numbers themselves."""
        framed = [self._framed(example) for example in examples]
        self.long_texts.warn(sum(found.long for found in framed), len(framed))
        return self._believed(framed, look=False, done=done)[0]

    def score(
        self, examples: Sequence[Labelled], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Scores with intervals for the examples' texts, how well calibrated they are, and what was said."""
        refuse_options(options, "a classifier")
        gold = self.targets.gold(examples)
        believed = self.believed(examples, done=done)
        scores = self.targets.score(self.targets.decided(believed), gold)
        result = scored(examples, scores)
        if not isinstance(self.targets, Numbers):
            calibrated = {"calibration_error": believed}
            if self.temperature != 1.0:
                calibrated["calibration_error_before"] = self.targets.heated(believed, 1 / self.temperature)
            for name, probabilities in calibrated.items():
                sure, right = self.targets.surety(probabilities, gold)
                result[name] = round(calibration_error(sure.tolist(), right.tolist()), 4)
        return result, [self._said("", row, None).text for row in believed]

    def compare(
        self, other: "Classifier", examples: Sequence[Labelled], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        refuse_options(options, "a classifier")
        if type(self.targets) is not type(other.targets):
            raise InputError("the runs predict different things", right="two runs with the same task.predicts")
        if self.labels != other.labels:
            raise InputError(f"the runs have different labels: {', '.join(self.labels)} and {', '.join(other.labels)}")
        ours, theirs = (c.targets.decided(c.believed(examples, done=done)) for c in (self, other))
        return self.targets.compare(ours, theirs, self.targets.gold(examples))

    def plain(self, text: str, output: Classified) -> dict[str, Any]:
        return {key: value for key, value in plain_output(output).items() if value is not None and value != {}}

    def _asked(self, text: str, where: str = "") -> Labelled:
        """A line of input: a tab parts the two texts of a pair, and is white space in a text that is none."""
        first, tab, second = text.partition("\t")
        if self.pair and not tab:
            right = "two texts with a tab between them"
            what = f"the model judges pairs of texts, and this is one: {text[:60]!r}"
            raise InputError(what, where=where, right=right)
        if self.pair and "\t" in second:
            texts = text.split("\t")
            what = f"{len(texts)} texts or columns with tabs between them: {text[:60]!r}"
            raise InputError(what, where=where, right="two texts with one tab, and neither a label nor other columns")
        if self.pair is False or not tab:
            return Labelled(text, None, "", where)
        return Labelled(first, second, "", where)

    def _framed(self, example: Labelled) -> Framed:
        if self.pair and example.pair is None:
            right = "data.pair, the column of the second text"
            raise DataError("the model judges pairs of texts, and this is one", where=example.where, right=right)
        if isinstance(self.models[0], Gpt):
            return encode_prompt(self.tokenizer, example, label_ids(self.tokenizer, self.labels), self.long_texts)
        return encode_text(self.tokenizer, example, self.long_texts)

    def _believed(self, framed: Sequence[Framed], *, look: bool, done: Done) -> tuple[Values, list[list[float] | None]]:
        writers = [model for model in self.models if isinstance(model, Gpt)]
        if writers:
            return classify_in_words(writers, self.tokenizer, framed, self.labels, done=done), [None] * len(framed)
        readers = [model for model in self.models if not isinstance(model, Gpt)]
        return classify(readers, self.tokenizer, framed, self.targets, look=look, done=done)

    def _said(self, text: str, row: Values, weights: Sequence[float] | None) -> Classified:
        words = None if weights is None else self._words(text, weights)
        if isinstance(self.targets, Numbers):
            return Classified(f"{row[0]:.7g}", None, {}, float(row[0]), words)
        probabilities = {label: round(float(p), 6) for label, p in zip(self.labels, row, strict=True)}
        if isinstance(self.targets, Classes):
            return Classified(self.labels[int(row.argmax())], float(row.max()), probabilities, None, words)
        said = [label for label, yes in zip(self.labels, self.targets.decided(row[None])[0], strict=True) if yes]
        return Classified(self.separator.join(said), None, probabilities, None, words)

    def _words(self, text: str, weights: Sequence[float]) -> list[tuple[str, float]]:
        """Words split at white space, each with the attention of its pieces together."""
        words = text.split()
        found = [0.0] * len(words)
        starts, at = [], 0
        for word in words:
            at = text.index(word, at)
            starts.append(at)
            at += len(word)
        example = self._asked(text)
        pieces = [self.tokenizer.encode_with_offsets(example.text).offsets]
        if example.pair is not None:
            shift = len(example.text) + 1
            second = self.tokenizer.encode_with_offsets(example.pair).offsets
            pieces.append([(start + shift, end + shift) for start, end in second])
        first = len(self.tokenizer.frame([])) - 1  # what begins a text is no word's, and neither is what ends it
        for offsets in pieces:
            for (start, _), weight in zip(offsets, weights[first:], strict=False):
                if words:
                    found[max(int(np.searchsorted(starts, start, side="right")) - 1, 0)] += weight
            first += len(offsets) + 1
        return [(word, round(weight, 4)) for word, weight in zip(words, found, strict=True)]
