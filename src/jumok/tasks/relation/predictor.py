"""Predict the relation between two entities of a text or, with taggers that find them, all relations of raw texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from jumok import html
from jumok.engines import Array, Done, Engine, nobody
from jumok.errors import InputError
from jumok.examples.relations import Related
from jumok.score.classification import perplexity_of, softmax
from jumok.score.confusion import confusion
from jumok.score.relations import OVERALL, relation_metrics, relation_of
from jumok.tasks.passage import Passage
from jumok.tasks.protocol import Failure, Hidden, Measured, Note, Predictor
from jumok.tasks.relation import RelationFacts
from jumok.tasks.relation.markers import Pieces, Row, encode_related
from jumok.tasks.relation.pairs import Pairs
from jumok.tasks.relation.sentences import Sentence, entities_of
from jumok.tasks.targets import FEW_LABELS, number_of
from jumok.text.sentences import sentence_spans
from jumok.text.span import Span
from jumok.text.tokenizer import Tokenizers

NEAR = "near their entities only"
PAIRS_AT_ONCE = 2048  # raw texts may have any number of pairs
_ENTITY = ("type", "text", "start", "end")


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between two entities of a text."""

    head: Span
    """the first entity"""
    tail: Span
    """the second entity"""
    label: str
    """name of the relation"""
    probability: float
    """probability of the relation"""


@dataclass(frozen=True, slots=True)
class RelatedText:
    """The relations of one text: of two given entities, or of all that were found."""

    text: str
    """the relation, or "head | relation | tail" for each that was found"""
    entities: list[Span]
    """the two given ones, or all that were found"""
    relations: list[Relation]
    """relations between them"""
    truncated: bool = False
    """whether the model read only the text nearest to the two entities"""
    notes: list[Note] = field(default_factory=list)
    """remarks, such as that the text was truncated"""
    given: Hidden = field(default="", repr=False, compare=False)
    """the text of the input, for notebooks"""

    def _repr_html_(self) -> str:
        lines = [f"{r.head.text} — {r.label} → {r.tail.text} ({r.probability:.3f})" for r in self.relations]
        return html.block(html.marked(self.given, self.entities), *map(html.line, lines))


class Relater(Predictor[Related, RelatedText]):
    kind = "relation"
    example = Related
    answers = RelatedText
    columns = ("label", "probability")
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
        """Types of head and tail in training, in lower case."""
        return self.asks.known

    @property
    def typed(self) -> bool:
        """Whether the entities of training have types."""
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

    def about(self) -> dict[str, Any]:
        types = sorted({name for pair in self.pairs for name in pair if name})
        return {"no_relation": self.no_relation, "types": types, "pairs": sorted(self.pairs)}

    def first_row(self, example: Related) -> Sequence[int]:
        return self.encode(example, None).ids

    def completed(self, example: Related, output: RelatedText) -> Related:
        return replace(example, label=output.relations[0].label)

    def cells(self, example: Related, output: RelatedText) -> dict[str, Any]:
        best = output.relations[0]
        return {"label": best.label, "probability": best.probability}

    def believed(self, rows: Sequence[Row], *, done: Done = nobody) -> Array:
        """Probabilities [n, L], the mean over the models."""
        entities = [(row.head, row.tail) for row in rows]
        logits = self.engine.logits([row.ids for row in rows], entities=entities, done=done)
        found = [softmax(each).mean(axis=0) for each in logits]  # each [M, L]
        return np.array(found, dtype=np.float64).reshape(len(rows), len(self.labels))

    def _relation(self, head: Span, tail: Span, believed: Array) -> Relation:
        return Relation(head, tail, self.labels[int(believed.argmax())], round(float(believed.max()), 6))

    def _notes(self, long: bool) -> list[Note]:
        return self.long_texts.notes(long, NEAR)

    def relate_texts(
        self,
        texts: str | Sequence[str | Related],
        taggers: Sequence[Predictor[Any, Any]],
        types: Mapping[str, str] | None = None,
        done: Done = nobody,
    ) -> list[RelatedText | Failure]:
        """All relations of each text: find entities sentence by sentence, then classify every pair in a sentence whose
        types are related in training. `types` renames the entity types of the taggers."""
        given = [texts] if isinstance(texts, str) else texts
        too_long: dict[int, Failure] = {}
        for i, one in enumerate(given):
            try:
                self.refuse_long(one, "")
            except InputError as error:
                too_long[i] = Failure.of(error)
        sentences = [
            Sentence(i, start, text[start:end], Pieces.of(self.tokenizer, text[start:end]))
            for i, text in enumerate(one if isinstance(one, str) else one.text for one in given)
            for start, end in ([] if i in too_long else sentence_spans(text))
        ]
        found, failures, notes = entities_of(sentences, taggers, types or {})
        failures |= too_long
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
            remarks = [*notes.get(i, ()), *self._notes(long[i])]
            text = one if isinstance(one, str) else one.text
            outputs.append(RelatedText(_line(relations[i]), entities[i], relations[i], long[i], remarks, text))
        return outputs

    def _relations(
        self, sentences: Sequence[Sentence], entities: Sequence[Sequence[Span]], failures: dict[int, Failure]
    ) -> Iterator[tuple[Sentence, Relation, bool]]:
        """The relation of every candidate pair, in characters of the text, and whether its row was truncated."""
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

    def quick(self, examples: Sequence[Related]) -> dict[str, float]:
        believed, gold = self._believed(examples, nobody), gold_labels(self.labels, examples)
        right = believed[np.arange(len(examples)), [self.labels.index(label) for label in gold]]
        scores = relation_metrics(self._best(believed), gold, **self.rule).values(*OVERALL)
        return {"perplexity": perplexity_of(right), **scores}

    def measure(self, examples: Sequence[Related], *, done: Done = nobody, **options: Any) -> Measured:
        gold = gold_labels(self.labels, examples)
        outputs = self._best(self._believed(examples, done))
        more = {}
        if len(self.labels) <= FEW_LABELS:
            ours, true = ([self.labels.index(label) for label in side] for side in (outputs, gold))
            more["confusion"] = asdict(confusion(ours, true, labels=self.labels))
        return Measured(relation_metrics(outputs, gold, **self.rule), outputs, more)

    def require_comparable(self, other: "Relater", examples: Sequence[Related]) -> None:
        for what, a, b in (("labels", self.labels, other.labels), ("no_relation", self.no_relation, other.no_relation)):
            if a != b:
                hint = "compare two runs of the same task and data"
                raise InputError(f"the runs differ in {what}: {a} and {b}", hint=hint, code="input.other_rule")

    def _believed(self, examples: Sequence[Related], done: Done) -> Array:
        return self.believed([self.encode(example, None) for example in examples], done=done)

    def _best(self, believed: Array) -> list[str]:
        return [self.labels[int(row.argmax())] for row in believed]

    def table(self, output: RelatedText) -> list[dict[str, Any]]:
        rows = ((r.label, r.probability, *_cells(r.head), *_cells(r.tail)) for r in output.relations)
        return [dict(zip(self.table_columns, row, strict=True)) for row in rows]

    def passage(self, example: Any, output: RelatedText) -> Passage:
        """A raw text has its entities at the offsets of the line itself."""
        raw = isinstance(example, str) and all(entity.of(example) == entity.text for entity in output.entities)
        return Passage(example if raw else self.parse(example).text, output.entities, output.relations)


def gold_labels(labels: Sequence[str], examples: Sequence[Related]) -> list[str]:
    """The labels of examples; raises for one that does not occur in training."""
    numbers = {label: i for i, label in enumerate(labels)}
    return [labels[number_of(example.gold, numbers, example.where)] for example in examples]


def scoring_rule(labels: Sequence[str], no_relation: str | None) -> dict[str, Any]:
    """Arguments of `relation_metrics`: all relations of the training data, and the label for none."""
    relations = sorted({relation_of(label) for label in labels if label != no_relation})
    return {"no_relation": no_relation, "relations": relations}


def _line(relations: Sequence[Relation]) -> str:
    return "; ".join(f"{r.head.text} | {r.label} | {r.tail.text}" for r in relations)


def _cells(entity: Span) -> tuple[str, str, int, int]:
    return entity.label, entity.text, entity.start, entity.end


def _moved(found: Span, by: int) -> Span:
    return replace(found, start=found.start + by, end=found.end + by)
