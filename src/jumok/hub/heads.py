"""Which `transformers` class has the head of which task; the table of tasks supplies the mapping."""

from collections.abc import Mapping

Heads = Mapping[str, Mapping[str, str]]
"""class names by task and model kind"""


def task_of(heads: Heads, kind: str, architecture: str) -> str:
    """The task of a foreign model: the first with this head."""
    return next(task for task, classes in heads.items() if classes.get(kind) == architecture)


def class_of(heads: Heads, task: str, kind: str) -> str | None:
    """The `transformers` class of a model; None if no class has its head."""
    return heads.get(task, {}).get(kind)
