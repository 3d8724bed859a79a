"""A text with two entities and their relation: JSONL."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from jumok.errors import DataError, Wrong, refuse
from jumok.examples import Split
from jumok.examples.faults import say_each, suffix_of, unknown_format
from jumok.examples.files import WindowedData
from jumok.examples.objects import Object, as_json, as_object, read_objects
from jumok.examples.offsets import OFFSETS, label_of, offsets_of, shown
from jumok.text.lines import write_lines
from jumok.text.normalise import clean_label
from jumok.text.span import Span

_PAIR = '"text": "...", "head": {"start": 0, "end": 4}, "tail": {"start": 9, "end": 12}'
SHAPE = f'{{{_PAIR}, "label": "..."}} ({OFFSETS})'
_TO_RELATE = f"use {{{_PAIR}}} ({OFFSETS}), or plain text and runs that find its entities: --entities RUN"


@dataclass(frozen=True, slots=True)
class Related:
    """A text with two entities, whose types are the labels of their spans, and their relation, if known."""

    text: str
    """the text"""
    head: Span
    """the first entity"""
    tail: Span
    """the second entity"""
    label: str | None = None
    """the relation, if known"""
    where: str = ""

    @property
    def gold(self) -> str:
        """The relation, which must be known."""
        if self.label is None:
            raise DataError("the relation is not known", where=self.where, hint=f"use {SHAPE}", code="data.no_label")
        return self.label

    @classmethod
    def parse(cls, given: str | Mapping[str, Any], where: str = "") -> Self:
        """Parse a mapping or JSON with `text`, `head` and `tail`."""
        return cls._read(as_object(given, where=where, hint=_TO_RELATE), labelled=False)

    @classmethod
    def _read(cls, found: Object, *, labelled: bool) -> Self:
        text = found.text("text")
        head, tail = (_entity(found.object(side), text) for side in ("head", "tail"))
        if cannot_be_related(head, tail):
            same = (head.start, head.end) == (tail.start, tail.end)
            both = f"cross: {shown(text, head)} and {shown(text, tail)}"
            raise found.misplaced(f"head and tail {f'are the same: {shown(text, head)}' if same else both}")
        return cls(text, head, tail, label_of(found) if labelled else _label_if_told(found), found.where)


def _entity(found: Object, text: str) -> Span:
    """Read an entity; its type is "type" in files, and "label" in the JSON of a Span."""
    key = next((key for key in ("type", "label") if key in found), None)
    return Span(*offsets_of(found, text), clean_label(found.text(key)) if key else "")


def _label_if_told(found: Object) -> str | None:
    try:
        return label_of(found)
    except DataError:  # not needed to predict
        return None


def cannot_be_related(head: Span, tail: Span) -> bool:
    """Whether two entities are the same characters, or cross, which means that an offset is wrong.

    One name may be part of the other, as "insulin" is of "insulin receptor".
    """
    first, second = sorted((head, tail), key=lambda entity: (entity.start, -entity.end))
    same = (first.start, first.end) == (second.start, second.end)
    return same or first.start < second.start < first.end < second.end


def read_related(path: Path, *, labelled: bool = True, wrong: Wrong = refuse) -> Iterator[Related]:
    """Read a JSONL file of texts with a head, a tail and a label."""
    hint = f"use {SHAPE}" if labelled else _TO_RELATE
    return read_objects(path, partial(Related._read, labelled=labelled), hint=hint, wrong=wrong)


def write_relations(path: Path, examples: Iterable[Related], *, wrong: Wrong = refuse) -> None:
    """Write a JSONL file (.gz too) of texts with a head, a tail, and a label if known."""
    if suffix_of(path) != "jsonl":
        raise unknown_format("relations", path, "use a .jsonl file (.jsonl.gz too)")

    def entity(span: Span) -> dict[str, Any]:
        return {"start": span.start, "end": span.end, **({"type": span.label} if span.label else {})}

    def line(example: Related) -> str:
        values = {"text": example.text, "head": entity(example.head), "tail": entity(example.tail)}
        return as_json(values | ({} if example.label is None else {"label": example.label}), example.where)

    write_lines(path, say_each(examples, line, wrong))


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationData(WindowedData):
    """Texts with two entities and their relation: JSONL files (.gz too).

    A line is `{"text": ..., "head": {"start", "end", "type"}, "tail": {...}, "label": ...}`, with offsets in
    characters, end exclusive; types are optional.
    """

    kind: Literal["relations"] = "relations"

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Related]:
        read = partial(read_related, wrong=wrong)
        return self._read(split, read, lambda example: example.text, lambda example: example.gold)

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Related] | None:
        """Read a file to predict on, if it is in the format of this data; None for plain lines."""
        is_jsonl = path.name.lower().removesuffix(".gz").endswith(".jsonl")
        return read_related(path, labelled=False, wrong=wrong) if is_jsonl else None

    def write(self, path: Path, examples: Iterable[Related], *, wrong: Wrong = refuse) -> None:
        write_relations(path, examples, wrong=wrong)

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind, *(["dealt"] if self.folds else []))
