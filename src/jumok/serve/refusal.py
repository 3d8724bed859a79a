"""Answers other than 200: what is wrong, in the shape that the clients of each API read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


class Refusal(Exception):
    """An answer other than 200, with the error as JSON."""

    def __init__(self, status: int, code: str, what: str, *, hint: str = "", seconds: float = 0.0) -> None:
        super().__init__(what)
        self.status, self.seconds = status, seconds
        self.code, self.what, self.hint = code, what, hint

    @property
    def headers(self) -> dict[str, str]:
        found = {"retry-after": f"{self.seconds:.0f}"} if self.seconds else {}
        return found | ({"www-authenticate": "Bearer"} if self.status == 401 else {})


@dataclass(frozen=True, slots=True)
class ErrorShape:
    """How an API words its errors."""

    body: Callable[[Refusal], dict[str, Any]]
    schema: Mapping[str, Any]
    statuses: Mapping[int, int] = field(default_factory=dict)
    """statuses that the API's clients know by another number"""

    def status(self, refusal: Refusal) -> int:
        return self.statuses.get(refusal.status, refusal.status)


def _own(refusal: Refusal) -> dict[str, Any]:
    hint = {"hint": refusal.hint} if refusal.hint else {}
    return {"error": {"code": refusal.code, "what": refusal.what, **hint}}


OWN = ErrorShape(
    _own,
    {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "what"],
                "properties": {name: {"type": "string"} for name in ("code", "what", "hint")},
            }
        },
    },
)
