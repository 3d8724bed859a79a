"""How long an example is, before anything reads it."""

from dataclasses import fields, is_dataclass
from typing import Any


def texts_of(example: Any) -> list[str]:
    """The texts of an example; a list of texts, such as words, is one, with spaces between them."""
    if isinstance(example, str):
        return [example]
    if isinstance(example, list):
        return [" ".join(text for text in example if isinstance(text, str))]
    if not is_dataclass(example):
        return []
    values = (getattr(example, field.name) for field in fields(example) if field.name != "where")
    return [text for value in values for text in texts_of(value)]


def characters(example: Any) -> int:
    """Characters of a text, or of the longest text of an example."""
    return max(map(len, texts_of(example)), default=0)
