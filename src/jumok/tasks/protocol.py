"""The interface of tasks and predictors.

A `TaskKind` is a task's entry in the table `TASKS`: the data and models that fit it, and access to its modules. A
`Predictor` turns examples into outputs. An example that cannot be answered gives a `Failure` instead of an output; a
`Note` on an output reports, for example, that the text was truncated.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, cast

from pydantic import Field, TypeAdapter

from jumok.config import read_config
from jumok.data.cache import Cache
from jumok.engines import Done, Engine, nobody
from jumok.errors import CheckpointError, InputError, JumokError, nearest
from jumok.examples.length import characters
from jumok.findings import Finding
from jumok.models.head import Head
from jumok.score.significance import Comparison, Metrics
from jumok.tasks.attention import Attention, maps_of
from jumok.tasks.checks import Checks
from jumok.text.tokenizer import Tokenizer, Tokenizers


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on an output: a stable code, and a text."""

    code: str
    """stable, for programs"""
    text: str
    """the same for all notes with this code in a run"""
    facts: dict[str, list[str]] | None = field(default=None, hash=False)
    """what it is about in this output, if that differs"""


@dataclass(frozen=True, slots=True)
class Failure:
    """Takes the place of an output and says why there is none."""

    code: str
    """stable, for programs: [errors.md](errors.md) lists them"""
    what: str
    """what is wrong"""
    where: str | None = None
    """line or position of the input"""
    hint: str | None = None
    """what to do"""

    @classmethod
    def of(cls, error: JumokError, where: str = "") -> "Failure":
        return cls(error.code, error.what, error.where or where or None, error.hint)

    @property
    def text(self) -> str:
        """The line of output, which is empty."""
        return ""

    def error(self) -> InputError:
        return InputError(self.what, where=self.where, hint=self.hint, code=self.code)


Hidden = Annotated[str, Field(exclude=True)]
"""a text that is left out of an output's JSON"""
Example = TypeVar("Example", bound=Any)
Output = TypeVar("Output", bound=Any)


@dataclass(frozen=True, slots=True)
class Measured:
    """The outputs of a predictor for labelled examples, and their metrics."""

    metrics: Metrics
    outputs: list[str]
    """a line for each example; empty if the task has no outputs"""
    more: dict[str, Any] = field(default_factory=dict)
    """further entries of the result, such as notes"""
    compared: Metrics | None = None
    """metrics to compare two predictors in, if not all"""


class Predictor(ABC, Generic[Example, Output]):
    """One loaded model, or several as an ensemble. It keeps no state between calls, so threads may share it."""

    kind: ClassVar[str]
    """name of the task"""
    example: ClassVar[type[Any]]
    """class of the inputs; its `parse` reads a line or a mapping"""
    answers: ClassVar[type[Any]]
    """class of the outputs"""
    options: ClassVar[type[Any] | None] = None
    """config of the options of `predict`"""

    max_characters: int = 1_000_000
    """of a text, before it is tokenized; `load` can set another limit. Lower if a text is not read in windows: time and
    memory grow with the square of its length"""

    engine: Engine
    tokenizers: Tokenizers

    @property
    def tokenizer(self) -> Tokenizer:
        return self.tokenizers.source

    def __call__(self, examples: Any, *, done: Done = nobody, **options: Any) -> list[str]:
        """The lines of the outputs; raises if an example cannot be answered."""
        found: list[Output] = answered(self.predict(examples, done=done, **options))
        return [str(output.text) for output in found]

    def predict(self, examples: Any, *, done: Done = nobody, **options: Any) -> "list[Output | Failure]":
        """The output for each example. `examples` is one or several of: a line, a mapping, an example.

        `options` are fields of the task's options; `done` is called with the number of examples just finished.
        """
        asked = self.wanted(options)
        slots: list[tuple[Example, Any] | Failure] = []
        for given, where in _places(examples):
            try:
                example = self.parse(given, where)
                slots.append((example, self.encode(example, asked)))
            except InputError as error:
                slots.append(Failure.of(error, where))
        good = [slot for slot in slots if not isinstance(slot, Failure)]
        outputs = iter([*self.answer([e for e, _ in good], [r for _, r in good], asked, done)] if good else [])
        done(len(slots) - len(good))
        return [slot if isinstance(slot, Failure) else next(outputs) for slot in slots]

    def parse(self, given: Any, where: str = "") -> Example:
        """Read a line or a mapping; an example is returned unchanged. Refuses one with too many characters."""
        if not isinstance(given, str | Mapping | self.example):
            what = f"{type(given).__name__} is not an example"
            hint = f"pass a text, a mapping or a {self.example.__name__}"
            raise InputError(what, where=where, hint=hint, code="input.example")
        example = given if isinstance(given, self.example) else self.example.parse(given, where)
        self.refuse_long(example, where)
        return cast(Example, example)

    def refuse_long(self, example: Any, where: str) -> None:
        if (n := characters(example)) > self.max_characters:
            what = f"the text has {n:,} characters, more than the limit of {self.max_characters:,}"
            hint = "split it, or raise the limit: --max-characters, or max_characters of jumok.load"
            raise InputError(what, where=where, hint=hint, code="text.too_long")

    def wanted(self, options: Mapping[str, Any]) -> Any:
        """Check the options of a call."""
        known = [option.name for option in fields(self.options)] if self.options is not None else []
        for name in options:
            if name not in known:
                what = f"unknown option {name}" + ("" if known else f": {self.kind} has no options")
                hint = nearest(name, known) or (f"use one of {', '.join(known)}" if known else "leave it out")
                raise InputError(what, hint=hint, code="input.unknown_option")
        return self.read_options(options) if known else None

    def read_options(self, options: Mapping[str, Any]) -> Any:
        assert self.options is not None
        return read_config(self.options, dict(options), what="the options", path="")

    @abstractmethod
    def encode(self, example: Example, options: Any) -> Any:
        """Encode the example as ids; raises an InputError if it cannot be answered."""

    @abstractmethod
    def answer(self, examples: Sequence[Example], read: Sequence[Any], options: Any, done: Done) -> Iterable[Output]:
        """The outputs for examples that have been encoded."""

    def about(self) -> dict[str, Any]:
        """What somebody has to know to ask, beyond labels and languages."""
        return {}

    def completed(self, example: Example, output: Output) -> Example:
        """The example with the output as its answer, to be written to a file."""
        what = f"an output of {self.kind} cannot be written as an example of a file"
        hint = "use --json, or print lines to stdout"
        raise InputError(what, where=getattr(example, "where", "") or None, hint=hint, code="input.no_file")

    @abstractmethod
    def measure(self, examples: Sequence[Example], *, done: Done = nobody, **options: Any) -> Measured:
        """Predict labelled examples and measure the outputs; `options` are those of `predict`, and checked."""

    def quick(self, examples: Sequence[Example]) -> dict[str, float]:
        """Scores without intervals, for evaluation on dev during training."""
        return self.measure(examples).metrics.values()

    def score(
        self, examples: Sequence[Example], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Score labelled examples; returns an entry of scores.json and the lines of the outputs."""
        self.wanted(options)
        measured = self.measure(examples, done=done, **options)
        scores = {score.name: score.plain() for score in measured.metrics.scores()}
        return {"sentences": len(examples), "scores": scores, **measured.more}, measured.outputs

    def compare(
        self, other: Any, examples: Sequence[Example], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        """Test whether `other`, a predictor of the same task, is better, in each metric that both have."""
        self.wanted(options)
        self.require_comparable(other, examples)
        measured = [predictor.measure(examples, done=done, **options) for predictor in (self, other)]
        a, b = (found.compared or found.metrics for found in measured)
        return a.only(b.names).against(b.only(a.names))

    def require_comparable(self, other: Any, examples: Sequence[Example]) -> None:
        """Raise an InputError if comparing scores with `other` would be meaningless."""

    def attention(self, example: Any, output: Any = None) -> dict[str, Attention]:
        """Attention maps by name, while the model reads the example and, if it generates text, writes the output."""
        if output is not None:
            what = f"{self.kind} generates no text to align"
            raise InputError(what, where="--output", hint="remove --output", code="input.no_output")
        row = self.first_row(self.parse(example))
        found = {} if row is None else maps_of(self.engine, self.tokenizer, row)
        if not found:
            raise InputError("the model has no attention to show", code="input.no_attention")
        return found

    def first_row(self, example: Example) -> Sequence[int] | None:
        """The ids that the model reads of an example, in its first window; None if there is no single row."""
        return None

    def table(self, output: Output) -> list[dict[str, Any]] | None:
        """The output as rows of a table; None if the task has no tables."""
        return None

    def cells(self, example: Example, output: Output) -> dict[str, Any]:
        """What a row of a table, or a line of JSONL, gets for the output; `columns` are their names in a table."""
        return {"answer": output.text}

    columns: tuple[str, ...] = ("answer",)
    table_columns: ClassVar[tuple[str, ...]] = ()
    marks: ClassVar[bool] = False
    """whether outputs can be marked in the text, as a `passage`"""

    def passage(self, example: Any, output: Output) -> Any:
        """The text with the spans found in it, for drawing; only of tasks whose outputs are `marks`."""
        raise NotImplementedError

    def draw_attention(self, example: Any, picture: Path, *, output: str | None = None) -> dict[str, Any]:
        """Draw the attention over words, and return it as JSON values."""
        hint = 'use a translation model with attention, BERT, or a recurrent classifier with model.pool = "attention"'
        raise InputError(f"{self.kind} has no attention over words to draw", hint=hint, code="input.no_attention")


def _places(examples: Any) -> Iterator[tuple[Any, str]]:
    """Examples with their positions: one alone, or several, numbered from 1."""
    if isinstance(examples, str | Mapping) or not isinstance(examples, Iterable):
        yield examples, getattr(examples, "where", "") or ""
        return
    for number, example in enumerate(examples, start=1):
        yield example, getattr(example, "where", "") or f"line {number}"


def answered(outputs: "Sequence[Output | Failure]") -> list[Output]:
    """The outputs; raises the first failure."""
    for output in outputs:
        if isinstance(output, Failure):
            raise output.error()
    return cast(list[Output], list(outputs))


class NoteCounter:
    """Counts the notes of many outputs, to report each once."""

    def __init__(self) -> None:
        self._counts, self._n = Counter[str](), 0

    def add(self, output: Any) -> None:
        self._n += 1
        self._counts.update(note.text for note in getattr(output, "notes", ()))

    def told(self) -> list[str]:
        """Lines such as `3 of 12: texts with …`, most frequent first."""
        return [f"{count:,} of {self._n:,}: {text}" for text, count in self._counts.most_common()]


_adapters: dict[type[Any], TypeAdapter[Any]] = {}


def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """The JSON form of an example or an output."""
    if kind not in _adapters:  # harmless if two threads build it
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def plain(value: Any) -> dict[str, Any]:
    """An example or an output as JSON values, without `where` and fields that are None.

    Numbers have six significant digits: those that follow depend on what else was in the batch.
    """
    if isinstance(value, Failure):
        return {"error": adapter(Failure).dump_python(value, mode="json", exclude_none=True)}
    found: dict[str, Any] = adapter(type(value)).dump_python(value, mode="json", exclude_none=True, exclude={"where"})
    return cast(dict[str, Any], rounded(found))


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return {key: rounded(one) for key, one in value.items()} if isinstance(value, dict) else value


class TaskKind(ABC):
    """A task: the data and models that fit it, and access to its modules, of which only task.py may import torch."""

    name: ClassVar[str]
    config: ClassVar[type[Any] | None] = None
    """its [task] section; None if it cannot be trained"""
    data: ClassVar[tuple[type[Any], ...]] = ()
    """kinds of data; the first reads files"""
    models: ClassVar[tuple[str, ...]] = ()
    """kinds of models"""
    facts: ClassVar[type[Any]]
    """what a model folder stores for prediction, beside the weights"""
    pipeline: ClassVar[str] = ""
    """name of the pipeline on Hugging Face"""
    architectures: ClassVar[dict[str, str]] = {}
    """for each kind of model, the class in `transformers` with this task's head"""
    adapts: ClassVar[bool] = False
    """whether the initial weights are scored, too, for comparison"""
    ensembles: ClassVar[bool] = True
    decides: ClassVar[tuple[str, ...]] = ()
    """keys of its config that change the meaning of outputs"""
    learns_from_text: ClassVar[Literal["next", "masked"] | None] = None
    """predicts the next token, or masked ones, of unlabelled text: the doctor judges its loss by that"""
    own_facts: ClassVar[tuple[str, ...]] = ("language", "longest", "temperature", "threshold", "decode")
    """facts that may differ between the models of an ensemble"""

    def metrics(self, config: Any) -> tuple[str, ...]:
        """Dev scores that can select the best checkpoint; every task that can be trained has some."""
        raise NotImplementedError

    def mistakes(self, recipe: Any) -> Iterator[str]:
        """Conflicts in a recipe of this task, beyond the kinds of data, model and metric."""
        return iter(())

    @abstractmethod
    def head(self, config: Mapping[str, Any], facts: Any) -> Head:
        """The head of the model."""

    def does(self, facts: Any) -> str:
        """The purpose of the model, for its card."""
        return f"for {self.name.replace('_', ' ')}"

    def languages(self, facts: Any) -> list[str]:
        """Codes of the model's languages."""
        return [facts.language] if facts.language else []

    def prepare(self, recipe: Any, cache: Cache, *, fresh: bool = True) -> Any:
        """The task with its data ready for the training loop; a run that resumes is not `fresh`.

        The module `task` of this package imports torch, so it is imported on demand.
        """
        return import_module(f"{type(self).__module__}.task").prepare(recipe, cache, fresh=fresh)

    def final_weights(self, weights: dict[str, Any], facts: Any) -> dict[str, Any]:
        """The weights to store, which may absorb some of the facts, out of those that were trained."""
        return weights

    @abstractmethod
    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: Any) -> Any:
        """A predictor around an engine; `config` is the [task] section the model was trained with."""

    def checks(self, config: Any, data: Any) -> Checks:
        """The doctor's rules for data of this task; `config` and `data` are [task] and [data] of a recipe."""
        raise NotImplementedError

    def examine_outputs(
        self, predictor: Any, examples: Sequence[Any], outputs: Sequence[str], result: Mapping[str, Any], split: str
    ) -> list[Finding]:
        """The doctor's findings on the outputs for labelled examples, worst first; `result` is from scores.json."""
        return []

    def meaning(self, config: Mapping[str, Any], facts: Any) -> dict[str, object]:
        """What the models of an ensemble must agree on."""
        shared = {f.name: getattr(facts, f.name) for f in fields(self.facts) if f.name not in self.own_facts}
        return {"task": self.name, **{key: config.get(key) for key in self.decides}, **shared}

    def has_labels(self, config: Mapping[str, Any]) -> bool:
        """Whether the model's outputs have labels, which its folder stores."""
        return False

    def read_facts(self, tree: Mapping[str, Any], *, where: Path | None = None) -> Any:
        """Read the facts from the key "jumok" of a model's config.json, which has other keys as well."""
        found = {key: tree[key] for key in (field.name for field in fields(self.facts)) if key in tree}
        if self.has_labels(tree.get("task", {})) and not found.get("labels"):
            hint = "use a model folder as written by jumok"
            what = f"jumok.labels is missing, which a model for {self.name} needs"
            raise CheckpointError(what, where=where, hint=hint, code="checkpoint.missing_key")
        what = "the model's config"
        return read_config(self.facts, found, what=what, where=where, path="jumok", error=CheckpointError)
