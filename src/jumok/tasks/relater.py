"""A trained model of relations: a text with two entities in, what holds between them out; or all of a raw text."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from jumok.errors import InputError
from jumok.score.relations import compare_relations, relation_of, score_relations
from jumok.score.significance import Comparison, Values
from jumok.tasks.one_text import OneTextPredictor, scored
from jumok.tasks.predict import Done, Line, line_places, nobody, plain_output, refuse_options
from jumok.tasks.relation import NEAR, AnyRelation, Order, Pieces, Row, encode_related, order_of, overlap, relate, rule
from jumok.tasks.tagger import Found, Tagger
from jumok.tasks.targets import Classes
from jumok.text.annotated import Entity, Related, cannot_be_related, parse_related
from jumok.text.sentences import sentence_spans
from jumok.text.tokenizer import Tokenizer

PAIRS_AT_ONCE = 2048  # of raw texts, which may have any number


@dataclass(frozen=True, slots=True)
class Relation:
    """What holds between two entities of a text."""

    head: Found
    tail: Found
    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class RelatedText:
    """The relations of one text: of the two entities that were given, or of all that were found."""

    text: str
    """what a line of output says: the relation, or "head | relation | tail" of each that was found"""
    entities: list[Found]
    relations: list[Relation]
    truncated: bool = False
    """whether a model was asked with a part of the text only, the one that is nearest to the two entities"""


class Relater(OneTextPredictor[AnyRelation]):
    """One loaded model, or several as an ensemble."""

    def __init__(self, models: Sequence[AnyRelation], tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        super().__init__(models, tokenizer, facts)
        self.targets = Classes(facts["labels"])
        self.labels = self.targets.labels
        self.no_relation: str | None = facts["task"].get("no_relation")
        self.rule = rule(self.labels, self.no_relation)
        self.directed = any(relation_of(label) != label for label in self.labels)
        self.pairs = {(head.casefold(), tail.casefold()) for head, tail in facts.get("pairs", [])}
        self.typed = not self.pairs <= {("", "")}
        """whether the data said what its entities are"""
        self.order: Order = facts.get("order", "any")
        self.nested: bool = facts.get("nested", True)

    def predict(
        self,
        texts: Sequence[str],
        *,
        done: Done = nobody,
        taggers: Sequence[Tagger] = (),
        types: Mapping[str, str] | None = None,
        **options: Any,
    ) -> list[RelatedText]:
        """Lines of JSON with `text`, `head` and `tail`; or, with taggers that find the entities, the texts alone.

        `types` are other names for the types of entities that the taggers find.
        """
        refuse_options(options, "a model of relations")
        if taggers:
            return self._of_texts(texts, taggers, types or {}, done)
        asked = [parse_related(line, where) for line, where in zip(texts, line_places(texts), strict=True)]
        read = self._read(asked)
        believed = relate(self.models, self.tokenizer, read, self.targets, done=done)
        return [self._of_pair(*found) for found in zip(asked, believed, read, strict=True)]

    def score(
        self, examples: Sequence[Related], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Scores with intervals, by the rules of SemEval-2010 Task 8 and of ChemProt, and the relations."""
        refuse_options(options, "a model of relations")
        self.targets.gold(examples)  # a label that training does not know is named
        said = [self.labels[int(i)] for i in self._believed(examples, done).argmax(axis=1)] if examples else []
        scores = score_relations(said, [example.label for example in examples], **self.rule)
        return scored(examples, scores), said

    def compare(
        self, other: "Relater", examples: Sequence[Related], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        refuse_options(options, "a model of relations")
        for what, a, b in (("labels", self.labels, other.labels), ("no_relation", self.no_relation, other.no_relation)):
            if a != b:
                raise InputError(f"the runs differ in {what}: {a} and {b}", right="two runs of the same task and data")
        self.targets.gold(examples)
        ours, theirs = (
            [relater.labels[int(i)] for i in relater._believed(examples, done).argmax(axis=1)]
            for relater in (self, other)
        )
        gold = [example.label for example in examples]
        return compare_relations(ours, theirs, gold, **self.rule)

    def plain(self, text: str, output: RelatedText) -> dict[str, Any]:
        return plain_output(output)

    def _believed(self, examples: Sequence[Related], done: Done) -> Values:
        return relate(self.models, self.tokenizer, self._read(examples), self.targets, done=done)

    def _read(self, examples: Sequence[Related], pieces: Sequence[Pieces | None] | None = None) -> list[Row]:
        rows = [
            encode_related(self.tokenizer, example, self.long_texts, known)
            for example, known in zip(examples, pieces or [None] * len(examples), strict=True)
        ]
        self.long_texts.warn(sum(row.long for row in rows), len(rows), NEAR)
        return rows

    def _of_pair(self, example: Related, row: Values, read: Row) -> RelatedText:
        head, tail = (
            Found(entity.start, entity.end, entity.type, example.text[entity.start : entity.end], 1.0)
            for entity in (example.head, example.tail)
        )
        label = self.labels[int(row.argmax())]
        return RelatedText(label, [head, tail], [Relation(head, tail, label, round(float(row.max()), 6))], read.long)

    def _of_texts(
        self, texts: Sequence[str], taggers: Sequence[Tagger], types: Mapping[str, str], done: Done
    ) -> list[RelatedText]:
        """Entities first, sentence by sentence; then every pair of a sentence whose types training has relations of."""
        places = [(i, span) for i, text in enumerate(texts) for span in sentence_spans(text)]
        where = line_places(texts)
        sentences = [Line.at(texts[i][start:end], where[i]) for i, (start, end) in places]
        found = _entities(sentences, taggers, types)
        pieces = [Pieces.of(self.tokenizer, sentence) for sentence in sentences]
        asked = ((k, *pair) for k, here in enumerate(found) for pair in self._pairs(pieces[k], here))
        entities: list[list[Found]] = [[] for _ in texts]
        relations: list[list[Relation]] = [[] for _ in texts]
        truncated = [False for _ in texts]
        for (i, (start, _)), here in zip(places, found, strict=True):
            entities[i] += [_moved(entity, start) for entity in here]
        while some := [*islice(asked, PAIRS_AT_ONCE)]:
            examples = [
                Related(sentences[k], _entity(head), _entity(tail), "", sentences[k].where) for k, head, tail in some
            ]
            read = self._read(examples, [pieces[k] for k, *_ in some])
            believed = relate(self.models, self.tokenizer, read, self.targets)
            for (k, head, tail), row, one in zip(some, believed, read, strict=True):
                i, (start, _) = places[k]
                truncated[i] |= one.long
                label = self.labels[int(row.argmax())]
                if label != self.no_relation:
                    sides = _moved(head, start), _moved(tail, start)
                    relations[i].append(Relation(*sides, label, round(float(row.max()), 6)))
        done(len(texts))
        return [
            RelatedText(
                "; ".join(f"{r.head.text} | {r.label} | {r.tail.text}" for r in related), all_of_it, related, cut
            )
            for all_of_it, related, cut in zip(entities, relations, truncated, strict=True)
        ]

    def _pairs(self, pieces: Pieces, entities: Sequence[Found]) -> Iterator[tuple[Found, Found]]:
        """Every two that can be read together, as head and tail; once where the label says the direction."""
        places = [bisect_left(pieces.starts, entity.start) for entity in entities]
        for i, one in enumerate(entities):
            for place, other in zip(places[i + 1 :], entities[i + 1 :], strict=True):
                if place - places[i] >= self.long_texts.max_len:
                    break
                if cannot_be_related(_entity(one), _entity(other)):  # of two taggers: they cross
                    continue
                ways = [way for way in ((one, other), (other, one)) if self._admits(*way)]
                yield from ways[:1] if self.directed else ways

    def _admits(self, head: Found, tail: Found) -> bool:
        """Whether training has such pairs. Where the order in the text decides which is the head, it says nothing about
        the types; types are compared without regard to case."""
        if not self.nested and overlap(_entity(head), _entity(tail)):
            return False
        if self.order != "any" and order_of(_entity(head), _entity(tail)) != self.order:
            return False
        types = head.label.casefold(), tail.label.casefold()
        known = self.pairs
        return not self.typed or types in known or (self.order != "any" and types[::-1] in known)


def _entities(sentences: Sequence[str], taggers: Sequence[Tagger], types: Mapping[str, str]) -> list[list[Found]]:
    """What all taggers find in each, in the order of the text; of the same characters what the surest says."""
    surest: list[dict[tuple[int, int], Found]] = [{} for _ in sentences]
    for tagger in taggers:
        for found, tagged in zip(surest, tagger.predict(sentences), strict=True):
            for entity in tagged.entities:
                place = entity.start, entity.end
                if place not in found or entity.score > found[place].score:
                    found[place] = replace(entity, label=types.get(entity.label, entity.label))
    return [sorted(found.values(), key=lambda entity: (entity.start, entity.end)) for found in surest]


def _moved(found: Found, by: int) -> Found:
    return replace(found, start=found.start + by, end=found.end + by)


def _entity(found: Found) -> Entity:
    return Entity(found.start, found.end, found.label)
