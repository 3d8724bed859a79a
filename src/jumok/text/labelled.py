"""Readers of examples that people have labelled: tables with a label, and columns of words with tags.

Like the readers of pairs they are lazy, leave the text as it was written, and name the place of what is wrong.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from jumok.errors import DataError, listed
from jumok.text.faults import Wrong, read_each, refuse
from jumok.text.formats import read_lines
from jumok.text.normalise import clean_label


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, or two, with a label, and the place they were read from."""

    text: str
    pair: str | None
    label: str
    where: str


NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""a label that is a number: Python's own rule also takes 1_000 and other scripts' digits"""


@dataclass(frozen=True, slots=True)
class Tagged:
    """The words of a sentence with a tag each."""

    words: list[str]
    tags: list[str]
    where: str


def read_labelled(
    path: Path,
    *,
    text: str,
    label: str,
    pair: str | None = None,
    header: Sequence[str] | None = None,
    skip: Collection[str] = (),
    wrong: Wrong = refuse,
) -> Iterator[Labelled]:
    """A TSV whose header names the columns; quotes mean nothing, a cell is what stands between two tabs.

    `header` names the columns of a file that has no header line; rows with a label of `skip` are left out.
    """
    names = [text, label, *([] if pair is None else [pair])]
    rows = read_columns(path, names, header=header, wrong=wrong)

    def read(row: tuple[str, list[str]]) -> Labelled:
        where, found = row
        if not (answer := clean_label(found[1])):
            raise DataError("an empty label", where=where, right=f"a label in the column {label}")
        return Labelled(found[0], None if pair is None else found[2], answer, where)

    left_out = {*map(clean_label, skip)}
    return read_each((row for row in rows if clean_label(row[1][1]) not in left_out), read, wrong)


def read_columns(
    path: Path, names: list[str], *, header: Sequence[str] | None = None, wrong: Wrong = refuse
) -> Iterator[tuple[str, list[str]]]:
    """The place of each row of a TSV, and its cells in the columns of these names; empty lines are no rows."""
    columns = list(header or [])
    places = _places(columns, names, "header") if columns else []
    for number, line in enumerate(read_lines(path), start=1):
        cells, where = line.split("\t"), f"{path}:{number}"
        if number == 1 and cells == columns:
            raise DataError(
                "a header line, though the names of the columns are given", where=where, right="one of the two"
            )
        if not columns:
            columns, places = cells, _places(cells, names, where)
            continue
        if not line and len(columns) > 1:
            continue
        if len(cells) != len(columns):
            right = f"{len(columns)} as in the header, separated by tabs"
            wrong(DataError(f"{len(cells)} columns", where=where, right=right))
            continue
        yield where, [cells[place] for place in places]


def _places(columns: list[str], names: list[str], where: str) -> list[int]:
    if missing := ", ".join(name for name in names if name not in columns):
        right = f"a header with these columns, separated by tabs; it has {listed(columns, 20)[:500]}"
        raise DataError(f"no column {missing}", where=where, right=right)
    if several := ", ".join(name for name in names if columns.count(name) > 1):
        raise DataError(f"more than one column {several}", where=where, right="a name of its own for each")
    return [columns.index(name) for name in names]


def read_tagged(path: Path, *, wrong: Wrong = refuse) -> Iterator[Tagged]:
    """CoNLL columns: the first is the word, the last the tag; an empty line ends a sentence.

    -DOCSTART- is no word, and lines that begin with # before a sentence are none, unless they have as many columns.
    """

    def read(sentence: list[tuple[int, str]]) -> Tagged:
        words, tags = [], []
        for number, line in sentence:
            columns = tag_columns(line)
            if len(columns) < 2 or not columns[0].strip() or not columns[-1].strip():
                right = "a word, perhaps more columns, and a tag, separated by spaces or tabs"
                raise DataError(f"no word with a tag: {line[:60]!r}", where=f"{path}:{number}", right=right)
            tag = clean_label(columns[-1])
            if tag in ("B-", "I-", "E-", "S-"):
                raise DataError(f"the tag {tag} has no type", where=f"{path}:{number}", right=f"such as {tag}PER, or O")
            words.append(columns[0])
            tags.append(tag)
        return Tagged(words, tags, f"{path}:{sentence[0][0]}")

    return read_each(tagged_lines(path), read, wrong)


def tagged_lines(path: Path) -> Iterator[list[tuple[int, str]]]:
    """The sentences of a CoNLL file, as numbered lines."""
    sentence: list[tuple[int, str]] = []
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip() and tag_columns(line)[0] != "-DOCSTART-":
            sentence.append((number, line))
        elif sentence:
            yield _without_comments(sentence)
            sentence = []
    if sentence:
        yield _without_comments(sentence)


def _without_comments(sentence: list[tuple[int, str]]) -> list[tuple[int, str]]:
    columns = len(tag_columns(sentence[-1][1]))
    return [*dropwhile(lambda line: line[1].startswith("#") and len(tag_columns(line[1])) != columns, sentence)]


def tag_columns(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split(" ")
