"""What becomes of an example that cannot be read: training stops at it, the doctor notes it and goes on."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from jumok.errors import DataError

Given = TypeVar("Given")
Example = TypeVar("Example")
Wrong = Callable[[DataError], None]
"""is told of each example that cannot be read; the reading goes on if it returns"""


def refuse(error: DataError) -> None:
    raise error


def read_each(given: Iterable[Given], read: Callable[[Given], Example], wrong: Wrong) -> Iterator[Example]:
    """All that can be read; what is wrong with the file itself, and not with one example of it, is raised."""
    for one in given:
        try:
            example = read(one)
        except DataError as error:
            wrong(error)
        else:
            yield example
