"""Memory-mapped token shards with hashes: built once, reused by every run that asks for the same.

A shard folder holds, for each field (say `source` and `target`), the tokens of all examples end to end and the
offsets of the examples, both as raw little-endian arrays, and `index.json` with sizes and SHA-256. It is written to
a temporary folder and renamed, so a half-written one is never seen.
"""

import errno
import hashlib
import json
import mmap
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from jumok.errors import DataError, RunError

Item = TypeVar("Item")
FORMAT = 1
Ids = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Field:
    """One token sequence per example."""

    tokens: Ids
    offsets: Ids

    def lengths(self, examples: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        lengths: npt.NDArray[np.int64] = self.offsets[examples + 1] - self.offsets[examples]
        return lengths

    def __getitem__(self, example: int) -> Ids:
        return self.tokens[self.offsets[example] : self.offsets[example + 1]]


class Shards:
    """The examples of one corpus, read from disk as they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        index = _read_index(folder)
        self.facts: dict[str, Any] = index["facts"]
        self.count: int = index["count"]
        self._maps: list[mmap.mmap] = []
        self.fields: dict[str, Field] = {}
        for name, entry in index["fields"].items():
            tokens = self._map(name + ".tokens", entry["dtype"], index)
            offsets = self._map(name + ".offsets", "<i8", index)
            if len(offsets) != self.count + 1 or offsets[-1] != len(tokens):
                where = folder / f"{name}.offsets"
                raise DataError("offsets do not fit the tokens", where=where, code="data.shard_torn")
            self.fields[name] = Field(tokens, offsets)

    def __len__(self) -> int:
        return self.count

    def release_pages(self) -> None:
        """Give the pages read so far back to the system: resident memory does not grow with the corpus."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def _map(self, name: str, dtype: str, index: dict[str, Any]) -> Ids:
        path = self.folder / name
        entry = index["files"][name]
        mend = f"delete {self.folder}; it is built again by the next run"
        try:
            file = path.open("rb")
        except OSError as error:
            what = f"token shard cannot be opened: {error.strerror}"
            raise DataError(what, where=path, hint=mend, code="data.shard_unreadable") from error
        with file:
            if os.fstat(file.fileno()).st_size != entry["bytes"] or _sha256(file) != entry["sha256"]:
                what = "token shard does not match its index: it was altered or torn"
                raise DataError(what, where=path, hint=mend, code="data.shard_torn")
            if entry["bytes"] == 0:
                return np.empty(0, dtype=dtype)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.append(mapped)
        array: Ids = np.frombuffer(mapped, dtype=dtype)
        return array


def build_shards(
    folder: Path,
    examples: Iterable[Sequence[Sequence[int]]],
    *,
    fields: Sequence[str],
    vocab_size: int,
    facts: dict[str, Any],
) -> Shards:
    """Write the token sequences of `examples`, one per field, and open the result.

    `facts` is read after the last example, so that the caller may count while it yields.
    """
    dtype = np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")
    building = folder.with_name(f"{folder.name}.tmp-{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    try:
        count = _write_fields(building, examples, fields, dtype)
        files = {}
        for path in sorted(building.iterdir()):
            with path.open("rb") as file:
                files[path.name] = {"bytes": path.stat().st_size, "sha256": _sha256(file)}
        index = {
            "format": FORMAT,
            "count": count,
            "fields": {name: {"dtype": dtype.str} for name in fields},
            "files": files,
            "facts": facts,
        }
        (building / "index.json").write_text(json.dumps(index, indent=1), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = f"{'disk full' if full else 'cannot write'} while building shards: {error}"
        raise RunError(what, where=folder, code="run.disk_full" if full else "run.cannot_write") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return Shards(folder)


def _write_fields(
    building: Path, examples: Iterable[Sequence[Sequence[int]]], fields: Sequence[str], dtype: np.dtype[Any]
) -> int:
    files: list[BinaryIO] = []
    try:
        for name in fields:
            files += [(building / f"{name}.tokens").open("wb"), (building / f"{name}.offsets").open("wb")]
        ends = np.zeros(len(fields), dtype=np.int64)
        count = 0
        for offsets in files[1::2]:
            offsets.write(ends[0].tobytes())
        for example in examples:
            for i, ids in enumerate(example):
                files[2 * i].write(np.asarray(ids, dtype=dtype).tobytes())
                ends[i] += len(ids)
                files[2 * i + 1].write(ends[i].tobytes())
            count += 1
    finally:
        for file in files:
            file.close()
    return count


def _read_index(folder: Path) -> dict[str, Any]:
    path = folder / "index.json"
    try:
        index: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        what = f"token shards cannot be opened: {error}"
        raise DataError(what, where=path, code="data.shard_unreadable") from error
    if index.get("format") != FORMAT:
        what = f"token shards of format {index.get('format')}, not {FORMAT}"
        raise DataError(what, where=path, code="data.shard_format")
    return index


def _sha256(file: BufferedReader) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def in_chunks(
    items: Iterable[Item], size: int, *, weight: Callable[[Item], int] = lambda item: 1
) -> Iterator[list[Item]]:
    """Lists of items that weigh `size` together, or more by what the last of them weighs."""
    chunk: list[Item] = []
    weighs = 0
    for item in items:
        chunk.append(item)
        weighs += weight(item)
        if weighs >= size:
            yield chunk
            chunk, weighs = [], 0
    if chunk:
        yield chunk


def in_texts(items: Iterable[Item], text: Callable[[Item], str]) -> Iterator[list[Item]]:
    """Lists of items to cut into pieces together: half a million characters, since lines may be of any length."""
    return in_chunks(items, 1 << 19, weight=lambda item: 1 + len(text(item)))
