"""A trained classifier: texts, or pairs of texts, in; a class, several labels or a number out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jumok import html
from jumok.engines import Array, Done, Engine, nobody
from jumok.errors import DataError, InputError
from jumok.examples.labelled import Labelled
from jumok.score.classification import calibration_error, perplexity_of
from jumok.score.significance import Comparison, Values
from jumok.tasks.classification import ClassificationFacts
from jumok.tasks.protocol import Attention, Note, Predictor, answered, plain, scored
from jumok.tasks.targets import Classes, Numbers, Targets
from jumok.tasks.windows import Framed, LongTexts
from jumok.text.tokenizer import Tokenizer, Tokenizers


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifyOptions:
    """What can be asked beside the text."""

    words: bool = False
    """how much each word counted, of a model that attends to them"""


@dataclass(frozen=True, slots=True)
class Classified:
    """The label of one text."""

    text: str
    """the class, the labels with the separator between them, or the number"""
    probability: float | None = None
    """of the class"""
    probabilities: dict[str, float] = field(default_factory=dict)
    """of each label"""
    value: float | None = None
    """the number"""
    words: list[tuple[str, float]] | None = None
    """the words of the text with their share of the attention, if it was asked for and the text fits into one window"""
    windows: int = 1
    """in how many parts the text was read"""
    truncated: bool = False
    """whether only its beginning was"""
    notes: list[Note] = field(default_factory=list)
    """what should be known of it, such as that the text was cut"""

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
    """For GPT: the windows of a text, with the second text of a pair on a new line, and room for the longest label."""
    room = long_texts.max_len - max(map(len, labels))
    text, pair = tokenizer.encode(example.text), [] if example.pair is None else tokenizer.encode(f"\n{example.pair}")
    parts = long_texts.pair_parts(len(text), len(pair), room, where=example.where)
    rows = [[*text[slice(*first)], *pair[slice(*second)]] for first, second in parts]
    return Framed(rows, len(text) + len(pair) > room)


def label_ids(tokenizer: Tokenizer, labels: Sequence[str]) -> list[list[int]]:
    """For GPT: each label on a line of its own, and its end, without which 1 would be the beginning of 10."""
    found: dict[tuple[int, ...], str] = {}
    for label in labels:
        other = found.setdefault((*tokenizer.encode(f"\n{label}"), tokenizer.end_id), label)
        if other != label:
            what = f"the labels {other!r} and {label!r} are the same to the vocabulary, so a model cannot write both"
            hint = "labels that differ in what the vocabulary knows and does not fold"
            raise DataError(what, hint=hint, code="data.same_labels")
    return [*map(list, found)]


class Classifier(Predictor[Labelled, Classified]):
    kind = "classification"
    example = Labelled
    answers = Classified
    options = ClassifyOptions

    def __init__(self, engine: Engine, tokenizers: Tokenizers, targets: Targets, facts: ClassificationFacts) -> None:
        """`targets` are what the model's outputs mean, which differs during training: there, numbers are scaled."""
        self.engine, self.tokenizers, self.targets, self.facts = engine, tokenizers, targets, facts
        self.labels = targets.labels
        self.pair = facts.pair
        self.long_texts = facts.rule(engine.longest)
        self.label_ids = label_ids(self.tokenizer, self.labels) if engine.kind == "gpt" else None
        """what GPT may write"""

    def parse(self, given: Any, where: str = "") -> Labelled:
        """In a line, a tab separates the two texts of a pair; where there are no pairs it is white space."""
        if not isinstance(given, str) or self.pair is None:
            return super().parse(given, where)
        if not self.pair:
            return Labelled(given, where=where)
        texts = given.split("\t")
        if len(texts) == 1:
            what = f"the model judges pairs of texts, and this is one: {given[:60]!r}"
            raise InputError(what, where=where, hint="two texts with a tab between them", code="input.pair")
        if len(texts) > 2:
            what = f"{len(texts)} texts or columns with tabs between them: {given[:60]!r}"
            hint = "two texts with one tab between them, without a label or other columns"
            raise InputError(what, where=where, hint=hint, code="input.columns")
        return Labelled(texts[0], texts[1], None, where)

    def encode(self, example: Labelled, options: Any) -> Framed:
        if self.pair and example.pair is None:
            hint = "data.pair, the column of the second text"
            what = "the model judges pairs of texts, and this is one"
            raise DataError(what, where=example.where, hint=hint, code="input.pair")
        if self.pair is False and example.pair is not None:
            what = "the model judges single texts, and this is a pair"
            raise DataError(what, where=example.where, hint="one text", code="input.pair")
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

    def completed(self, example: Labelled, output: Classified) -> Labelled:
        """The separator alone stands for no label at all."""
        return replace(example, label=output.text or self.facts.separator)

    def believed(self, examples: Sequence[Labelled], *, done: Done = nobody) -> Values:
        """[n, width]: probabilities, or the numbers themselves."""
        return self._believed([self.encode(example, None) for example in examples], done)

    def quick(self, examples: Sequence[Labelled]) -> dict[str, float]:
        """Dev scores without intervals, and the perplexity of labels."""
        believed, gold = self.believed(examples), self.targets.gold(examples)
        scores = self.targets.quick(self.targets.decided(believed), gold)
        if isinstance(self.targets, Numbers):
            return scores
        one = isinstance(self.targets, Classes)
        right = believed[np.arange(len(gold)), gold] if one else np.where(gold, believed, 1 - believed)
        return {"perplexity": perplexity_of(right), **scores}

    def score(
        self, examples: Sequence[Labelled], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Scores with intervals, how well calibrated the probabilities are, and the lines of the outputs."""
        self.wanted(options)
        gold = self.targets.gold(examples)
        believed = self.believed(examples, done=done)
        result = scored(examples, self.targets.score(self.targets.decided(believed), gold))
        if not isinstance(self.targets, Numbers):
            calibrated = {"calibration_error": believed}
            if self.facts.temperature != 1.0:
                calibrated["calibration_error_before"] = self.targets.heated(believed, 1 / self.facts.temperature)
            for name, probabilities in calibrated.items():
                sure, right = self.targets.surety(probabilities, gold)
                result[name] = round(calibration_error(sure.tolist(), right.tolist()), 4)
        return result, [*map(self._line, believed)]

    def compare(
        self, other: "Classifier", examples: Sequence[Labelled], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        self.wanted(options)
        if type(self.targets) is not type(other.targets):
            hint = "two runs with the same task.predicts"
            raise InputError("the runs predict different things", hint=hint, code="input.different_runs")
        if self.labels != other.labels:
            what = f"the runs have different labels: {', '.join(self.labels)} and {', '.join(other.labels)}"
            raise InputError(what, hint="two runs with the same labels", code="input.different_runs")
        ours, theirs = (c.targets.decided(c.believed(examples, done=done)) for c in (self, other))
        return self.targets.compare(ours, theirs, self.targets.gold(examples))

    def attention(self, example: Any, output: Any = None) -> dict[str, Attention]:
        """While the first window is read: `self`, every layer and head of a Transformer, or `pool`, the one row by
        which a recurrent network weighs its states."""
        row = self.encode(self.parse(example), None).rows[0]
        found = self.engine.attention(row)
        if not found:
            return super().attention(example, output)
        pieces = self.tokenizer.pieces([self.tokenizer.start_id, *row] if self.engine.kind == "gpt" else row)
        return {name: Attention(pieces if name == "self" else [""], pieces, maps) for name, maps in found.items()}

    def draw_attention(self, example: Any, picture: Path, *, output: str | None = None) -> dict[str, Any]:
        """The words of a text, the darker the more they counted."""
        from jumok.picture import draw_words

        if output is not None:
            what = "a classifier writes no text that could be aligned"
            raise InputError(what, where="--output", hint="no --output", code="input.no_output")
        (found,) = answered(self.predict(example, words=True))
        if not found.words:
            return super().draw_attention(example, picture)
        words, weights = zip(*found.words, strict=True)
        sure = "" if found.probability is None else f" {found.probability:.2f}"
        draw_words(words, weights, picture, title=f"{found.text or 'no label'}{sure}")
        return {"input": example, **plain(found)}

    def _believed(self, read: Sequence[Framed], done: Done) -> Values:
        """The windows of a text are averaged before probabilities are made of them, so that a temperature changes no
        decision; the models of an ensemble after."""
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
        if self.facts.longest and self.engine.kind == "rnn" and max(map(len, found.rows)) > self.facts.longest:
            least = f"texts of more than {self.facts.longest} pieces, longer than all of the training data"
            notes.append(Note("text.longer_than_training", f"{least}: the output may be poor"))
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
        """What a line of output says."""
        match self.targets:
            case Numbers():
                return f"{row[0]:.7g}"
            case Classes():
                return self.labels[int(row.argmax())]
        yes = self.targets.decided(row[None])[0]
        return self.facts.separator.join(label for label, is_said in zip(self.labels, yes, strict=True) if is_said)

    def _words(self, examples: Sequence[Labelled], read: Sequence[Framed]) -> Sequence[list[tuple[str, float]] | None]:
        """The words of each text with the attention of their pieces; None for a text that is too long."""
        whole = [i for i, framed in enumerate(read) if not framed.long]
        weights = self.engine.focus([read[i].rows[0] for i in whole]) if whole else None
        found: list[list[tuple[str, float]] | None] = [None] * len(read)
        if weights is not None:
            for i, of_pieces in zip(whole, weights, strict=True):
                found[i] = attended_words(self.tokenizer, examples[i], of_pieces)
        return found


def attended_words(tokenizer: Tokenizer, example: Labelled, weights: Array) -> list[tuple[str, float]]:
    """Words split at white space, each with the attention of its pieces together."""
    found: list[tuple[str, float]] = []
    first = len(tokenizer.frame([])) - 1  # what begins a text belongs to no word, nor does what ends it
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
        first += len(offsets) + 1
    return found


def _by_text(done: Done, n_rows: int, n_texts: int) -> Done:
    """Tells `done` of texts when it is told of their rows: as large a share of them, and all in the end."""
    rows, told = 0, 0

    def tell(n: int) -> None:
        nonlocal rows, told
        rows += n
        texts = rows * n_texts // n_rows
        done(texts - told)
        told = texts

    return tell
