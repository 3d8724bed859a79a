"""Examples examined by the doctor with the checks of the task that they belong to, without a recipe or a file."""

from collections.abc import Iterable, Mapping
from typing import Any

from jumok.doctor import Finding, examine_texts
from jumok.examples.choices import Choice, ChoiceData
from jumok.examples.labelled import Labelled, LabelledData
from jumok.examples.plain import Text, TextData
from jumok.examples.questions import Question, QuestionData
from jumok.examples.relations import Related, RelationData
from jumok.examples.spans import Spans, TaggedData
from jumok.tasks import task_named
from jumok.tasks.checks import TextChecks

DATA: dict[type[Any], tuple[str, Any]] = {
    Labelled: ("classification", LabelledData()),
    Spans: ("tagging", TaggedData()),
    Related: ("relation", RelationData()),
    Question: ("answering", QuestionData()),
    Choice: ("choice", ChoiceData()),
    Text: ("language_model", TextData()),
}


def checks_of(example: type[Any], **config: Any) -> TextChecks:
    """The checks of the task whose examples are of this type; `config` is its [task]."""
    name, data = DATA[example]
    task = task_named(name)
    assert task.config is not None
    checks = task.checks(task.config(**config), data)
    assert isinstance(checks, TextChecks)
    return checks


def examine(
    splits: Mapping[str, Iterable[Any]], *, config: Mapping[str, Any] | None = None, **options: Any
) -> list[Finding]:
    """The findings on splits of examples of one type; empty ones are examined as labelled texts."""
    read = {name: list(examples) for name, examples in splits.items()}
    first = next((type(example) for examples in read.values() for example in examples), Labelled)
    return examine_texts(read, checks_of(first, **(config or {})), **options)
