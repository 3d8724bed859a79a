"""Memory-mapped token shards: built once, reused by every run that needs the same.

For each field (such as `source` and `target`), a shard folder has the tokens of all examples end to end and the offsets
of the examples, both as raw little-endian arrays, and `index.json`. Its manifest has the hashes.
"""

import json
import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from jumok.errors import DataError
from jumok.files import parse_json, verify_folder, write_folder

Item = TypeVar("Item")
FORMAT = 2
INDEX = "index.json"
WRITTEN_TOGETHER = 1 << 17  # tokens
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
    """The examples of one corpus, read from disk on demand; a damaged folder is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        verify_folder(folder, needs=[INDEX])
        index = _read_index(folder)
        self.facts: dict[str, Any] = index["facts"]
        self.count: int = index["count"]
        self._maps: list[mmap.mmap] = []
        self.fields: dict[str, Field] = {}
        for name, dtype in index["fields"].items():
            tokens, offsets = self._map(f"{name}.tokens", dtype), self._map(f"{name}.offsets", "<i8")
            if len(offsets) != self.count + 1 or offsets[-1] != len(tokens):
                where = folder / f"{name}.offsets"
                raise DataError("the offsets do not fit the tokens", where=where, code="data.shard_torn")
            self.fields[name] = Field(tokens, offsets)

    def __len__(self) -> int:
        return self.count

    def release_pages(self) -> None:
        """Give the pages read so far back to the system, so resident memory does not grow with the corpus."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def _map(self, name: str, dtype: str) -> Ids:
        path = self.folder / name
        if path.stat().st_size == 0:
            return np.empty(0, dtype=dtype)
        with path.open("rb") as file:
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
) -> None:
    """Write the token sequences of `examples`, one per field, unless another process is first.

    `facts` is read after the last example, so the caller may count while it yields.
    """
    dtype = np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")

    def write(building: Path) -> None:
        count = _write_fields(building, examples, fields, dtype)
        index = {"format": FORMAT, "count": count, "fields": dict.fromkeys(fields, dtype.str), "facts": facts}
        (building / INDEX).write_text(json.dumps(index, indent=1), "utf-8")

    write_folder(folder, write, replace=False)


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
        for some in in_chunks(examples, WRITTEN_TOGETHER, weight=lambda example: 1 + sum(map(len, example))):
            for i, rows in enumerate(zip(*some, strict=True)):
                files[2 * i].write(np.fromiter(chain.from_iterable(rows), dtype=dtype).tobytes())
                offsets = ends[i] + np.cumsum([*map(len, rows)], dtype="<i8")
                files[2 * i + 1].write(offsets.tobytes())
                ends[i] = offsets[-1]
            count += len(some)
    finally:
        for file in files:
            file.close()
    return count


def _read_index(folder: Path) -> dict[str, Any]:
    path = folder / INDEX
    try:
        index = parse_json(path.read_bytes())
        if index["format"] != FORMAT:
            what = f"token shards of format {index['format']}, not {FORMAT}"
            raise DataError(what, where=path, code="data.shard_format")
    except (OSError, ValueError, TypeError, KeyError) as error:
        what = f"token shards cannot be opened: {error}"
        raise DataError(what, where=path, code="data.shard_unreadable") from error
    return dict(index)


def in_chunks(
    items: Iterable[Item], size: int, *, weight: Callable[[Item], int] = lambda item: 1
) -> Iterator[list[Item]]:
    """Lists of items whose weights add up to `size`, or exceed it by at most the last item's."""
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
    """Lists of items to tokenize together: half a million characters, since lines may have any length."""
    return in_chunks(items, 1 << 19, weight=lambda item: 1 + len(text(item)))
