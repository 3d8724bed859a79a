"""The training loop: a generator of events that runs the steps and leaves the rest to its caller.

    loss = sum of all micro-batches' totals / count of all their targets, over every process

(summed over losses if there are several, such as BERT's two), so padding, accumulation and the number of processes do
not change it. Randomness in a step depends on (seed, step, rank), the order of examples on (seed, epoch): to resume, a
checkpoint needs its step, epoch and batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from time import perf_counter
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from jumok.config import Count, Positive, Steps
from jumok.errors import RunError
from jumok.threads import MOST_THREADS, Threads
from jumok.train.batches import Batches
from jumok.train.checkpoint import Checkpoints
from jumok.train.distributed import Group
from jumok.train.layers import Layers, TransferConfig
from jumok.train.optimizer import OptimizerConfig, learning_rate

LOWER_IS_BETTER = {"perplexity", "bits_per_byte", "mean_absolute_error"}
Metric = Literal[
    "perplexity",
    "bits_per_byte",
    "bleu",
    "exact_match",
    "accuracy",
    "macro_f1",
    "micro_f1",
    "mcc",
    "pearson",
    "spearman",
    "mean_absolute_error",
    "answer_f1",
    "span_f1",
    "tag_accuracy",
    "masked_accuracy",
]


@dataclass(frozen=True, slots=True)
class Loss:
    """A sum, or several [k], with the count of its terms; the mean is taken once, over the whole step."""

    total: Tensor
    count: int | tuple[int, ...]


class Task(Protocol):
    """The interface that the loop needs from a task."""

    @property
    def losses(self) -> tuple[str, ...]:
        """The names of the losses: one, or several that are added up."""
        ...

    def batches(self, epoch: int) -> Iterator[Any]: ...
    def batch(self, examples: Any) -> Any: ...
    def name(self, examples: Any) -> str: ...
    def loss(self, model: Any, batch: Any, *, done: float) -> Loss:
        """`done` is the fraction of steps already taken."""
        ...

    def evaluate(self, model: Any, *, done: Callable[[int], None]) -> dict[str, float]:
        """Dev scores; `done` is called with the number of examples finished since its last call, and may raise."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """Steps, batches, evaluation and checkpoints."""

    steps: Count = 100_000
    """how long to train, unless epochs or minutes say it"""
    epochs: Count | None = None
    """passes over the training data, instead of `steps`"""
    minutes: Positive | None = None
    """as many steps as fit into this time on this machine, evaluations and final scores included, instead of `steps`"""
    batch_tokens: Annotated[int, Field(ge=1, le=2**24)] = 4096
    """tokens per batch, padding included, on its longer side"""
    accumulate: Count = 1
    """batches whose gradients are summed for one step"""
    optimizer: OptimizerConfig = OptimizerConfig()
    transfer: TransferConfig = TransferConfig()
    evaluate_every: Steps = 1000
    """steps, or below 1 a fraction of all steps; likewise save_every"""
    save_every: Steps = 1000
    keep_last: Count = 5
    """checkpoints kept besides the best one; also how many are averaged"""
    final: Literal["average", "best", "last"] = "average"
    """the final model: the mean of the last `keep_last` checkpoints (Vaswani et al. 2017, section 6.1), the best one,
    or the last one; tasks other than translation default to best"""
    metric: Metric = "perplexity"
    """dev metric that decides which checkpoint is best"""
    patience: Count | None = None
    """stop after this many evaluations without improvement"""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    threads: Annotated[int, Field(ge=1, le=MOST_THREADS)] | None = None
    """CPU threads of this process; by default one per core that no other program uses, adjusted when that changes, in
    which case the last bits of the result may differ"""
    watchdog: Positive = 10.0
    """minutes without progress after which the other processes of a group take one for stuck, and end"""
    tensorboard: bool = False

    @property
    def length(self) -> tuple[Literal["steps", "epochs", "minutes"], float]:
        """What decides how long to train, and its value."""
        if self.minutes is not None:
            return "minutes", self.minutes
        return ("steps", self.steps) if self.epochs is None else ("epochs", self.epochs)

    def counted(self, epoch_lengths: Callable[[int], int]) -> int:
        """The number of steps that `steps` or `epochs` are; `epoch_lengths` counts the batches of an epoch."""
        if self.epochs is None:
            return self.steps
        return max(sum(map(epoch_lengths, range(self.epochs))) // self.accumulate, 1)

    def resolved(self, steps: int, *, shares_of: int | None = None) -> "TrainConfig":
        """Train for so many steps; fractions become numbers of steps, of those that were planned at first."""

        def counted(amount: float) -> int:
            return int(amount) if amount >= 1 or not amount else max(round(amount * (shares_of or steps)), 1)

        return replace(
            self,
            steps=steps,
            evaluate_every=counted(self.evaluate_every),
            save_every=counted(self.save_every),
            optimizer=replace(self.optimizer, warmup=counted(self.optimizer.warmup)),
            transfer=replace(self.transfer, unfreeze_every=counted(self.transfer.unfreeze_every)),
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands: everything besides weights and moments that is needed to resume."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """batches of this epoch already taken"""
    best: float | None = None
    best_step: int | None = None
    worse: int = 0
    """evaluations since the best one"""
    unevaluated: bool = False
    """the evaluation of this step was interrupted"""
    finished: bool = False


class Interrupted(Exception):
    """Raised by a callback, to stop work that takes long."""


@dataclass(frozen=True, slots=True)
class Resumed:
    step: int


@dataclass(frozen=True, slots=True)
class Step:
    step: int
    epoch: int
    loss: float
    learning_rate: float
    grad_norm: float
    tokens: int
    seconds: float
    parts: dict[str, float] = field(default_factory=dict)
    """each loss, if there are several"""


@dataclass(frozen=True, slots=True)
class Evaluated:
    step: int
    scores: dict[str, float]
    best: bool


@dataclass(frozen=True, slots=True)
class Saved:
    step: int
    folder: str


@dataclass(frozen=True, slots=True)
class Finished:
    step: int
    reason: Literal["steps", "patience", "interrupted", "ended"]
    """"ended": by somebody, before its time"""


@dataclass(frozen=True, slots=True)
class Threaded:
    """The number of threads changed because other programs came or went."""

    step: int
    threads: int


@dataclass(frozen=True, slots=True)
class Diverged:
    """Loss, gradient or weights are no longer finite; the step is not saved, and training ends with an error."""

    step: int
    what: str


Event = Resumed | Step | Evaluated | Saved | Threaded | Diverged | Finished


def train(
    model: nn.Module,
    task: Task,
    config: TrainConfig,
    *,
    optimizer: torch.optim.Optimizer,
    peak_rate: float,
    checkpoints: Checkpoints,
    seed: int,
    group: Group | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    threads: Threads | None = None,
    since: int = 0,
) -> Iterator[Event]:
    """Train from the newest checkpoint, or from the beginning, until the steps or the patience run out.

    A run that had finished at the step `since` goes on.
    """
    group = group or Group()
    progress = Progress(**(checkpoints.restore(model, optimizer) or {}))
    if progress.step:
        yield Resumed(progress.step)
    if progress.finished and progress.step == since:
        progress = replace(progress, finished=False, worse=0)
    if progress.finished:
        yield Finished(progress.step, "steps" if progress.step == config.steps else "patience")
        return
    source, layers = Batches(task.batches, progress.epoch, progress.batch), Layers(model, config.transfer)
    reason: Literal["steps", "patience", "interrupted"] = "steps"
    while progress.unevaluated or progress.step < config.steps:
        if not progress.unevaluated:
            layers.at(progress.step + 1)
            try:
                event = take_step(model, task, config, optimizer, peak_rate, source, progress.step + 1, seed, group)
            except RunError as error:
                if error.code == "run.not_finite":
                    yield Diverged(progress.step + 1, error.what)
                    raise _diverged(error, checkpoints.steps()) from error
                raise
            progress = replace(progress, step=event.step, epoch=source.epoch, batch=source.batch)
            yield event
            if threads is not None and threads.look():
                yield Threaded(progress.step, threads.n)
        last = progress.step == config.steps
        better = False
        if last or progress.unevaluated or progress.step % config.evaluate_every == 0:
            evaluated, progress = _evaluate(model, task, config, progress, group, interrupted)
            if evaluated is not None:
                yield evaluated
                better = evaluated.best
                if config.patience is not None and progress.worse >= config.patience:
                    reason = "patience"
        stopping = progress.unevaluated or group.any(interrupted())
        finished = (last or reason == "patience") and not progress.unevaluated
        if finished or stopping or better or progress.step % config.save_every == 0:
            progress = replace(progress, finished=finished)
            with group.first_before_others():
                if group.rank == 0:
                    folder = checkpoints.save(progress.step, model, optimizer, asdict(progress))
                    # At least two, in case the newest is damaged.
                    kept = planned_steps(checkpoints.steps(), config, progress.step)[-max(config.keep_last, 2) :]
                    checkpoints.prune(keep={*kept, progress.step, progress.best_step or progress.step})
                    yield Saved(progress.step, str(folder))
        if finished or stopping:
            reason = reason if finished else "interrupted"
            break
    yield Finished(progress.step, reason)


def planned_steps(saved: list[int], config: TrainConfig, last: int) -> list[int]:
    """The checkpoints that an uninterrupted run also has, without those saved on interruption."""
    return [step for step in saved if step % config.save_every == 0 or step == last]


def take_step(
    model: nn.Module,
    task: Task,
    config: TrainConfig,
    optimizer: torch.optim.Optimizer,
    peak_rate: float,
    source: Batches,
    step: int,
    seed: int,
    group: Group,
) -> Step:
    """One update of the weights; the steps are counted from 1."""
    began = perf_counter()
    model.train()
    taken = [source.take()]
    first = (source.epoch, source.batch - 1)
    taken += [source.take() for _ in range(config.accumulate - 1)]
    # Each process takes every world-th example of each batch; with fewer examples than processes some get none.
    shares = [examples[group.rank :: group.world] for examples in taken]
    batches = [task.batch(share) for share in shares if len(share)]
    counts = [[*_each(batch.count)] for batch in batches] or [[0] * len(task.losses)]
    count = torch.tensor([max(1.0, group.sum(sum(column))) for column in zip(*counts, strict=True)])
    torch.manual_seed(_mix(seed, step, group.rank))
    optimizer.zero_grad(set_to_none=True)
    totals = torch.zeros(len(count), dtype=torch.float64)
    for batch in batches:
        loss = task.loss(model, batch, done=(step - 1) / config.steps).total.reshape(-1)
        totals += loss.detach().double().cpu()
        (loss / count.to(loss.device)).sum().backward()  # type: ignore[no-untyped-call]
    means = [group.sum(float(t)) / float(n) for t, n in zip(totals, count, strict=True)]
    total = sum(means)
    parameters = [p for p in model.parameters() if p.requires_grad]
    group.sum_gradients(parameters)
    norm = float(nn.utils.clip_grad_norm_(parameters, config.optimizer.clip_norm or inf))
    where = f"epoch {first[0]}, batch {first[1]}: {task.name(np.concatenate(taken))}"
    if not isfinite(total) or not isfinite(norm):
        what = f"step {step}: the {'gradient' if isfinite(total) else 'loss'} is not finite"
        raise RunError(what, where=where, code="run.not_finite")
    rate = learning_rate(step, config.optimizer, peak=peak_rate, steps=config.steps)
    for group_of_parameters in optimizer.param_groups:
        group_of_parameters["lr"] = rate * group_of_parameters.get("scale", 1.0)
    optimizer.step()
    if not isfinite(float(nn.utils.get_total_norm([p.detach() for p in parameters]))):
        what = f"step {step}: the weights are not finite after the update"
        raise RunError(what, where=where, code="run.not_finite")
    tokens = int(group.sum(sum(_each(getattr(batch, "tokens", batch.count))[0] for batch in batches)))
    parts = dict(zip(task.losses, means, strict=True)) if len(means) > 1 else {}
    return Step(step, first[0], total, rate, norm, tokens, perf_counter() - began, parts)


def _diverged(error: RunError, saved: list[int]) -> RunError:
    last = f"from step {saved[-1]}, the last checkpoint" if saved else "from the beginning"
    hint = (
        f"resume {last} with the same command and a lower train.optimizer.learning_rate, a longer warmup or"
        " clip_norm = 1.0; or check those examples"
    )
    return RunError(error.what, where=error.where, hint=hint, code=error.code)


def _each(count: int | tuple[int, ...]) -> tuple[int, ...]:
    return count if isinstance(count, tuple) else (count,)


def _mix(seed: int, step: int, rank: int) -> int:
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _evaluate(
    model: nn.Module,
    task: Task,
    config: TrainConfig,
    progress: Progress,
    group: Group,
    interrupted: Callable[[], bool],
) -> tuple[Evaluated | None, Progress]:
    """The first process evaluates; asked to stop, it leaves the evaluation to whoever resumes."""

    def done(_: int) -> None:
        group.working()
        if interrupted():
            raise Interrupted

    model.eval()
    scores, stopped = dict[str, float](), False
    with group.first_before_others():
        if group.rank == 0:
            try:
                scores = task.evaluate(model, done=done)
            except Interrupted:
                stopped = True
    if group.any(stopped):
        return None, replace(progress, unevaluated=True)
    progress = replace(progress, unevaluated=False)
    value = group.sum(scores.get(config.metric, 0.0))  # the other processes add 0
    sign = -1 if config.metric in LOWER_IS_BETTER else 1
    better = isfinite(value) and (progress.best is None or sign * value > sign * progress.best)
    if better:
        progress = replace(progress, best=value, best_step=progress.step, worse=0)
    else:
        progress = replace(progress, worse=progress.worse + 1)
    return Evaluated(progress.step, scores, better), progress
