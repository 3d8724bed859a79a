"""What becomes of an example that cannot be read or written: training stops at it, the doctor notes it and goes on."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from jumok.errors import DataError

Given = TypeVar("Given")


Example = TypeVar("Example")


Wrong = Callable[[DataError], None]
"""is told of each example that cannot be read or written; the others follow if it returns"""


def refuse(error: DataError) -> None:
    raise error


def read_some(read: Callable[..., Iterator[Example]], path: Path) -> Iterator[Example]:
    """What can be read of a file; a note says how much cannot."""
    wrong: list[DataError] = []
    yield from read(path, wrong=wrong.append)
    if wrong:
        warnings.warn(f"{len(wrong):,} left out of {path}; the first: {wrong[0].what}, {wrong[0].where}", stacklevel=2)


def read_each(given: Iterable[Given], read: Callable[[Given], Example], wrong: Wrong) -> Iterator[Example]:
    """All that can be read; what is wrong with the file itself, and not with one example of it, is raised."""
    for one in given:
        try:
            example = read(one)
        except DataError as error:
            wrong(error)
        else:
            yield example


def say_each(examples: Iterable[Given], say: Callable[[Given], Example], wrong: Wrong) -> list[Example]:
    """What is to be written of each example; if nothing can be written of any, that is an error."""
    given = list(examples)
    said = [*read_each(given, say, wrong)]
    if given and not said:
        hint = "another format, or other examples"
        raise DataError(f"none of {len(given):,} examples can be written", hint=hint, code="data.nothing_written")
    return said


def unknown_format(what: str, path: object, hint: str) -> DataError:
    return DataError(f"no known format of {what}", where=str(path), hint=hint, code="data.format")


def suffix_of(path: Path) -> str:
    """The end of a file's name that tells its format, without .gz."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]
