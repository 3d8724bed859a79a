"""Files out as they came in: the same bytes, with answers in the places that are for them.

A file is read as pieces, one after the other, so that memory does not depend on its size.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What a file gets for an example."""

    text: str
    """the line of output"""
    cells: Mapping[str, Any] = field(default_factory=dict)
    """values by the names of their columns, or keys"""
    remark: str = ""
    """what a translator has to look at"""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file, and what is to be predicted in it."""

    asked: list[Any]
    """examples, and in the places of those that cannot be read their DataErrors"""
    written: Callable[[Sequence[Answer | None]], bytes]
    """the part with an answer for each example; None for one that could not be answered"""


def unchanged(content: bytes) -> Piece:
    return Piece([], lambda answers: content)
