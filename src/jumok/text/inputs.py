"""What a model is to judge, in files as its training data has; what they know of the answer is not looked at.

Each example becomes the line that a predictor reads: a text, texts with tabs between them, or an object as JSON.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from jumok.errors import InputError
from jumok.text.annotated import read_swag_endings, squad_questions
from jumok.text.formats import read_lines
from jumok.text.labelled import read_columns, tag_columns, tagged_lines
from jumok.text.objects import parse_object

Placed = tuple[str, str]
"""a line, and the place it was read from"""


def lines_of_table(path: Path, text: str, pair: str | None, header: Sequence[str] | None) -> Iterator[Placed]:
    """A TSV that has a header of its own, as the test files of GLUE have, or the columns of files without one.

    If it has neither, it is lines as they are: a text each, or two.
    """
    names = [text, *([] if pair is None else [pair])]
    first = next(read_lines(path), "").split("\t")
    if set(names) <= {*first}:
        rows = read_columns(path, names)
    elif header and len(first) == len(header):
        rows = read_columns(path, names, header=header)
    elif len(first) <= len(names):
        rows = ((f"{path}:{number}", line.split("\t")) for number, line in enumerate(read_lines(path), start=1))
    else:
        known = " and ".join(names)
        raise InputError(
            f"a table of {len(first)} columns: {', '.join(first)[:60]}",
            where=f"{path}:1",
            right=f"a header with {known}, as in the training data; or a line for each text, without other columns",
        )
    return (("\t".join(cells), where) for where, cells in rows)


def words_of_columns(path: Path) -> Iterator[tuple[list[str], str]]:
    """The words of each sentence in CoNLL columns, and its place."""
    for sentence in tagged_lines(path):
        yield [tag_columns(line)[0] for _, line in sentence], f"{path}:{sentence[0][0]}"


def lines_of_marked(path: Path) -> Iterator[Placed]:
    """The texts of JSONL."""
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        if line.strip():
            yield parse_object(line, where=where, right='{"text": "..."}').text("text"), where


def lines_of_questions(path: Path) -> Iterator[Placed]:
    """The questions of SQuAD's JSON, with their ids."""
    for identity, question, context, where in squad_questions(path):
        yield _json(id=identity, question=question, context=context), where


def lines_of_choices(path: Path) -> Iterator[Placed]:
    """The rows of SWAG's CSV."""
    for context, endings, where in read_swag_endings(path):
        yield _json(context=context, endings=endings), where


def _json(**values: object) -> str:
    return json.dumps(values, ensure_ascii=False)
