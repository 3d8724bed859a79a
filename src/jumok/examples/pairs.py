"""A text and its translation: line-aligned files, TSV, CSV, JSONL, gettext PO and MO, TMX."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from jumok.config import Count
from jumok.errors import DataError, Wrong, refuse
from jumok.examples import Split
from jumok.examples.faults import say_each, suffix_of, unknown_format
from jumok.examples.files import FileData, file_sha256
from jumok.examples.gettext import po_entry, po_header, read_mo, read_po
from jumok.examples.objects import as_object
from jumok.examples.tables import as_row, read_columns
from jumok.examples.tmx import TmxUnits, tmx_lines, tmx_unit
from jumok.text.lines import as_line, opened, read_lines, write_all_lines, write_lines


@dataclass(frozen=True, slots=True)
class Pair:
    """A text, its translation if known, and their location."""

    source: str
    """the text to translate"""
    target: str | None = None
    """its translation, if known"""
    where: str = ""

    @property
    def gold(self) -> str:
        """The translation, which must be known."""
        if self.target is None:
            hint = 'use {"source": "...", "target": "..."}'
            raise DataError("this text has no translation", where=self.where, hint=hint, code="data.no_label")
        return self.target

    @classmethod
    def parse(cls, given: str | Mapping[str, Any], where: str = "") -> Self:
        """Parse a line as the source, tabs included, or a mapping with `source` or `text` and optionally `target`."""
        if isinstance(given, str):
            return cls(given, None, where)
        found = as_object(given, where=where, hint='use {"source": "..."}')
        source = found.text("text") if "text" in found and "source" not in found else found.text("source")
        return cls(source, found.text("target") if "target" in found else None, where)


@dataclass(frozen=True, slots=True)
class Excerpt(Pair):
    """A text out of a document, with its sentences, lines and tags: it is translated sentence by sentence."""

    form: Annotated[Literal["text", "tmx"], Field(exclude=True)] = "text"
    """plain text, or a segment of a TMX file with its inline tags"""


def read_parallel(source: Path, target: Path) -> Iterator[Pair]:
    """Read two files in which line n of one is the translation of line n of the other."""
    source_lines, target_lines = read_lines(source), read_lines(target)
    for number, (text, translation) in enumerate(zip_longest(source_lines, target_lines), start=1):
        if text is None or translation is None:
            source_count = number - 1 if text is None else number + sum(1 for _ in source_lines)
            target_count = number - 1 if translation is None else number + sum(1 for _ in target_lines)
            raise DataError(
                f"the files have different line counts: {source_count} and {target_count}",
                where=f"{source} and {target}",
                hint="make line n of one file the translation of line n of the other",
                code="data.line_counts",
            )
        yield Pair(text, translation, f"{source}:{number}")


# fmt: off
# Common column names in tables of pairs. Two of these are a header, not a text and its translation.
_COLUMN_NAMES = {
    "source", "target", "src", "tgt", "trg", "input", "output", "prompt", "response", "question", "answer", "query",
    "reply", "text", "translation", "reference", "sentence", "text_a", "text_b", "text1", "text2", "sentence1",
    "sentence2", "id", "index", "label", "score",
}


# fmt: on


def read_tsv(path: Path, *, columns: tuple[str, str] | None = None, languages: tuple[str, ...] = ()) -> Iterator[Pair]:
    """Read two tab-separated columns: those that the header names, or the first two of a file without a header.

    A file has a header if `columns` are given. Otherwise a first line that is a pair of column names or language codes
    is refused rather than learned. There is no quoting: a cell is the text between tabs.
    """
    source, target = 0, 1
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if columns and number == 1:
            if missing := ", ".join(name for name in columns if name not in cells):
                hint = f"choose from {', '.join(cells)}"
                raise DataError(f"no column {missing}", where=f"{path}:1", hint=hint, code="data.columns")
            source, target = map(cells.index, columns)
            continue
        if number == 1 and _are_column_names(cells[:2], languages):
            hint = "name two columns (columns in [data] of the recipe, --columns for the doctor),"
            hint += " or remove this line"
            what = f"this looks like a header: {', '.join(cells)}"
            raise DataError(what, where=f"{path}:1", hint=hint, code="data.header")
        needed = max(source, target) + 1
        if len(cells) < needed:
            raise DataError(
                f"too few columns: {len(cells)}",
                where=f"{path}:{number}",
                hint=f"write at least {needed}, separated by tabs",
                code="data.columns",
            )
        yield Pair(cells[source], cells[target], f"{path}:{number}")


def read_table(path: Path, *, columns: tuple[str, str] | None = None) -> Iterator[Pair]:
    """Read two columns of a CSV with a header, or two keys of JSONL: source and target, if no others are named."""
    for where, (source, target) in read_columns(path, [*(columns or ("source", "target"))]):
        yield Pair(source, target, where)


def _are_column_names(cells: Sequence[str], languages: Sequence[str]) -> bool:
    names = {cell.strip(' "').lower() for cell in cells}
    # Two different names: a dictionary may start with a word that both languages share, such as "question".
    return len(names) == 2 and names <= _COLUMN_NAMES.union(language.lower() for language in languages)


def read_tmx(path: Path, *, source: str, target: str) -> Iterator[Pair]:
    """Read the translation units of a TMX file that have both languages; "en" also matches "en-US"."""
    units = TmxUnits(path, source, target)
    with opened(path) as stream:
        chunk = stream.read(1 << 16)
        while chunk:
            following = stream.read(1 << 16)
            for text, translation, line in units.feed(chunk, last=not following):
                yield Pair(text, translation, f"{path}:{line}")
            chunk = following


def read_pairs(
    paths: Sequence[Path], *, source: str, target: str, columns: tuple[str, str] | None = None
) -> Iterator[Pair]:
    """Read two line-aligned files, or one file in the format of its suffix."""
    if len(paths) == 2:
        return read_parallel(*paths)
    if len(paths) == 1:
        name = paths[0].name.lower()
        # Reading an MO file needs random access, which gzip does not offer.
        if name.endswith(".mo"):
            return (Pair(*message) for message in read_mo(paths[0]))
        name = name.removesuffix(".gz")
        if name.endswith(".tsv"):
            return read_tsv(paths[0], columns=columns, languages=(source, target))
        if name.endswith((".csv", ".jsonl")):
            return read_table(paths[0], columns=columns)
        if name.endswith(".po"):
            return (Pair(*message) for message in read_po(paths[0]))
        if name.endswith(".tmx"):
            return read_tmx(paths[0], source=source, target=target)
    raise DataError(
        "unknown file format for sentence pairs",
        where=", ".join(map(str, paths)) or "no file",
        hint="use two line-aligned files, or one .tsv, .csv, .jsonl, .po or .tmx (.gz too) or .mo file",
        code="data.format",
    )


def write_pairs(
    paths: Sequence[Path],
    examples: Iterable[Pair],
    *,
    source: str = "source",
    target: str = "target",
    columns: tuple[str, str] | None = None,
    wrong: Wrong = refuse,
) -> None:
    """Write two line-aligned files, or one TSV, PO or TMX file (.gz too); all pairs must have a translation.

    A TSV has a header if `columns` are given. PO and TMX files cannot hold empty texts.
    """
    match [suffix_of(path) for path in paths]:
        case [_, _]:
            lines = say_each(examples, lambda pair: [as_line(text, pair.where) for text in _both(pair)], wrong)
            write_all_lines({path: [both[i] for both in lines] for i, path in enumerate(paths)})
        case ["tsv"]:
            write_lines(paths[0], _table(examples, columns, (source, target), wrong))
        case ["po"]:
            entries = say_each(examples, _Messages().entry, wrong)
            write_lines(paths[0], [*po_header(target), *(line for entry in entries for line in entry)])
        case ["tmx"]:
            units = say_each(
                examples, lambda pair: tmx_unit(zip((source, target), _filled(pair), strict=True), pair.where), wrong
            )
            write_lines(paths[0], tmx_lines(units, source))
        case _:
            hint = "use two line-aligned files with a comma between them, or one .tsv, .po or .tmx file (.gz too)"
            raise unknown_format("sentence pairs", ", ".join(map(str, paths)), hint)


def _both(pair: Pair) -> tuple[str, str]:
    return pair.source, pair.gold


def _filled(pair: Pair) -> tuple[str, str]:
    """Both texts, for formats in which an empty text means a missing one."""
    if not pair.source or not pair.gold:
        hint = "fill in both texts, or write a .tsv file"
        raise DataError("a text is empty", where=pair.where, hint=hint, code="data.empty_text")
    return pair.source, pair.gold


def _table(
    examples: Iterable[Pair], columns: tuple[str, str] | None, languages: Sequence[str], wrong: Wrong
) -> list[str]:
    first = columns is None

    def row(pair: Pair) -> str:
        nonlocal first
        if first and _are_column_names(_both(pair), languages):
            what = f"the first line would look like a header: {', '.join(_both(pair))}"
            raise DataError(what, where=pair.where, hint="name the columns, to write a header", code="data.header")
        line = as_row(_both(pair), pair.where)
        first = False
        return line

    return [*(["\t".join(columns)] if columns else []), *say_each(examples, row, wrong)]


class _Messages:
    """Numbers repeated sources: in a PO file a source occurs once, or in several contexts."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def entry(self, pair: Pair) -> list[str]:
        source, target = _filled(pair)
        n = self._counts[source]
        lines = [as_line(line, pair.where) for line in po_entry(source, target, str(n + 1) if n else "")]
        self._counts[source] += 1
        return lines


Files = Annotated[list[str], Field(max_length=2)]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelData(FileData):
    """Pairs of texts: two line-aligned files, or one TSV, CSV, JSONL, PO, TMX (.gz too) or MO file."""

    kind: Literal["parallel"] = "parallel"
    source: str
    """language code, e.g. "en"; selects the texts of a TMX file"""
    target: str
    train: list[Files] = field(default_factory=list)
    """corpora, each [source file, target file] or [file]; read in order"""
    dev: Files = field(default_factory=list)
    test: Files = field(default_factory=list)
    max_len: Count = 256
    """training pairs with more tokens on a side are skipped and counted, and so are those with more than 64 characters
    for each of these tokens, without being tokenized"""
    columns: tuple[str, str] | None = None
    """source and target columns of a table with a header, or keys of JSONL"""

    def __post_init__(self) -> None:
        self._require_one_way(dev=bool(self.dev), test=bool(self.test))

    def files(self, split: Split) -> list[list[str]]:
        files = {"train": self.train, "dev": [self.dev], "test": [self.test]}[split]
        return self.train if self.share(split) else [pair for pair in files if pair]

    def read(self, split: Split, *, seed: int) -> Iterator[Pair]:
        for files in self.files(split):
            paths = [Path(file) for file in files]
            pairs = read_pairs(paths, source=self.source, target=self.target, columns=self.columns)
            yield from self._part(pairs, split, lambda pair: pair.source)

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Pair] | None:
        """Take the texts to translate out of a file that has them in fields; None for plain lines."""
        from jumok.examples.translatable import read_excerpts  # which reads the formats of pairs

        column = self.columns[0] if self.columns else None
        return read_excerpts(path, source=self.source, target=self.target, column=column, wrong=wrong)

    def write(self, path: Path, examples: Iterable[Pair], *, wrong: Wrong = refuse) -> None:
        """Write one file, or two line-aligned ones with a comma between their names: `a.en,a.ko`."""
        paths = [Path(file) for file in str(path).split(",")]
        write_pairs(paths, examples, source=self.source, target=self.target, columns=self.columns, wrong=wrong)

    def exists(self, split: Split) -> bool:
        return bool(self.files(split))

    def name(self, split: Split) -> str:
        return ", ".join(file for files in self.files(split) for file in files)

    def identity(self, split: Split, *, seed: int) -> bytes:
        parts = [json.dumps([self.source, self.target, self.columns]).encode()]
        for files in self.files(split):
            parts += [b"one file of pairs "] if len(files) == 1 else []
            parts += [file_sha256(file) for file in files]
        return b"".join(parts) + self._shares(split)
