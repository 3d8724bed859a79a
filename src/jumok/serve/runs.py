"""What is known of a run folder without loading its model: task, status, when it last changed."""

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jumok.files import parse_json
from jumok.hub.files import OUTLINE, checkpoint_steps, is_unfinished

Status = Literal["running", "stopped", "died", "finished"]
TAIL = 1 << 18
"""bytes at the end of events.jsonl in which the last event is looked for"""
MOST_EXAMPLES, LONGEST_EXAMPLE = 3, 120


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder, or a model folder on its own."""

    name: str
    path: Path

    @property
    def model(self) -> Path:
        inside = self.path / "model"
        return inside if inside.is_dir() else self.path

    @property
    def usable(self) -> bool:
        return (self.model / "config.json").is_file() or is_unfinished(self.path)

    def checkpoint(self) -> dict[str, Any]:
        """Of a run without a model: the checkpoint that is used as one, and its score on dev; empty of other runs."""
        if not is_unfinished(self.path):
            return {}
        for last in reversed(checkpoint_steps(self.path)):
            progress = _object(self.path / "checkpoints" / f"step-{last}" / "progress.json")
            if not progress:
                continue  # removed in the meantime, or damaged: whoever loads it says so
            best, score = progress.get("best_step"), progress.get("best")
            step = best if isinstance(best, int) else last
            metric = (self.recipe().get("train") or {}).get("metric")
            return {"step": step, "steps": self._config().get("steps"), "metric": metric, "score": score}
        return {}

    @property
    def exists(self) -> bool:
        # A training writes its recipe once its data is read; until then there is only its lock.
        return self.usable or (self.path / "recipe.json").is_file() or self.trainer() is not None

    def stamp(self) -> tuple[int, ...]:
        """Differs once another model stands in the folder."""
        file = self.model / "config.json"
        if checkpoint := self.checkpoint():
            file = self.path / "checkpoints" / f"step-{checkpoint['step']}" / "progress.json"
        try:
            found = file.stat()
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_mtime_ns

    def facts(self) -> dict[str, Any]:
        """An entry of the list of runs."""
        config, recipe = self._config(), self.recipe()
        task = config.get("task") or recipe.get("task") or {}
        data = recipe.get("data") or {}
        found: dict[str, Any] = {"name": self.name, "task": str(task.get("kind", ""))}
        found |= {"status": self.status(), "usable": self.usable, "changed": self.changed()}
        for key in ("source", "target", "language"):
            if isinstance(value := config.get(key) or data.get(key), str):
                found[key] = value
        if checkpoint := self.checkpoint():
            found["checkpoint"] = checkpoint
        if description := recipe.get("description"):
            found["description"] = str(description)
        return found

    def recipe(self) -> dict[str, Any]:
        """The effective recipe; empty if there is none that can be read."""
        found = self.stored().get("recipe")
        return found if isinstance(found, dict) else {}

    def stored(self) -> dict[str, Any]:
        """recipe.json; empty if there is none that can be read."""
        return _object(self.path / "recipe.json")

    def _config(self) -> dict[str, Any]:
        file = self.path / OUTLINE if is_unfinished(self.path) else self.model
        found = _object(file / "config.json").get("jumok")
        return found if isinstance(found, dict) else {}

    def status(self) -> Status:
        if self.trainer() is not None:
            return "running"
        last = self.last_event()
        done = last.get("event") == "finished" and last.get("reason") != "interrupted"
        if self.usable and (done or not last) and not is_unfinished(self.path):
            return "finished"
        return "stopped" if done or not last or last.get("event") == "finished" else "died"

    def last_event(self, kind: str = "") -> dict[str, Any]:
        """The last complete event, or the last of a kind; empty if there is none."""
        try:
            with (self.path / "events.jsonl").open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - TAIL, 0))
                lines = file.read(TAIL).split(b"\n")
        except OSError:
            return {}
        for line in reversed(lines):
            with suppress(ValueError):
                event = parse_json(line)
                if isinstance(event, dict) and "event" in event and kind in ("", event["event"]):
                    return event
        return {}

    def examples(self) -> list[str]:
        """Short texts to try: those of dev that the training showed its answers to."""
        samples = self.last_event("sampled").get("samples")
        texts = [one.get("source") for one in samples if isinstance(one, dict)] if isinstance(samples, list) else []
        short = [text for text in texts if isinstance(text, str) and 0 < len(text) <= LONGEST_EXAMPLE]
        return list(dict.fromkeys(short))[:MOST_EXAMPLES]

    def trainer(self) -> int | None:
        """The process that trains into this folder: the one that its lock names, if it is alive and holds the lock.

        The lock is tried only while that process lives: a training that starts just now never finds it taken by us.
        """
        try:
            with (self.path / "lock").open("rb") as file:
                words = file.read(100).decode("ascii", "replace").split()
                pid = int(words[1]) if len(words) == 2 and words[0] == "process" and words[1].isdecimal() else 0
                if not pid or not _alive(pid):
                    return None
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    return pid
                fcntl.flock(file, fcntl.LOCK_UN)
        except (OSError, ValueError, OverflowError):
            pass
        return None

    def changed(self) -> float:
        """Seconds since the epoch at which the run last told or wrote something."""
        found = [0.0]
        for file in (self.path / "events.jsonl", self.path / "recipe.json", self.model / "config.json"):
            with suppress(OSError):
                found.append(file.stat().st_mtime)
        return round(max(found), 3)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _object(path: Path) -> dict[str, Any]:
    """A JSON object of a file; empty if there is none that can be read."""
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
