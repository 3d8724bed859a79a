"""Recipe -> events: train (or resume), choose the weights, score them, write the model folder.

`train` is a generator of events and knows neither signals nor terminals: those are up to its caller.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jumok.assemble import Run, assemble
from jumok.building import build_after
from jumok.card import model_card
from jumok.data.cache import Cache
from jumok.data.corpus import Corpus
from jumok.engines import Done, nobody
from jumok.engines.torch import choose_device
from jumok.errors import CheckpointError, DataError, InputError
from jumok.examples import SPLITS
from jumok.files import parse_json, verify_folder, write_folder
from jumok.hub.files import CONFIG, WEIGHTS
from jumok.predictor import load
from jumok.recipe import Recipe, load_recipe
from jumok.series import gather, series
from jumok.tasks.stored import write_model
from jumok.train.distributed import Group, join_group, leave_group
from jumok.train.folder import RunFolder
from jumok.train.length import Extended, Planned
from jumok.train.loop import Diverged, Evaluated, Finished, Interrupted, Resumed, Saved, Step, Threaded
from jumok.train.samples import Sampled


@dataclass(frozen=True, slots=True)
class Began:
    """Training is about to start, or to resume."""

    run: str
    parameters: int
    train_examples: int
    dev_examples: int
    vocabulary: int
    steps: int
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Scoring:
    """The finished model is about to be scored on a split."""

    split: str
    examples: int


@dataclass(frozen=True, slots=True)
class Scored:
    split: str
    result: dict[str, Any]


Event = (
    Began
    | Planned
    | Extended
    | Resumed
    | Step
    | Evaluated
    | Sampled
    | Saved
    | Threaded
    | Diverged
    | Scoring
    | Scored
    | Finished
)


def train(
    recipe: Recipe | str | Path,
    out: str | Path,
    *,
    overrides: Sequence[str] = (),
    stop: Callable[[], bool] = lambda: False,
    done: Done = nobody,
) -> Iterator[Event]:
    """Train into the folder `out`, or resume where it stopped; yields events, the last one being Finished.

    A recipe with several seeds or folds is trained once for each, into folders below `out`. When `stop` returns True,
    training ends with its step saved, whatever it is doing; the same call resumes it. Between Scoring and Scored,
    `done` is called with the number of examples scored since its last call. With several processes (torchrun), only
    the first yields.
    """
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(Path(recipe), overrides)
    parts = series(recipe)
    try:
        _prepare_folds(parts, Cache.of_user(_poll(stop)))
    except Interrupted:
        yield Finished(0, "interrupted")
        return
    for name, part in (parts or {"": recipe}).items():
        finished = None
        for event in _train_one(part, Path(out) / name, stop, done):
            finished = event if isinstance(event, Finished) else finished
            yield event
        if finished is not None and finished.reason == "interrupted":
            return
    if parts and os.environ.get("RANK", "0") == "0":
        gather(recipe, Path(out), [*parts])


def _train_one(recipe: Recipe, out: Path, stop: Callable[[], bool], done: Done) -> Iterator[Event]:
    folder, finished = RunFolder(out), Finished(0, "steps")
    group = join_group(choose_device(recipe.train.device), watchdog=60 * recipe.train.watchdog)
    poll = _poll(stop, group)

    def scored(n: int) -> None:
        poll()
        done(n)

    tells = group.rank == 0
    try:
        run = assemble(recipe, folder, group, poll)
        if tells:
            yield _began(run)
            for news in run.news:
                folder.append(news)
                yield news
        for event in run.train(stop):
            if tells:
                folder.append(event)
            if isinstance(event, Finished):
                finished = event
            elif tells:
                yield event
        with group.first_before_others():
            if tells and finished.reason != "interrupted" and not is_finished(run):
                yield from finish(run, scored)
    except Interrupted:
        finished = Finished(finished.step, "interrupted")
    except InputError:
        folder.leave_no_trace()
        raise
    finally:
        leave_group(group)
        folder.unlock()
    if tells:
        yield finished


def _poll(stop: Callable[[], bool], group: Group | None = None) -> Callable[[], None]:
    """Called now and then by long work: ends it when it is asked to, and tells the others of its progress."""

    def poll() -> None:
        if group is not None:
            group.working()
        if stop():
            raise Interrupted

    return poll


def _began(run: Run) -> Began:
    return Began(
        run=str(run.folder.path),
        parameters=sum(p.numel() for p in run.model.parameters()),
        train_examples=len(run.task.train),
        dev_examples=len(run.task.dev),
        vocabulary=run.task.tokenizers.target.vocab_size,
        steps=run.recipe.train.steps,
        notes=run.notes,
    )


def _prepare_folds(parts: Mapping[str, Recipe], cache: Cache) -> None:
    """Prepare the data of every fold before the first is trained, to find errors in any of them at once."""
    for name, part in parts.items():
        if getattr(part.data, "fold", None) is None or os.environ.get("RANK", "0") != "0":
            continue
        try:
            part.kind.prepare(part, cache)
        except DataError as error:
            what = f"in {name}: {error.what}"
            raise DataError(what, where=error.where, hint=error.hint, code=error.code) from error


def is_finished(run: Run) -> bool:
    """Whether model and scores are complete, and the ones that this recipe makes of its checkpoints."""
    try:
        verify_folder(run.folder.model, needs=[CONFIG, WEIGHTS])
        config = parse_json((run.folder.model / CONFIG).read_bytes())
        wanted = {"decode": asdict(run.recipe.decode), "final": run.recipe.train.final, "ended": False}
        as_wanted = all(config["jumok"].get(key, value) == value for key, value in wanted.items())
        steps = run.folder.checkpoints.steps()
        of_its_end = not steps or (run.folder.stored() or {}).get("scored", steps[-1]) == steps[-1]
        return as_wanted and of_its_end and run.folder.has_own_results()
    except (CheckpointError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def finish(run: Run, done: Done = nobody, *, ended: bool = False) -> Iterator[Event]:
    """Write RUN/model, score it on dev and test, and write RUN/scores.json and the model card."""
    run.folder.require_lock()
    model = run.model_folder(ended=ended)
    run.folder.forget_results()
    write_folder(run.folder.model, lambda folder: write_model(folder, model, card=""))
    predictor = _listening(load(run.folder.path, max_characters=sys.maxsize, engine="torch"), done)
    corpora = {split: Corpus[Any](run.recipe.data, split, seed=run.recipe.seed) for split in SPLITS[1:]}
    held_out: dict[str, list[Any]] = {split: list(corpus) for split, corpus in corpora.items()}
    sha256: dict[str, str] = {split: corpus.fingerprint() for split, corpus in corpora.items()}
    run.require_same_data(sha256)
    if run.recipe.old_domain is not None:
        held_out["old_domain"] = list(run.recipe.old_domain.read("test", seed=run.recipe.seed))
    if found := run.task.calibrated(predictor, held_out["dev"]):
        model = run.model_folder(ended=ended, **found)
        write_folder(run.folder.model, lambda folder: write_model(folder, model, card=""))
        predictor = _listening(load(run.folder.path, max_characters=sys.maxsize, engine="torch"), done)
    before, scores = run.before(done), dict[str, Any]()
    for split, examples in held_out.items():
        if not examples:
            continue
        yield Scoring(split, len(examples))
        scores[split] = predictor.score(examples, done=done)[0]
        if before is not None:
            scores[split]["before"] = before.score(examples)[0]
        if baselines := run.task.baseline_scores(examples):
            scores[split]["baselines"] = baselines
        if split in sha256:
            scores[split]["data"] = {"sha256": sha256[split], "as_trained": True}
        yield Scored(split, scores[split])
    run.folder.require_lock()
    card = model_card(run.recipe, model, scores, engine=build_after(run.folder.path, done))
    write_folder(run.folder.model, lambda folder: write_model(folder, model, card=card))
    run.folder.finish({**(run.folder.stored() or {}), "scored": run.folder.checkpoints.steps()[-1]}, scores)


def _listening(predictor: Any, done: Done) -> Any:
    """The predictor, asked before every batch whether to stop, whatever it computes: calibration counts no examples."""
    predictor.engine.between = done
    return predictor
