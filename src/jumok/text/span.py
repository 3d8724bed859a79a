"""Character spans, shared by annotations, predictions and answers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]` of a text, in characters (code points), end exclusive."""

    start: int
    """first character, counted from 0"""
    end: int
    """the character after the last"""
    label: str = ""
    """entity type, "" if untyped"""
    text: str = ""
    """the text of the span, if given"""
    score: float = 1.0
    """the model's confidence; 1 for annotations"""

    def of(self, text: str) -> str:
        """Extract the span from a text."""
        return text[self.start : self.end]
