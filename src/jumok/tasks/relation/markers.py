"""A text with markers around its two entities, as a model reads it."""

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
    """A text with marked entities as a model reads it; where in the row the entities are, markers excluded."""

    ids: list[int]
    head: Part
    tail: Part
    long: bool
    """whether the text has more pieces than a model reads"""


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

    def of_entity(self, entity: Span) -> Part:
        """Those that have a character of the entity; of an entity without one, the place where it would stand."""
        first = bisect_right(self.ends, entity.start)
        return first, max(first, bisect_left(self.starts, entity.end))


def markers(tokenizer: Tokenizer) -> tuple[int, int]:
    """The pieces that mark head and tail."""
    head, tail = (tokenizer.encode(mark)[-1:] for mark in (HEAD, TAIL))
    if not head or not tail or head == tail or tokenizer.unk_id in (*head, *tail):
        hint = f"a vocabulary that knows {HEAD} and {TAIL}, which mark the two entities"
        raise DataError("the vocabulary has no pieces for the markers", hint=hint, code="data.no_markers")
    return head[0], tail[0]


def encode_related(tokenizer: Tokenizer, example: Related, long_texts: LongTexts, pieces: Pieces | None = None) -> Row:
    """The pieces with the markers among them; of a long text those that are nearest to the entities.

    Pass the pieces of the text to ask about many of its pairs: then a pair costs no more than a text of max_len.
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
