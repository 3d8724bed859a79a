"""A trained tagger: text in, tags and entities with their characters out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jumok.score.significance import Comparison
from jumok.score.tagging import Span, compare_spans, compare_tags, score_spans, score_tags, spans
from jumok.tasks.one_text import OneTextPredictor, scored
from jumok.tasks.predict import Done, Line, line_places, nobody, note, plain_output, refuse_options
from jumok.tasks.tagging import AnyTagger, Example, marked_spans, tag_units
from jumok.tasks.units import Read, Units
from jumok.text.annotated import Marked
from jumok.text.labelled import Tagged
from jumok.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Found:
    """An entity: `text[start:end]` of what was given."""

    start: int
    end: int
    label: str
    text: str
    score: float
    """how sure the model is of its least sure part"""


@dataclass(frozen=True, slots=True)
class TaggedText:
    """One text: its units with their tags and how sure the model is of each, and the entities that they mark."""

    text: str
    """what a line of output says: word/TAG, or the text with [entity](TYPE) in it where units are pieces"""
    words: list[str]
    tags: list[str]
    probabilities: list[float]
    entities: list[Found]
    windows: int = 1
    """in how many parts the text was read"""
    truncated: bool = False
    """whether only its beginning was"""

    @property
    def spans(self) -> list[Span]:
        return [(entity.label, entity.start, entity.end) for entity in self.entities]


class Tagger(OneTextPredictor[AnyTagger]):
    """One loaded model, or several as an ensemble."""

    def __init__(self, models: Sequence[AnyTagger], tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        super().__init__(models, tokenizer, facts)
        self.labels: list[str] = facts["labels"]
        self.units = Units.stored(facts)
        self.of_pieces = self.units.of == "pieces"
        self.types = sorted({label[2:] for label in self.labels if label[1:2] == "-"})
        """of the entities that it finds"""

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[TaggedText]:
        """In the order of the texts. What carries a tag in them is what did in training."""
        refuse_options(options, "a tagger")
        known = [text.words if isinstance(text, Line) else None for text in texts]
        reads = [self.units.read(self.tokenizer, text, words) for text, words in zip(texts, known, strict=True)]
        return self._tag(texts, reads, line_places(texts), done)

    def _tag(self, texts: Sequence[str], reads: Sequence[Read], where: Sequence[str], done: Done) -> list[TaggedText]:
        room = self.long_texts.max_len - len(self.tokenizer.frame([]))
        # What is refused is refused here, where its place is known, and before anything is said of it.
        parts = [self.long_texts.parts(len(read.ids), room, where=at) for read, at in zip(reads, where, strict=True)]
        self.long_texts.warn(sum(len(read.ids) > room for read in reads), len(reads))
        found = tag_units(self.models, self.tokenizer, reads, self.labels, self.long_texts, done=done)
        outputs = []
        for text, read, tagged, read_in in zip(texts, reads, found, parts, strict=True):
            numbers = [self.labels.index(tag) for tag in tagged.tags]
            sure = [round(float(row[i]), 6) for row, i in zip(tagged.probabilities, numbers, strict=True)]
            words = [text[start:end] for start, end in read.units]
            entities = []
            for kind, first, after in spans(tagged.tags):
                start, end = read.units[first][0], read.units[after - 1][1]
                entities.append(Found(start, end, kind, text[start:end], min(sure[first:after])))
            if self.of_pieces:
                line = with_entities(text, entities)
            else:
                line = " ".join(f"{word}/{tag}" for word, tag in zip(words, tagged.tags, strict=True))
            truncated = read_in[-1][1] < len(read.ids)
            outputs.append(TaggedText(line, words, tagged.tags, sure, entities, len(read_in), truncated))
        return outputs

    def _tag_examples(self, examples: Sequence[Example], done: Done) -> list[TaggedText]:
        texts = [example.text if isinstance(example, Marked) else " ".join(example.words) for example in examples]
        # Words are given, and read as such, to a model of words; whatever else comes is read as raw text is.
        reads = [
            self.units.read_example(self.tokenizer, example)
            if isinstance(example, Tagged) and not self.of_pieces
            else self.units.read(self.tokenizer, text)
            for text, example in zip(texts, examples, strict=True)
        ]
        return self._tag(texts, reads, [example.where for example in examples], done)

    def _words(self, examples: Sequence[Example]) -> list[Tagged]:
        """The examples, if it is words that are tagged in them and by this model; else spans of characters count."""
        return [] if self.of_pieces else [example for example in examples if isinstance(example, Tagged)]

    def score(
        self, examples: Sequence[Example], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Scores with intervals of the tags, or of the spans of characters, and the tagged texts."""
        refuse_options(options, "a tagger")
        self._note_strange_types(examples)
        found = self._tag_examples(examples, done)
        if words := self._words(examples):
            scores = score_tags([tagged.tags for tagged in found], [example.tags for example in words])
        else:
            scores = score_spans([tagged.spans for tagged in found], [marked_spans(example) for example in examples])
        result = scored(examples, scores)
        return result, [tagged.text for tagged in found]

    def _note_strange_types(self, examples: Sequence[Example]) -> None:
        """Entities of types that training did not have cannot be found: they are scored as missed, and that is said."""
        types = [kind for example in examples for kind, *_ in marked_spans(example) if kind not in self.types]
        if types:
            named = ", ".join(sorted(set(types)))
            note(f"entities of types that training did not have: {len(types):,}, {named}")

    def compare(
        self, other: "Tagger", examples: Sequence[Example], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        refuse_options(options, "a tagger")
        ours, theirs = (tagger._tag_examples(examples, done) for tagger in (self, other))
        if (words := self._words(examples)) and other._words(examples):
            gold = [example.tags for example in words]
            return compare_tags([tagged.tags for tagged in ours], [tagged.tags for tagged in theirs], gold)
        marked = [marked_spans(example) for example in examples]
        return compare_spans([tagged.spans for tagged in ours], [tagged.spans for tagged in theirs], marked)

    def plain(self, text: str, output: TaggedText) -> dict[str, Any]:
        return plain_output(output)


def with_entities(text: str, entities: Sequence[Found]) -> str:
    """The text with its entities marked in it: [Seoul](LOC)."""
    said, at = "", 0
    for entity in entities:
        said += f"{text[at : entity.start]}[{entity.text}]({entity.label})"
        at = entity.end
    return said + text[at:]
