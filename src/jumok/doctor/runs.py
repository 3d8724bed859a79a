"""What a pre-training run says of itself: its curve, beside the unigram floor of its own training text."""

from pathlib import Path

from jumok.data.made import ToyStories
from jumok.data.sources import DocumentData
from jumok.doctor.curve import Ground, examine_curve
from jumok.doctor.documents import Survey
from jumok.doctor.findings import Finding, finding, worst_first
from jumok.doctor.pretraining import read_pieces
from jumok.errors import CheckpointError, DataError, JumokError
from jumok.recipe import parse_recipe
from jumok.text.tokenizer import Tokenizer
from jumok.train.folder import RunFolder


def examine_run(run: Path) -> list[Finding] | None:
    """What the curve of a pre-training says, finished or not; None if the folder is none of such a run."""
    folder = RunFolder(run)
    if (stored := folder.stored()) is None:
        return None
    recipe = parse_recipe(stored["recipe"], where=str(folder.recipe))
    if recipe.task.kind != "pretraining":
        return None
    ground, notes = None, []
    try:
        ground = ground_of_run(run)
    except JumokError as error:
        message = f"The unigram floor cannot be told any more: {error.what} ({error.where})."
        notes = [finding("unigram_floor", "note", 0, 1, message)]
    return worst_first([*examine_curve(folder.history(), recipe, ground), *notes])


def ground_of_run(run: Path) -> Ground:
    """What the training text of a pre-training run says, as far as it is still there."""
    folder = RunFolder(run)
    stored = folder.stored()
    if stored is None:
        raise CheckpointError("not a run folder: there is no recipe.json", where=run, right="a folder of `jumok train`")
    recipe = parse_recipe(stored["recipe"], where=str(folder.recipe))
    if not isinstance(recipe.data, DocumentData | ToyStories):
        raise DataError("the run did not learn from documents", where=run, right="a run of a pre-training")
    survey = Survey.of(recipe.data)
    survey.read(recipe.data.read("train", seed=recipe.seed))
    pieces = read_pieces(recipe, survey, _final_tokenizer(folder))
    if pieces.tokenizer.sha256 not in stored.get("tokenizers", [pieces.tokenizer.sha256]):
        raise DataError("the training text has changed, and gives another vocabulary", where=run)
    return pieces.ground(survey)


def _final_tokenizer(folder: RunFolder) -> Tokenizer | None:
    file = folder.model / "tokenizer.json"
    return Tokenizer.load(file) if file.exists() else None
