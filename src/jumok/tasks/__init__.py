"""The tasks: `TASKS` lists them all, and each has its own folder."""

from jumok.errors import CheckpointError
from jumok.tasks.answering import AnsweringKind
from jumok.tasks.choice import ChoiceKind
from jumok.tasks.classification import ClassificationKind
from jumok.tasks.language_model import LanguageModelKind
from jumok.tasks.pretraining import EmbeddingKind, PretrainingKind
from jumok.tasks.protocol import TaskKind
from jumok.tasks.relation import RelationKind
from jumok.tasks.tagging import TaggingKind
from jumok.tasks.translation import TranslationKind

TASKS: tuple[TaskKind, ...] = (
    TranslationKind(),
    LanguageModelKind(),
    PretrainingKind(),
    EmbeddingKind(),
    ClassificationKind(),
    TaggingKind(),
    RelationKind(),
    AnsweringKind(),
    ChoiceKind(),
)


def task_named(name: str, *, where: object = None) -> TaskKind:
    for task in TASKS:
        if task.name == name:
            return task
    known = ", ".join(task.name for task in TASKS)
    place = None if where is None else str(where)
    raise CheckpointError(f'unknown task "{name}"', where=place, hint=f"use one of {known}", code="task.unknown")
