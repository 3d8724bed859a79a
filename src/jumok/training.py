"""One run from recipe to model: train (or go on), choose the weights, score them, write the model folder."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from jumok.assemble import Run, assemble
from jumok.card import model_card
from jumok.data.corpus import SPLITS, Corpus
from jumok.data.files import FileData
from jumok.errors import CheckpointError, DataError
from jumok.hub.folder import write_model
from jumok.models import Gpt
from jumok.predictor import Answerer, Classifier, Predictor, load
from jumok.prepare import cache_folder, prepare
from jumok.recipe import Recipe
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import noted_later
from jumok.train.checkpoint import verify_folder, write_atomically, write_folder
from jumok.train.distributed import leave_group
from jumok.train.folder import RunFolder
from jumok.train.loop import Event, Finished, Step


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a training ended: its last event, and the signal that stopped it early, if one did."""

    finished: Finished
    signal: int | None


class Watcher(Protocol):
    """Who is told what a training does."""

    def began(self, run: Run) -> None: ...
    def watch(self, event: Event) -> None: ...
    def stopping(self) -> None: ...
    def scoring(self, split: str, sentences: int) -> AbstractContextManager[Callable[[int], None]]:
        """The context's value is told how many more sentences are done."""
        ...


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """SIGTERM and Ctrl-C ask the run to save and stop: they fill the list. A second Ctrl-C stops it at once."""
    asked: list[int] = []

    def ask(number: int, _: FrameType | None) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(number)

    old = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def prepare_folds(parts: Mapping[str, Recipe]) -> None:
    """The data of every fold, before the first is trained: what is wrong with the last is found at once."""
    for name, part in parts.items():
        if not isinstance(part.data, FileData) or part.data.fold is None or os.environ.get("RANK", "0") != "0":
            continue
        try:
            prepare(part, cache_folder())
        except DataError as error:
            raise DataError(f"in {name}: {error.what}", where=error.where, right=error.right) from error


def run_training(recipe: Recipe, out: Path, watcher: Watcher) -> Outcome:
    """Train into `out`, telling the watcher every event; the model and its scores are written at the end."""
    folder = RunFolder(out)
    try:
        run = assemble(recipe, folder)
        watcher.began(run)
        finished = Finished(0, "steps")
        with interruptible() as asked:
            for event in run.train(lambda: bool(asked)):
                if run.group.rank == 0:
                    folder.append(event)
                    watcher.watch(event)
                    if asked and isinstance(event, Step):
                        watcher.stopping()
                if isinstance(event, Finished):
                    finished = event
        if run.group.rank == 0 and finished.reason != "interrupted" and not is_finished(run):
            finish(run, watcher)
        run.group.barrier()
    finally:
        leave_group()
        folder.unlock()
    return Outcome(finished, asked[0] if asked and finished.reason == "interrupted" else None)


def is_finished(run: Run) -> bool:
    """Whether model and scores are there, whole, and those that this recipe makes of its checkpoints."""
    try:
        verify_folder(run.folder.model)
        config = json.loads((run.folder.model / "config.json").read_text("utf-8"))
        scores = json.loads(run.folder.scores.read_text("utf-8"))
        wanted = {"decode": asdict(run.recipe.decode), "final": run.recipe.train.final}
        return bool(scores) and all(config["jumok"].get(key, value) == value for key, value in wanted.items())
    except (CheckpointError, OSError, ValueError, KeyError, TypeError):
        return False


def finish(run: Run, watcher: Watcher) -> None:
    """Write RUN/model, score it on dev and test, and write RUN/scores.json and the model card."""
    model = run.model_folder()
    for leftover in run.folder.path.glob("model.*-*"):  # of a process that was killed right here
        shutil.rmtree(leftover, ignore_errors=True)
    write_folder(run.folder.model, lambda folder: write_model(folder, model, card=""))
    predictor = load(run.folder.path)
    scores: dict[str, Any] = {}
    held_out: dict[str, list[Any]] = {
        split: list(Corpus(run.recipe.data, split, seed=run.recipe.seed)) for split in SPLITS[1:]
    }
    if run.recipe.old_domain is not None:
        held_out["old_domain"] = list(run.recipe.old_domain.read("test", seed=run.recipe.seed))
    if found := found_on_dev(predictor, held_out["dev"]):
        model = run.model_folder(**found)
        write_folder(run.folder.model, lambda folder: write_model(folder, model, card=""))
        predictor = load(run.folder.path)
    before = run.before()
    for split, examples in held_out.items():
        if examples:
            with watcher.scoring(split, len(examples)) as done:
                scores[split] = predictor.score(examples, done=done)[0]
                if before is not None:
                    scores[split]["before"] = before.score(examples)[0]
                if isinstance(run.task, OneTextTask) and (baselines := run.task.baseline_scores(examples)):
                    scores[split]["baselines"] = baselines
    card = model_card(run.recipe, model, scores)
    write_folder(run.folder.model, lambda folder: write_model(folder, model, card=card))
    write_atomically(run.folder.scores, json.dumps(scores, indent=2, ensure_ascii=False) + "\n")


_ENOUGH = 30  # texts that tell how sure a classifier may be; a temperature that fewer tell made it worse elsewhere


def found_on_dev(predictor: Predictor, dev: list[Any]) -> dict[str, float]:
    """The temperature that makes a classifier as sure as it is right; the threshold from which an answer is better than
    none. Nothing, where it has no say in that."""
    found: dict[str, float | None] = {}
    match predictor:
        case Answerer():
            found["threshold"] = predictor.best_threshold(dev)
        case Classifier() if len(dev) >= _ENOUGH and not any(isinstance(model, Gpt) for model in predictor.models):
            with noted_later({}):  # the score of dev says how many of its texts are long
                believed = predictor.believed(dev)
            gold = predictor.targets.gold(dev)
            if not bool((predictor.targets.decided(believed) == gold).all()):  # it could be ever more sure of itself
                found["temperature"] = predictor.targets.temperature(believed, gold)
    return {name: value for name, value in found.items() if value is not None}
