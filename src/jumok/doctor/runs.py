"""What a run that learned from text alone says of itself: its curve, beside the unigram floor of that text."""

from collections.abc import Iterator
from pathlib import Path

from jumok.data.made import ToyGrammar, ToyStories
from jumok.data.sources import DocumentData, TextData
from jumok.doctor.curve import Ground, examine_curve
from jumok.doctor.documents import Survey
from jumok.doctor.findings import Finding, finding, worst_first
from jumok.doctor.pretraining import read_pieces
from jumok.doctor.texts import PlainLine, texts_of
from jumok.errors import CheckpointError, DataError, JumokError
from jumok.recipe import parse_recipe
from jumok.text.documents import Sentence
from jumok.text.tokenizer import Tokenizer
from jumok.train.folder import RunFolder

_TASKS = ("pretraining", "language_model")


def examine_run(run: Path) -> list[Finding] | None:
    """What the curve of a run says, finished or not; None if it did not learn from text alone, or is no run."""
    folder = RunFolder(run)
    if (stored := folder.stored()) is None:
        return None
    recipe = parse_recipe(stored["recipe"], where=str(folder.recipe))
    if recipe.task.kind not in _TASKS:
        return None
    ground, notes = None, []
    try:
        ground = ground_of_run(run)
    except JumokError as error:
        message = f"The unigram floor cannot be told any more: {error.what} ({error.where})."
        notes = [finding("unigram_floor", "note", 0, 1, message)]
    return worst_first([*examine_curve(folder.history(), recipe, ground), *notes])


def ground_of_run(run: Path) -> Ground:
    """What the training text of such a run says, as far as it is still there."""
    folder = RunFolder(run)
    stored = folder.stored()
    if stored is None:
        raise CheckpointError("not a run folder: there is no recipe.json", where=run, right="a folder of `jumok train`")
    recipe = parse_recipe(stored["recipe"], where=str(folder.recipe))
    data = recipe.data
    if recipe.task.kind not in _TASKS or not isinstance(data, DocumentData | ToyStories | TextData | ToyGrammar):
        raise DataError("the run did not learn from text alone", where=run, right=f"a run of: {', '.join(_TASKS)}")
    survey = Survey.of(data)
    survey.read(_sentences(data, recipe.seed))
    pieces = read_pieces(recipe, survey, _final_tokenizer(folder))
    if pieces.tokenizer.sha256 not in stored.get("tokenizers", [pieces.tokenizer.sha256]):
        raise DataError("the training text has changed, and gives another vocabulary", where=run)
    return pieces.ground(survey)


def _sentences(data: DocumentData | ToyStories | TextData | ToyGrammar, seed: int) -> Iterator[Sentence]:
    """The training text; a line that is an example is a document, for it has an end of its own."""
    if isinstance(data, DocumentData | ToyStories):
        return data.read("train", seed=seed)
    lines = texts_of(data, "train", seed=seed)
    return (Sentence(line.text, True, line.where) for line in lines if isinstance(line, PlainLine))


def _final_tokenizer(folder: RunFolder) -> Tokenizer | None:
    file = folder.model / "tokenizer.json"
    return Tokenizer.load(file) if file.exists() else None
