"""Model folders with their tasks: the hub reads and writes them, the table of tasks knows what their models are for."""

from pathlib import Path

from jumok.hub import folder as hub
from jumok.hub.files import CONFIG
from jumok.hub.folder import ModelFolder
from jumok.hub.heads import Heads
from jumok.tasks import TASKS, task_named

HEADS: Heads = {task.name: task.architectures for task in TASKS}


def read_model(folder: Path) -> ModelFolder:
    """A model folder whose facts are those that its task needs."""
    model = hub.read_model(folder, HEADS)
    task_named(model.facts["task"]["kind"]).read_facts(model.facts, where=folder / CONFIG)
    return model


def read_start(path: str) -> ModelFolder:
    """The model of a run, or a model folder, for training to begin with."""
    return read_model(hub.model_folder(Path(path)))


def write_model(folder: Path, model: ModelFolder, *, card: str) -> None:
    hub.write_model(folder, model, HEADS, card=card)


def obstacle(model: ModelFolder) -> str | None:
    """Why `transformers` cannot open what jumok would write of a model; None if it can."""
    return hub.obstacle(model, HEADS)
