"""A text, or a pair of texts, with a label: a class, several labels or a number."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, Literal, Self

from jumok.errors import DataError, Wrong, refuse
from jumok.examples import Split
from jumok.examples.documents import text_files
from jumok.examples.faults import read_each, read_some, say_each, suffix_of, unknown_format
from jumok.examples.files import WindowedData
from jumok.examples.objects import as_object
from jumok.examples.tables import TABLES, as_row, first_row, read_columns
from jumok.text.lines import read_text, write_lines
from jumok.text.normalise import clean_label

SHAPE = '{"text": "..."}, with "pair" for a second text and "label" for a known label'
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""a label that is a number: Python also accepts 1_000 and digits of other scripts"""
MANY_NUMBERS = 10
"""distinct numbers; fewer may be names of classes"""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text or a pair of texts, its label if known, and its location."""

    text: str
    """the text, or the first of two"""
    pair: str | None = None
    """the second of two texts"""
    label: str | None = None
    """its label, if known: a class, several labels with a separator between them, or a number"""
    where: str = ""

    @property
    def gold(self) -> str:
        """The label, which must be known."""
        if self.label is None:
            raise DataError("this text has no label", where=self.where, hint="add a label", code="data.no_label")
        return self.label

    @classmethod
    def parse(cls, given: str | Mapping[str, Any], where: str = "") -> Self:
        """Parse a mapping, or a line in which a tab separates two texts."""
        if isinstance(given, str):
            text, tab, second = given.partition("\t")
            return cls(text, second if tab else None, None, where)
        found = as_object(given, where=where, hint=f"use {SHAPE}")
        pair = found.text("pair") if "pair" in found else None
        return cls(found.text("text"), pair, _label(given.get("label")), where)


def _label(given: object) -> str | None:
    """Label of a JSON value, a text or a number; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    return clean_label(str(given)) or None


def number_of(label: str) -> float | None:
    """Value of a label that is a number, including NaN and infinity, which training refuses."""
    try:
        value = float(label)
    except ValueError:
        return None
    return value if NUMBER.fullmatch(label) or not isfinite(value) else None


def are_numbers(labels: Iterable[str]) -> bool:
    """Whether labels look like values rather than classes named by numbers: many different ones, with fractions.

    One in twenty may be something else: such a column has faults rather than classes.
    """
    counts = Counter(labels)
    values = {label: number_of(label) for label in counts}
    wrong = sum(n for label, n in counts.items() if values[label] is None)
    found = {value for value in values.values() if value is not None and isfinite(value)}
    return wrong <= counts.total() / 20 and len(found) >= MANY_NUMBERS and any(value % 1 for value in found)


def read_labelled(
    path: Path,
    *,
    text: str,
    label: str,
    pair: str | None = None,
    header: Sequence[str] | None = None,
    skip: Collection[str] = (),
    separator: str = "|",
    labelled: bool = True,
    wrong: Wrong = refuse,
) -> Iterator[Labelled]:
    """Read a TSV or CSV whose header names the columns, or a JSONL file whose objects have them as keys.

    `header` names the columns of a file without a header line; rows with a label in `skip` are skipped. In JSONL, a
    label may be a list, which the `separator` joins. Unless `labelled`, the label may be missing or empty. In a folder,
    each text file is a text, and the name of its folder is its label.
    """
    if path.is_dir():
        yield from _read_folders(path, wrong)
        return
    names = [text, *([] if pair is None else [pair])]
    n = len(names)
    if labelled or suffix_of(path) == "jsonl" or [*(header or first_row(path))].count(label) == 1:
        names.append(label)
    left_out = {*map(clean_label, skip)} if labelled else set()

    def read(row: tuple[str, list[str]]) -> Labelled:
        where, cells = row
        answer = clean_label("".join(cells[n:]))
        if labelled and not answer:
            hint = f"add a label in the column {label}"
            raise DataError("the label is empty", where=where, hint=hint, code="data.no_label")
        return Labelled(cells[0], None if pair is None else cells[1], answer or None, where)

    rows = read_columns(path, names, header=header, optional={label}, separator=separator, wrong=wrong)
    yield from read_each((row for row in rows if clean_label("".join(row[1][n:])) not in left_out), read, wrong)


def _read_folders(folder: Path, wrong: Wrong) -> Iterator[Labelled]:
    """Read the text files (.txt, .gz too) of a folder that has a folder for each label."""

    def read(file: Path) -> Labelled:
        label, *rest = file.relative_to(folder).parts
        if not rest:
            hint = f"put it into a folder below {folder} that has the name of its label"
            raise DataError("this text is in no folder of a label", where=file, hint=hint, code="data.no_label")
        return Labelled(read_text(file).strip(), None, clean_label(label), str(file))

    return read_each(text_files(folder), read, wrong)


def write_labelled(
    path: Path,
    examples: Iterable[Labelled],
    *,
    text: str = "text",
    pair: str = "pair",
    label: str = "label",
    header: Sequence[str] | None = None,
    suffixes: Collection[str] = (),
    wrong: Wrong = refuse,
) -> None:
    """Write a TSV with the columns that the examples have; texts cannot contain tabs or line breaks.

    `header` names all columns of a file without a header line; `suffixes` are accepted besides .tsv.
    """
    if suffix_of(path) not in ("tsv", *suffixes):
        raise unknown_format("labelled texts", path, "use a .tsv file (.tsv.gz too)")
    found = list(examples)
    pairs = any(example.pair is not None for example in found)
    names = [text, *([pair] if pairs else []), *([label] if any(example.label for example in found) else [])]
    columns = [*(header or names)]
    first = True

    def row(example: Labelled) -> str:
        nonlocal first
        if pairs and example.pair is None:
            what = "a single text among pairs of texts"
            raise DataError(what, where=example.where, hint="write single texts or pairs, not both", code="data.pair")
        cells = {text: example.text, pair: example.pair or "", label: example.label or ""}
        line = as_row([cells.get(name, "") if name in names else "" for name in columns], example.where)
        if header and first and line == "\t".join(columns):
            what = "the first row would look like a header, but the file has none"
            raise DataError(what, where=example.where, hint="put another example first", code="data.columns")
        first = False
        return line

    rows = say_each(found, row, wrong)
    write_lines(path, rows if header else ["\t".join(columns), *rows])


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledData(WindowedData):
    """Texts, or pairs of texts, with a label: TSV or CSV files whose header names the columns, or JSONL (.gz too).

    A folder is read, too, if it has a folder of text files for each label.
    """

    kind: Literal["labelled"] = "labelled"
    text: str = "text"
    """column of the text; in JSONL files, columns are keys"""
    pair: str | None = None
    """column of the second text, if there is one"""
    label: str = "label"
    """column of the label"""
    header: list[str] | None = None
    """names of all columns in order, for files without a header line"""
    skip_labels: list[str] = field(default_factory=list)
    """skip rows with one of these labels, such as "-" where SNLI's annotators disagree"""
    when_wrong: Literal["refuse", "skip"] = "refuse"
    """refuse rows without a label or with more or fewer columns than the header, or skip and count them"""
    separator: str = "|"
    """separates the labels of a text, and stands alone for no label; used by task.predicts = "labels" """

    def __post_init__(self) -> None:
        self._require_one_way(dev=bool(self.dev), test=bool(self.test))
        if self.label in (self.text, self.pair):
            raise ValueError(f"label must not be a column that the model reads (got {self.label!r})")
        if not self.separator.strip():
            raise ValueError("separator must not be white space, which labels may contain")
        if self.header and (odd := [file for file in self.train if suffix_of(Path(file)) == "jsonl"]):
            raise ValueError(f"header must be left out: the keys of {odd[0]} name its columns")

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Labelled]:
        columns = partial(read_labelled, text=self.text, label=self.label, pair=self.pair, header=self.header)
        read = partial(columns, skip=self.skip_labels, separator=self.separator)
        some = partial(read_some, read) if self.when_wrong == "skip" and wrong is refuse else partial(read, wrong=wrong)
        return self._read(split, some, lambda example: example.text, lambda example: example.gold)

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Labelled] | None:
        """Read a file to predict on, if it is a table; None if it has one text per line.

        A table has its own header, like GLUE's test files, or the columns of files without one.
        """
        suffix = suffix_of(path)
        if suffix not in TABLES and suffix not in self._suffixes():
            return None
        names = [self.text, *([] if self.pair is None else [self.pair])]
        columns = partial(read_labelled, path, text=self.text, label=self.label, pair=self.pair)
        read = partial(columns, separator=self.separator, labelled=False, wrong=wrong)
        if suffix == "jsonl" or {*names} <= {*(first := first_row(path))}:
            return read()
        if self.header and len(first) == len(self.header):
            return read(header=self.header)
        if len(first) <= len(names):
            return None
        raise DataError(
            f"unknown table of {len(first)} columns: {', '.join(first)[:60]}",
            where=f"{path}:1",
            hint=f"use a header with {' and '.join(names)}, as in the training data, or write one text per line",
            code="data.columns",
        )

    def write(self, path: Path, examples: Iterable[Labelled], *, wrong: Wrong = refuse) -> None:
        """Write a table with the columns of this data; the name ends in .tsv or like the training files."""
        write_labelled(
            path,
            examples,
            text=self.text,
            pair=self.pair or "pair",
            label=self.label,
            header=self.header,
            suffixes=self._suffixes() - {"csv", "jsonl"},
            wrong=wrong,
        )

    def identity(self, split: Split, *, seed: int) -> bytes:
        # Settings added later count only where they are used, so that older corpora keep their identity.
        later: list[object] = [self.header, self.skip_labels, *(["skip"] if self.when_wrong == "skip" else [])]
        later += ["dealt"] if self.folds else []
        return self._identity(split, self.kind, self.text, self.pair, self.label, *(later if any(later) else []))

    def _suffixes(self) -> set[str]:
        return {suffix_of(Path(file)) for file in self.train}
