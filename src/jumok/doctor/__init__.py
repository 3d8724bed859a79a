"""What is wrong with this data, or with the outputs of a model."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.data.corpus import SPLITS, Corpus
from jumok.data.files import WindowedData
from jumok.data.made import MadeData, SyntheticData, ToyGrammar, ToyStories, WindowedToy
from jumok.data.sources import DataConfig, DocumentData, LabelledData, ParallelData, TaggedData, TextData
from jumok.doctor.documents import examine_documents
from jumok.doctor.findings import Finding, worst_first
from jumok.doctor.outputs import examine_outputs
from jumok.doctor.pairs import examine_pairs, examine_parallel_files
from jumok.doctor.texts import OneText, OneTextData, examine_bytes, examine_texts, texts_of
from jumok.errors import DataError, InputError
from jumok.text.formats import Pair, read_lines

if TYPE_CHECKING:
    from jumok.recipe import Recipe

__all__ = [
    "Finding",
    "examine_data",
    "examine_documents",
    "examine_outputs",
    "examine_pairs",
    "examine_parallel_files",
    "examine_texts",
    "refuse_a_mixture",
    "worst_first",
]

# The columns of a text, or of a pair of texts, in a table that has a column of labels.
_TEXT_COLUMNS = (("text", None), ("sentence", None), ("text_a", "text_b"), ("sentence1", "sentence2"))
_LANGUAGE_SUFFIX = re.compile(r"\.([a-z]{2}(?:[-_]\w+)?)(?:\.gz)?$", re.IGNORECASE)


def examine_data(
    what: Sequence[Path],
    *,
    source: str | None = None,
    target: str | None = None,
    columns: tuple[str, str] | None = None,
) -> list[Finding]:
    """The faults of the data of a recipe, of one file or of two line-aligned files; worst first.

    Languages and columns (of a TSV with a header) are told for files; a recipe has its own.
    """
    recipe: Recipe | None = None
    if what[0].suffix == ".toml":
        from jumok.recipe import load_recipe  # here, because it needs torch

        recipe = load_recipe(what[0])
    data, seed = (recipe.data, recipe.seed) if recipe else (_data_of(what, source, target, columns), 0)
    match data:
        case ParallelData() | SyntheticData():
            return _examine_parallel(data, seed)
        case WindowedData() | TextData() | WindowedToy() | ToyGrammar():
            return _examine_one_text(data, seed)
        case DocumentData() | ToyStories():
            return _examine_documents(data, seed, recipe)


def _examine_parallel(data: ParallelData | SyntheticData, seed: int) -> list[Finding]:
    aligned: list[list[str]] = []
    if isinstance(data, ParallelData):
        aligned = [files for split in SPLITS for files in data.files(split) if len(files) == 2]
    findings = [finding for files in aligned for finding in examine_parallel_files(*map(Path, files))]
    # Files of different length cannot be read as pairs; that is the finding.
    if not any(finding.severity == "error" for finding in findings):
        corpora = [Corpus(data, split, seed=seed) for split in SPLITS]
        splits: dict[str, Corpus[Pair]] = {corpus.split: corpus for corpus in corpora if corpus.exists()}
        findings += examine_pairs(splits, source=data.source, target=data.target)
    return worst_first(findings)


def _examine_one_text(data: OneTextData, seed: int) -> list[Finding]:
    files = [] if isinstance(data, MadeData) else [file for split in SPLITS for file in data.files(split)]
    # A file in another encoding cannot be read at all; that is the finding.
    if unreadable := [finding for file in dict.fromkeys(files) for finding in examine_bytes(Path(file))]:
        return unreadable
    splits: dict[str, Iterator[OneText]]
    splits = {split: texts_of(data, split, seed=seed) for split in SPLITS if data.exists(split)}
    return examine_texts(splits, language=data.language)


def _examine_documents(data: DocumentData | ToyStories, seed: int, recipe: "Recipe | None") -> list[Finding]:
    findings, survey = examine_documents(data, seed=seed)
    # What cannot be read cannot be learned from; that is the finding.
    if recipe and survey and not any(finding.kind == "unreadable" for finding in findings):
        from jumok.doctor.pretraining import examine_pretraining  # here, because it needs torch

        findings += examine_pretraining(recipe, survey)
    return worst_first(findings)


def _data_of(
    files: Sequence[Path], source: str | None, target: str | None, columns: tuple[str, str] | None
) -> DataConfig:
    """These files as training data, of the kind that their names, or the header of a table, tell."""
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
    if one_text:
        return one_text
    # Line-aligned files are usually named after their languages. Other names are no language that any rule knows.
    guesses = [_LANGUAGE_SUFFIX.search(path.name) for path in files] if len(files) == 2 else [None, None]
    left, right = (guess[1] if guess else name for guess, name in zip(guesses, ("source", "target"), strict=True))
    return ParallelData(source=source or left, target=target or right, train=[names], columns=columns)


def _one_text_of(path: Path, suffix: str, language: str) -> LabelledData | TaggedData | DocumentData | None:
    """The data of a file whose examples have one text; a table of pairs has no label."""
    train = [str(path)]
    match suffix:
        case "txt":
            return DocumentData(train=train, language=language)
        case "conll" | "iob" | "iob2" | "bio":
            return TaggedData(train=train, language=language)
        case "tsv":
            header = next(read_lines(path), "").split("\t")
            for text, pair in _TEXT_COLUMNS:
                if {"label", text, pair or text} <= set(header):
                    return LabelledData(train=train, text=text, pair=pair, language=language)
    return None


def refuse_a_mixture(what: list[Path], *, told: bool) -> None:
    """The doctor takes one recipe, one run, or files; only of files it has to be told languages and columns."""
    whole = [path for path in what if path.is_dir() or path.suffix == ".toml"]
    if len(what) > (1 if whole else 2):
        raise InputError(
            "the doctor looks at one thing at a time",
            where=", ".join(map(str, what)),
            right="one recipe, one run folder, one file, or two line-aligned files",
        )
    for path in what:
        if not path.exists():
            raise DataError("no such file or folder", where=path, right="a path that exists")
    if whole and told:
        right = "none of them: [data] of the recipe has these facts"
        raise InputError("--source, --target and --columns are for files", where=whole[0], right=right)
