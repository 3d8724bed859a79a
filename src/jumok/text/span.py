"""A span of characters: the one class for what is marked, found, or given as an answer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]` of a text, in characters (code points), end exclusive."""

    start: int
    """its first character, counted from 0"""
    end: int
    """the character after its last"""
    label: str = ""
    """the type of an entity, "" if there is none"""
    text: str = ""
    """what stands there, where that is told"""
    score: float = 1.0
    """how sure a model is of it; people are"""

    def of(self, text: str) -> str:
        """What stands there in a text."""
        return text[self.start : self.end]
