"""How long an example is, before anything reads it."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any


def texts_of(example: Any) -> list[str]:
    """The texts of an example; a list of texts, such as words, is one, with spaces between them."""
    if isinstance(example, str):
        return [example]
    if isinstance(example, list):
        return [" ".join(text for text in example if isinstance(text, str))]
    return [text for name in _names(example.__class__) for text in texts_of(getattr(example, name))]


@cache
def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind) if field.name != "where"] if is_dataclass(kind) else []


def characters(example: Any) -> int:
    """Characters of a text, or of the longest text of an example."""
    return max(map(len, texts_of(example)), default=0)
