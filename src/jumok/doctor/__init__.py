"""Find problems in data and in the outputs of a model.

The rules of a task are in its checks.py; this package runs them and adds the rules that apply to any text.
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.doctor.baselines import below_baselines
from jumok.doctor.documents import examine_documents
from jumok.doctor.faults import Faults, examine_bytes
from jumok.doctor.texts import examine_texts
from jumok.errors import DataError, InputError, Wrong
from jumok.examples import SPLITS
from jumok.examples.documents import text_files
from jumok.examples.guess import guess_data
from jumok.findings import Finding, finding, told_once, worst_first
from jumok.tasks import TASKS, task_named
from jumok.tasks.checks import Checks, DocumentChecks, TextChecks

if TYPE_CHECKING:
    from jumok.recipe import Recipe

__all__ = [
    "Finding",
    "examine_data",
    "examine_documents",
    "examine_texts",
    "examined",
    "refuse_a_mixture",
    "told_once",
    "worst_first",
]

_NOT_ALIGNED = (".tsv", ".conll", ".iob", ".iob2", ".bio", ".jsonl", ".json", ".csv", ".po", ".mo", ".tmx")
"""suffixes of files that are never one side of a line-aligned pair"""

_NO_DATA = ("data.unreadable", "data.encoding", "data.empty", "data.misaligned", "data.offsets", "data.answer_offsets")


def examine_data(
    what: Sequence[Path],
    *,
    source: str | None = None,
    target: str | None = None,
    columns: tuple[str, str] | None = None,
    overrides: Sequence[str] = (),
) -> list[Finding]:
    """Examine the data of a recipe, of a file or of two line-aligned files; worst findings first.

    Languages and columns (of a TSV with a header) apply to files only; a recipe has its own, changed by `overrides`.
    """
    recipe: Recipe | None = None
    notes: tuple[Finding, ...] = ()
    if what[0].suffix == ".toml":
        from jumok.recipe import load_recipe  # deferred, because it needs torch

        recipe = load_recipe(what[0], overrides, need_weights=False)
        checks = recipe.kind.checks(recipe.task, recipe.data)
    else:
        checks, notes = _guessed(what, source, target, columns)
    seed = recipe.seed if recipe else 0
    match checks:
        case TextChecks():
            findings = _examine_texts(checks, seed, is_recipe=recipe is not None)
        case DocumentChecks():
            findings = _examine_documents(checks, seed, recipe)
        case _:
            findings = checks.examine(seed=seed)
    # The vocabulary does not matter until training can read the data.
    if recipe and not any(found.code in _NO_DATA and found.severity == "error" for found in findings):
        from jumok.doctor.pieces import examine_pieces  # deferred, because it needs torch

        features = tomllib.loads(what[0].read_text("utf-8")).get("features")
        findings = [*findings, *examine_pieces(recipe, checks, features)]
    return told_once([*findings, *notes])


def _guessed(
    files: Sequence[Path], source: str | None, target: str | None, columns: tuple[str, str] | None
) -> tuple[Checks, tuple[Finding, ...]]:
    guess = guess_data(files, source, target, columns)
    task = next(task for task in TASKS if task.config and type(guess.data) is task.data[0])
    assert task.config is not None
    return task.checks(task.config(**guess.task), guess.data), guess.notes


def _examine_texts(checks: TextChecks, seed: int, *, is_recipe: bool) -> list[Finding]:
    data = checks.data
    given = [Path(file) for file in dict.fromkeys(file for split in SPLITS for file in data.files(split))]
    paths = [file for path in given for file in (text_files(path) if path.is_dir() else [path])]
    # A file in another encoding cannot be read: report only that.
    if wrong_bytes := [finding for path in paths for finding in examine_bytes(path)]:
        return wrong_bytes
    findings = [finding for path in paths for finding in checks.examine_file(path)]
    faults = Faults(checks)

    def splits(wrong: Wrong) -> dict[str, Iterator[Any]]:
        return {split: checks.read(split, seed=seed, wrong=wrong) for split in SPLITS if data.exists(split)}

    findings += examine_texts(splits(faults.add), checks, language=data.language, faults=faults)
    # The settings do not matter until training can read the data.
    if is_recipe and not any(found.code == "data.unreadable" and found.severity == "error" for found in findings):
        findings += checks.examine_settings(splits(lambda error: None))
    return findings


def _examine_documents(checks: DocumentChecks, seed: int, recipe: "Recipe | None") -> list[Finding]:
    findings, survey = examine_documents(checks.data, seed=seed)
    if recipe and recipe.init and not Path(recipe.init).is_dir():
        message = f"The weights to start from ({recipe.init}) are missing: their vocabulary was not tried on the text."
        return [*findings, finding("recipe.weights", "note", 0, 1, message)]
    # If the text cannot be read, report only that.
    if recipe and survey and not any(found.code in ("data.unreadable", "data.encoding") for found in findings):
        from jumok.doctor.vocabulary import examine_vocabulary  # deferred, because it needs torch

        findings += examine_vocabulary(recipe, survey, checks)
    return findings


def refuse_a_mixture(what: list[Path], *, told: bool, overridden: bool = False) -> None:
    """Accept one recipe, one run or files; languages and columns with files only, overrides with a recipe only."""
    whole = [path for path in what if path.is_dir() or path.suffix == ".toml"]
    where = ", ".join(map(str, what))
    if len(what) > (1 if whole else 2):
        hint = "pass one recipe, one run folder, one file, or two line-aligned files"
        raise InputError("pass a single recipe, run or file", where=where, hint=hint, code="input.several")
    for path in what:
        if not path.exists():
            raise DataError("no such file or folder", where=path, hint="check the path", code="data.missing")
    whole_files = [path for path in what if path.name.lower().removesuffix(".gz").endswith(_NOT_ALIGNED)]
    if len(whole_files) > 1:
        hint = "pass one file, or a recipe whose [data] lists both as train and test"
        raise InputError("these are not two line-aligned files", where=where, hint=hint, code="input.not_aligned")
    if whole and told:
        hint = "leave them out: the languages and columns are in [data] of the recipe"
        what_is_wrong = "--source, --target and --columns apply to files only"
        raise InputError(what_is_wrong, where=whole[0], hint=hint, code="input.not_a_file")
    if overridden and what[0].suffix != ".toml":
        hint = "pass a recipe, or leave out --set"
        raise InputError("--set applies to a recipe only", where=what[0], hint=hint, code="input.not_a_recipe")


def examined(
    predictor: Any, examples: Sequence[Any], outputs: Sequence[str], result: dict[str, Any], split: str = ""
) -> list[Finding]:
    """Examine the outputs of a predictor, and their scores compared with baselines."""
    found = task_named(predictor.kind).examine_outputs(predictor, examples, outputs, result, split)
    return worst_first([*below_baselines(result, f"{split}: " if split else ""), *found])
