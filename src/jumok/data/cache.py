"""Prepared data that runs share: vocabularies and token shards, each known by a hash of all that it depends on."""

import errno
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from jumok.errors import CheckpointError, DataError, InputError
from jumok.files import discard_folder, sweep
from jumok.version import __version__

CACHE_FOLDER = "JUMOK_CACHE"
Entry = TypeVar("Entry")
Item = TypeVar("Item")


class RebuiltWarning(UserWarning):
    """An entry of the cache was damaged and has been built again."""


def _never() -> None:
    """Go on."""


@dataclass(frozen=True, slots=True)
class Cache:
    folder: Path
    poll: Callable[[], None] = _never
    """called while entries are built; raises to stop"""

    @classmethod
    def of_user(cls, poll: Callable[[], None] = _never) -> "Cache":
        """$JUMOK_CACHE, or jumok's place in the user's cache."""
        own = os.environ.get(CACHE_FOLDER)
        folder = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumok"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK):
                raise PermissionError(errno.EACCES, "no permission to write")
        except OSError as error:
            raise InputError(
                f"the folder for prepared data cannot be used: {error.strerror}",
                where=folder,
                hint=f"set the environment variable {CACHE_FOLDER} to a folder that can be written",
                code="input.cache",
            ) from error
        return cls(folder, poll)

    def entry(
        self, kind: str, key: Sequence[object], *, read: Callable[[Path], Entry], build: Callable[[Path], None]
    ) -> Entry:
        """What `read` finds in the folder of a key; `build` makes it if it is missing, and again if it is damaged.

        Any number of processes may ask for the same entry: each builds aside, and the first one that is done wins.
        """
        digest = hashlib.sha256(json.dumps([__version__, *key]).encode()).hexdigest()
        folder = self.folder / kind / digest[:32]
        sweep(folder.parent, alone=False)
        if folder.exists():
            try:
                return read(folder)
            except (CheckpointError, DataError) as error:
                text = f"{folder}: prepared data was damaged ({error.what}) and is built again"
                warnings.warn(text, RebuiltWarning, stacklevel=2)
                discard_folder(folder)
        build(folder)
        return read(folder)

    def polled(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            self.poll()
            yield item
