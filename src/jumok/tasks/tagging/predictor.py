"""Tag: a text in, tags and entities with character offsets out."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from jumok import html
from jumok.engines import Done, Engine, Tags, nobody
from jumok.examples.spans import Spans
from jumok.score.confusion import span_confusion
from jumok.score.tagging import span_metrics, tag_metrics
from jumok.tasks.passage import Passage
from jumok.tasks.protocol import Hidden, Measured, Note, Predictor
from jumok.tasks.tagging import TaggingFacts, types_of
from jumok.tasks.tagging.units import Read, Units, Window, gold_tags, windows_of
from jumok.tasks.targets import FEW_LABELS
from jumok.text.span import Span
from jumok.text.tags import Place, in_characters, places_of, spans
from jumok.text.tokenizer import Tokenizers


@dataclass(frozen=True, slots=True)
class TaggedText:
    """The units of a text with their tags and probabilities, and the entities that the tags mark."""

    text: str
    """`word/TAG` for each word, or, if units are tokens, the text with entities as `[entity](TYPE)`"""
    words: list[str]
    """the tagged units: words or tokens"""
    tags: list[str]
    """tag of each unit"""
    probabilities: list[float]
    """probability of each tag"""
    entities: list[Span]
    """entities that the tags mark"""
    windows: int = 1
    """number of windows that the text was read in"""
    truncated: bool = False
    """whether only its beginning was read"""
    notes: list[Note] = field(default_factory=list)
    """remarks, such as that the text was truncated"""
    given: Hidden = field(default="", repr=False, compare=False)
    """the text of the input, for notebooks"""

    def _repr_html_(self) -> str:
        return html.block(html.marked(self.given, self.entities))

    @property
    def spans(self) -> list[Place]:
        return _places(self.entities)


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded text."""

    read: Read
    windows: list[Window]
    long: bool
    """whether it has more tokens than fit into one window"""

    @property
    def truncated(self) -> bool:
        return self.long and len(self.windows) == 1


class Tagger(Predictor[Spans, TaggedText]):
    kind = "tagging"
    example = Spans
    answers = TaggedText
    columns = ("spans",)
    table_columns = "type", "text", "start", "end", "score"
    marks = True

    def __init__(self, engine: Engine, tokenizers: Tokenizers, facts: TaggingFacts) -> None:
        self.engine, self.tokenizers = engine, tokenizers
        self.long_texts = facts.rule(engine.longest)
        self.labels = facts.labels
        self.units = Units.stored(facts.units)
        self.types = types_of(self.labels)
        """types of entities"""

    def encode(self, example: Spans, options: Any) -> Encoded:
        """If the model tags words, given words are kept; everything else is read as raw text."""
        read = self.units.read(self.tokenizer, example.text, example.words)
        windows = windows_of(read, self.tokenizer, self.long_texts, where=example.where)
        return Encoded(read, windows, len(read.ids) > self.long_texts.max_len - len(self.tokenizer.frame([])))

    def answer(
        self, examples: Sequence[Spans], read: Sequence[Encoded], options: Any, done: Done
    ) -> Iterator[TaggedText]:
        found = self.decide(read)
        done(len(examples))
        for example, encoded, tagged in zip(examples, read, found, strict=True):
            yield self._output(example.text, encoded, tagged)

    def first_row(self, example: Spans) -> Sequence[int]:
        return self.encode(example, None).windows[0].row

    def completed(self, example: Spans, output: TaggedText) -> Spans:
        """Words with their tags if the text is made of words, else entities by their characters."""
        if self.units.of == "words" and output.words and " ".join(output.words) == example.text:
            return Spans.of_words(output.words, output.tags, example.where)
        entities = [Span(entity.start, entity.end, entity.label) for entity in output.entities]
        return Spans(example.text, entities, where=example.where)

    def cells(self, example: Spans, output: TaggedText) -> dict[str, Any]:
        """Entities by their characters; words that were given have a tag each."""
        found = [
            {"start": span.start, "end": span.end, "label": span.label, "score": span.score} for span in output.entities
        ]
        if example.words is None:
            return {"spans": found}
        done = self.completed(example, output)
        return {"spans": found, "tags": done.tags if done.tags is not None else _tags_of(example.words, done.marked)}

    def decide(self, texts: Sequence[Encoded]) -> list[Tags]:
        """The tags of each text's units, each from the window with the most context around it.

        Units that were truncated get `O`.
        """
        windows = [(i, window) for i, encoded in enumerate(texts) for window in encoded.windows]
        outside = self.labels.index("O") if "O" in self.labels else 0
        lost = np.where(np.arange(len(self.labels)) == outside, 0.0, -1e4)
        emissions = [np.tile(lost, (self.engine.n_models, len(encoded.read.units), 1)) for encoded in texts]
        logits = self.engine.logits([window.row for _, window in windows])
        for (i, window), of_window in zip(windows, logits, strict=True):
            emissions[i][:, window.units] = of_window[:, window.places]
        return self.engine.tag(emissions)

    def _output(self, text: str, encoded: Encoded, tagged: Tags) -> TaggedText:
        units, tags = encoded.read.units, self._tags(tagged)
        sure = [round(float(row[best]), 6) for row, best in zip(tagged.probabilities, tagged.best, strict=True)]
        words = [text[start:end] for start, end in units]
        entities = []
        for kind, first, after in spans(tags):
            start, end = units[first][0], units[after - 1][1]
            entities.append(Span(start, end, kind, text[start:end], min(sure[first:after])))
        if self.units.of == "pieces":
            line = with_entities(text, entities)
        else:
            line = " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True))
        notes = self.long_texts.notes(encoded.long)
        return TaggedText(line, words, tags, sure, entities, len(encoded.windows), encoded.truncated, notes, text)

    def _tags(self, tagged: Tags) -> list[str]:
        return [self.labels[int(best)] for best in tagged.best]

    def quick(self, examples: Sequence[Spans]) -> dict[str, float]:
        """Perplexity and accuracy of the tags, and span F1, by characters if units are tokens."""
        read = [self.encode(example, None) for example in examples]
        found = self.decide(read)
        number = {tag: i for i, tag in enumerate(self.labels)}
        gold = [gold_tags(example, each.read, self.units)[0] for example, each in zip(examples, read, strict=True)]
        # A tag that does not occur in training has no probability.
        losses = [
            -np.log(max(float(row[number[tag]]), 1e-12))
            for tagged, tags in zip(found, gold, strict=True)
            for row, tag in zip(tagged.probabilities, tags, strict=True)
            if tag in number
        ]
        predicted = [self._tags(tagged) for tagged in found]
        scores = {"perplexity": float(np.exp(np.mean(losses)))}
        scores |= tag_metrics(predicted, gold).values("span_f1", "tag_accuracy")
        if self.units.of == "words":
            return scores
        places = [in_characters(tags, each.read.units) for tags, each in zip(predicted, read, strict=True)]
        metrics = span_metrics(places, [_places(example.marked) for example in examples])
        return scores | metrics.values("span_f1", "precision", "recall")

    def measure(self, examples: Sequence[Spans], *, done: Done = nobody, **options: Any) -> Measured:
        """By tags if the model tags words and all examples have words, else by spans of characters."""
        found = list(self.answer(examples, [self.encode(example, None) for example in examples], None, done))
        if self.units.of == "words" and all(example.words is not None for example in examples):
            metrics = tag_metrics([tagged.tags for tagged in found], [example.gold_tags for example in examples])
        else:
            metrics = span_metrics([tagged.spans for tagged in found], [_places(e.marked) for e in examples])
        confused = span_confusion([tagged.spans for tagged in found], [_places(e.marked) for e in examples])
        more: dict[str, Any] = {"confusion": asdict(confused)} if len(confused.labels) <= FEW_LABELS else {}
        if notes := self._unknown_types(examples):
            more["notes"] = notes
        return Measured(metrics, [tagged.text for tagged in found], more)

    def _unknown_types(self, examples: Sequence[Spans]) -> list[str]:
        unknown = [span.label for example in examples for span in example.marked if span.label not in self.types]
        if not unknown:
            return []
        return [f"{len(unknown):,} entities have types that the training data lacks: {', '.join(sorted({*unknown}))}"]

    def table(self, output: TaggedText) -> list[dict[str, Any]]:
        rows = ((e.label, e.text, e.start, e.end, e.score) for e in output.entities)
        return [dict(zip(self.table_columns, row, strict=True)) for row in rows]

    def passage(self, example: Any, output: TaggedText) -> Passage:
        return Passage(self.parse(example).text, output.entities)


def _places(found: Sequence[Span]) -> list[Place]:
    return [(span.label, span.start, span.end) for span in found]


def with_entities(text: str, entities: Sequence[Span]) -> str:
    """The text with its entities marked: [Seoul](LOC)."""
    line, at = "", 0
    for entity in entities:
        line += f"{text[at : entity.start]}[{entity.text}]({entity.label})"
        at = entity.end
    return line + text[at:]


def _tags_of(words: Sequence[str], entities: Sequence[Span]) -> list[str]:
    """A tag for each word that has characters of an entity."""
    tags = ["O"] * len(words)
    places = places_of(words)
    for entity in entities:
        inside = [i for i, (start, end) in enumerate(places) if start < entity.end and entity.start < end]
        for i in inside:
            tags[i] = f"{'B' if i == inside[0] else 'I'}-{entity.label}"
    return tags
