"""Which class of `transformers` has the head of which task: the table of tasks says so, from above."""

from collections.abc import Mapping

Heads = Mapping[str, Mapping[str, str]]
"""by the name of a task and the kind of a model"""


def task_of(heads: Heads, kind: str, architecture: str) -> str:
    """The task of a model from elsewhere: the first whose head this is."""
    return next(task for task, classes in heads.items() if classes.get(kind) == architecture)


def class_of(heads: Heads, task: str, kind: str) -> str | None:
    """What a model is there; None if nothing there has its head."""
    return heads.get(task, {}).get(kind)
