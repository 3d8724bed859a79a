"""Attention maps as bytes.

A map of BERT-base at 512 tokens has 38 million weights: as JSON half a gigabyte, as bytes with one scale a head 38 MB,
and as thumbnails 0.6 MB. A message is the length of its JSON head (four bytes, little-endian), the head, and the bytes.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumok.errors import InputError

THUMBNAIL = 64
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Quantised:
    """A map [layers, heads + 2, rows, columns], the last two the mean and the maximum over heads, and the weight that
    255 stands for [layers, heads + 2]."""

    values: Bytes
    peaks: NDArray[np.float32]

    @staticmethod
    def of(layers: Sequence[NDArray[np.float32]]) -> "Quantised":
        heads, *size = layers[0].shape
        values = np.empty((len(layers), heads + 2, *size), dtype=np.uint8)
        peaks = np.empty((len(layers), heads + 2), dtype=np.float32)
        for i, layer in enumerate(layers):
            whole = np.concatenate([layer, layer.mean(axis=0, keepdims=True), layer.max(axis=0, keepdims=True)])
            peaks[i] = np.maximum(whole.max(axis=(1, 2)), np.finfo(np.float32).tiny)
            whole *= 255 / peaks[i, :, None, None]
            values[i] = np.rint(whole, out=whole)
        return Quantised(values, peaks)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.values), self.values.shape[1] - 2

    def thumbnails(self) -> Bytes:
        """Every cell the largest weight of what it stands for, so that thin diagonals stay visible."""
        found = self.values
        for axis in (2, 3):
            n = found.shape[axis]
            starts = np.unique(np.arange(min(n, THUMBNAIL)) * n // min(n, THUMBNAIL))
            found = np.maximum.reduceat(found, starts, axis=axis)
        return found

    def head(self, layer: int, head: int | str) -> tuple[Bytes, float]:
        layers, heads = self.shape
        number = {"mean": heads, "max": heads + 1}.get(head, -1) if isinstance(head, str) else head
        if not 0 <= layer < layers or not 0 <= number < heads + 2 * isinstance(head, str):
            what = f"layer {layer}, head {head}: there are {layers} layers and {heads} heads"
            raise InputError(
                what, hint="they are numbered from 0; a head may be mean or max", code="input.no_such_part"
            )
        return self.values[layer, number], float(self.peaks[layer, number])


class LastMaps:
    """The last few maps, at most so many bytes of them."""

    def __init__(self, most: int = 128 << 20) -> None:
        self.most = most
        self._kept: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], tuple[Any, int]]) -> Any:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]
        found, size = make()
        with self._lock:
            if size <= self.most:
                self._kept[key] = (size, found)
                while sum(size for size, _ in self._kept.values()) > self.most:
                    self._kept.popitem(last=False)
        return found


def message(head: Mapping[str, Any], *parts: Bytes) -> bytes:
    said = json.dumps(head, ensure_ascii=False).encode()
    return b"".join([len(said).to_bytes(4, "little"), said, *(np.ascontiguousarray(part).tobytes() for part in parts)])
