"""Examples: one module for each kind, with its dataclass and its file formats."""

from typing import Literal

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
