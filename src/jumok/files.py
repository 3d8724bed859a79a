"""Putting bytes on a disk: folders and files that are whole or not there, known by their hashes."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from jumok.errors import CheckpointError, RunError

MANIFEST = "manifest.json"


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a folder; it appears complete under its name, with a manifest, or not at all."""
    building = folder.with_name(f"{folder.name}.tmp-{os.getpid()}")
    try:
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        write(building)
        manifest = {path.name: _describe(path) for path in sorted(building.iterdir())}
        (building / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")
        for path in building.iterdir():
            path.chmod((building / MANIFEST).stat().st_mode)  # safetensors makes its files the owner's alone
            _sync(path)
        _sync(building)
        old = folder.with_name(f"{folder.name}.old-{os.getpid()}")
        if folder.exists():
            folder.rename(old)
        try:
            building.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
        _sync(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError) as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def cannot_write(folder: Path, error: Exception) -> RunError:
    # safetensors reports a full disk as its own error, with the system's words in it.
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    return RunError(
        f"{'disk full' if full else 'cannot write'} while saving: {error}",
        where=folder,
        hint="what was saved before is untouched; make room and run the same command again to go on",
        code="run.disk_full" if full else "run.cannot_write",
    )


def verify_folder(folder: Path) -> None:
    """Refuse a folder in which a file is missing or not byte for byte what was written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if not isinstance(manifest, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        what = f"torn: its manifest cannot be read ({error})"
        raise CheckpointError(what, where=folder, code="checkpoint.torn") from error
    for name, entry in manifest.items():
        path = folder / name
        if not path.is_file() or path.is_symlink():
            raise CheckpointError("torn: a file is missing", where=path, code="checkpoint.torn")
        if _describe(path) != entry:
            what = "altered: its bytes are not the ones that were written"
            raise CheckpointError(what, where=path, code="checkpoint.altered")


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str) -> None:
    write_together({path: text.encode()})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Files that appear once all of them are written."""
    aside = {path: path.with_name(f"{path.name}.tmp-{os.getpid()}") for path in contents}
    path = Path()
    try:
        for path, building in aside.items():
            building.write_bytes(contents[path])
            _sync(building)
        for path, building in aside.items():
            building.replace(path)
    except OSError as error:
        for building in aside.values():
            building.unlink(missing_ok=True)
        raise cannot_write(path, error) from error
