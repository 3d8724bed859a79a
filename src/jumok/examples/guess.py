"""Guess the kind of data in a file from its name, the header of a table or the first object of a JSON file."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.errors import DataError, InputError, Wrong
from jumok.examples import choices, questions, relations, spans
from jumok.examples.choices import SWAG_COLUMNS, ChoiceData
from jumok.examples.labelled import LabelledData, are_numbers, number_of
from jumok.examples.objects import Object, parse_object
from jumok.examples.pairs import ParallelData
from jumok.examples.plain import DocumentData
from jumok.examples.questions import QuestionData
from jumok.examples.relations import RelationData
from jumok.examples.spans import TaggedData
from jumok.examples.tables import first_row, read_columns
from jumok.findings import Finding, finding
from jumok.text.lines import read_lines, read_text

SHAPES = {
    "texts with spans": spans.SHAPE,
    "relations": relations.SHAPE,
    "choices": choices.SHAPE,
    "questions": questions.SHAPE,
    "SWAG": choices.SWAG,
}
OneTextFile = LabelledData | TaggedData | RelationData | QuestionData | ChoiceData | DocumentData

# Columns of the text, of the second text for pairs, and of the label; tables with more columns come first.
_TABLES = (
    ("text_a", "text_b", "label"),
    ("sentence1", "sentence2", "label"),  # RTE and WNLI of GLUE
    ("sentence1", "sentence2", "gold_label"),  # MNLI
    ("sentence1", "sentence2", "score"),  # STS-B
    ("question", "sentence", "label"),  # QNLI
    ("question1", "question2", "is_duplicate"),  # QQP
    ("#1 String", "#2 String", "Quality"),  # MRPC
    ("text", None, "label"),
    ("sentence", None, "label"),  # SST-2
)
_COLA = ["source", "label", "mark", "sentence"]  # has no header
_NAME = re.compile(r"[#A-Za-z_][\w #-]{0,30}", re.ASCII)
_LANGUAGE_SUFFIX = re.compile(r"\.([a-z]{2}(?:[-_]\w+)?)(?:\.gz)?$", re.IGNORECASE)
_LOOKED_AT = 20  # lines of a file, because the first line of JSONL may be damaged


@dataclass(frozen=True, slots=True)
class Guess:
    """Files as training data, with notes on what was assumed."""

    data: Any
    task: dict[str, Any] = field(default_factory=dict)
    """keys of [task] that differ from the defaults"""
    notes: tuple[Finding, ...] = ()


def guess_data(
    files: Sequence[Path],
    source: str | None = None,
    target: str | None = None,
    columns: tuple[str, str] | None = None,
) -> Guess:
    """Guess how to read one file, or two line-aligned ones, as training data."""
    names = [str(path) for path in files]
    suffix = names[0].lower().removesuffix(".gz").rpartition(".")[2] if len(files) == 1 else ""
    if suffix == "tmx" and not (source and target):
        raise DataError(
            "a TMX file may hold many languages",
            where=files[0],
            hint="choose two with --source and --target, e.g. --source en --target ko",
            code="data.languages",
        )
    if columns and suffix != "tsv":
        where = ", ".join(names)
        raise InputError("--columns is for a TSV only", where=where, hint="pass one .tsv file", code="input.columns")
    one_text = None if columns else _one_text_of(files[0], suffix, source or "")
    if one_text and target:
        hint = "pass only --source, for their language"
        raise InputError("these texts have no target", where=files[0], hint=hint, code="input.no_target")
    if isinstance(one_text, LabelledData):
        return _table(files[0], one_text)
    if one_text:
        return Guess(one_text)
    # Line-aligned files are usually named after their languages; other names match no language's rules.
    guesses = [_LANGUAGE_SUFFIX.search(path.name) for path in files] if len(files) == 2 else [None, None]
    left, right = (guess[1] if guess else name for guess, name in zip(guesses, ("source", "target"), strict=True))
    return Guess(ParallelData(source=source or left, target=target or right, train=[names], columns=columns))


def _one_text_of(path: Path, suffix: str, language: str) -> OneTextFile | None:
    """Data of any file except parallel text; None for a table without labels, which holds pairs."""
    train = [str(path)]
    match suffix:
        case "txt":
            return DocumentData(train=train, language=language)
        case "conll" | "iob" | "iob2" | "bio":
            return TaggedData(train=train, language=language)
        case "tsv":
            rows = [line.split("\t") for line in islice(_lines(path), _LOOKED_AT)]
            if rows and (found := _labelled(train, rows[0], language)):
                return found
            if rows and len(rows[0]) == 4 and rows[0][1] in ("0", "1") and rows[0][2] in ("", "*"):
                return LabelledData(train=train, text="sentence", header=_COLA, language=language)
            _refuse_unknown_header(path, rows)
        case "csv":
            try:
                header = next(csv.reader(_lines(path)), [])
                if set(SWAG_COLUMNS) <= set(header):
                    return ChoiceData(train=train, language=language)
                header = first_row(path)
            except csv.Error as error:
                where, hint = f"{path}:1", f"use {SHAPES['SWAG']}"
                raise InputError(f"not CSV: {error}", where=where, hint=hint, code="data.not_csv") from error
            if not (found := _labelled(train, header, language)):
                hint = f"use {SHAPES['SWAG']}; for other tables, a header with one of these: {_known_columns()}"
                what = f"unknown kind of CSV: {', '.join(header)[:200]}"
                raise InputError(what, where=path, hint=hint, code="data.unknown_shape")
            return found
        case "jsonl":
            return _lines_of_objects(path, train, language)
        case "json":
            _require_squad(path)
            return QuestionData(train=train, language=language)
    return None


def _labelled(train: list[str], names: Sequence[str], language: str) -> LabelledData | None:
    """A table with columns of known names."""
    for text, pair, label in _TABLES:
        if {text, pair or text, label} <= set(names):
            skip = ["-"] if label == "gold_label" else []  # where the annotators disagree
            return LabelledData(train=train, language=language, text=text, pair=pair, label=label, skip_labels=skip)
    return None


def _known_columns() -> str:
    return "; ".join(", ".join(filter(None, names)) for names in _TABLES)


def _refuse_unknown_header(path: Path, rows: list[list[str]]) -> None:
    """Refuse a header with unknown names: more than two names, or a name above numbers. Pairs have no header."""
    first, *others = rows or [[]]
    above_numbers = (
        number_of(name) is None and all(len(row) > i and number_of(row[i]) is not None for row in others)
        for i, name in enumerate(first)
    )
    if len(others) > 1 and any(above_numbers) or len(first) > 2 and all(map(_NAME.fullmatch, first)):
        raise InputError(
            f"this looks like a header: {', '.join(first)}",
            where=f"{path}:1",
            hint="name the columns in [data] of a recipe (jumok doctor RECIPE), pass --columns SOURCE,TARGET for"
            f" translations, or use a header with one of these: {_known_columns()}",
            code="data.unknown_header",
        )


def _lines(path: Path) -> Iterator[str]:
    """Read lines in any encoding: column names and keys are ASCII, and what cannot be read is reported later."""
    return read_lines(path, charset="latin-1", wrong=lambda error: None)


def _table(path: Path, data: LabelledData) -> Guess:
    """Guess the task of a table: all of its labels decide whether they are numbers."""
    ignore: Wrong = lambda error: None  # noqa: E731
    rows = read_columns(path, [data.label], header=data.header, separator=data.separator, wrong=ignore)
    try:
        numbers = are_numbers(label.strip() for _, (label,) in rows)
    except DataError:  # reported when the rest is read
        numbers = False
    if not numbers:
        return Guess(data)
    message = "The labels are read as numbers, because there are many different ones, with fractions. If they are"
    message += ' classes, set task.predicts = "class" in a recipe.'
    return Guess(data, {"predicts": "number"}, (finding("data.kind", "note", 0, 1, message),))


def _lines_of_objects(path: Path, train: list[str], language: str) -> OneTextFile:
    """Guess the kind of data from the first line of a JSONL file that is an object."""
    found: Object | None = None
    trouble: DataError | None = None
    lines = ((number, line) for number, line in enumerate(_lines(path), start=1) if line.strip())
    for (number, line), _ in zip(lines, range(_LOOKED_AT), strict=False):
        try:
            found = parse_object(line, where=f"{path}:{number}", hint="write each line as an object in braces")
            break
        except DataError as error:
            trouble = trouble or error
    if found is None:
        raise trouble or DataError("the file is empty", where=path, hint=_known_shapes(), code="data.empty")
    if "head" in found and "tail" in found:
        return RelationData(train=train, language=language)
    if "spans" in found or "entities" in found:
        return TaggedData(train=train, language=language)
    if "endings" in found:
        return ChoiceData(train=train, language=language)
    if labelled := _labelled(train, [*found.values], language):
        return labelled
    keys = ", ".join(f'"{key}"' for key in found.values)
    what = f"unknown kind of JSONL: it has {keys or 'no keys'}"
    raise InputError(what, where=found.where, hint=_known_shapes(), code="data.unknown_shape")


def _require_squad(path: Path) -> None:
    text = read_text(path, charset="latin-1")
    first = text.partition("\n")[0]
    try:
        whole = parse_object(text, where=str(path), hint=f"use {SHAPES['questions']}")
    except DataError:
        parse_object(first, where=f"{path}:1", hint=f"use {SHAPES['questions']}")  # an object: the file is JSONL
        what, hint = "one object per line is JSONL, not JSON", "rename the file to end in .jsonl"
        raise InputError(what, where=path, hint=hint, code="data.not_json") from None
    if "data" not in whole:
        keys = ", ".join(f'"{key}"' for key in whole.values)
        what = f"unknown kind of JSON: it has {keys or 'no keys'}"
        raise InputError(what, where=path, hint=_known_shapes(), code="data.unknown_shape")


def _known_shapes() -> str:
    lines = [f"{name}: {shape}" for name, shape in SHAPES.items() if name not in ("questions", "SWAG")]
    return "\n    ".join(
        ["use one of these, or a table with a header", *lines, f"in a .json file: {SHAPES['questions']}"]
    )
