"""Classify: a text or a pair of texts in; a class, several labels or a number out."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jumok import html
from jumok.engines import Array, Done, Engine, nobody
from jumok.errors import DataError, InputError
from jumok.examples.labelled import Labelled
from jumok.score.classification import calibration_error, perplexity_of, reliability
from jumok.score.confusion import confusion
from jumok.score.significance import Comparison, Values
from jumok.tasks.classification import ClassificationFacts
from jumok.tasks.protocol import Measured, Note, Predictor, answered, plain
from jumok.tasks.targets import FEW_LABELS, Classes, Numbers, Targets
from jumok.tasks.windows import Framed, LongTexts
from jumok.text.tokenizer import Tokenizer, Tokenizers


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifyOptions:
    """Options of prediction."""

    words: bool = False
    """return the attention on each word, if the model has attention"""


@dataclass(frozen=True, slots=True)
class Classified:
    """The prediction for one text."""

    text: str
    """the class, the labels joined by the separator, or the number"""
    probability: float | None = None
    """probability of the class"""
    probabilities: dict[str, float] = field(default_factory=dict)
    """probability of each label"""
    value: float | None = None
    """the number"""
    words: list[tuple[str, float]] | None = None
    """words with their share of the attention, if the option is set and the text fits into one window"""
    windows: int = 1
    """number of windows that the text was read in"""
    truncated: bool = False
    """whether only its beginning was read"""
    notes: list[Note] = field(default_factory=list)
    """remarks, such as that the text was truncated"""

    def _repr_html_(self) -> str:
        said = html.line(self.text or "no label")
        return html.block(said, html.bars(self.probabilities), html.shaded(self.words) if self.words else "")


def encode_text(tokenizer: Tokenizer, example: Labelled, long_texts: LongTexts) -> Framed:
    """The windows of a text, or of a pair of texts."""
    pair = None if example.pair is None else tokenizer.encode(example.pair)
    return long_texts.framed(tokenizer, tokenizer.encode(example.text), pair, where=example.where)


def encode_prompt(
    tokenizer: Tokenizer, example: Labelled, labels: Sequence[Sequence[int]], long_texts: LongTexts
) -> Framed:
    """For GPT: windows that leave room for the longest label; the second text of a pair starts on a new line."""
    room = long_texts.max_len - max(map(len, labels))
    text, pair = tokenizer.encode(example.text), [] if example.pair is None else tokenizer.encode(f"\n{example.pair}")
    parts = long_texts.pair_parts(len(text), len(pair), room, where=example.where)
    rows = [[*text[slice(*first)], *pair[slice(*second)]] for first, second in parts]
    return Framed(rows, len(text) + len(pair) > room)


def label_ids(tokenizer: Tokenizer, labels: Sequence[str]) -> list[list[int]]:
    """For GPT: each label on a new line, with an end token, without which 1 would be a prefix of 10."""
    found: dict[tuple[int, ...], str] = {}
    for label in labels:
        other = found.setdefault((*tokenizer.encode(f"\n{label}"), tokenizer.end_id), label)
        if other != label:
            what = f"the labels {other!r} and {label!r} have the same tokens, so the model cannot tell them apart"
            hint = "rename one of them, or use a vocabulary that tells them apart"
            raise DataError(what, hint=hint, code="data.same_labels")
    return [*map(list, found)]


class Classifier(Predictor[Labelled, Classified]):
    kind = "classification"
    example = Labelled
    answers = Classified
    options = ClassifyOptions

    def __init__(self, engine: Engine, tokenizers: Tokenizers, targets: Targets, facts: ClassificationFacts) -> None:
        """`targets` interprets the model's outputs; during training, numbers are standardised."""
        self.engine, self.tokenizers, self.targets, self.facts = engine, tokenizers, targets, facts
        self.labels = targets.labels
        self.columns = ("label", "probability") if isinstance(targets, Classes) else ("label",)
        self.pair = facts.pair
        self.long_texts = facts.rule(engine.longest)
        self.label_ids = label_ids(self.tokenizer, self.labels) if engine.kind == "gpt" else None
        """what GPT may generate"""

    def parse(self, given: Any, where: str = "") -> Labelled:
        """In a line, a tab separates the two texts of a pair; a model of single texts reads it as white space."""
        if not isinstance(given, str) or self.pair is None:
            return super().parse(given, where)
        if not self.pair:
            return super().parse(Labelled(given, where=where), where)
        texts = given.split("\t")
        if len(texts) == 1:
            what = f"the model takes pairs of texts, but this is a single text: {given[:60]!r}"
            raise InputError(what, where=where, hint="separate two texts with a tab", code="input.pair")
        if len(texts) > 2:
            what = f"{len(texts)} columns instead of two: {given[:60]!r}"
            hint = "separate two texts with one tab, without a label or other columns"
            raise InputError(what, where=where, hint=hint, code="input.columns")
        return super().parse(Labelled(texts[0], texts[1], None, where), where)

    def encode(self, example: Labelled, options: Any) -> Framed:
        if self.pair and example.pair is None:
            hint = "set data.pair to the column of the second text"
            what = "the model takes pairs of texts, but this is a single text"
            raise DataError(what, where=example.where, hint=hint, code="input.pair")
        if self.pair is False and example.pair is not None:
            what = "the model takes single texts, but this is a pair"
            raise DataError(what, where=example.where, hint="pass a single text", code="input.pair")
        if self.label_ids is not None:
            return encode_prompt(self.tokenizer, example, self.label_ids, self.long_texts)
        return encode_text(self.tokenizer, example, self.long_texts)

    def answer(
        self, examples: Sequence[Labelled], read: Sequence[Framed], options: ClassifyOptions, done: Done
    ) -> Iterator[Classified]:
        believed = self._believed(read, done)
        words = self._words(examples, read) if options.words else [None] * len(examples)
        for row, found, of_words in zip(believed, read, words, strict=True):
            yield self._said(row, found, of_words)

    def about(self) -> dict[str, Any]:
        predicts = (
            "number"
            if isinstance(self.targets, Numbers)
            else "class"
            if isinstance(self.targets, Classes)
            else "labels"
        )
        return {"predicts": predicts, "pair": self.pair, "separator": self.facts.separator}

    def completed(self, example: Labelled, output: Classified) -> Labelled:
        """No label at all is written as the separator alone."""
        return replace(example, label=output.text or self.facts.separator)

    def cells(self, example: Labelled, output: Classified) -> dict[str, Any]:
        """A number, or several labels, have no probability."""
        label = float(output.text) if output.value is not None else output.text or self.facts.separator
        return {"label": label} | ({} if output.probability is None else {"probability": output.probability})

    def believed(self, examples: Sequence[Labelled], *, done: Done = nobody) -> Values:
        """[n, width]: probabilities of the labels, or the predicted numbers."""
        return self._believed([self.encode(example, None) for example in examples], done)

    def quick(self, examples: Sequence[Labelled]) -> dict[str, float]:
        believed, gold = self.believed(examples), self.targets.gold(examples)
        scores = self.targets.metrics(self.targets.decided(believed), gold).values()
        if isinstance(self.targets, Numbers):
            return scores
        one = isinstance(self.targets, Classes)
        right = believed[np.arange(len(gold)), gold] if one else np.where(gold, believed, 1 - believed)
        return {"perplexity": perplexity_of(right), **scores}

    def measure(self, examples: Sequence[Labelled], *, done: Done = nobody, **options: Any) -> Measured:
        gold = self.targets.gold(examples)
        believed = self.believed(examples, done=done)
        metrics = self.targets.metrics(self.targets.decided(believed), gold, by_label=True)
        more: dict[str, Any] = {}
        if isinstance(self.targets, Classes) and len(self.labels) <= FEW_LABELS:
            decided = self.targets.decided(believed)
            more["confusion"] = asdict(confusion(decided.tolist(), gold.tolist(), labels=self.labels))
        if not isinstance(self.targets, Numbers):
            found = reliability(*(each.tolist() for each in self.targets.surety(believed, gold)))
            more["reliability"] = [each.plain() for each in found]
            calibrated = {"calibration_error": believed}
            if self.facts.temperature != 1.0:
                calibrated["calibration_error_before"] = self.targets.heated(believed, 1 / self.facts.temperature)
            for name, probabilities in calibrated.items():
                sure, right = self.targets.surety(probabilities, gold)
                more[name] = round(calibration_error(sure.tolist(), right.tolist()), 4)
        return Measured(metrics, [*map(self._line, believed)], more)

    def compare(
        self, other: "Classifier", examples: Sequence[Labelled], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        self.require_comparable(other, examples)
        # The examples separate several labels as the data of this model does.
        other = Classifier(other.engine, other.tokenizers, self.targets, other.facts)
        return super().compare(other, examples, done=done, **options)

    def require_comparable(self, other: "Classifier", examples: Sequence[Labelled]) -> None:
        if type(self.targets) is not type(other.targets):
            hint = "compare two runs with the same task.predicts"
            raise InputError("the runs predict different things", hint=hint, code="input.different_runs")
        if self.labels != other.labels:
            what = f"the runs have different labels: {', '.join(self.labels)} and {', '.join(other.labels)}"
            raise InputError(what, hint="compare two runs with the same labels", code="input.different_runs")

    def first_row(self, example: Labelled) -> Sequence[int]:
        return self.encode(example, None).rows[0]

    def draw_attention(self, example: Any, picture: Path, *, output: str | None = None) -> dict[str, Any]:
        """Draw the words of a text, shaded by their attention."""
        from jumok.picture import draw_words

        if output is not None:
            what = "a classifier generates no text to align"
            raise InputError(what, where="--output", hint="remove --output", code="input.no_output")
        (found,) = answered(self.predict(example, words=True))
        if not found.words:
            return super().draw_attention(example, picture)
        words, weights = zip(*found.words, strict=True)
        sure = "" if found.probability is None else f" {found.probability:.2f}"
        draw_words(words, weights, picture, title=f"{found.text or 'no label'}{sure}")
        return {"input": example, **plain(found)}

    def _believed(self, read: Sequence[Framed], done: Done) -> Values:
        """Average outputs over the windows of a text, so that a temperature changes no decision, and probabilities over
        the models of an ensemble."""
        rows = [row for framed in read for row in framed.rows]
        if not rows:
            return np.zeros((0, self.targets.width))
        if self.label_ids is not None:
            outputs = self.engine.continuations(rows, self.label_ids)  # [M, rows, labels]
            done(len(read))
        else:
            outputs = np.stack(self.engine.logits(rows, done=_by_text(done, len(rows), len(read))), axis=1)
        counts = np.array([len(framed.rows) for framed in read], dtype=np.int64)
        means = np.add.reduceat(outputs, np.cumsum(counts) - counts, axis=1) / counts[:, None]
        believed: Values = np.mean([self.targets.believed(of_model) for of_model in means], axis=0)
        return believed

    def _said(self, row: Values, found: Framed, words: list[tuple[str, float]] | None) -> Classified:
        notes = self.long_texts.notes(found.long)
        longest = self.facts.longest
        if longest and self.engine.kind == "rnn" and max(map(len, found.rows)) > longest:
            text = f"texts of more than {longest} tokens, longer than any in training: the output may be poor"
            notes.append(Note("text.longer_than_training", text))
        number = isinstance(self.targets, Numbers)
        return Classified(
            self._line(row),
            float(row.max()) if isinstance(self.targets, Classes) else None,
            {} if number else {label: round(float(p), 6) for label, p in zip(self.labels, row, strict=True)},
            float(row[0]) if number else None,
            words,
            len(found.rows),
            found.truncated,
            notes,
        )

    def _line(self, row: Values) -> str:
        """The line of output."""
        match self.targets:
            case Numbers():
                return f"{row[0]:.7g}"
            case Classes():
                return self.labels[int(row.argmax())]
        decided = self.targets.decided(row[None])[0]
        return self.facts.separator.join(label for label, has in zip(self.labels, decided, strict=True) if has)

    def _words(self, examples: Sequence[Labelled], read: Sequence[Framed]) -> Sequence[list[tuple[str, float]] | None]:
        """The words of each text with their attention; None for a text of several windows."""
        whole = [i for i, framed in enumerate(read) if not framed.long]
        weights = self.engine.focus([read[i].rows[0] for i in whole]) if whole else None
        found: list[list[tuple[str, float]] | None] = [None] * len(read)
        if weights is not None:
            for i, of_tokens in zip(whole, weights, strict=True):
                found[i] = attended_words(self.tokenizer, examples[i], of_tokens)
        return found


def attended_words(tokenizer: Tokenizer, example: Labelled, weights: Array) -> list[tuple[str, float]]:
    """Words split at white space, each with the summed attention of its tokens."""
    found: list[tuple[str, float]] = []
    first = len(tokenizer.frame([])) - 1  # special tokens belong to no word
    for text in (example.text, example.pair or ""):
        words, starts, at = text.split(), [], 0
        for word in words:
            starts.append(text.index(word, at))
            at = starts[-1] + len(word)
        offsets = tokenizer.encode_with_offsets(text).offsets
        sums = np.zeros(len(words))
        owners = np.searchsorted(starts, [start for start, _ in offsets], side="right") - 1
        if words:
            np.add.at(sums, owners.clip(min=0), weights[first : first + len(offsets)])
        found += [(word, round(float(weight), 4)) for word, weight in zip(words, sums, strict=True)]
        first += len(offsets) + tokenizer.ends_between
    return found


def _by_text(done: Done, n_rows: int, n_texts: int) -> Done:
    """A `done` for rows that reports the same share of the texts, and all of them at the end."""
    rows, reported = 0, 0

    def report(n: int) -> None:
        nonlocal rows, reported
        rows += n
        texts = rows * n_texts // n_rows
        done(texts - reported)
        reported = texts

    return report
