"""What a person sees of a training: a progress bar on a terminal, plain lines anywhere else."""

from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from jumok.assemble import Run
from jumok.recipe import Recipe
from jumok.train.loop import Evaluated, Event, Finished, Resumed, Saved, Step

PLAIN_LINE_SECONDS = 10.0


class TrainingReport:
    """Reads events; knows nothing of how they come about."""

    def __init__(self, recipe: Recipe, out: Path, console: Console) -> None:
        self.recipe = recipe
        self.out = out
        self.console = console
        self.rank = 0
        self.tokens = 0
        self.since = perf_counter()
        self.speed = 0.0
        self.bar: Progress | None = None
        self.bar_task: TaskID | None = None
        self.board: Any = None

    def __enter__(self) -> "TrainingReport":
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self.bar:
            self.bar.stop()
        if self.board:
            self.board.close()

    def began(self, run: Run) -> None:
        self.rank = run.group.rank
        if self.rank:
            return
        parameters = sum(p.numel() for p in run.model.parameters())
        self.console.print(
            f"{self.out}: {parameters:,} parameters, {len(run.task.train):,} training pairs,"
            f" {len(run.task.dev):,} dev pairs, vocabulary {run.task.tokenizers.target.vocab_size:,}"
        )
        for warning in run.warnings:
            self.console.print(f"note: {warning}", markup=False)
        if self.recipe.train.tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(self.out / "tensorboard"))  # type: ignore[no-untyped-call]
        if self.console.is_terminal:
            self.bar = Progress(
                TextColumn("step"),
                MofNCompleteColumn(),
                BarColumn(),
                TextColumn("{task.fields[state]}"),
                TimeRemainingColumn(),
                console=self.console,
            )
            self.bar_task = self.bar.add_task("", total=self.recipe.train.steps, state="")
            self.bar.start()
        self.since = perf_counter()

    def watch(self, event: Event) -> None:
        match event:
            case Resumed():
                self.console.print(f"going on from step {event.step}")
                if self.bar and self.bar_task is not None:
                    self.bar.update(self.bar_task, completed=event.step)
            case Step():
                self._step(event)
            case Evaluated():
                scores = "  ".join(f"{name} {value:.2f}" for name, value in event.scores.items())
                self.console.print(f"step {event.step}: dev {scores}{'  (best)' if event.best else ''}")
                if self.board:
                    for name, value in event.scores.items():
                        self.board.add_scalar(f"eval/{name}", value, event.step)
            case Saved() | Finished():
                pass

    def _step(self, event: Step) -> None:
        self.tokens += event.tokens
        elapsed = perf_counter() - self.since
        if elapsed > (1.0 if self.bar else PLAIN_LINE_SECONDS):
            self.speed, self.tokens, self.since = self.tokens / elapsed, 0, perf_counter()
            if not self.bar:
                self.console.print(f"step {event.step}/{self.recipe.train.steps}: {self._state(event)}")
        if self.bar and self.bar_task is not None:
            self.bar.update(self.bar_task, completed=event.step, state=self._state(event))
        if self.board:
            self.board.add_scalar("train/loss", event.loss, event.step)
            self.board.add_scalar("train/lr", event.learning_rate, event.step)
            self.board.add_scalar("train/grad_norm", event.grad_norm, event.step)
            self.board.add_scalar("train/tokens_per_sec", event.tokens / event.seconds, event.step)

    def _state(self, event: Step) -> str:
        return (
            f"loss {event.loss:.3f}  rate {event.learning_rate:.2e}  epoch {event.epoch}  {self.speed:,.0f} tokens/s"
        )

    def finish(self, finished: Finished) -> None:
        if self.rank:
            return
        if finished.reason == "interrupted":
            self.console.print(f"saved at step {finished.step}; the same command goes on from there")
            return
        reason = "patience has run out" if finished.reason == "patience" else "done"
        self.console.print(f"{reason}: the model is in {self.out / 'model'}, its scores in {self.out / 'scores.json'}")
