"""Notes on many outputs, told once."""

from collections import Counter
from typing import Any


class NoteCounter:
    """Counts the notes of many outputs, to report each once."""

    def __init__(self) -> None:
        self._counts, self._n = Counter[str](), 0

    def add(self, output: Any) -> None:
        self._n += 1
        self._counts.update(note.text for note in getattr(output, "notes", ()))

    def told(self) -> list[str]:
        """Lines such as `3 of 12: texts with …`, most frequent first."""
        return [f"{count:,} of {self._n:,}: {text}" for text, count in self._counts.most_common()]
