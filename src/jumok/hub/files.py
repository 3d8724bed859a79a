"""Where a model folder is, and its JSON files, read strictly and never executed. Nothing here needs torch."""

import json
import re
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from jumok.config import read_config
from jumok.errors import CheckpointError
from jumok.files import MANIFEST, parse_json, refuse_links, verify_folder

WEIGHTS, CONFIG = "model.safetensors", "config.json"
OUTLINE = "outline"
"""folder of a run: its model without weights, which its checkpoints share"""

Theirs = TypeVar("Theirs")


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), "utf-8")


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        what = f"cannot read the model folder: {error}"
        raise CheckpointError(what, where=path, code="checkpoint.unreadable") from error
    if not isinstance(value, dict):
        raise CheckpointError("not a JSON object", where=path, code="checkpoint.unreadable")
    return value


def read_known(kind: type[Theirs], tree: dict[str, Any], *, where: Path) -> Theirs:
    """Read the keys of a foreign config that affect the computation; ignore all others."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    known = {name: value for name, value in tree.items() if name in names}
    return read_config(kind, known, what="the model's config", where=where, error=CheckpointError)


def known_architecture(tree: dict[str, Any], known: Collection[str], silent: str, *, where: Path) -> str:
    """The `transformers` class that the weights were saved from; `silent` if config.json names none."""
    named = tree.get("architectures") or [silent]
    name = str(named[0] if isinstance(named, list) else named)
    if name not in known:
        what = f'jumok has no model for the architecture "{name}"'
        hint = f"use one of {', '.join(known)}"
        raise CheckpointError(what, where=where, hint=hint, code="checkpoint.unknown_architecture")
    return name


def is_unfinished(path: Path) -> bool:
    """Whether a run has no model yet, but checkpoints that can be used as one."""
    if (path / "model").is_dir() or not (path / OUTLINE / CONFIG).is_file():
        return False
    return bool(checkpoint_steps(path))


def checkpoint_steps(path: Path) -> list[int]:
    """The steps at which a run was saved."""
    matches = (re.fullmatch(r"step-(\d+)", found.name) for found in (path / "checkpoints").glob("step-*"))
    return sorted(int(match[1]) for match in matches if match)


def one_of(path: Path) -> str:
    """A hint for a folder that is no run: it may hold the trainings of several seeds or folds."""
    parts = sorted(found.parent for found in path.glob("*/recipe.json"))
    return f"pass one of the runs in it, e.g. {parts[0]}" if parts else "pass a folder of `jumok train`"


def model_folder(path: Path) -> Path:
    """The model folder of a run, or the folder itself, verified against its manifest."""
    refuse_links(path, ["model"])
    folder = path / "model" if (path / "model").is_dir() else path
    if not (folder / "config.json").exists():
        unfinished = (path / "checkpoints").is_dir()
        raise CheckpointError(
            "the run has not finished: it has no model yet" if unfinished else "not a run or model folder",
            where=path,
            hint=f"resume it with its `jumok train` command, or make its model now: jumok finish {path}"
            if unfinished
            else one_of(path),
            code="checkpoint.unfinished" if unfinished else "checkpoint.no_model",
        )
    refuse_links(folder)
    if (folder / MANIFEST).exists():
        verify_folder(folder, needs=[CONFIG, WEIGHTS])
    return folder
