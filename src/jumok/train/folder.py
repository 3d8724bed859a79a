"""The run folder: one process at a time, one recipe for good, every event kept."""

import fcntl
import json
import os
from dataclasses import asdict
from pathlib import Path
from time import time
from typing import IO, Any

from jumok.errors import CheckpointError
from jumok.files import cannot_write, write_atomically
from jumok.train.checkpoint import Checkpoints
from jumok.train.loop import Event


class RunFolder:
    """RUN/ and its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe = path / "recipe.json"
        self.events = path / "events.jsonl"
        self.scores = path / "scores.json"
        self.model = path / "model"
        self.checkpoints = Checkpoints(path / "checkpoints")
        self._lock: IO[str] | None = None

    def lock(self) -> None:
        """Held until `unlock` or until this process ends, however it ends; a second process is refused."""
        self._refuse_foreign()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / "lock").open("a+")
        except OSError as error:
            what = f"run folder cannot be made: {error.strerror}"
            raise CheckpointError(what, where=self.path, code="checkpoint.cannot_make") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            what, hint = f"run folder is in use by {holder}", "another --out, or wait for it"
            raise CheckpointError(what, where=self.path, hint=hint, code="checkpoint.in_use") from error
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        self._lock = file

    def _refuse_foreign(self) -> None:
        """A run never moves into a folder with other things in it."""
        if not self.path.is_dir() or self.recipe.exists():
            return
        others = sorted({path.name for path in self.path.iterdir()} - {"lock"})
        if others:
            raise CheckpointError(
                f"the folder is no run and not empty: it has {', '.join(others[:3])}{' ...' if others[3:] else ''}",
                where=self.path,
                hint="a new or empty folder for --out",
                code="checkpoint.not_empty",
            )

    def unlock(self) -> None:
        if self._lock:
            self._lock.close()
            self._lock = None

    def stored(self) -> dict[str, Any] | None:
        """recipe.json: the effective recipe, versions and data hashes; None in a new folder."""
        if not self.recipe.exists():
            return None
        try:
            stored: dict[str, Any] = json.loads(self.recipe.read_text("utf-8"))
            if not all(isinstance(stored[key], dict) for key in ("recipe", "data")):
                raise ValueError("it holds no recipe")
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CheckpointError(
                f"cannot be read: {error}",
                where=self.recipe,
                hint="the recipe.json that the run began with, or another --out",
                code="checkpoint.unreadable",
            ) from error
        return stored

    def store(self, facts: dict[str, Any]) -> None:
        write_atomically(self.recipe, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")

    def append(self, event: Event) -> None:
        line = {"event": type(event).__name__.lower(), "time": round(time(), 3), **asdict(event)}
        try:
            with self.events.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise cannot_write(self.events, error) from error

    def mend_events(self) -> None:
        """A killed process may have left half a line: close it, so that the next event has its own."""
        if self.events.exists() and self.events.read_bytes()[-1:] not in (b"\n", b""):
            with self.events.open("a", encoding="utf-8") as file:
                file.write("\n")

    def history(self) -> list[dict[str, Any]]:
        """All events that can be read."""
        if not self.events.exists():
            return []
        events = []
        for line in self.events.read_text("utf-8", errors="replace").splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                continue
        return events


def refuse_other_recipe(stored: dict[str, Any], wanted: dict[str, Any], *, where: Path) -> None:
    """A run folder belongs to one recipe; say which keys differ."""
    differing = list(_differences(stored, wanted))
    if differing:
        raise CheckpointError(
            "the run folder belongs to another recipe: " + "; ".join(differing[:8]),
            where=where,
            hint="another --out for this recipe, or the recipe that the folder was made with",
            code="checkpoint.other_recipe",
        )


def _differences(a: Any, b: Any, path: str = "") -> list[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        return [
            difference
            for key in sorted(a.keys() | b.keys())
            for difference in _differences(a.get(key), b.get(key), f"{path}.{key}".lstrip("."))
        ]
    return [] if a == b else [f"{path} was {a!r} and is {b!r}"]
