"""Of what kind the data in a file is, as its name, the header of a table or the first object of a JSON file tells."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.data.sources import (
    ChoiceData,
    DataConfig,
    DocumentData,
    LabelledData,
    ParallelData,
    QuestionData,
    RelationData,
    TaggedData,
)
from jumok.doctor.findings import Finding, finding
from jumok.doctor.numbers import are_numbers, number_of
from jumok.errors import DataError, InputError
from jumok.text.annotated import SHAPES, SWAG_COLUMNS
from jumok.text.formats import read_lines
from jumok.text.objects import Object, parse_object

if TYPE_CHECKING:
    from jumok.tasks.targets import Predicts

OneTextFile = LabelledData | TaggedData | RelationData | QuestionData | ChoiceData | DocumentData

# The columns of a text, of a second one if there are pairs, and of their labels; more columns before fewer of them.
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
_LOOKED_AT = 20  # lines of a file: the first of JSONL may be the one that is damaged


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is taken for, and what a person should know of that."""

    data: DataConfig
    predicts: "Predicts" = "class"
    notes: tuple[Finding, ...] = ()


def kind_of_files(
    files: Sequence[Path], source: str | None, target: str | None, columns: tuple[str, str] | None
) -> FileKind:
    """These files as training data."""
    names = [str(path) for path in files]
    suffix = names[0].lower().removesuffix(".gz").rpartition(".")[2] if len(files) == 1 else ""
    if suffix == "tmx" and not (source and target):
        raise DataError(
            "the name of a TMX file does not tell the two languages to take from it",
            where=files[0],
            right="--source and --target, e.g. --source en --target ko",
        )
    if columns and suffix != "tsv":
        raise InputError("--columns names columns of a TSV", where=", ".join(names), right="one .tsv file")
    one_text = None if columns else _one_text_of(files[0], suffix, source or "")
    if one_text and target:
        raise InputError("these texts have no target", where=files[0], right="--source alone, for their language")
    if isinstance(one_text, LabelledData):
        return _table(files[0], one_text)
    if one_text:
        return FileKind(one_text)
    # Line-aligned files are usually named after their languages. Other names are no language that any rule knows.
    guesses = [_LANGUAGE_SUFFIX.search(path.name) for path in files] if len(files) == 2 else [None, None]
    left, right = (guess[1] if guess else name for guess, name in zip(guesses, ("source", "target"), strict=True))
    return FileKind(ParallelData(source=source or left, target=target or right, train=[names], columns=columns))


def _one_text_of(path: Path, suffix: str, language: str) -> OneTextFile | None:
    """The data of a file whose examples have one text; a table of pairs has no label."""
    train = [str(path)]
    match suffix:
        case "txt":
            return DocumentData(train=train, language=language)
        case "conll" | "iob" | "iob2" | "bio":
            return TaggedData(train=train, language=language)
        case "tsv":
            rows = [line.split("\t") for line in islice(_lines(path), _LOOKED_AT)]
            for text, pair, label in _TABLES if rows else ():
                if {text, pair or text, label} <= set(rows[0]):
                    skip = ["-"] if label == "gold_label" else []  # where the annotators did not agree
                    return LabelledData(
                        train=train, language=language, text=text, pair=pair, label=label, skip_labels=skip
                    )
            if rows and len(rows[0]) == 4 and rows[0][1] in ("0", "1") and rows[0][2] in ("", "*"):
                return LabelledData(train=train, text="sentence", header=_COLA, language=language)
            _refuse_unknown_header(path, rows)
        case "csv":
            try:
                header = next(csv.reader(_lines(path)), [])
            except csv.Error as error:
                raise InputError(f"not CSV: {error}", where=f"{path}:1", right=SHAPES["SWAG"]) from error
            if missing := ", ".join(name for name in SWAG_COLUMNS if name not in header):
                right = f"{SHAPES['SWAG']}; of other tables a .tsv file with a header, such as text and label"
                raise InputError(f"a CSV of no known kind: no column {missing}", where=path, right=right)
            return ChoiceData(train=train, language=language)
        case "jsonl":
            return _lines_of_objects(path)(train=train, language=language)
        case "json":
            _require_squad(path)
            return QuestionData(train=train, language=language)
    return None


def _refuse_unknown_header(path: Path, rows: list[list[str]]) -> None:
    """Pairs have no header: names, if there are more than two of them, or a name above numbers, are one."""
    first, *others = rows or [[]]
    above_numbers = (
        number_of(name) is None and all(len(row) > i and number_of(row[i]) is not None for row in others)
        for i, name in enumerate(first)
    )
    if len(others) > 1 and any(above_numbers) or len(first) > 2 and all(map(_NAME.fullmatch, first)):
        known = "; ".join(", ".join(filter(None, names)) for names in _TABLES)
        raise InputError(
            f"this looks like a header: {', '.join(first)}",
            where=f"{path}:1",
            right="a recipe whose [data] says which column is what (jumok doctor RECIPE), --columns SOURCE,TARGET for"
            f" translations, or a header that has one of these: {known}",
        )


def _lines(path: Path) -> Iterator[str]:
    """Lines in whatever encoding: names of columns and keys can be read in any, and what is no UTF-8 is told later."""
    return read_lines(path, charset="latin-1")


def _table(path: Path, data: LabelledData) -> FileKind:
    """Whether the labels of a table are numbers shows only in all of them."""
    rows = (line.split("\t") for line in _lines(path))
    column = (data.header or next(rows, [data.label])).index(data.label)
    if not are_numbers(row[column].strip() for row in rows if len(row) > column):
        return FileKind(data)
    message = "The labels are taken for numbers, because there are many of them, with fractions. If they are classes,"
    message += ' say so in a recipe: task.predicts = "class".'
    return FileKind(data, "number", (finding("kind", "note", 0, 1, message),))


def _lines_of_objects(path: Path) -> type[RelationData | TaggedData | ChoiceData]:
    """What the first line of a JSONL file that is an object looks like."""
    found: Object | None = None
    trouble: DataError | None = None
    lines = ((number, line) for number, line in enumerate(_lines(path), start=1) if line.strip())
    for (number, line), _ in zip(lines, range(_LOOKED_AT), strict=False):
        try:
            found = parse_object(line, where=f"{path}:{number}", right="a line of JSONL is an object in braces")
            break
        except DataError as error:
            trouble = trouble or error
    if found is None:
        raise trouble or DataError("a file without a line", where=path, right=_known_shapes())
    if "head" in found and "tail" in found:
        return RelationData
    if "spans" in found or "entities" in found:
        return TaggedData
    if "endings" in found:
        return ChoiceData
    keys = ", ".join(f'"{key}"' for key in found.values)
    raise InputError(f"JSONL of no known shape: it has {keys or 'nothing'}", where=found.where, right=_known_shapes())


def _require_squad(path: Path) -> None:
    lines = _lines(path)
    first, more = next(lines, ""), "\n".join(lines)
    try:
        whole = parse_object(f"{first}\n{more}", where=str(path), right=SHAPES["questions"])
    except DataError:
        parse_object(first, where=f"{path}:1", right=SHAPES["questions"])  # an object a line is JSONL
        raise InputError("an object a line is JSONL", where=path, right="a name that ends in .jsonl") from None
    if "data" not in whole:
        keys = ", ".join(f'"{key}"' for key in whole.values)
        raise InputError(f"JSON of no known shape: it has {keys or 'nothing'}", where=path, right=_known_shapes())


def _known_shapes() -> str:
    lines = [f"{name}: {shape}" for name, shape in SHAPES.items() if name not in ("questions", "SWAG")]
    return "\n    ".join(
        ["one of these, or a .tsv file with a header", *lines, f"in a .json file {SHAPES['questions']}"]
    )
