"""What a task is, what a predictor is, and what both give back.

A `TaskKind` is a task's entry in the table `TASKS`: what fits it, and the doors to its rooms. A `Predictor` turns
examples into outputs; an example that cannot be answered becomes a `Failure` in its place, and what should be known of
one that was answered, such as that it was cut, comes back with it as a `Note`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar, cast

from pydantic import Field, TypeAdapter

from jumok import html
from jumok.config import read_config
from jumok.engines import Array, Done, Engine, nobody
from jumok.errors import CheckpointError, InputError, JumokError, nearest
from jumok.findings import Finding
from jumok.models.head import Head
from jumok.score.significance import Comparison, Score
from jumok.tasks.checks import Checks
from jumok.text.tokenizer import Tokenizer, Tokenizers

Given = str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """What a person should know of an output: a stable code, and words that are the same for all of its kind."""

    code: str
    """stable, for programs"""
    text: str
    """the same for all notes of a code in a run"""


@dataclass(frozen=True, slots=True)
class Failure:
    """In the place of an output: why there is none."""

    code: str
    """stable, for programs: [errors.md](errors.md) lists them"""
    what: str
    """what is wrong"""
    where: str | None = None
    """the line or the place of the input"""
    hint: str | None = None
    """what to do"""

    @classmethod
    def of(cls, error: JumokError, where: str = "") -> "Failure":
        return cls(error.code, error.what, error.where or where or None, error.hint)

    @property
    def text(self) -> str:
        """A line of output says nothing."""
        return ""

    def error(self) -> InputError:
        return InputError(self.what, where=self.where, hint=self.hint, code=self.code)


class SomeExample(Protocol):
    """What every example has: the place it was read from, and a form to be read from."""

    @property
    def where(self) -> str: ...


class SomeOutput(Protocol):
    """What every output has."""

    @property
    def text(self) -> str:
        """What a line of output says."""
        ...

    @property
    def notes(self) -> Sequence[Note]: ...


Hidden = Annotated[str, Field(exclude=True)]
"""a text that an output carries along and does not tell in JSON"""
Example = TypeVar("Example", bound=Any)
Output = TypeVar("Output", bound=Any)
Read = TypeVar("Read")
FactsType = TypeVar("FactsType")


@dataclass(frozen=True, slots=True)
class Attention:
    """Who looks at whom: `weights[layer, head, row, column]`, with the names of the pieces."""

    rows: list[str]
    columns: list[str]
    weights: Array

    def _repr_html_(self) -> str:
        """The mean over layers and heads, for a notebook."""
        layers, heads = self.weights.shape[:2]
        mean = self.weights.mean(axis=(0, 1)).tolist()
        about = html.line(f"mean of {layers} layers and {heads} heads: weights[layer, head] has each", small=True)
        return html.block(html.matrix(self.rows, self.columns, mean), about)


class Predictor(ABC, Generic[Example, Output]):
    """One loaded model, or several as an ensemble. Remembers nothing of a call: many threads may share it."""

    kind: ClassVar[str]
    """the name of its task"""
    example: ClassVar[type[Any]]
    """what it is asked; its `parse` reads a line or a mapping"""
    answers: ClassVar[type[Any]]
    """its output"""
    options: ClassVar[type[Any] | None] = None
    """a config of what can be asked beside the example"""

    engine: Engine
    tokenizers: Tokenizers

    @property
    def tokenizer(self) -> Tokenizer:
        return self.tokenizers.source

    def __call__(self, examples: Any, *, done: Done = nobody, **options: Any) -> list[str]:
        """The lines of the outputs; an example that cannot be answered is an error."""
        found: list[Output] = answered(self.predict(examples, done=done, **options))
        return [str(output.text) for output in found]

    def predict(self, examples: Any, *, done: Done = nobody, **options: Any) -> "list[Output | Failure]":
        """Outputs in the order of the examples: one, or a list of them, each a line, a mapping or an example.

        `options` are fields of the task's options; `done` is told how many more examples are finished.
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
        """An example as it is, or what a line or a mapping says."""
        if isinstance(given, self.example):
            return cast(Example, given)
        if not isinstance(given, str | Mapping):
            hint = f"a text, a mapping or a {self.example.__name__}"
            raise InputError(f"{type(given).__name__} is no example", where=where, hint=hint, code="input.example")
        return cast(Example, self.example.parse(given, where))

    def wanted(self, options: Mapping[str, Any]) -> Any:
        """The options of a call, checked."""
        if self.options is None:
            for name in options:
                what = f"there is no option {name}: {self.kind} has none"
                raise InputError(what, hint="leave it out", code="input.unknown_option")
            return None
        known = [field.name for field in fields(self.options)]
        for name in options:
            if name not in known:
                hint = nearest(name, known) or f"one of {', '.join(known)}"
                raise InputError(f"there is no option {name}", hint=hint, code="input.unknown_option")
        return self.read_options(options)

    def read_options(self, options: Mapping[str, Any]) -> Any:
        assert self.options is not None
        return read_config(self.options, dict(options), what="the options", path="")

    @abstractmethod
    def encode(self, example: Example, options: Any) -> Any:
        """The example as ids; an InputError if it cannot be answered."""

    @abstractmethod
    def answer(self, examples: Sequence[Example], read: Sequence[Any], options: Any, done: Done) -> Iterable[Output]:
        """What the model says of examples that were encoded."""

    def completed(self, example: Example, output: Output) -> Example:
        """The example with the model's answer in the place of its own, as it would stand in a file."""
        what = f"an output of {self.kind} has no place in an example, so that there is no file of such"
        hint = "--json, or lines on stdout"
        raise InputError(what, where=getattr(example, "where", "") or None, hint=hint, code="input.no_file")

    @abstractmethod
    def score(
        self, examples: Sequence[Example], *, done: Done = nobody, **options: Any
    ) -> "tuple[dict[str, Any], list[str]]":
        """Scores with intervals and signatures of the outputs for labelled examples, and the lines of the outputs."""

    @abstractmethod
    def compare(
        self, other: Any, examples: Sequence[Example], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        """Is `other`, a predictor of the same task, better on these examples?"""

    def attention(self, example: Any, output: Any = None) -> dict[str, Attention]:
        """Every layer and head by name, while the model reads the example, and writes the output if it writes any."""
        where = "the model" if not self.engine.attends else None
        raise InputError("there is no attention to look at", where=where, code="input.no_attention")

    def table(self, output: Output) -> list[dict[str, Any]] | None:
        """The rows of a table that an output makes; None if its task has none."""
        return None

    table_columns: ClassVar[tuple[str, ...]] = ()
    marks: ClassVar[bool] = False
    """whether it finds something that can be marked in a text: then it has a `passage`"""

    def passage(self, example: Any, output: Output) -> Any:
        """The text with what was found in it, to be drawn."""
        raise NotImplementedError

    def draw_attention(self, example: Any, picture: Path, *, output: str | None = None) -> dict[str, Any]:
        """Draw what the model looks at, and give what was drawn as JSON values."""
        hint = 'a run of translation that attends, or a classifier: BERT, or recurrent with model.pool = "attention"'
        what = f"{self.kind} has no attention over words that could be drawn"
        raise InputError(what, hint=hint, code="input.no_attention")


def _places(examples: Any) -> Iterator[tuple[Any, str]]:
    """Examples and where they stand: one given alone, or several, counted from one."""
    if isinstance(examples, str | Mapping) or not isinstance(examples, Iterable):
        yield examples, getattr(examples, "where", "") or ""
        return
    for number, example in enumerate(examples, start=1):
        yield example, getattr(example, "where", "") or f"line {number}"


def answered(outputs: "Sequence[Output | Failure]") -> list[Output]:
    """All outputs, where none may be missing: the first failure is raised."""
    for output in outputs:
        if isinstance(output, Failure):
            raise output.error()
    return cast(list[Output], list(outputs))


class NoteCounter:
    """Counts the notes of many outputs, to be told once."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._n = 0

    def add(self, output: Any) -> None:
        self._n += 1
        self._counts.update(note.text for note in getattr(output, "notes", ()))

    def told(self) -> list[str]:
        """`3 of 12: texts with …`, most frequent first."""
        return [f"{count:,} of {self._n:,}: {text}" for text, count in self._counts.most_common()]


_adapters: dict[type[Any], TypeAdapter[Any]] = {}


def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """The JSON form of an example or an output."""
    if kind not in _adapters:  # built twice by two threads it is the same
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def plain(value: Any) -> dict[str, Any]:
    """An example or an output as JSON values: without the place that it was read from, and what is not known."""
    if isinstance(value, Failure):
        return {"error": adapter(Failure).dump_python(value, mode="json", exclude_none=True)}
    found: dict[str, Any] = adapter(type(value)).dump_python(value, mode="json", exclude_none=True, exclude={"where"})
    return found


def scored(examples: Sequence[Any], scores: Sequence[Score]) -> dict[str, Any]:
    """Scores as they are stored and shown."""
    return {"sentences": len(examples), "scores": {score.name: score.plain() for score in scores}}


class TaskKind(ABC):
    """A task: what fits it, and the doors to its rooms. The room of training, task.py, may import torch."""

    name: ClassVar[str]
    config: ClassVar[type[Any] | None] = None
    """its [task] section; None if it cannot be trained"""
    data: ClassVar[tuple[type[Any], ...]] = ()
    """kinds of data, the first of them in files"""
    models: ClassVar[tuple[str, ...]] = ()
    """kinds of models"""
    facts: ClassVar[type[Any]]
    """what a trained model has to remember"""
    pipeline: ClassVar[str] = ""
    """what Hugging Face calls it"""
    architectures: ClassVar[dict[str, str]] = {}
    """for kinds of models, the class of `transformers` that has this task's head"""
    adapts: ClassVar[bool] = False
    """weights that training begins with are scored, too, to stand beside what became of them"""
    ensembles: ClassVar[bool] = True
    decides: ClassVar[tuple[str, ...]] = ()
    """keys of its config that change what an output means"""
    learns_from_text: ClassVar[Literal["next", "masked"] | None] = None
    """whether it learns from text alone, and predicts the next piece or masked ones: the doctor judges its loss"""
    own_facts: ClassVar[tuple[str, ...]] = ("language", "longest", "temperature", "threshold", "decode")
    """facts that the models of an ensemble need not share"""

    def metrics(self, config: Any) -> tuple[str, ...]:
        """Dev scores that can choose the best checkpoint."""
        raise NotImplementedError

    def mistakes(self, recipe: Any) -> Iterator[str]:
        """What does not go together in a recipe of this task, beyond kinds of data, model and metric."""
        return iter(())

    @abstractmethod
    def head(self, config: Mapping[str, Any], facts: Any) -> Head:
        """What stands on the body of a model."""

    def does(self, facts: Any) -> str:
        """What a model card says the model was trained for."""
        return f"for {self.name.replace('_', ' ')}"

    def languages(self, facts: Any) -> list[str]:
        """Codes of the languages that a model reads and writes."""
        return [facts.language] if facts.language else []

    def prepare(self, recipe: Any, cache: Path, *, fresh: bool = True) -> Any:
        """The task with its data ready for the training loop; a run that goes on is not `fresh`.

        The room of training is the module `task` beside this one. It imports torch, so that it is opened when it is
        needed and no sooner.
        """
        room = import_module(f"{type(self).__module__}.task")
        return room.prepare(recipe, cache, fresh=fresh)

    @abstractmethod
    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: Any) -> Any:
        """A predictor around an engine; `config` is the [task] that the model was trained with."""

    def checks(self, config: Any, data: Any) -> Checks:
        """The doctor's rules for data of this task: `config` and `data` are [task] and [data] of a recipe."""
        raise NotImplementedError

    def examine_outputs(
        self, predictor: Any, examples: Sequence[Any], outputs: Sequence[str], result: Mapping[str, Any], split: str
    ) -> list[Finding]:
        """The doctor's findings on the outputs for labelled examples, worst first.

        `result` has their scores and those of baselines, as `Predictor.score` and scores.json give them; messages
        begin with the name of the split, if there is one.
        """
        return []

    def meaning(self, config: Mapping[str, Any], facts: Any) -> dict[str, object]:
        """What models have to share to be one ensemble."""
        shared = {field.name: getattr(facts, field.name) for field in fields(self.facts)}
        shared = {name: value for name, value in shared.items() if name not in self.own_facts}
        return {"task": self.name, **{key: config.get(key) for key in self.decides}, **shared}

    def has_labels(self, config: Mapping[str, Any]) -> bool:
        """Whether a model's outputs have names that it has to remember."""
        return False

    def read_facts(self, tree: Mapping[str, Any], *, where: Path | None = None) -> Any:
        """Facts from the key "jumok" of a model's config.json, which has more than these."""
        known = {field.name for field in fields(self.facts)}
        found = {key: value for key, value in tree.items() if key in known}
        what = "the model's config"
        if self.has_labels(tree.get("task", {})) and not found.get("labels"):
            hint = "a model folder as jumok wrote it"
            what = f"jumok.labels is missing, which a model for {self.name} needs"
            raise CheckpointError(what, where=where, hint=hint, code="checkpoint.missing_key")
        return read_config(self.facts, found, what=what, where=where, path="jumok", error=CheckpointError)
