"""End a run before its time: its model, made of the checkpoints that are there, with scores and card.

Nothing is taken from the run: the command that trains it goes on from its last checkpoint.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jumok.assemble import assemble
from jumok.building import build_after
from jumok.card import model_card
from jumok.engines import Done, nobody
from jumok.errors import CheckpointError, InputError
from jumok.files import parse_json, verify_folder, write_folder
from jumok.hub.files import CONFIG, OUTLINE, WEIGHTS, one_of
from jumok.recipe import Recipe, parse_recipe
from jumok.tasks.stored import read_outline, write_model
from jumok.tasks.unfinished import final_model
from jumok.train.folder import RunFolder
from jumok.train.loop import Finished, Interrupted
from jumok.training import Event, finish


def finish_now(run: str | Path, *, stop: Callable[[], bool] = lambda: False, done: Done = nobody) -> Iterator[Event]:
    """Make the model that `train.final` says, score it, and yield events, the last one being Finished.

    Checkpoints that are damaged are left out; without the data that the run was trained on, the model has no scores.
    Warnings say both. Refused while the run is trained.
    """
    folder = RunFolder(Path(run))
    recipe = recipe_of(folder)
    steps = folder.checkpoints.steps()
    if not steps:
        what, hint = "the run has no checkpoint to make a model of", "train it with its `jumok train` command"
        raise CheckpointError(what, where=folder.path, hint=hint, code="checkpoint.no_checkpoints")

    def poll(n: int = 0) -> None:
        if stop():
            raise Interrupted
        done(n)

    _lock(folder)
    finished = Finished(steps[-1], "ended")
    try:
        if not _is_made(folder, recipe, steps[-1]):
            for step in steps:
                try:
                    folder.checkpoints.progress(step)
                except CheckpointError as error:
                    warnings.warn(f"checkpoint step-{step} is left out, it is {error.what}", stacklevel=2)
            yield from _made(folder, recipe, poll)
            folder.append(finished)
    except Interrupted:
        finished = Finished(steps[-1], "interrupted")
    finally:
        folder.unlock()
    yield finished


def recipe_of(folder: RunFolder) -> Recipe:
    stored = folder.stored()
    if stored is None:
        what, hint = "not a run folder: recipe.json is missing", one_of(folder.path)
        raise CheckpointError(what, where=folder.path, hint=hint, code="checkpoint.not_a_run")
    return parse_recipe(stored["recipe"], where=str(folder.recipe))


def _lock(folder: RunFolder) -> None:
    try:
        folder.lock()
    except CheckpointError as error:
        if error.code != "checkpoint.in_use":
            raise
        hint = "stop it first, with Ctrl-C where it runs or `kill` and its number; it saves its step"
        raise CheckpointError(error.what, where=error.where, hint=hint, code=error.code) from error


def _is_made(folder: RunFolder, recipe: Recipe, last: int) -> bool:
    """Whether the model is the one of these checkpoints and this recipe, and scored."""
    try:
        verify_folder(folder.model, needs=[CONFIG, WEIGHTS])
        facts = parse_json((folder.model / CONFIG).read_bytes())["jumok"]
        same = facts.get("step", last) == last and facts.get("final", recipe.train.final) == recipe.train.final
        return same and folder.has_own_results()
    except (CheckpointError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _made(folder: RunFolder, recipe: Recipe, poll: Done) -> Iterator[Event]:
    """With scores if the data is there and the same, else without."""
    try:
        run = assemble(recipe, folder, poll=lambda: poll(0))
    except (InputError, OSError) as error:
        if not (folder.path / OUTLINE).is_dir():  # of an earlier version: only its data says what else the model needs
            raise
        what = error.what if isinstance(error, InputError) else str(error)
        outline = read_outline(folder.path)
        warnings.warn(f"the model is not scored: {what}", stacklevel=3)
        config = replace(recipe.train, save_every=_save_every(outline.facts, recipe))
        model = final_model(folder, config, outline, ended=True)
        folder.forget_results()
        write_folder(folder.model, lambda building: write_model(building, model, card=""))
        card = model_card(recipe, model, {}, engine=build_after(folder.path, poll))
        write_folder(folder.model, lambda building: write_model(building, model, card=card))
        return
    poll(0)
    yield from finish(run, poll, ended=True)


def _save_every(facts: Mapping[str, Any], recipe: Recipe) -> float:
    """In steps, whereas a recipe may have a share of them."""
    found = facts.get("save_every")
    return found if isinstance(found, int) and found > 0 else recipe.train.save_every
