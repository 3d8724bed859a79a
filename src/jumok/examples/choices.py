"""Multiple choice: a context with several endings, one of them right, from SWAG's CSV or JSONL."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import Any, Literal, Self

from jumok.errors import DataError, Wrong, refuse
from jumok.examples import Split
from jumok.examples.faults import read_each, say_each, suffix_of, unknown_format
from jumok.examples.files import WindowedData
from jumok.examples.objects import Object, as_json, as_object, is_object, read_objects
from jumok.examples.tables import csv_rows
from jumok.text.lines import as_line, write_lines

SHAPE = '{"context": "...", "endings": ["...", "..."], "label": 0}, where the label is the index of the right ending'
SWAG = "the columns sent1, sent2, ending0, ending1 and so on, and label, as in SWAG's train.csv"
SWAG_COLUMNS = ("sent1", "sent2", "ending0", "ending1", "label")
FORMATS = "use a .csv file in SWAG's format, or a .jsonl file (.gz too)"
_TO_CHOOSE = '{"context": "...", "endings": ["...", "..."]}'


@dataclass(frozen=True, slots=True)
class Choice:
    """A context and several possible endings."""

    context: str
    """the beginning"""
    endings: list[str]
    """possible continuations"""
    label: int | None = None
    """index of the right ending, from 0, if known"""
    where: str = ""

    @property
    def gold(self) -> int:
        """The label, which must be known."""
        if self.label is None:
            raise DataError("this choice has no label", where=self.where, hint=f"use {SHAPE}", code="data.no_label")
        return self.label

    @classmethod
    def parse(cls, given: str | Mapping[str, Any], where: str = "") -> Self:
        """Parse a mapping or JSON with `context` and `endings`, or a line with tabs between them."""
        if isinstance(given, str):
            context, *endings = given.split("\t")
            if len(endings) >= 2 and not is_object(given):
                return cls(context, endings, None, where)
            if not given.lstrip().startswith("{") or (endings and not is_object(given)):
                hint = f"separate a context and at least two endings with tabs, or use {_TO_CHOOSE}"
                what = f"too few endings, {len(endings)}: {given[:60]!r}"
                raise DataError(what, where=where, hint=hint, code="data.endings")
        return cls._read(as_object(given, where=where, hint=f"use {_TO_CHOOSE}"), labelled=False)

    @classmethod
    def _read(cls, found: Object, *, labelled: bool) -> Self:
        endings = found.texts("endings")
        if len(endings) < 2:
            raise found.error(f"too few endings: {len(endings)}", code="data.endings")
        label = found.whole("label") if labelled or "label" in found else None
        if label is not None and not 0 <= label < len(endings):
            if labelled:
                what = f"the label is {label}, but there are {len(endings)} endings, numbered from 0"
                raise found.error(what, code="data.label")
            label = None  # not needed to predict
        return cls(found.text("context"), endings, label, found.where)


def read_choices(path: Path, *, labelled: bool = True, wrong: Wrong = refuse) -> Iterator[Choice]:
    """Read SWAG's CSV or JSONL. Labelled examples must all have the same number of endings."""
    suffix = suffix_of(path)
    if suffix == "csv":
        found = read_each(
            _swag_rows(path, labelled=labelled, wrong=wrong), partial(_swag_choice, labelled=labelled), wrong
        )
    elif suffix == "jsonl":
        found = read_objects(path, partial(Choice._read, labelled=labelled), hint=f"use {SHAPE}", wrong=wrong)
    else:
        raise unknown_format("choices", path, FORMATS)
    endings = 0
    for choice in found:
        endings = endings or len(choice.endings)
        if labelled and len(choice.endings) != endings:
            hint = f"give {endings} endings, as many as the other examples of the file have"
            wrong(DataError(f"{len(choice.endings)} endings", where=choice.where, hint=hint, code="data.endings"))
            continue
        yield choice


def _swag_choice(row: tuple[str, dict[str, str]], *, labelled: bool) -> Choice:
    """Read a row, prefixing each ending with the beginning of the second sentence."""
    where, cells = row
    begin = f"{cells['sent2']} " if cells["sent2"] else ""
    names = takewhile(cells.__contains__, (f"ending{i}" for i in count()))
    endings = [begin + cells[name] for name in names]
    labels = [str(i) for i in range(len(endings))]
    label = cells.get("label", "")
    if labelled and label not in labels:
        hint = f"use the index of the right ending, one of {', '.join(labels)}"
        raise DataError(f"the label is {label!r}", where=where, hint=hint, code="data.label")
    return Choice(cells["sent1"], endings, int(label) if label in labels else None, where)


def _swag_rows(path: Path, *, labelled: bool, wrong: Wrong) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the location of each row, and its cells by column name."""
    header: list[str] = []
    for where, row in csv_rows(path, hint=f"use {SWAG}", wrong=wrong):
        if not header:
            if where != f"{path}:1":
                return  # the header could not be read
            header = row
            _check_header(header, where, labelled=labelled)
        elif row and len(row) != len(header):
            hint = f"write {len(header)} columns, as in the header"
            raise DataError(f"{len(row)} columns", where=where, hint=hint, code="data.columns")
        elif row:  # skip empty lines
            yield where, dict(zip(header, row, strict=True))


def _check_header(header: list[str], where: str, *, labelled: bool) -> None:
    wanted = [name for name in SWAG_COLUMNS if labelled or name != "label"]
    if missing := ", ".join(name for name in wanted if name not in header):
        raise DataError(f"no column {missing}", where=where, hint=f"use {SWAG}", code="data.columns")
    if several := ", ".join(name for name in dict.fromkeys(header) if name and header.count(name) > 1):
        hint = "give each column its own name"
        raise DataError(f"more than one column {several}", where=where, hint=hint, code="data.columns")


def write_choices(path: Path, examples: Iterable[Choice], *, wrong: Wrong = refuse) -> None:
    """Write SWAG's CSV, in which all examples have the same number of endings, or JSONL (.gz too)."""
    suffix = suffix_of(path)
    if suffix == "jsonl":
        write_lines(path, say_each(examples, _json_line, wrong))
        return
    if suffix != "csv":
        raise unknown_format("choices", path, FORMATS)
    found = list(examples)
    n = len(found[0].endings) if found else 2

    def row(example: Choice) -> str:
        _require_endings(example)
        if len(example.endings) != n:
            what, hint = f"{len(example.endings)} endings", f"give {n}, as the first has, or write a .jsonl file"
            raise DataError(what, where=example.where, hint=hint, code="data.endings")
        return _csv_row(
            [example.context, "", *example.endings, "" if example.label is None else example.label], example
        )

    header = ",".join(["sent1", "sent2", *(f"ending{i}" for i in range(n)), "label"])
    write_lines(path, [header, *say_each(found, row, wrong)])


def _json_line(example: Choice) -> str:
    _require_endings(example)
    values: dict[str, Any] = {"context": example.context, "endings": example.endings}
    return as_json(values | ({} if example.label is None else {"label": example.label}), example.where)


def _require_endings(example: Choice) -> None:
    if len(example.endings) < 2:
        what = f"too few endings: {len(example.endings)}"
        raise DataError(what, where=example.where, hint="give at least two", code="data.endings")


def _csv_row(cells: list[str | int], example: Choice) -> str:
    """Quote the texts, which may contain line breaks."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="").writerow(cells)
    if "\r\n" in text.getvalue():
        hint = "use LF, or write a .jsonl file"
        raise DataError("the text has a CR LF line break", where=example.where, hint=hint, code="data.line_break")
    for line in text.getvalue().split("\n"):
        as_line(line, example.where)  # raises if it cannot be written
    return text.getvalue()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChoiceData(WindowedData):
    """Contexts with several endings, one of them right: SWAG's CSV files, or JSONL (.gz too).

    A line of JSONL is `{"context": ..., "endings": [...], "label": ...}`, where the label is the index of the right
    ending, from 0.
    """

    kind: Literal["choices"] = "choices"

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Choice]:
        return self._read(split, partial(read_choices, wrong=wrong), lambda example: example.context)

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Choice] | None:
        """Read a file to predict on, if it is in a format of this data; None for plain lines."""
        return read_choices(path, labelled=False, wrong=wrong) if suffix_of(path) in ("csv", "jsonl") else None

    def write(self, path: Path, examples: Iterable[Choice], *, wrong: Wrong = refuse) -> None:
        write_choices(path, examples, wrong=wrong)

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind)
