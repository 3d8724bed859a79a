"""Relations: of two entities in a text, which one holds between them.

The entities are marked in the text itself, as Wu & He 2019 ("R-BERT") do: `$` before and after the head, `#` before
and after the tail. So every model that classifies texts can tell relations; BERT also looks at the entities' pieces.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jumok.config import Share
from jumok.data.batching import Indices, sorted_batches
from jumok.data.corpus import Corpus
from jumok.errors import DataError
from jumok.models import BertRelation, RnnClassifier
from jumok.score.classification import perplexity_of
from jumok.score.relations import quick_relations, relation_of
from jumok.score.significance import Values
from jumok.tasks.baseline import baselines
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import Done, nobody
from jumok.tasks.reading import PREDICT_TOKENS, OnPage, Page, make_page
from jumok.tasks.targets import Classes
from jumok.tasks.windows import LongTexts, Part
from jumok.text.annotated import Entity, Related
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

HEAD, TAIL = "$", "#"
NEAR = "near their entities only"
AnyRelation = BertRelation | RnnClassifier
Order = Literal["head_first", "tail_first", "any"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationConfig:
    """The task: two entities of a text stand in a relation."""

    kind: Literal["relation"] = "relation"
    no_relation: str | None = None
    """the label that means none, which F1 does not count: "Other" in SemEval-2010"""
    label_smoothing: Share = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """A text with marked entities as a model reads it; where in the row the entities are, markers excluded."""

    ids: list[int]
    head: Part
    tail: Part
    long: bool


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    head: Tensor
    tail: Tensor
    labels: Tensor
    count: int


@dataclass(frozen=True, slots=True)
class Admissible:
    """Of which pairs of entities training has relations, so that a model can be asked of such pairs."""

    pairs: list[list[str]]
    """the types of head and tail"""
    order: Order
    """which of the two comes first in the text"""
    nested: bool
    """whether one may be part of the other"""

    @staticmethod
    def of(examples: Iterable[Related]) -> "Admissible":
        pairs: set[tuple[str, str]] = set()
        orders: set[Order] = set()
        nested = False
        for example in examples:
            pairs.add((example.head.type, example.tail.type))
            orders.add(order_of(example.head, example.tail))
            nested = nested or overlap(example.head, example.tail)
        return Admissible([list(pair) for pair in sorted(pairs)], orders.pop() if len(orders) == 1 else "any", nested)


def order_of(head: Entity, tail: Entity) -> Order:
    """Which one the text has first; of two that begin together, the shorter."""
    return "head_first" if (head.start, head.end) < (tail.start, tail.end) else "tail_first"


def overlap(head: Entity, tail: Entity) -> bool:
    return max(head.start, tail.start) < min(head.end, tail.end)


def markers(tokenizer: Tokenizer) -> tuple[int, int]:
    head, tail = (tokenizer.encode(mark)[-1:] for mark in (HEAD, TAIL))
    if not head or not tail or head == tail or tokenizer.unk_id in (*head, *tail):
        right = f"a vocabulary that knows {HEAD} and {TAIL}, which mark the two entities"
        raise DataError("the vocabulary has no pieces for the markers", right=right)
    return head[0], tail[0]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text as pieces, which are in its order: where each begins and ends in it."""

    ids: list[int]
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, tokenizer: Tokenizer, text: str) -> "Pieces":
        encoded = tokenizer.encode_with_offsets(text)
        return cls(encoded.ids, [start for start, _ in encoded.offsets], [end for _, end in encoded.offsets])

    def of_entity(self, entity: Entity) -> Part:
        """Those that have a character of the entity; of an entity without one, the place where it would stand."""
        first = bisect_right(self.ends, entity.start)
        return first, max(first, bisect_left(self.starts, entity.end))


def encode_related(tokenizer: Tokenizer, example: Related, long_texts: LongTexts, pieces: Pieces | None = None) -> Row:
    """The pieces with the markers among them; of a long text those that are nearest to the entities.

    Who asks of many pairs in a text gives its pieces: then a pair takes no longer than a text of a model's length.
    """
    pieces = pieces or Pieces.of(tokenizer, example.text)
    entities = [pieces.of_entity(entity) for entity in (example.head, example.tail)]
    room = long_texts.max_len - len(tokenizer.frame([]))
    n = len(pieces.ids) + 4  # with the markers
    if n > room:
        long_texts.parts(n, room, where=example.where)  # refuses, if that is the rule
    # None of the nearest is further away than there is room.
    begin = max(0, min(first for first, _ in entities) - room)
    near = pieces.ids[begin : max(after for _, after in entities) + room]
    moved = [(first - begin, after - begin) for first, after in entities]
    ids, (head, tail) = _with_markers(near, moved, markers(tokenizer))
    kept = _nearest(len(ids), head, tail, room)
    frame = len(tokenizer.frame([])) - 1
    place = {piece: i + frame for i, piece in enumerate(kept)}

    def inside(part: Part) -> Part:
        """The entity without its markers, unless there is nothing else."""
        found = [place[i] for i in range(part[0] + 1, part[1] - 1) if i in place] or [place[part[0]]]
        return found[0], found[-1] + 1

    return Row(tokenizer.frame([ids[i] for i in kept]), inside(head), inside(tail), n > room)


def _with_markers(ids: Sequence[int], entities: Sequence[Part], marks: Sequence[int]) -> tuple[list[int], list[Part]]:
    """Each entity between two markers, also if one lies in the other; and where they are now, markers included."""
    out: list[int] = []
    starts, ends = [0, 0], [0, 0]
    for i in range(len(ids) + 1):
        closing = [k for k, (first, after) in enumerate(entities) if after == i and first < i]
        for k in sorted(closing, key=lambda k: (-entities[k][0], -k)):  # what was opened last is closed first
            out.append(marks[k])
            ends[k] = len(out)
        opening = [k for k, (first, _) in enumerate(entities) if first == i]
        for k in sorted(opening, key=lambda k: (entities[k][1] > i, -entities[k][1])):
            starts[k] = len(out)
            out.append(marks[k])
            if entities[k][1] == i:  # there is no piece of it
                out.append(marks[k])
                ends[k] = len(out)
        out += ids[i : i + 1]
    return out, list(zip(starts, ends, strict=True))


def _nearest(n: int, head: Part, tail: Part, room: int) -> list[int]:
    """Of n pieces the `room` that are nearest to an entity, in order; no entity is left out altogether."""
    if n <= room:
        return list(range(n))
    where = np.arange(n)
    outside = [np.maximum(np.maximum(start - where, where - end + 1), 0) for start, end in (head, tail)]
    distance = np.minimum(*outside)
    distance[[head[0], tail[0]]] = -1
    return sorted(np.lexsort([where, distance])[:room].tolist())


def encode_relations(
    corpus: Corpus[Related], tokenizer: Tokenizer, targets: Classes, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids, places of the entities, and label of every example."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0}
    for example in corpus:
        row = encode_related(tokenizer, example, long_texts)
        facts["read"] += 1
        facts["long"] += row.long
        yield row.ids, row.head, row.tail, [targets.labels.index(example.label)]
    if not facts["read"]:
        raise DataError("empty corpus: no example", where=corpus.name, right="at least one example to train on")


def make_relation_page(
    rows: Sequence[Sequence[int]], head: Sequence[Part], tail: Sequence[Part], tokenizer: Tokenizer
) -> tuple[Page, Tensor, Tensor]:
    """What is read, and where the entities are in it [B, S]."""
    page = make_page(rows, tokenizer)
    where = torch.arange(page.ids.shape[1])
    spans = [torch.tensor([[int(start), int(end)] for start, end in parts]) for parts in (head, tail)]
    inside = [(where >= span[:, :1]) & (where < span[:, 1:]) for span in spans]
    return page, inside[0], inside[1]


def relation_logits(model: AnyRelation, page: Page, head: Tensor, tail: Tensor) -> Tensor:
    page = page.to(model.device)
    if isinstance(model, BertRelation):
        logits: Tensor = model(page.ids, page.segments, page.mask, head.to(model.device), tail.to(model.device))
        return logits
    found: Tensor = model(page.ids, page.segments, page.mask)
    return found


@dataclass(frozen=True, kw_only=True)
class RelationTask(OneTextTask[Related]):
    """Batches, loss and evaluation for the training loop."""

    config: RelationConfig
    targets: Classes
    long_texts: LongTexts
    admissible: Admissible

    @property
    def facts(self) -> dict[str, Any]:
        return asdict(self.admissible)

    def batch(self, examples: Indices) -> Batch:
        text, head, tail, label = (
            [self.train.fields[name][i].tolist() for i in examples] for name in ("text", "head", "tail", "label")
        )
        page, at_head, at_tail = make_relation_page(text, head, tail, self.tokenizer)
        return Batch(page, at_head, at_tail, self.targets.batch(label), len(examples))

    def loss(self, model: AnyRelation, batch: Batch, *, done: float) -> Loss:
        logits = relation_logits(model, batch.page, batch.head, batch.tail)
        labels, smoothing = batch.labels.to(model.device), self.config.label_smoothing
        return Loss(self.targets.loss(logits, labels, smoothing=smoothing, weights=None), batch.count)

    def evaluate(self, model: AnyRelation) -> dict[str, float]:
        rows = [encode_related(self.tokenizer, example, self.long_texts) for example in self.dev]
        believed = relate([model], self.tokenizer, rows, self.targets)
        gold = [example.label for example in self.dev]
        said = [self.labels[int(i)] for i in believed.argmax(axis=1)]
        right = np.array([row[self.labels.index(label)] for row, label in zip(believed, gold, strict=True)])
        return {"perplexity": perplexity_of(right), **self._scores(said, gold)}

    def baseline_scores(self, examples: Sequence[Related]) -> dict[str, dict[str, float]]:
        """What the most frequent relation, and a bag of words that sees the markers among them, would score."""
        text, label = self.train.fields["text"], self.train.fields["label"]
        rows = [[encode_related(self.tokenizer, example, self.long_texts).ids] for example in examples]
        found = baselines(self.targets, ((text[i], label[i]) for i in range(len(self.train))), rows)
        gold = [example.label for example in examples]
        return {name: self._scores([self.labels[i] for i in said], gold) for name, said in found.items()}

    def _scores(self, said: Sequence[str], gold: Sequence[str]) -> dict[str, float]:
        return quick_relations(said, gold, **rule(self.labels, self.config.no_relation))


def rule(labels: Sequence[str], no_relation: str | None) -> dict[str, Any]:
    """What scores have to know: the label that is no relation, and all that are, whatever occurs."""
    relations = sorted({relation_of(label) for label in labels if label != no_relation})
    return {"no_relation": no_relation, "relations": relations}


def relate(
    models: Sequence[AnyRelation],
    tokenizer: Tokenizer,
    rows: Sequence[Row],
    targets: Classes,
    *,
    done: Done = nobody,
) -> Values:
    """The probabilities [n, labels], mean over the models."""
    believed = np.zeros((len(rows), targets.width))
    with torch.inference_mode():
        for some in _batches(rows):
            ids, heads, tails = zip(*((rows[i].ids, rows[i].head, rows[i].tail) for i in some), strict=True)
            page, head, tail = make_relation_page(ids, heads, tails, tokenizer)
            found = [relation_logits(model, page, head, tail).double().cpu().numpy() for model in models]
            believed[some] = np.mean([targets.believed(logits) for logits in found], axis=0)
            done(len(some))
    return believed


def _batches(rows: Sequence[Row]) -> list[Indices]:
    return sorted_batches(np.array([len(row.ids) for row in rows], dtype=np.int64), PREDICT_TOKENS) if rows else []
