"""Atomic writes: files and folders that are whole or absent, and verified by their hashes.

Everything is written aside, under a name that ends in `.tmp-PID`, synced and renamed. A killed process leaves at most
such a name behind; `sweep` removes it. Links are never followed when writing or removing: a folder may come from a
stranger.
"""

import errno
import fcntl
import gzip
import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError

from jumok.errors import CheckpointError, RunError

MANIFEST = "manifest.json"
RECIPE = "recipe.json"
CARD = "README.md"
"""not part of what must match its manifest: people edit it"""
_LEFTOVER = re.compile(r".+\.(tmp|old)-\d+(-\d+)?")
_number = itertools.count()


def write_folder(folder: Path, write: Callable[[Path], None], *, replace: bool = True) -> None:
    """Let `write` fill a folder; it appears complete under its name, with a manifest, or not at all.

    Without `replace`, a folder that appeared there in the meantime stays and ours is dropped: several processes may
    prepare the same thing at once, and the first one wins.
    """
    building = _aside(folder, "tmp")
    try:
        with _held(building):
            write(building)
            manifest = {path.name: _describe(path) for path in sorted(building.iterdir())}
            (building / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")
            for path in building.iterdir():
                path.chmod((building / MANIFEST).stat().st_mode)  # safetensors writes private files
                _sync(path)
            _sync(building)
            if replace:
                _swap(building, folder)
            else:
                _settle(building, folder)
        _sync(folder.parent)
    except (OSError, SafetensorError) as error:
        raise cannot_write(folder, error) from error
    finally:
        remove(building)


def _swap(building: Path, folder: Path) -> None:
    old = _aside(folder, "old")
    if folder.exists() or folder.is_symlink():
        folder.rename(old)
    try:
        building.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    remove(old)


def _settle(building: Path, folder: Path) -> None:
    try:
        building.rename(folder)  # fails if the folder is there, unless it is empty
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def discard_folder(folder: Path) -> None:
    """Take a folder out of the way at once, then remove it; another process may have done so already."""
    old = _aside(folder, "old")
    with suppress(FileNotFoundError):
        folder.rename(old)
    remove(old)


def remove(path: Path) -> None:
    """Remove a file, a folder or a link, but nothing that a link points to; failures are ignored."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def is_leftover(name: str) -> bool:
    """Whether a name is one under which a process writes aside."""
    return _LEFTOVER.fullmatch(name) is not None


def sweep(folder: Path, *, alone: bool) -> None:
    """Remove what killed processes left half-written; unless we are `alone`, only what no living process holds."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in [*folder.iterdir()]:
        if is_leftover(path.name):
            if alone or path.is_symlink():
                remove(path)
            else:
                _remove_unheld(path)


def _aside(path: Path, kind: str) -> Path:
    return path.with_name(f"{path.name}.{kind}-{os.getpid()}-{next(_number)}")


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Make a folder, and mark it as being written until the block, or this process, ends."""
    while True:
        folder.mkdir(parents=True)
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if folder.exists():
                break
            os.close(descriptor)  # swept before it was marked
    try:
        yield
    finally:
        os.close(descriptor)


def _remove_unheld(path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)
        finally:
            os.close(descriptor)


def cannot_write(folder: Path, error: Exception) -> RunError:
    # safetensors reports a full disk as its own error, with the system's message in it.
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    return RunError(
        f"{'disk full' if full else 'cannot write'} while saving: {error}",
        where=folder,
        hint="make room and run the same command again to resume; what was saved before is untouched",
        code="run.disk_full" if full else "run.cannot_write",
    )


def verify_folder(folder: Path, needs: Collection[str] = ()) -> None:
    """Refuse a folder in which a file is missing, unlisted or not byte for byte what was written.

    `needs` are files that the manifest must list, so that an empty one verifies nothing.
    """
    try:
        manifest = parse_json((folder / MANIFEST).read_bytes())
        if not isinstance(manifest, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        what = f"incomplete: its manifest cannot be read ({error})"
        raise CheckpointError(what, where=folder, code="checkpoint.torn") from error
    for name in [*needs, *manifest]:
        path = folder / name
        if name == CARD:
            continue
        if name not in manifest or Path(name).name != name:
            what = "altered: its manifest does not list the file"
            raise CheckpointError(what, where=path, code="checkpoint.altered")
        if not path.is_file() or path.is_symlink():
            raise CheckpointError("incomplete: a file is missing", where=path, code="checkpoint.torn")
        if _describe(path) != manifest[name]:
            what = "altered: its bytes differ from those that were written"
            raise CheckpointError(what, where=path, code="checkpoint.altered")


def refuse_links(folder: Path, names: Collection[str] | None = None) -> None:
    """Refuse a folder with links, of these names or any, out of it: they could name any file of this computer.

    A link may also lead to the `blobs` of the Hugging Face cache that the folder is a snapshot of: all its files do.
    """
    home = Path(os.path.realpath(folder))
    homes = [home, *([home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [])]
    for path in sorted(folder.iterdir()) if names is None else [folder / name for name in names]:
        if path.is_symlink() and not any(Path(os.path.realpath(path)).is_relative_to(place) for place in homes):
            hint = "replace it by a copy of what it points to, or remove it"
            raise CheckpointError("the link leads out of its folder", where=path, hint=hint, code="checkpoint.link")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; whatever is wrong with it, endless nesting included, is a ValueError."""
    try:
        return json.loads(text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def stored_recipe(run: Path) -> dict[str, Any] | None:
    """recipe.json of a run: the effective recipe, versions and data hashes; None if there is none."""
    path = run / RECIPE
    if not path.exists():
        return None
    try:
        stored: dict[str, Any] = parse_json(path.read_bytes())
        if not all(isinstance(stored[key], dict) for key in ("recipe", "data")):
            raise ValueError("it has no recipe")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(
            f"cannot read the run's recipe: {error}",
            where=path,
            hint="restore the recipe.json that the run started with, or choose another --out",
            code="checkpoint.unreadable",
        ) from error
    return stored


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
    """Write files that appear only once all of them are written."""
    aside = {path: _aside(path, "tmp") for path in contents}
    path = Path()
    try:
        for path, building in aside.items():
            with building.open("xb") as file:
                file.write(contents[path])
            _sync(building)
        for path, building in aside.items():
            building.replace(path)
    except OSError as error:
        for building in aside.values():
            remove(building)
        raise cannot_write(path, error) from error


def write_through(path: Path, content: BinaryIO, *, packed: bool = False) -> None:
    """Write a file that appears only once it is whole, without holding its content; gzipped if `packed`."""
    building = _aside(path, "tmp")
    try:
        with building.open("xb") as file:
            if packed:
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as pack:
                    shutil.copyfileobj(content, pack)
            else:
                shutil.copyfileobj(content, file)
        _sync(building)
        building.replace(path)
    except OSError as error:
        remove(building)
        raise cannot_write(path, error) from error
