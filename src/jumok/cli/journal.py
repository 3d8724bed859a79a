"""The beginning of an output file, kept beside it until it is whole, so that a killed command can go on from there."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from jumok.errors import InputError
from jumok.files import cannot_write, discard_folder, parse_json, write_atomically

PROGRESS, CONTENT = "progress.json", "content"
SECONDS = 1.0
"""what a killed command loses at most; to sync oftener would slow fast models down"""


@dataclass(slots=True)
class Progress:
    """How far a file is written."""

    pieces: int = 0
    """of the input that are done"""
    bytes: int = 0
    """of the content that are theirs"""
    examples: int = 0
    failed: int = 0
    flagged: int = 0
    """whose placeholders are not all in the translation"""
    notes: dict[str, int] = field(default_factory=dict)
    """how often each was made"""


class Journal:
    """What is written so far of one output, for one input, model and options: its `key`."""

    def __init__(self, folder: Path, key: Mapping[str, str]) -> None:
        self.folder, self._key = folder, dict(key)
        self.content = folder / CONTENT
        self.progress, self.others = Progress(), list[str]()
        """`others` are the parts of the key that an earlier command, which did not end, had otherwise"""
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            found = parse_json((folder / PROGRESS).read_bytes())
            progress, its = Progress(**found["progress"]), found["key"]
            self.others = [name for name in self._key if its.get(name) != self._key[name]]
            if not self.others and self.content.stat().st_size >= progress.bytes:
                self.progress = progress
        with self.content.open("ab") as file:
            file.truncate(self.progress.bytes)
        self._pending: tuple[list[bytes], dict[str, Any] | None] = [], None
        self._since = float("-inf")

    def add(self, content: bytes) -> None:
        """Append what has been written of the pieces counted in `progress`; it is on the disk within a second."""
        self.progress.bytes += len(content)
        # One assignment, so that an interrupt never comes between a content and its count.
        self._pending = (self._pending[0] + [content], asdict(self.progress))
        if monotonic() - self._since >= SECONDS:
            self.flush()

    def flush(self) -> None:
        contents, state = self._pending
        if state is None:
            return
        try:
            with self.content.open("ab") as file:
                file.writelines(contents)
                file.flush()
                os.fsync(file.fileno())
            write_atomically(self.folder / PROGRESS, json.dumps({"key": self._key, "progress": state}))
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        self._pending, self._since = ([], None), monotonic()


def journal_folder(out: Path) -> Path:
    """Where the journal of an output is; the first, if there are several with commas between them."""
    first = out if out.parent.is_dir() else Path(str(out).split(",")[0])
    return first.with_name(f".{first.name}.part")


@contextmanager
def journal(folder: Path) -> Iterator[Path]:
    """The folder, for this process alone; it is gone if the block ends well and kept if it does not."""
    try:
        folder.mkdir(exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what = "another command is writing this file"
            hint = "wait for it, or choose another --out"
            raise InputError(what, where=folder, hint=hint, code="input.out") from error
        try:
            yield folder
        except InputError:  # the same command would end in the same way
            discard_folder(folder)
            raise
        except BaseException:
            if not (folder / PROGRESS).exists():
                discard_folder(folder)
            raise
        discard_folder(folder)
    finally:
        with suppress(OSError):
            os.close(descriptor)
