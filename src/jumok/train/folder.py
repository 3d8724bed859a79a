"""The run folder: one process at a time, one recipe, and a log of every event."""

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from math import isfinite
from pathlib import Path
from time import time
from typing import IO, Any

from jumok.errors import CheckpointError, RunError
from jumok.files import RECIPE, cannot_write, is_leftover, parse_json, stored_recipe, sweep, write_together
from jumok.train.checkpoint import Checkpoints
from jumok.train.length import Extended, Planned
from jumok.train.loop import Event
from jumok.train.samples import Sampled


class RunFolder:
    """RUN/ and its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe = path / RECIPE
        self.events = path / "events.jsonl"
        self.scores = path / "scores.json"
        self.model = path / "model"
        self.checkpoints = Checkpoints(path / "checkpoints")
        self._lock: IO[str] | None = None
        self._made: list[Path] = []

    def lock(self) -> None:
        """Lock until `unlock` or until this process ends, however it ends; refuse a second process."""
        if self._lock is not None:
            return
        self._refuse_foreign()
        self._made = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            file = os.fdopen(descriptor, "r+", encoding="utf-8")
        except OSError as error:
            what = f"cannot create the run folder: {error.strerror}"
            raise CheckpointError(what, where=self.path, code="checkpoint.cannot_make") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = file.read().strip() or "another process"
            file.close()
            what, hint = f"the run folder is in use by {holder}", "wait for it, or choose another --out"
            raise CheckpointError(what, where=self.path, hint=hint, code="checkpoint.in_use") from error
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        self._lock = file
        for folder in (self.path, self.checkpoints.folder):
            sweep(folder, alone=True)

    @property
    def _lock_file(self) -> Path:
        return self.path / "lock"

    def _refuse_foreign(self) -> None:
        """Refuse a folder that has other files but no run, or links that would be written through."""
        if not self.path.is_dir():
            return
        for path in (self._lock_file, self.recipe, self.events, self.scores, self.model, self.checkpoints.folder):
            if path.is_symlink():
                what, hint = "a link in a run folder is not followed", "replace it by what it points to, or remove it"
                raise CheckpointError(what, where=path, hint=hint, code="checkpoint.link")
        for path in (self.events, self.scores):
            if path.is_dir():
                hint = "remove it; the same command then writes the file"
                raise CheckpointError("a folder, not a file", where=path, hint=hint, code="checkpoint.unreadable")
        if self.recipe.exists():
            return
        others = sorted(path.name for path in self.path.iterdir() if path.name != "lock" and not is_leftover(path.name))
        if others:
            raise CheckpointError(
                f"not a run folder, and not empty: it has {', '.join(others[:3])}{' ...' if others[3:] else ''}",
                where=self.path,
                hint="choose a new or empty folder for --out",
                code="checkpoint.not_empty",
            )

    def require_lock(self) -> None:
        """Refuse to continue if the folder was removed or replaced: nobody would find the output."""
        if self._lock is None:
            return
        try:
            ours, there = os.fstat(self._lock.fileno()), os.stat(self._lock_file, follow_symlinks=False)
            same = (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)
        except OSError:
            same = False
        if not same:
            hint = "run the same command again to start over"
            what = "the run folder was removed or replaced during training"
            raise RunError(what, where=self.path, hint=hint, code="run.folder_gone")

    def leave_no_trace(self) -> None:
        """Remove the folders that `lock` made, if there is nothing in them but the lock."""
        if (
            self._lock is None
            or not self._made
            or [path.name for path in self.path.iterdir()] != [self._lock_file.name]
        ):
            return
        self._lock_file.unlink()
        with suppress(OSError):  # somebody else put something there
            for folder in self._made:
                folder.rmdir()

    def unlock(self) -> None:
        if self._lock:
            self._lock.close()
            self._lock = None

    def stored(self) -> dict[str, Any] | None:
        """recipe.json: the effective recipe, versions and data hashes; None in a new folder."""
        return stored_recipe(self.path)

    def store(self, facts: dict[str, Any]) -> None:
        write_together({self.recipe: _text(facts)})

    def finish(self, facts: dict[str, Any], scores: dict[str, Any]) -> None:
        """Write scores.json, and recipe.json with its hash."""
        text = _text(scores)
        write_together({self.scores: text, self.recipe: _text({**facts, "scores": sha256(text).hexdigest()})})

    def results(self) -> dict[str, Any]:
        """scores.json: the results of each split; empty if there is none."""
        if not self.scores.exists():
            return {}
        try:
            found = parse_json(self.scores.read_bytes())
            if not all(isinstance(result["scores"], dict) for result in found.values()):
                raise ValueError("it has no scores")
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise CheckpointError(
                f"cannot read the run's scores: {error}",
                where=self.scores,
                hint="run its `jumok train` command again to score the model anew",
                code="checkpoint.unreadable",
            ) from error
        return dict(found)

    def forget_results(self) -> None:
        """Remove the scores of a model that is about to be replaced."""
        self.scores.unlink(missing_ok=True)

    def has_own_results(self) -> bool:
        """Whether scores.json is what was written; runs of earlier versions have no hash of it."""
        if not self.results():
            return False
        digest = sha256(self.scores.read_bytes()).hexdigest()
        return bool((self.stored() or {}).get("scores", digest) == digest)

    def append(self, event: Event | Planned | Extended | Sampled) -> None:
        self.require_lock()
        line = {"event": type(event).__name__.lower(), "time": round(time(), 3), **_strict(asdict(event))}
        try:
            descriptor = os.open(self.events, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
            with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                file.write(json.dumps(line, allow_nan=False) + "\n")
        except OSError as error:
            raise cannot_write(self.events, error) from error

    def mend_events(self) -> None:
        """End a line that a killed process left incomplete, so that the next event starts a new one."""
        if self.events.exists() and self.events.read_bytes()[-1:] not in (b"\n", b""):
            with self.events.open("a", encoding="utf-8") as file:
                file.write("\n")

    def has_diverged(self) -> bool:
        """Whether the last thing that happened is that training diverged."""
        return [event.get("event") for event in self.history()][-1:] == ["diverged"]

    def history(self) -> list[dict[str, Any]]:
        """All readable events."""
        if not self.events.exists():
            return []
        events = []
        for line in self.events.read_text("utf-8", errors="replace").splitlines():
            try:
                events.append(parse_json(line))
            except ValueError:
                continue
        return events


def _text(tree: dict[str, Any]) -> bytes:
    return (json.dumps(tree, indent=2, ensure_ascii=False) + "\n").encode()


def refuse_other_recipe(stored: dict[str, Any], wanted: dict[str, Any], *, where: Path) -> None:
    """Refuse a recipe other than the run folder's, naming the keys that differ."""
    differing = list(_differences(stored, wanted))
    if differing:
        raise CheckpointError(
            "the run folder belongs to another recipe: " + "; ".join(differing[:8]),
            where=where,
            hint="choose another --out for this recipe, or use the recipe that the folder was made with",
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


def _strict(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, with null."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
