"""One run from recipe to model: train (or go on), choose the weights, score them, write the model folder."""

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from jumok.assemble import Run, assemble
from jumok.card import model_card
from jumok.data.corpus import Corpus, Split
from jumok.hub.folder import write_model
from jumok.predictor import Predictor, load
from jumok.recipe import Recipe
from jumok.score.significance import Score
from jumok.score.translation import bleu_by_length, score_translations
from jumok.text.formats import Pair
from jumok.train.checkpoint import write_atomically, write_folder
from jumok.train.distributed import leave_group
from jumok.train.folder import RunFolder
from jumok.train.loop import Event, Finished


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a training ended: its last event, and the signal that stopped it early, if one did."""

    finished: Finished
    signal: int | None


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


def run_training(
    recipe: Recipe,
    out: Path,
    *,
    began: Callable[[Run], None],
    watch: Callable[[Event], None],
    scoring: Callable[[str, int], Any],
) -> Outcome:
    """Train into `out`, telling `watch` every event; the model and its scores are written at the end.

    `scoring(split, sentences)` opens a progress bar: a context whose value is told what is done.
    """
    folder = RunFolder(out)
    run = assemble(recipe, folder)
    began(run)
    finished = Finished(0, "steps")
    try:
        with interruptible() as asked:
            for event in run.train(lambda: bool(asked)):
                if run.group.rank == 0:
                    folder.append(event)
                    watch(event)
                if isinstance(event, Finished):
                    finished = event
        if run.group.rank == 0 and finished.reason != "interrupted" and not folder.scores.exists():
            finish(run, scoring)
        run.group.barrier()
    finally:
        leave_group(run.group)
        folder.unlock()
    return Outcome(finished, asked[0] if asked and finished.reason == "interrupted" else None)


def finish(run: Run, scoring: Callable[[str, int], Any]) -> None:
    """Write RUN/model, score it on dev and test, and write RUN/scores.json and the model card."""
    model = run.model_folder()
    for leftover in run.folder.path.glob("model.*-*"):  # of a process that was killed right here
        shutil.rmtree(leftover, ignore_errors=True)
    write_folder(run.folder.model, lambda folder: write_model(folder, model, card=""))
    predictor = load(run.folder.path)
    splits: tuple[Split, ...] = ("dev", "test")
    scores: dict[str, Any] = {}
    for split in splits:
        pairs = list(Corpus(run.recipe.data, split, seed=run.recipe.seed))
        if pairs:
            with scoring(split, len(pairs)) as done:
                scores[split] = evaluate(predictor, pairs, done=done)[0]
    card = model_card(run.recipe, model, scores)
    write_folder(run.folder.model, lambda folder: write_model(folder, model, card=card))
    write_atomically(run.folder.scores, json.dumps(scores, indent=2, ensure_ascii=False) + "\n")


def evaluate(
    predictor: Predictor, pairs: list[Pair], *, done: Callable[[int], None] = lambda n: None, **options: Any
) -> tuple[dict[str, Any], list[str]]:
    """Scores with intervals and signatures of the predictor's outputs, and the outputs."""
    predictions = predictor.predict([pair.source for pair in pairs], done=done, **options)
    outputs = [prediction.text for prediction in predictions]
    references = [pair.target for pair in pairs]
    sources = [pair.source for pair in pairs]
    language = predictor.facts["target"]
    scores = score_translations(outputs, references, target_language=language)
    buckets = bleu_by_length(outputs, references, sources, target_language=language)
    return {
        "sentences": len(pairs),
        "scores": {score.name: _plain(score) for score in scores},
        "bleu_by_source_words": [_plain(bucket.score) for bucket in buckets],
    }, outputs


def _plain(score: Score) -> dict[str, Any]:
    numbers = asdict(score)
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in numbers.items()}
