"""Run folder -> predictor: the one way from examples to outputs, for the command line, Python and the tests."""

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from jumok.engines.fast_folder import LIBRARIES, engine_folder, read_engine
from jumok.errors import CheckpointError, InputError, listed
from jumok.hub.files import CONFIG, OUTLINE, checkpoint_steps, is_unfinished, model_folder, read_json
from jumok.tasks import task_named
from jumok.tasks.protocol import Predictor

if TYPE_CHECKING:
    from jumok.engines.fast_work import Layout
    from jumok.hub.folder import ModelFolder

SomePredictor = TypeVar("SomePredictor", bound=Predictor[Any, Any])
EngineName = Literal["torch", "fast"]
NOT_INSTALLED = "the fast engine is not installed: pip install 'jumok[fast]'"


@overload
def load(
    *runs: str | Path, device: str = "auto", max_characters: int | None = None, engine: EngineName | None = None
) -> Predictor[Any, Any]: ...
@overload
def load(
    *runs: str | Path,
    task: type[SomePredictor],
    device: str = "auto",
    max_characters: int | None = None,
    engine: EngineName | None = None,
) -> SomePredictor: ...
def load(
    *runs: str | Path,
    task: Any = None,
    device: str = "auto",
    max_characters: int | None = None,
    engine: EngineName | None = None,
) -> Any:
    """Load a predictor from a run folder or a model folder; several make an ensemble.

    Of a run that is not finished, the best checkpoint is used, and a warning says so.

    `task` is the expected predictor, so that an editor knows its outputs: `load(run, task=jumok.Translator)`.
    A text of more than `max_characters` is refused before it is tokenized; each predictor class has its default.
    `engine` is "torch", the reference, or "fast"; without it, the fast one is used if it has been built.
    """
    if not runs:
        hint = 'pass a run, e.g. jumok.load("runs/quickstart")'
        raise InputError("no run to load", hint=hint, code="input.no_run")
    paths = [_usable(Path(run)) for run in runs]
    predictor = None if engine == "torch" else _fast(paths, device, needed=engine == "fast")
    if predictor is None:
        predictor = _reference(paths, device)
    if task is not None and not isinstance(predictor, task):
        what = f"the run's task is {predictor.kind}, not {task.kind}"
        raise InputError(what, where=paths[0], hint="load another run, or leave out task=", code="input.task")
    if max_characters is not None:
        predictor.max_characters = max_characters
    return predictor


def _usable(run: Path) -> Path:
    """The model folder of a run, or the run itself if it has checkpoints only."""
    if is_unfinished(run):
        return run
    model = model_folder(run)
    if model != run and (steps := checkpoint_steps(run)):
        facts = read_json(model / CONFIG).get("jumok")
        step = facts.get("step") if isinstance(facts, dict) else None
        if isinstance(step, int) and step < steps[-1]:
            what = f"{run} was trained on to step {steps[-1]:,} since its model was made at step {step:,}"
            warnings.warn(f"{what}: jumok finish {run} makes it anew", stacklevel=3)
    return model


def _fast(paths: list[Path], device: str, *, needed: bool) -> Any:
    """A predictor on the fast engine; None if there is none, unless it is `needed`."""
    reason = why_not_fast(paths, device)
    try:
        if reason is not None:
            raise CheckpointError(reason, where=paths[0], hint='use engine = "torch"', code="engine.none")
        return open_fast(paths[0], engine_folder(paths[0]))
    except CheckpointError:
        if needed:
            raise
        return None


def why_not_fast(paths: list[Path], device: str = "auto") -> str | None:
    """Why the fast engine cannot be used, whatever the model is."""
    if len(paths) > 1:
        return "an ensemble needs the reference engine"
    if device not in ("auto", "cpu") or (device == "auto" and Path("/proc/driver/nvidia").exists()):
        return "the fast engine runs on CPUs only"
    if is_unfinished(paths[0]):
        return f"an unfinished run has the reference engine only: jumok finish {paths[0]} makes its model"
    facts = read_json(paths[0] / CONFIG).get("jumok")
    kind, task = _kinds(facts) if isinstance(facts, dict) else ("", "")
    if kind not in LIBRARIES or (kind == "gpt" and task != "language_model"):
        return "no other engine has such a model"
    if find_spec(LIBRARIES[kind]) is None:
        return NOT_INSTALLED
    return None


def _kinds(facts: dict[str, Any]) -> tuple[str, str]:
    """The kinds of the model and of its task."""
    model, task = (facts.get(key) for key in ("model", "task"))
    return tuple(str(each.get("kind")) if isinstance(each, dict) else "" for each in (model, task))  # type: ignore


def open_fast(model: Path, folder: Path, layout: "Layout | None" = None) -> Any:
    """A predictor on the engine in `folder`, which was built from the model. Imports torch only if that runs it."""
    from jumok.engines.fast import FastEngine

    built, tokenizers = read_engine(folder, model)
    if LIBRARIES[built.kind] == "torch":
        return _reference([model], "cpu", rounded=built.compute == "int8")
    config = built.facts["task"]
    kind = task_named(config["kind"], where=folder)
    facts = kind.read_facts(built.facts, where=folder)
    engine = FastEngine(built, folder, tokenizers, lambda: _reference([model], "cpu").engine, layout)
    return kind.predictor(engine, tokenizers, config, facts)


def _reference(paths: list[Path], device: str, *, rounded: bool = False) -> Any:
    """A predictor on the reference engine, or on its model with rounded weights; several models make an ensemble."""
    from jumok.engines.torch import open_engine  # torch takes a second to import
    from jumok.tasks.stored import read_model

    folders = [_best(path) if is_unfinished(path) else read_model(path) for path in paths]
    paths = [path / OUTLINE if is_unfinished(path) else path for path in paths]
    configs = [folder.facts["task"] for folder in folders]
    kinds = [task_named(config["kind"], where=path) for config, path in zip(configs, paths, strict=True)]
    facts = [
        kind.read_facts(f.facts, where=p / "config.json") for kind, f, p in zip(kinds, folders, paths, strict=True)
    ]
    meanings = [
        {"vocabulary": folder.tokenizers.hashes, **kind.meaning(config, found)}
        for kind, folder, config, found in zip(kinds, folders, configs, facts, strict=True)
    ]
    _refuse_mixture(meanings, paths)
    if len(folders) > 1 and not kinds[0].ensembles:
        what = f"{kinds[0].name} models cannot form an ensemble"
        raise InputError(what, where=paths[1], hint="pass a single run", code="input.ensemble")
    heads = [kind.head(config, found) for kind, config, found in zip(kinds, configs, facts, strict=True)]
    engine = open_engine(folders, heads, device=device, where=paths, rounded=rounded)
    return kinds[0].predictor(engine, folders[0].tokenizers, configs[0], facts[0])


def _best(run: Path) -> "ModelFolder":
    """The best checkpoint of an unfinished run, as a model."""
    from jumok.tasks.unfinished import best_so_far  # which needs what trains

    model, note = best_so_far(run)
    warnings.warn(note, stacklevel=4)
    return model


def _refuse_mixture(meanings: list[dict[str, object]], paths: list[Path]) -> None:
    """Refuse an ensemble whose models differ in task or vocabulary: a text is encoded once for all of them."""
    first = meanings[0]
    for meaning, path in zip(meanings, paths, strict=True):
        if differ := [key for key in {**first, **meaning} if meaning.get(key) != first.get(key)]:
            raise CheckpointError(
                f"the models of an ensemble must share their task and vocabulary; these differ in {listed(differ)}",
                where=f"{paths[0]} and {path}",
                hint="combine runs whose recipes have the same task, data and tokenizer",
                code="checkpoint.ensemble",
            )
