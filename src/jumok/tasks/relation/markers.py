"""A text with markers around its two entities, as model input."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jumok.errors import DataError
from jumok.examples.relations import Related
from jumok.tasks.windows import LongTexts, Part
from jumok.text.span import Span
from jumok.text.tokenizer import Tokenizer

HEAD, TAIL = "$", "#"


@dataclass(frozen=True, slots=True)
class Row:
    """A text with marked entities as model input, and the entities' positions in it, without their markers."""

    ids: list[int]
    head: Part
    tail: Part
    long: bool
    """whether the text has more tokens than fit"""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The tokens of a text in order, with the characters where each starts and ends."""

    ids: list[int]
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, tokenizer: Tokenizer, text: str) -> "Pieces":
        encoded = tokenizer.encode_with_offsets(text)
        return cls(encoded.ids, [start for start, _ in encoded.offsets], [end for _, end in encoded.offsets])

    def of_entity(self, entity: Span) -> Part:
        """The tokens that overlap the entity; for an empty entity, the position where it would be."""
        first = bisect_right(self.ends, entity.start)
        return first, max(first, bisect_left(self.starts, entity.end))


def markers(tokenizer: Tokenizer) -> tuple[int, int]:
    """The tokens that mark head and tail."""
    head, tail = (tokenizer.encode(mark)[-1:] for mark in (HEAD, TAIL))
    if not head or not tail or head == tail or tokenizer.unk_id in (*head, *tail):
        hint = f"use a vocabulary with {HEAD} and {TAIL}, which mark the two entities"
        raise DataError("the vocabulary has no tokens for the markers", hint=hint, code="data.no_markers")
    return head[0], tail[0]


def encode_related(tokenizer: Tokenizer, example: Related, long_texts: LongTexts, pieces: Pieces | None = None) -> Row:
    """Encode a text with its markers; of a long text, the tokens nearest to the entities.

    Pass `pieces` when encoding many pairs of one text: each then costs no more than a text of max_len.
    """
    pieces = pieces or Pieces.of(tokenizer, example.text)
    entities = [pieces.of_entity(entity) for entity in (example.head, example.tail)]
    room = long_texts.max_len - len(tokenizer.frame([]))
    n = len(pieces.ids) + 4  # with the markers
    if n > room:
        long_texts.parts(n, room, where=example.where)  # raises if the rule is to refuse
    # The nearest tokens are at most `room` away.
    begin = max(0, min(first for first, _ in entities) - room)
    near = pieces.ids[begin : max(after for _, after in entities) + room]
    moved = [(first - begin, after - begin) for first, after in entities]
    ids, (head, tail) = _with_markers(near, moved, markers(tokenizer))
    kept = _nearest(len(ids), head, tail, room)
    frame = len(tokenizer.frame([])) - 1
    place = {piece: i + frame for i, piece in enumerate(kept)}

    def inside(part: Part) -> Part:
        """The entity without its markers, unless nothing else is left of it."""
        found = [place[i] for i in range(part[0] + 1, part[1] - 1) if i in place] or [place[part[0]]]
        return found[0], found[-1] + 1

    return Row(tokenizer.frame([ids[i] for i in kept]), inside(head), inside(tail), n > room)


def _with_markers(ids: Sequence[int], entities: Sequence[Part], marks: Sequence[int]) -> tuple[list[int], list[Part]]:
    """Put each entity, nested or not, between two markers; returns also their new positions, markers included."""
    out: list[int] = []
    starts, ends = [0, 0], [0, 0]
    for i in range(len(ids) + 1):
        closing = [k for k, (first, after) in enumerate(entities) if after == i and first < i]
        for k in sorted(closing, key=lambda k: (-entities[k][0], -k)):  # opened last, closed first
            out.append(marks[k])
            ends[k] = len(out)
        opening = [k for k, (first, _) in enumerate(entities) if first == i]
        for k in sorted(opening, key=lambda k: (entities[k][1] > i, -entities[k][1])):
            starts[k] = len(out)
            out.append(marks[k])
            if entities[k][1] == i:  # an empty entity
                out.append(marks[k])
                ends[k] = len(out)
        out += ids[i : i + 1]
    return out, list(zip(starts, ends, strict=True))


def _nearest(n: int, head: Part, tail: Part, room: int) -> list[int]:
    """The `room` of n positions nearest to an entity, in order; of each entity at least one."""
    if n <= room:
        return list(range(n))
    where = np.arange(n)
    outside = [np.maximum(np.maximum(start - where, where - end + 1), 0) for start, end in (head, tail)]
    distance = np.minimum(*outside)
    distance[[head[0], tail[0]]] = -1
    return sorted(np.lexsort([where, distance])[:room].tolist())
