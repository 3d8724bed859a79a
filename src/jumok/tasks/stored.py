"""Model folders and their tasks: the hub reads and writes the files, `TASKS` knows the architectures."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from jumok.errors import CheckpointError
from jumok.files import verify_folder, write_folder
from jumok.hub import folder as hub
from jumok.hub.files import CONFIG, OUTLINE, model_folder, read_json
from jumok.hub.folder import ModelFolder
from jumok.hub.heads import Heads
from jumok.hub.tokenizer import read_tokenizers
from jumok.models.build import check_weights
from jumok.tasks import TASKS, task_named

HEADS: Heads = {task.name: task.architectures for task in TASKS}


def read_model(folder: Path) -> ModelFolder:
    """Read a model folder."""
    return checked(hub.read_model(folder, HEADS), folder)


def checked(model: ModelFolder, folder: Path) -> ModelFolder:
    """The model, if its task, facts, config and weights fit together."""
    task = task_named(model.facts["task"]["kind"])
    if (kind := model.config.kind) not in (fitting := {*task.models, *task.architectures}):
        what = f'the task is {task.name}, which has no model of the kind "{kind}", only {", ".join(sorted(fitting))}'
        hint = "use the config.json of these weights"
        raise CheckpointError(what, where=folder / CONFIG, hint=hint, code="checkpoint.task")
    head = task.head(model.facts["task"], task.read_facts(model.facts, where=folder / CONFIG))
    check_weights(model.config, head, model.tensors, where=folder, **model.tokenizers.sizes)
    return model


def read_start(path: str) -> ModelFolder:
    """Read the run or model folder that training starts from."""
    return read_model(model_folder(Path(path)))


def store_outline(run: Path, outline: ModelFolder) -> None:
    """Store beside the checkpoints what they lack to be a model; nothing moves if it is there."""
    folder = run / OUTLINE
    with suppress(CheckpointError, OSError):
        verify_folder(folder, needs=[CONFIG])
        same = read_json(folder / CONFIG) == json.loads(json.dumps(hub.outline_config(outline)))
        if same and read_tokenizers(folder).hashes == outline.tokenizers.hashes:
            return
    write_folder(folder, lambda building: hub.write_outline(building, outline))


def read_outline(run: Path) -> ModelFolder:
    """The model of a run without its weights."""
    verify_folder(run / OUTLINE, needs=[CONFIG])
    return hub.read_outline(run / OUTLINE, HEADS)


def with_weights(outline: ModelFolder, weights: dict[str, Tensor]) -> ModelFolder:
    """The model that its outline and the weights of a checkpoint are."""
    kind = task_named(outline.facts["task"]["kind"])
    return replace(outline, tensors=kind.final_weights(weights, kind.read_facts(outline.facts)))


def write_model(folder: Path, model: ModelFolder, *, card: str) -> None:
    hub.write_model(folder, model, HEADS, card=card)


def obstacle(model: ModelFolder) -> str | None:
    """Why `transformers` could not open this model if jumok wrote it; None if it could."""
    return hub.obstacle(model, HEADS)
