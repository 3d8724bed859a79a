"""What is wrong with this data, or with the outputs of a model."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.data.corpus import SPLITS, Corpus
from jumok.data.files import WindowedData
from jumok.data.made import MadeData, SyntheticData, ToyGrammar, ToyStories, WindowedToy
from jumok.data.sources import DocumentData, LabelledData, ParallelData, TaggedData, TextData
from jumok.doctor.documents import examine_documents
from jumok.doctor.faults import Faults, examine_bytes, examine_columns
from jumok.doctor.findings import Finding, finding, worst_first
from jumok.doctor.judgements import JUDGED, examine_judgements
from jumok.doctor.kinds import FileKind, kind_of_files
from jumok.doctor.outputs import examine_outputs
from jumok.doctor.pairs import examine_pairs, examine_parallel_files
from jumok.doctor.settings import examine_settings
from jumok.doctor.texts import OneText, OneTextData, examine_texts, texts_of
from jumok.errors import DataError, InputError
from jumok.text.faults import Wrong
from jumok.text.formats import Pair

if TYPE_CHECKING:
    from jumok.recipe import Recipe
    from jumok.tasks.targets import Predicts

__all__ = [
    "JUDGED",
    "Finding",
    "examine_data",
    "examine_documents",
    "examine_judgements",
    "examine_outputs",
    "examine_pairs",
    "examine_parallel_files",
    "examine_texts",
    "refuse_a_mixture",
    "worst_first",
]


_NOT_ALIGNED = (".tsv", ".conll", ".iob", ".iob2", ".bio", ".jsonl", ".json", ".csv", ".po", ".mo", ".tmx")
"""how files end that are no side of line-aligned files"""


def examine_data(
    what: Sequence[Path],
    *,
    source: str | None = None,
    target: str | None = None,
    columns: tuple[str, str] | None = None,
    overrides: Sequence[str] = (),
) -> list[Finding]:
    """The faults of the data of a recipe, of one file or of two line-aligned files; worst first.

    Languages and columns (of a TSV with a header) are told for files; a recipe has its own, and `overrides` of them.
    """
    recipe: Recipe | None = None
    if what[0].suffix == ".toml":
        from jumok.recipe import load_recipe  # here, because it needs torch

        recipe = load_recipe(what[0], overrides, need_weights=False)
    kind = _kind_of_recipe(recipe) if recipe else kind_of_files(what, source, target, columns)
    seed = recipe.seed if recipe else 0
    match data := kind.data:
        case ParallelData() | SyntheticData():
            return _examine_parallel(data, seed)
        case WindowedData() | TextData() | WindowedToy() | ToyGrammar():
            return worst_first([*_examine_one_text(data, seed, kind.predicts, recipe), *kind.notes])
        case DocumentData() | ToyStories():
            return _examine_documents(data, seed, recipe)


def _kind_of_recipe(recipe: "Recipe") -> FileKind:
    # Only a classification predicts anything but classes; asked without its class, which needs torch.
    return FileKind(recipe.data, getattr(recipe.task, "predicts", "class"))


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


def _examine_one_text(data: OneTextData, seed: int, predicts: "Predicts", recipe: "Recipe | None") -> list[Finding]:
    files = [] if isinstance(data, MadeData) else [file for split in SPLITS for file in data.files(split)]
    paths = [Path(file) for file in dict.fromkeys(files)]
    # A file in another encoding cannot be read at all; that is the finding.
    if unreadable := [finding for path in paths for finding in examine_bytes(path)]:
        return unreadable
    findings: list[Finding] = []
    if isinstance(data, TaggedData):
        tables = [path for path in paths if not path.name.lower().removesuffix(".gz").endswith(".jsonl")]
        findings = [finding for path in tables for finding in examine_columns(path)]
    separator = data.separator if isinstance(data, LabelledData) else "|"
    hint = f"; no label at all is written {separator!r}" if predicts == "labels" else ""
    faults = Faults(data.kind, hint, skipped=isinstance(data, LabelledData) and data.when_wrong == "skip")

    def splits(wrong: Wrong) -> dict[str, Iterator[OneText]]:
        return {split: texts_of(data, split, seed=seed, wrong=wrong) for split in SPLITS if data.exists(split)}

    findings += examine_texts(
        splits(faults.add), language=data.language, predicts=predicts, separator=separator, faults=faults
    )
    # Where training could not even read the data, that is the finding.
    if recipe and not any(finding.kind == "unreadable" and finding.severity == "error" for finding in findings):
        findings += examine_settings(recipe.task, splits(lambda error: None), separator=separator)
    return findings


def _examine_documents(data: DocumentData | ToyStories, seed: int, recipe: "Recipe | None") -> list[Finding]:
    findings, survey = examine_documents(data, seed=seed)
    if recipe and recipe.init and not Path(recipe.init).is_dir():
        message = f"The weights to begin with are not here ({recipe.init}): what their vocabulary makes of the text"
        return worst_first([*findings, finding("weights", "note", 0, 1, f"{message} is not looked at.")])
    # What cannot be read cannot be learned from; that is the finding.
    if recipe and survey and not any(finding.kind == "unreadable" for finding in findings):
        from jumok.doctor.pretraining import examine_pretraining  # here, because it needs torch

        findings += examine_pretraining(recipe, survey)
    return worst_first(findings)


def refuse_a_mixture(what: list[Path], *, told: bool, overridden: bool = False) -> None:
    """The doctor takes one recipe, one run, or files.

    Only of files it has to be told languages and columns, and only a recipe has keys to override.
    """
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
    whole_files = [path for path in what if path.name.lower().removesuffix(".gz").endswith(_NOT_ALIGNED)]
    if len(whole_files) > 1:
        raise InputError(
            "each of these files has examples of its own: two of them are no translation of each other",
            where=", ".join(map(str, what)),
            right="one file, or a recipe whose [data] has both, as train and test",
        )
    if whole and told:
        right = "none of them: [data] of the recipe has these facts"
        raise InputError("--source, --target and --columns are for files", where=whole[0], right=right)
    if overridden and what[0].suffix != ".toml":
        raise InputError("--set overrides a key of a recipe", where=what[0], right="--set with a recipe")
