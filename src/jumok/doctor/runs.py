"""Examine a run trained on text alone: its loss curve, compared with the unigram floor of the text."""

from dataclasses import replace
from pathlib import Path

from jumok.doctor.curve import Ground, examine_curve
from jumok.doctor.documents import Survey
from jumok.doctor.vocabulary import read_pieces
from jumok.errors import CheckpointError, DataError, JumokError
from jumok.findings import Finding, finding, worst_first
from jumok.recipe import parse_recipe
from jumok.tasks import TASKS
from jumok.text.tokenizer import Tokenizer
from jumok.train.folder import RunFolder
from jumok.train.length import as_planned


def examine_run(run: Path) -> list[Finding] | None:
    """Examine the loss curve of a run, finished or not; None if it is no run or was not trained on text alone."""
    folder = RunFolder(run)
    if (stored := folder.stored()) is None:
        return None
    recipe = parse_recipe(stored["recipe"], where=str(folder.recipe))
    recipe = replace(recipe, train=as_planned(recipe.train, stored))
    if recipe.kind.learns_from_text is None:
        return None
    ground, notes = None, []
    try:
        ground = ground_of_run(run)
    except JumokError as error:
        message = f"The unigram floor can no longer be computed: {error.what} ({error.where})."
        notes = [finding("data.unigram_floor", "note", 0, 1, message)]
    return worst_first([*examine_curve(folder.history(), recipe, ground), *notes])


def ground_of_run(run: Path) -> Ground:
    """Compute the statistics of a run's training text, which must still exist."""
    folder = RunFolder(run)
    stored = folder.stored()
    if stored is None:
        what, hint = "not a run folder: no recipe.json", "pass a folder written by `jumok train`"
        raise CheckpointError(what, where=run, hint=hint, code="checkpoint.no_run")
    recipe = parse_recipe(stored["recipe"], where=str(folder.recipe))
    if recipe.kind.learns_from_text is None:
        hint = f"pass a run of one of these tasks: {', '.join(task.name for task in TASKS if task.learns_from_text)}"
        raise DataError("the run was not trained on text alone", where=run, hint=hint, code="data.not_text")
    survey = Survey.of(recipe.data)
    survey.read(recipe.data.sentences("train", seed=recipe.seed))
    pieces = read_pieces(recipe, survey, _final_tokenizer(folder))
    if pieces.tokenizer.sha256 not in stored.get("tokenizers", [pieces.tokenizer.sha256]):
        what = "the training text has changed, and so has its vocabulary"
        raise DataError(what, where=run, code="data.changed")
    return pieces.ground(survey)


def _final_tokenizer(folder: RunFolder) -> Tokenizer | None:
    file = folder.model / "tokenizer.json"
    return Tokenizer.load(file) if file.exists() else None
