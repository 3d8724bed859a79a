"""What people bring: one file for each kind of example, from its dataclass to its file formats."""

from typing import Literal

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
