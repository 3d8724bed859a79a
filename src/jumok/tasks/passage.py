"""A text with the entities and relations found in it: what tagging, relation extraction and answering can draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.text.span import Span

if TYPE_CHECKING:
    from jumok.tasks.relation.predictor import Relation


@dataclass(frozen=True, slots=True)
class Passage:
    """A text, its entities, the relations between them, and a title that may be empty."""

    text: str
    entities: Sequence[Span]
    relations: Sequence["Relation"] = ()
    title: str = ""
