"""What a request may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Sizes and times; beyond them a request is refused with a 4xx, before anything is computed."""

    body: int = 1 << 20
    """bytes of a request's body"""
    inputs: int = 256
    """examples of a request"""
    seconds: float = 60.0
    """for one answer, the time in the queue included"""
    depth: int = 32
    """nesting of JSON"""
