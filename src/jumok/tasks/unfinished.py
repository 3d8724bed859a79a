"""Checkpoints as models: the best one of a run that is not finished, and those that the final model is made of."""

from dataclasses import replace
from pathlib import Path

from jumok.errors import CheckpointError
from jumok.files import refuse_links
from jumok.hub.files import OUTLINE
from jumok.hub.folder import ModelFolder
from jumok.tasks.stored import checked, read_outline, with_weights
from jumok.train.final import best_weights, final_steps, final_weights
from jumok.train.folder import RunFolder
from jumok.train.loop import TrainConfig


def best_so_far(run: Path) -> tuple[ModelFolder, str]:
    """The best checkpoint of a run as a model, and what users have to know about it."""
    refuse_links(run, [OUTLINE, "checkpoints"])
    folder = RunFolder(run)
    stored = folder.stored()
    metric = "" if stored is None else stored["recipe"].get("train", {}).get("metric", "perplexity")
    weights, step, score, damaged = best_weights(folder, metric)
    model = checked(with_weights(read_outline(run), weights), run / OUTLINE)
    which = "its last checkpoint" if score is None else "its best checkpoint"
    scored = "" if score is None else f" (dev {metric} {score:.2f})"
    steps = model.facts.get("steps")
    of = f" of {steps:,}" if isinstance(steps, int) else ""
    note = f"{run} is not finished: using {which}, step {step:,}{of}{scored}"
    return model, "; ".join([note, *damaged])


def final_model(folder: RunFolder, config: TrainConfig, outline: ModelFolder, *, ended: bool = False) -> ModelFolder:
    """The model that `config.final` makes of the checkpoints. If the run was `ended` before its time, damaged ones are
    left out; otherwise they are errors."""
    saved = folder.checkpoints.steps()
    steps = [step for step in saved if folder.checkpoints.is_good(step)] if ended else saved
    if not steps:
        what, hint = "the run has no checkpoint to make a model of", "train it with its `jumok train` command"
        raise CheckpointError(what, where=folder.path, hint=hint, code="checkpoint.no_checkpoints")
    facts = {**outline.facts, "step": saved[-1], "ended": ended}
    weights = final_weights(folder, config, final_steps(folder, config, steps))
    return with_weights(replace(outline, facts=facts), weights)
