"""Which checkpoints become the model, and which one is best so far."""

from collections.abc import Sequence
from contextlib import suppress

from torch import Tensor

from jumok.errors import CheckpointError
from jumok.train.folder import RunFolder
from jumok.train.loop import LOWER_IS_BETTER, TrainConfig, planned_steps

TRIES = 3
"""times that the checkpoints are looked at while a training writes and removes them"""


def final_steps(folder: RunFolder, config: TrainConfig, steps: Sequence[int]) -> list[int]:
    """The checkpoints that `train.final` makes the model of, out of these."""
    last = steps[-1]
    match config.final:
        case "average":
            return planned_steps([*steps], config, last)[-config.keep_last :]
        case "best":
            best = folder.checkpoints.progress(last)["best_step"] or last  # no evaluation was a number
            return [best if best in steps else ranked(folder, config.metric, steps)[0][0]]
        case "last":
            return [last]


def final_weights(folder: RunFolder, config: TrainConfig, steps: Sequence[int]) -> dict[str, Tensor]:
    """The mean of several checkpoints, or one as it is."""
    checkpoints = folder.checkpoints
    return checkpoints.average([*steps]) if config.final == "average" else checkpoints.weights(steps[0])


def ranked(folder: RunFolder, metric: str, steps: Sequence[int]) -> list[tuple[int, float | None]]:
    """Steps with their dev scores, best first; then those that were not evaluated, newest first."""
    sign = -1 if metric in LOWER_IS_BETTER else 1
    scores: dict[int, float] = {}
    for event in folder.history():
        with suppress(LookupError, TypeError, AttributeError):  # a log that somebody edited
            if event["event"] == "evaluated" and isinstance(value := event["scores"].get(metric), int | float):
                scores[int(event["step"])] = value
    for step in reversed(steps):  # the log may be gone: a checkpoint knows the best one before it
        with suppress(CheckpointError):
            progress = folder.checkpoints.progress(step)
            best, score = progress.get("best_step"), progress.get("best")
            if isinstance(best, int) and isinstance(score, int | float):
                scores.setdefault(best, score)
            break
    evaluated = sorted((step for step in steps if step in scores), key=lambda step: (-sign * scores[step], step))
    return [(step, scores.get(step)) for step in [*evaluated, *(s for s in reversed(steps) if s not in scores)]]


def best_weights(folder: RunFolder, metric: str) -> tuple[dict[str, Tensor], int, float | None, list[str]]:
    """The weights of the best checkpoint that can be read, its step and dev score, and notes on damaged ones.

    A training may go on meanwhile: what it removes is not damaged.
    """
    for _ in range(TRIES):
        damaged: list[str] = []
        for step, score in ranked(folder, metric, folder.checkpoints.steps()):
            try:
                return folder.checkpoints.weights(step), step, score, damaged
            except (CheckpointError, OSError) as error:
                if not folder.checkpoints.path(step).exists():
                    break
                damaged.append(damage(step, error))
        else:
            break
    what = f"the run has no checkpoint that can be read{': ' if damaged else ''}{'; '.join(damaged)}"
    hint = "run its `jumok train` command: it says what to do about damaged checkpoints"
    raise CheckpointError(what, where=folder.checkpoints.folder, hint=hint, code="checkpoint.no_checkpoints")


def damage(step: int, error: CheckpointError | OSError) -> str:
    what = f"{error.what} ({error.where})" if isinstance(error, CheckpointError) else str(error)
    return f"checkpoint step-{step} is left out, it is {what}"
