"""The error tree: every mistake says what is wrong, where, and what would be right.

JumokError
├── InputError            the user's input is wrong: exit code 2
│   ├── RecipeError       a recipe or an override
│   ├── DataError         a text file, a corpus, a shard
│   │   └── OffsetError   an example whose offsets do not fit its text
│   └── CheckpointError   a run folder, a checkpoint, a model folder
└── RunError              the run failed: exit code 1
"""

from collections.abc import Sequence
from pathlib import Path


class JumokError(Exception):
    """What is wrong, where it is (file, line, key), and what would be right."""

    exit_code = 1

    def __init__(self, what: str, *, where: str | Path | None = None, right: str | None = None) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.right = right
        lines = [what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if right:
            lines.append(f"  right: {right}")
        super().__init__("\n".join(lines))


class InputError(JumokError):
    """The user's input is wrong."""

    exit_code = 2


class RecipeError(InputError):
    """A recipe, or an override of one of its keys, cannot be used."""


class DataError(InputError):
    """A text file, a corpus or a token shard cannot be used."""


class OffsetError(DataError):
    """What an example marks is not at its offsets; `shift` is how far from them it stands, if it does anywhere."""

    def __init__(self, what: str, *, where: str | Path | None, right: str | None, shift: int | None = None) -> None:
        super().__init__(what, where=where, right=right)
        self.shift = shift


class CheckpointError(InputError):
    """A run folder, a checkpoint or a model folder cannot be used."""


class RunError(JumokError):
    """The input was right, but the run failed."""


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names for a message, which is none if it has thousands of them."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
