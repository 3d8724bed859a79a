"""Model folders and their tasks: the hub reads and writes the files, `TASKS` knows the architectures."""

from pathlib import Path

from jumok.errors import CheckpointError
from jumok.hub import folder as hub
from jumok.hub.files import CONFIG, model_folder
from jumok.hub.folder import ModelFolder
from jumok.hub.heads import Heads
from jumok.models.build import check_weights
from jumok.tasks import TASKS, task_named

HEADS: Heads = {task.name: task.architectures for task in TASKS}


def read_model(folder: Path) -> ModelFolder:
    """Read a model folder, and check that its task, facts, config and weights fit together."""
    model = hub.read_model(folder, HEADS)
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


def write_model(folder: Path, model: ModelFolder, *, card: str) -> None:
    hub.write_model(folder, model, HEADS, card=card)


def obstacle(model: ModelFolder) -> str | None:
    """Why `transformers` could not open this model if jumok wrote it; None if it could."""
    return hub.obstacle(model, HEADS)
