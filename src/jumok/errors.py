"""The error tree: every error says what is wrong, where, and what to do about it.

JumokError
├── InputError            the user's input is wrong: exit code 2
│   ├── RecipeError       a recipe or an override
│   ├── DataError         a text file, a corpus, a shard
│   │   └── OffsetError   an example whose offsets do not fit its text
│   └── CheckpointError   a run folder, a checkpoint, a model folder
└── RunError              the run failed: exit code 1

`code` is stable across versions ("data.misaligned"): programs and tests rely on it, people read the rest. The part
before the dot is the area; an error without a more specific code has only the area.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a config: its key, a code, what is wrong, and where it was written."""

    key: str
    code: str
    what: str
    where: str | None = None
    guess: str = ""
    """`did you mean …?`"""

    @property
    def told(self) -> str:
        """What is wrong, with the key named once."""
        named = not self.key or re.match(rf"{re.escape(self.key)}\b", self.what)
        return self.what if named else f"{self.key}: {self.what}"

    @property
    def text(self) -> str:
        return f"{self.told}, {self.guess}" if self.guess else self.told


class JumokError(Exception):
    """What is wrong, where it is (file, line, key), and what to do about it."""

    exit_code = 1
    code = "jumok"
    mistakes: Sequence[Mistake] = ()
    """all mistakes in a config, reported at once"""

    def __init__(
        self, what: str, *, where: str | Path | None = None, hint: str | None = None, code: str | None = None
    ) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.hint = hint
        if code is not None:
            self.code = code
        lines = [what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if hint:
            lines.append(f"  hint: {hint}")
        super().__init__("\n".join(lines))


class InputError(JumokError):
    """The user's input is wrong."""

    exit_code = 2
    code = "input"


class RecipeError(InputError):
    """A recipe, or an override of one of its keys, cannot be used."""

    code = "recipe"


class DataError(InputError):
    """A text file, a corpus or a token shard cannot be used."""

    code = "data"


Wrong = Callable[[DataError], None]
"""called with the error of each line or example that cannot be read or written; if it returns, that one is skipped"""


def refuse(error: DataError) -> None:
    raise error


class OffsetError(DataError):
    """A span of an example is not at its offsets; `shift` is how far away it is, if it occurs at all."""

    code = "data.offsets"

    def __init__(self, what: str, *, where: str | Path | None, hint: str | None, shift: int | None = None) -> None:
        super().__init__(what, where=where, hint=hint)
        self.shift = shift


class CheckpointError(InputError):
    """A run folder, a checkpoint or a model folder cannot be used."""

    code = "checkpoint"


class RunError(JumokError):
    """The input is valid, but the run failed."""

    code = "run"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names for a message, shortened to the first `most`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean …?` with the closest known name, or one whose initials match (`lr`); empty if none is close."""
    names = [*known]
    found = get_close_matches(name, names, n=1, cutoff=0.6)
    found += [one for one in names if "_" in one and name == "".join(word[:1] for word in one.split("_"))]
    return f"did you mean {found[0]}?" if found else ""
