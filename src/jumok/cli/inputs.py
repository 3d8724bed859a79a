"""What the command line predicts on: the lines of stdin, or the examples of a file."""

import sys
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jumok.errors import DataError
from jumok.examples.faults import suffix_of

if TYPE_CHECKING:
    from jumok.tasks.protocol import Predictor

AT_ONCE = 512
"""examples per call of the predictor"""
CHARACTERS_AT_ONCE = 1 << 20
"""and characters, so that memory does not depend on the number of long texts"""
_NOT_LINES = (
    "csv doc docx epub htm html ini json mo odp ods odt pdf po pot ppt pptx properties resx rtf sdlxliff srt strings"
    " tmx toml ts vtt xhtml xlf xliff xls xlsx xml yaml yml zip"
)
"""suffixes of files whose lines are not texts"""
_READ = {
    "translation": "plain lines, .po, .pot, .mo, .tmx, .tsv, .csv or .jsonl (.gz too)",
    "classification": "plain lines, .tsv, .csv or .jsonl (.gz too)",
    "tagging": "plain lines, .jsonl or .conll (.gz too)",
    "relation": ".jsonl (.gz too)",
    "answering": "SQuAD's .json, or lines with a tab between question and text (.gz too)",
    "choice": ".csv, .jsonl, or lines with tabs (.gz too)",
}


class Line(str):
    """An input line that knows its location."""

    where: str


def input_batches(file: Path | None, data: Any = None, kind: str = "") -> Iterator[list[Any]]:
    """Yield examples of a file, or lines of stdin as they arrive, so that each is answered before the next.

    What cannot be read is a Failure in its place.
    """
    from jumok.tasks.protocol import Failure
    from jumok.text.lines import decoded, split_lines

    def failed(examples: Iterable[Any]) -> Iterator[Any]:
        return (Failure.of(one) if isinstance(one, DataError) else one for one in examples)

    if file is not None:
        yield from batches(failed(file_examples(file, data, kind)))
        return
    stdin, first = cast(BufferedReader, sys.stdin.buffer), 1
    wrong: list[DataError] = []
    for arrived in split_lines(iter(lambda: stdin.read1(1 << 16), b"")):
        numbered = decoded(arrived, "stdin", first=first, wrong=wrong.append)
        yield from batches(failed(_with_errors(_lines(numbered, "line "), wrong)))
        first += len(arrived)


def file_examples(file: Path, data: Any, kind: str) -> Iterator[Any]:
    """The examples of a file as the data reads it, else its lines; in the place of an unreadable one, its error."""
    wrong: list[DataError] = []
    found = None if data is None else data.read_unlabelled(file, wrong=wrong.append)
    return lines_of(file, kind) if found is None else _with_errors(found, wrong)


def lines_of(file: Path, kind: str, *, stdin: bool = False) -> Iterator[Any]:
    """Lines, and errors; a file of another kind is refused. With `stdin`, the file holds a copy of it."""
    from jumok.text.lines import numbered_lines

    suffix = suffix_of(file)
    if "." in file.name and suffix in _NOT_LINES.split():
        hint = f"use {_READ.get(kind, 'plain lines (.gz too)')}; for other kinds of files, take the texts out first"
        raise DataError(f"the lines of a .{suffix} file are not texts", where=file, hint=hint, code="data.format")
    wrong: list[DataError] = []
    numbered = numbered_lines(file, name="stdin" if stdin else None, wrong=wrong.append)
    return _with_errors(_lines(numbered, "line " if stdin else f"{file}:"), wrong)


def _lines(numbered: Iterable[tuple[int, str]], source: str) -> Iterator[Line]:
    for number, text in numbered:
        line = Line(text)
        line.where = f"{source}{number}"
        yield line


def _with_errors(examples: Iterable[Any], wrong: list[DataError]) -> Iterator[Any]:
    """Yield examples and, in their places, the errors that reading appends to `wrong`."""
    for example in examples:
        yield from wrong
        wrong.clear()
        yield example
    yield from wrong
    wrong.clear()


def batches(examples: Iterable[Any]) -> Iterator[list[Any]]:
    """Lists of at most `AT_ONCE` examples, and of fewer if they are long: no more than `CHARACTERS_AT_ONCE` and one."""
    from jumok.data.shards import in_chunks
    from jumok.examples.length import characters

    share = CHARACTERS_AT_ONCE // AT_ONCE
    return in_chunks(examples, AT_ONCE, weight=lambda one: 1 + characters(one) // share)


def data_for(predictor: "Predictor[Any, Any]", run: Path) -> Any:
    """The run's data, which reads and writes its formats; for an imported model, the data of its task, if any."""
    from jumok.cli.arguments import run_data
    from jumok.examples.pairs import ParallelData
    from jumok.tasks import TASKS

    if (data := run_data(run)) is not None:
        return data.for_files([]) if data.is_made else data
    kinds = next((task.data for task in TASKS if task.name == predictor.kind), ())
    if not kinds:
        return None
    if kinds[0] is ParallelData:
        languages: Any = predictor
        return ParallelData(source=languages.source or "source", target=languages.target or "target")
    return kinds[0]()
