"""Examples that cannot be read or written: training stops at the first, the doctor records them and continues."""

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from jumok.errors import DataError, Wrong

Given = TypeVar("Given")
Example = TypeVar("Example")


def read_some(read: Callable[..., Iterator[Example]], path: Path) -> Iterator[Example]:
    """Read the valid examples of a file, and warn about the others."""
    wrong: list[DataError] = []
    yield from read(path, wrong=wrong.append)
    if wrong:
        warnings.warn(f"{len(wrong):,} skipped in {path}; the first: {wrong[0].what}, {wrong[0].where}", stacklevel=2)


def read_each(given: Iterable[Given], read: Callable[[Given], Example], wrong: Wrong) -> Iterator[Example]:
    """Yield the valid examples; errors of the file itself, rather than of one example, are raised."""
    try:
        for one in given:
            try:
                example = read(one)
            except DataError as error:
                wrong(error)
            else:
                yield example
    finally:
        if isinstance(given, Generator):
            given.close()  # the traceback of an error would keep its file open


def say_each(examples: Iterable[Given], say: Callable[[Given], Example], wrong: Wrong) -> list[Example]:
    """Convert each example for writing; it is an error if none can be written."""
    given = list(examples)
    said = [*read_each(given, say, wrong)]
    if given and not said:
        hint = "use another format"
        raise DataError(f"none of {len(given):,} examples can be written", hint=hint, code="data.nothing_written")
    return said


def unknown_format(what: str, path: object, hint: str) -> DataError:
    return DataError(f"unknown file format for {what}", where=str(path), hint=hint, code="data.format")


def suffix_of(path: Path) -> str:
    """Suffix of a file name, without .gz, which determines its format."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]
