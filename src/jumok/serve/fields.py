"""The fields of a request in an API that others wrote: each is read, known to change nothing, or refused."""

from collections.abc import Mapping
from typing import Any

from jumok.serve.app import Server
from jumok.serve.models import Served
from jumok.serve.refusal import Refusal

MOST_STOPS, LONGEST_STOP = 4, 64


class WrongField(Refusal):
    """A field that cannot be answered to."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(400, "serve.parameter", f"{name}: {what}")
        self.field = name


class Fields:
    """An object of a request. A field that is null is one that is not there."""

    def __init__(self, given: Any, name: str = "the body") -> None:
        if not isinstance(given, Mapping):
            raise WrongField(name, "must be an object")
        self._left = {key: value for key, value in given.items() if value is not None}

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def peek(self, name: str) -> Any:
        return self._left.get(name)

    def take(self, name: str, default: Any = None) -> Any:
        return self._left.pop(name, default)

    def text(self, name: str) -> str:
        value = self.take(name)
        if not isinstance(value, str):
            raise WrongField(name, "must be a text")
        return value

    def flag(self, name: str) -> bool:
        value = self.take(name, False)
        if not isinstance(value, bool):
            raise WrongField(name, "must be true or false")
        return value

    def whole(self, name: str, least: int, most: int) -> int | None:
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise WrongField(name, f"must be a whole number from {least} to {most}")
        return value

    def number(self, name: str, least: float, most: float) -> float | None:
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise WrongField(name, f"must be a number from {least:g} to {most:g}")
        return float(value)

    def seed(self) -> int | None:
        value = self.whole("seed", -(2**63), 2**63 - 1)
        return None if value is None else value % 2**63

    def stops(self) -> list[str]:
        """Texts that end the output."""
        value = self.take("stop", [])
        found = [value] if isinstance(value, str) else value
        fits = isinstance(found, list) and len(found) <= MOST_STOPS
        if not fits or not all(isinstance(one, str) and 0 < len(one) <= LONGEST_STOP for one in found):
            raise WrongField("stop", f"must be up to {MOST_STOPS} texts of up to {LONGEST_STOP} characters")
        return list(found)

    def only(self, name: str, *values: Any) -> None:
        """The field may be there with one of the values, which ask for nothing."""
        value = self.take(name, values[0])
        if not any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values):
            raise WrongField(name, "is not supported")

    def ignore(self, *names: str) -> None:
        """Fields that would not change the answer."""
        for name in names:
            self.take(name)

    def end(self) -> None:
        """All others are refused: they would have changed the answer."""
        for name in self._left:
            raise WrongField(ascii(name)[1:60].rstrip("'"), "is not supported")


async def model(server: Server, name: str) -> Served:
    """The run of this name, for clients that call it a model."""
    try:
        return await server.served(name)
    except Refusal as refusal:
        if refusal.status not in (404, 409):
            raise
        known = ", ".join(server.models.names()) or "none"
        what = f"there is no model {ascii(name)[:80]}; the models are: {known}"
        raise Refusal(404, "serve.model", what) from refusal
