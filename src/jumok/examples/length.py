"""How long an example is, before anything reads it."""

from dataclasses import fields, is_dataclass
from typing import Any


def characters(example: Any) -> int:
    """Characters of a text, or of the longest text of an example; a list of texts, such as words, counts as one."""
    if isinstance(example, str):
        return len(example)
    if isinstance(example, list):
        return sum(len(text) for text in example if isinstance(text, str))
    if not is_dataclass(example):
        return 0
    texts = (getattr(example, field.name) for field in fields(example) if field.name != "where")
    return max(map(characters, texts), default=0)
