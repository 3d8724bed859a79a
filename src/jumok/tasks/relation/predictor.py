"""Which relation holds between two entities of a text; or, with taggers that find them, all relations of raw texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from jumok import html
from jumok.engines import Array, Done, Engine, nobody
from jumok.errors import InputError
from jumok.examples.relations import Related
from jumok.score.classification import perplexity_of, softmax
from jumok.score.relations import compare_relations, quick_relations, relation_of, score_relations
from jumok.score.significance import Comparison
from jumok.tasks.passage import Passage
from jumok.tasks.protocol import Failure, Hidden, Note, Predictor, scored
from jumok.tasks.relation import RelationFacts
from jumok.tasks.relation.markers import Pieces, Row, encode_related
from jumok.tasks.relation.pairs import Pairs
from jumok.tasks.relation.sentences import Sentence, entities_of
from jumok.tasks.targets import number_of
from jumok.text.sentences import sentence_spans
from jumok.text.span import Span
from jumok.text.tokenizer import Tokenizers

NEAR = "near their entities only"
PAIRS_AT_ONCE = 2048  # of raw texts, which may have any number
_ENTITY = ("type", "text", "start", "end")


@dataclass(frozen=True, slots=True)
class Relation:
    """What holds between two entities of a text."""

    head: Span
    """the first entity"""
    tail: Span
    """the second entity"""
    label: str
    """what holds between them"""
    probability: float
    """of the label"""


@dataclass(frozen=True, slots=True)
class RelatedText:
    """The relations of one text: of the two entities that were given, or of all that were found."""

    text: str
    """what a line of output says: the relation, or "head | relation | tail" of each that was found"""
    entities: list[Span]
    """the two that were given, or all that were found"""
    relations: list[Relation]
    """what holds between them"""
    truncated: bool = False
    """whether the model read only the part of the text that is nearest to the two entities"""
    notes: list[Note] = field(default_factory=list)
    """what should be known of it, such as that the text was cut"""
    given: Hidden = field(default="", repr=False, compare=False)
    """the text that was read, for notebooks"""

    def _repr_html_(self) -> str:
        said = [f"{r.head.text} — {r.label} → {r.tail.text} ({r.probability:.3f})" for r in self.relations]
        return html.block(html.marked(self.given, self.entities), *map(html.line, said))


class Relater(Predictor[Related, RelatedText]):
    kind = "relation"
    example = Related
    answers = RelatedText
    marks = True
    table_columns = ("relation", "probability", *(f"{side}_{name}" for side in ("head", "tail") for name in _ENTITY))

    def __init__(
        self, engine: Engine, tokenizers: Tokenizers, facts: RelationFacts, *, no_relation: str | None = None
    ) -> None:
        self.engine, self.tokenizers = engine, tokenizers
        self.long_texts = facts.rule(engine.longest)
        self.labels = facts.labels
        self.no_relation = no_relation
        self.rule = scoring_rule(self.labels, no_relation)
        self.asks = Pairs(facts, directed=any(relation_of(label) != label for label in self.labels))

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """The types of head and tail that training has, in lower case."""
        return self.asks.known

    @property
    def typed(self) -> bool:
        """Whether training said what its entities are."""
        return self.asks.typed

    def encode(self, example: Related, options: Any) -> Row:
        return encode_related(self.tokenizer, example, self.long_texts)

    def answer(
        self, examples: Sequence[Related], read: Sequence[Row], options: Any, done: Done
    ) -> Iterator[RelatedText]:
        for example, row, believed in zip(examples, read, self.believed(read, done=done), strict=True):
            head, tail = (replace(side, text=side.of(example.text), score=1.0) for side in (example.head, example.tail))
            relation = self._relation(head, tail, believed)
            yield RelatedText(relation.label, [head, tail], [relation], row.long, self._notes(row.long), example.text)

    def completed(self, example: Related, output: RelatedText) -> Related:
        return replace(example, label=output.relations[0].label)

    def believed(self, rows: Sequence[Row], *, done: Done = nobody) -> Array:
        """The probabilities [n, L], the mean over the models."""
        entities = [(row.head, row.tail) for row in rows]
        logits = self.engine.logits([row.ids for row in rows], entities=entities, done=done)
        found = [softmax(each).mean(axis=0) for each in logits]  # [M, L] of each
        return np.array(found, dtype=np.float64).reshape(len(rows), len(self.labels))

    def _relation(self, head: Span, tail: Span, believed: Array) -> Relation:
        return Relation(head, tail, self.labels[int(believed.argmax())], round(float(believed.max()), 6))

    def _notes(self, long: bool) -> list[Note]:
        return self.long_texts.notes(long, NEAR)

    # raw texts

    def relate_texts(
        self,
        texts: str | Sequence[str | Related],
        taggers: Sequence[Predictor[Any, Any]],
        types: Mapping[str, str] | None = None,
        done: Done = nobody,
    ) -> list[RelatedText | Failure]:
        """All relations of each text: entities first, sentence by sentence, then every pair of a sentence whose types
        training has relations of. `types` are other names for the types of entities that the taggers find."""
        given = [texts] if isinstance(texts, str) else texts
        sentences = [
            Sentence(i, start, text[start:end], Pieces.of(self.tokenizer, text[start:end]))
            for i, text in enumerate(one if isinstance(one, str) else one.text for one in given)
            for start, end in sentence_spans(text)
        ]
        found, failures, notes = entities_of(sentences, taggers, types or {})
        entities: list[list[Span]] = [[] for _ in given]
        for sentence, here in zip(sentences, found, strict=True):
            entities[sentence.of] += [_moved(entity, sentence.start) for entity in here]
        relations: list[list[Relation]] = [[] for _ in given]
        long = [False for _ in given]
        for sentence, relation, is_long in self._relations(sentences, found, failures):
            long[sentence.of] |= is_long
            if relation.label != self.no_relation:
                relations[sentence.of].append(relation)
        done(len(given))
        outputs: list[RelatedText | Failure] = []
        for i, one in enumerate(given):
            if i in failures:
                outputs.append(replace(failures[i], where=getattr(one, "where", "") or f"line {i + 1}"))
                continue
            said = [*notes.get(i, ()), *self._notes(long[i])]
            text = one if isinstance(one, str) else one.text
            outputs.append(RelatedText(_line(relations[i]), entities[i], relations[i], long[i], said, text))
        return outputs

    def _relations(
        self, sentences: Sequence[Sentence], entities: Sequence[Sequence[Span]], failures: dict[int, Failure]
    ) -> Iterator[tuple[Sentence, Relation, bool]]:
        """Of every pair that is asked about its relation, in characters of the text, and whether its row was cut."""
        most = self.long_texts.max_len
        pairs = zip(sentences, entities, strict=True)
        asked = ((one, *pair) for one, here in pairs for pair in self.asks.among(one.pieces, here, most))
        while some := [*islice(asked, PAIRS_AT_ONCE)]:
            read: list[tuple[Sentence, Span, Span, Row]] = []
            for sentence, head, tail in some:
                example = Related(sentence.text, head, tail)
                try:
                    row = encode_related(self.tokenizer, example, self.long_texts, sentence.pieces)
                except InputError as error:
                    failures.setdefault(sentence.of, Failure.of(error))
                else:
                    read.append((sentence, _moved(head, sentence.start), _moved(tail, sentence.start), row))
            believed = self.believed([row for *_, row in read])
            for (sentence, head, tail, row), probabilities in zip(read, believed, strict=True):
                yield sentence, self._relation(head, tail, probabilities), row.long

    # scores

    def quick(self, examples: Sequence[Related]) -> dict[str, float]:
        """Dev scores, without intervals."""
        believed = self._believed(examples, nobody)
        gold = self._gold(examples)
        right = believed[np.arange(len(examples)), [self.labels.index(label) for label in gold]]
        return {"perplexity": perplexity_of(right), **quick_relations(self._said(believed), gold, **self.rule)}

    def score(
        self, examples: Sequence[Related], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """By the rules of SemEval-2010 Task 8 and of ChemProt."""
        self.wanted(options)
        gold = self._gold(examples)
        said = self._said(self._believed(examples, done))
        return scored(examples, score_relations(said, gold, **self.rule)), said

    def compare(
        self, other: "Relater", examples: Sequence[Related], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        self.wanted(options)
        for what, a, b in (("labels", self.labels, other.labels), ("no_relation", self.no_relation, other.no_relation)):
            if a != b:
                hint = "two runs of the same task and data"
                raise InputError(f"the runs differ in {what}: {a} and {b}", hint=hint, code="input.other_rule")
        gold = self._gold(examples)
        ours, theirs = (relater._said(relater._believed(examples, done)) for relater in (self, other))
        return compare_relations(ours, theirs, gold, **self.rule)

    def _believed(self, examples: Sequence[Related], done: Done) -> Array:
        return self.believed([self.encode(example, None) for example in examples], done=done)

    def _said(self, believed: Array) -> list[str]:
        return [self.labels[int(row.argmax())] for row in believed]

    def _gold(self, examples: Sequence[Related]) -> list[str]:
        return gold_labels(self.labels, examples)

    def table(self, output: RelatedText) -> list[dict[str, Any]]:
        rows = ((r.label, r.probability, *_cells(r.head), *_cells(r.tail)) for r in output.relations)
        return [dict(zip(self.table_columns, row, strict=True)) for row in rows]

    def passage(self, example: Any, output: RelatedText) -> Passage:
        """Of a raw text, too: there the entities are where the line itself has them."""
        raw = isinstance(example, str) and all(entity.of(example) == entity.text for entity in output.entities)
        return Passage(example if raw else self.parse(example).text, output.entities, output.relations)


def gold_labels(labels: Sequence[str], examples: Sequence[Related]) -> list[str]:
    """The labels of examples; one that training does not know is an error."""
    numbers = {label: i for i, label in enumerate(labels)}
    return [labels[number_of(example.gold, numbers, example.where)] for example in examples]


def scoring_rule(labels: Sequence[str], no_relation: str | None) -> dict[str, Any]:
    """What scores have to know: the label that is no relation, and all that are, whatever occurs."""
    relations = sorted({relation_of(label) for label in labels if label != no_relation})
    return {"no_relation": no_relation, "relations": relations}


def _line(relations: Sequence[Relation]) -> str:
    return "; ".join(f"{r.head.text} | {r.label} | {r.tail.text}" for r in relations)


def _cells(entity: Span) -> tuple[str, str, int, int]:
    return entity.label, entity.text, entity.start, entity.end


def _moved(found: Span, by: int) -> Span:
    return replace(found, start=found.start + by, end=found.end + by)
