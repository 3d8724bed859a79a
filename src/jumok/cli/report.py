"""Terminal output: a progress bar or plain lines while training, tables of scores, findings and costs."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from jumok.errors import InputError
from jumok.examples.pairs import Pair
from jumok.findings import Finding
from jumok.recipe import Recipe
from jumok.score.significance import Comparison
from jumok.series import parts_of
from jumok.show import Cost, Time
from jumok.train.folder import RunFolder
from jumok.train.length import Extended, Planned
from jumok.train.loop import Diverged, Evaluated, Finished, Resumed, Saved, Step, Threaded
from jumok.train.samples import Sampled
from jumok.training import Began, Event, Scored, Scoring

PLAIN_LINE_SECONDS = 10.0
SHORT_SECONDS = 2.0
"""anything shorter needs no estimate of the time left"""


class TrainingReport:
    """Prints the events of a training run."""

    def __init__(self, recipe: Recipe, out: Path, console: Console, asked: Sequence[int] = ()) -> None:
        """`asked` fills up when the user asks training to stop."""
        self.recipe, self.out, self.console, self.asked = recipe, out, console, asked
        self.steps = recipe.train.steps
        self.tokens, self.seconds = 0, 0.0  # of the steps since `since`, without evaluations
        self.since = perf_counter()
        self.speed = 0.0
        self.first = (-1, 0.0)  # the step before the first of this process, and when it was
        self.bar: Progress | None = None
        self.bar_task: TaskID | None = None
        self.board: Any = None
        self.told_to_stop = False
        self._scoring = ExitStack()
        self._scored: Callable[[int], None] = lambda n: None

    def __enter__(self) -> "TrainingReport":
        if os.environ.get("RANK", "0") == "0":
            self.console.print(f"{self.out}: reading the data")
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._stop_bar()
        self._scoring.close()
        if self.board:
            self.board.close()

    def watch(self, event: Event) -> None:
        match event:
            case Began():
                self._began(event)
            case Planned():
                self._planned(event)
            case Extended():
                self._extended(event)
            case Resumed():
                self.console.print(f"resuming from step {event.step}")
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
            case Scoring():
                self._stop_bar()
                bar = progress_bar(self.console, f"scoring {event.split}", event.examples)
                self._scored = self._scoring.enter_context(bar)
            case Scored():
                self._scoring.close()
                self._scored = lambda n: None
            case Finished():
                self._finished(event)
            case Threaded():
                self.console.print(f"step {event.step}: {event.threads} threads from here on, as cores are free")
            case Saved() | Sampled() | Diverged():
                pass

    def scored(self, n: int) -> None:
        """Advance the progress by n scored examples."""
        self._scored(n)

    def _began(self, began: Began) -> None:
        self.out, self.steps = Path(began.run), began.steps
        self.console.print(
            f"{began.run}: {began.parameters:,} parameters, {began.train_examples:,} training examples,"
            f" {began.dev_examples:,} dev examples, vocabulary {began.vocabulary:,}"
        )
        for note in began.notes:
            self.console.print(f"note: {note}", markup=False)
        if self.recipe.train.tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                hint = "pip install 'jumok[tensorboard]'"
                raise InputError("TensorBoard is not installed", hint=hint, code="input.extra") from error
            self.board = SummaryWriter(str(self.out / "tensorboard"))
        if self.console.is_terminal:
            self._stop_bar()
            self.bar = Progress(
                TextColumn("step"),
                MofNCompleteColumn(),
                BarColumn(),
                TextColumn("{task.fields[state]}"),
                TimeRemainingColumn(),
                console=self.console,
            )
            self.bar_task = self.bar.add_task("", total=self.steps, state="")
            self.bar.start()
        self.since = perf_counter()

    def _planned(self, planned: Planned) -> None:
        minutes = f"{planned.minutes:g} minute{'' if planned.minutes == 1 else 's'}"
        self.console.print(
            f"{minutes}: {planned.steps:,} steps at {_brief(planned.seconds_per_step)}, evaluations at"
            f" {_brief(planned.seconds_per_evaluation)}, final scores in {_brief(planned.seconds_of_scoring)}"
        )

    def _extended(self, extended: Extended) -> None:
        steps = f"{extended.steps:,}"
        self.console.print(
            f"going on from step {extended.step:,} to {steps} instead of {extended.before:,}: the learning rate, now"
            f" {extended.rate_before:.2e}, continues at {extended.learning_rate:.2e}, as if {steps} steps had been"
            " planned from the start"
        )

    def _stop_bar(self) -> None:
        if self.bar:
            self.bar.stop()
            self.bar = None

    def _step(self, event: Step) -> None:
        if self.first[0] < 0:
            self.first = event.step - 1, perf_counter() - event.seconds
        self.tokens += event.tokens
        self.seconds += event.seconds
        if perf_counter() - self.since > (1.0 if self.bar else PLAIN_LINE_SECONDS):
            self.speed, self.tokens, self.seconds, self.since = self.tokens / self.seconds, 0, 0.0, perf_counter()
            if not self.bar:
                state = f"{self._state(event)}  {_duration(self._left(event))} left"
                self.console.print(f"step {event.step}/{self.steps}: {state}")
        if self.bar and self.bar_task is not None:
            self.bar.update(self.bar_task, completed=event.step, state=self._state(event))
        if self.board:
            self.board.add_scalar("train/loss", event.loss, event.step)
            self.board.add_scalar("train/lr", event.learning_rate, event.step)
            self.board.add_scalar("train/grad_norm", event.grad_norm, event.step)
            self.board.add_scalar("train/tokens_per_sec", event.tokens / event.seconds, event.step)
        if self.asked and not self.told_to_stop:
            self.told_to_stop = True
            self.console.print("stopping: saving this step (press Ctrl-C again to stop without saving)")

    def _left(self, event: Step) -> float:
        """Seconds, at the pace since the first step of this process, evaluations included."""
        first, began = self.first
        return (perf_counter() - began) / (event.step - first) * (self.steps - event.step)

    def _state(self, event: Step) -> str:
        return f"loss {event.loss:.3f}  rate {event.learning_rate:.2e}  epoch {event.epoch}  {self.speed:,.0f} tokens/s"

    def _finished(self, finished: Finished) -> None:
        self._stop_bar()
        if finished.reason == "interrupted":
            self.console.print(f"saved at step {finished.step}; run the same command to resume")
            return
        reason = "stopped early, out of patience" if finished.reason == "patience" else "done"
        scores = f", its scores in {self.out / 'scores.json'}" if (self.out / "scores.json").exists() else ""
        self.console.print(f"{reason}: the model is in {self.out / 'model'}{scores}")


def _brief(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else _duration(seconds)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes}:{rest:02d}"


@contextmanager
def progress_bar(console: Console, what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, else lines with the time left; yields a function that advances it by n sentences.

    The first of these lines comes after two seconds.
    """
    if quiet:
        yield lambda n: None
        return
    if not console.is_terminal:
        console.print(f"{what}: {total:,} sentences")
        yield _plain_progress(console, what, total)
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda n: bar.advance(task, n)


def _plain_progress(console: Console, what: str, total: int) -> Callable[[int], None]:
    began = perf_counter()
    done, following = 0, began + SHORT_SECONDS

    def advance(n: int) -> None:
        nonlocal done, following
        done += n
        now = perf_counter()
        if 0 < done < total and now >= following:
            following = now + PLAIN_LINE_SECONDS
            left = _duration((now - began) / done * (total - done))
            console.print(f"{what}: {done:,}/{total:,}  {left} left")

    return advance


def print_scores(console: Console, split: str, result: dict[str, Any]) -> None:
    table = Table(title=f"{split}: {result['sentences']} sentences", title_justify="left", box=SIMPLE)
    for name in ("metric", "score", "95 % interval", "sentences"):
        table.add_column(name, justify="left" if name == "metric" else "right")
    for score in [*result["scores"].values(), *result.get("bleu_by_source_words", [])]:
        interval = f"{score['low']:.2f} – {score['high']:.2f}"
        table.add_row(score["name"], _value(score), interval, _mean_of(score) or str(score["n"]))
    console.print(table)
    if "before" in result:
        _print_before_and_after(console, split, result)
    for name, baseline in result.get("baselines", {}).items():
        found = ", ".join(f"{metric} {value:.2f}" for metric, value in baseline.items())
        console.print(f"  baseline, {name.replace('_', ' ')}: {found}", style="dim")
    if "calibration_error" in result:
        said = f"{result['calibration_error']:.2f} %"
        if "calibration_error_before" in result:
            said += f", before calibration on dev {result['calibration_error_before']:.2f} %"
        console.print(f"  calibration error: {said}", style="dim")
    for score in result["scores"].values():
        console.print(f"  {score['name']}: {score['signature']}", markup=False, style="dim")
    console.print()


def print_short_scores(console: Console, out: Path) -> None:
    """Print a line per split: the score that chose the model, or the first one, what it averages, and its baselines."""
    stored = RunFolder(out).stored()
    chosen_by = stored["recipe"]["train"]["metric"] if stored else None
    for split, result in RunFolder(out).results().items():
        name = chosen_by if chosen_by in result["scores"] else next(iter(result["scores"]), None)
        if name is None:
            continue
        score = result["scores"][name]
        said = [f"{name} {_value(score)} ({score['low']:.2f} – {score['high']:.2f})"]
        said += filter(None, [_mean_of(score)])
        against = {what: found[name] for what, found in result.get("baselines", {}).items() if name in found}
        said += [f"{what.replace('_', ' ')} {value:.2f}" for what, value in against.items()]
        console.print(f"{split}: {', '.join(said)}", markup=False)
        if "before" in result:
            _print_before_and_after(console, split, result)


def print_which_model(console: Console, run: Path) -> None:
    """Point out that the scores of a series are means, but its model comes from a single training run."""
    if parts := parts_of(run):
        said = f"{run} has the best model on dev of {len(parts)} training runs, and only that one is scored here"
        console.print(
            f"note: {said}; the means of {parts[0]} to {parts[-1]} are in {run / 'scores.json'}", markup=False
        )


def _value(score: dict[str, Any]) -> str:
    """The value, with its standard deviation if it is a mean over several training runs."""
    return f"{score['value']:.2f}" + (f" ± {score['deviation']:.2f}" if "deviation" in score else "")


def _mean_of(score: dict[str, Any]) -> str:
    """E.g. "mean of 3 folds", from the start of the signature; empty for a single training run."""
    return score["signature"].split(",")[0] if "deviation" in score else ""


def _print_before_and_after(console: Console, split: str, result: dict[str, Any]) -> None:
    table = Table(title=f"{split}, before and after", title_justify="left", box=SIMPLE)
    for name in ("metric", "before", "95 % interval", "after", "95 % interval"):
        table.add_column(name, justify="left" if name == "metric" else "right")
    both = result["before"], result
    for name in result["scores"]:
        row = [(score["value"], score["low"], score["high"]) for score in (found["scores"][name] for found in both)]
        table.add_row(name, *(cell for value, low, high in row for cell in (f"{value:.2f}", f"{low:.2f} – {high:.2f}")))
    before, after = (found["pieces_per_word"] for found in both)
    table.add_row("pieces_per_word", f"{before:.3f}", "", f"{after:.3f}", "")
    console.print(table)
    if before != after:
        console.print("  the vocabulary has grown: the scores before and after are over different tokens")


def print_comparisons(
    console: Console, split: str, comparisons: Sequence[Comparison], *, first: Path, second: Path
) -> None:
    # Narrow gaps, so that the widest numbers fit into 80 columns.
    table = Table(title_justify="left", box=SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    table.title = f"{split}: {comparisons[0].n} sentences"
    for name in ("metric", "first", "second", "difference", "95 % interval", "p"):
        table.add_column(name, justify="left" if name == "metric" else "right")
    for c in comparisons:
        interval = f"{c.low:+.2f} – {c.high:+.2f}"
        numbers = (f"{c.a:.2f}", f"{c.b:.2f}", f"{c.difference:+.2f}", interval, f"{c.p_value:.4f}")
        table.add_row(c.metric, *numbers)
    console.print(table)
    metrics_by_test: dict[str, list[str]] = {}
    for c in comparisons:
        metrics_by_test.setdefault(c.test, []).append(c.metric)
    tests = [f"{', '.join(metrics)}: {test}" for test, metrics in metrics_by_test.items()]
    for line in (f"first: {first}", f"second: {second}", "difference: second - first", *tests):
        console.print(f"  {line}", markup=False, style="dim")
    console.print()


def print_findings(console: Console, findings: Sequence[Finding], *, all_well: str = "") -> None:
    styles = {"error": "bold red", "warning": "yellow", "note": "cyan"}
    for finding in findings:
        console.print(f"{finding.severity}: {finding.code}", style=styles[finding.severity])
        console.print(f"  {finding.message}", markup=False)
        for example in finding.examples:
            console.print(f"    {example}", markup=False, style="dim")
    if not findings and all_well:
        console.print(all_well)


def print_samples(console: Console, pairs: Sequence[Pair], outputs: Sequence[str]) -> None:
    table = Table(title="held-out samples", title_justify="left", box=SIMPLE)
    for name in ("", "input", "output", "reference"):
        table.add_column(name)
    for pair, output in zip(pairs, outputs, strict=True):
        table.add_row("✓" if output == pair.target else "✗", pair.source, output, pair.target)
    console.print(table)


def print_parameters(console: Console, parameters: Mapping[str, float]) -> None:
    """Print the parameter count of each part."""
    table = Table(title="parameters", title_justify="left", box=SIMPLE, show_header=False)
    for name, count in parameters.items():
        table.add_row(name, f"{count:,.0f}")
    console.print(table)


def print_cost(console: Console, recipe: Recipe, cost: Cost, time: Time, scores: dict[str, Any]) -> None:
    """What decides whether to train it first: parameters, minutes, memory."""
    console.print(f"parameters: {cost.parameters['total']:,}")
    console.print(f"minutes: {_minutes(recipe, time)}", highlight=False)
    console.print(f"memory: {cost.training_bytes / 2**20:,.0f} MiB for weights, gradients and optimizer moments")
    console.print(f"task: {recipe.task.kind}, with model {recipe.model.kind}", highlight=False)
    published = recipe.published
    theirs = {f"published ({published.source})": published.parameters} if published and published.parameters else {}
    print_parameters(console, {**cost.parameters, **theirs})
    token = "source and target token" if recipe.task.kind == "translation" else "token"
    console.print(f"compute: {cost.flops_per_pair_of_tokens / 1e6:,.1f} MFLOP per {token}")
    if cost.training_flops is not None:
        console.print(f"  at most {cost.training_flops:.2e} FLOP for {recipe.train.steps:,} steps")
    if published and published.bleu:
        console.print(f"published BLEU: {published.bleu} ({published.source})")
    for split, result in scores.items():
        print_scores(console, split, result)


def _minutes(recipe: Recipe, time: Time) -> str:
    each = _brief(time.seconds_per_step)
    if not time.is_measured:
        where = f"at about {each} a step on this machine"
        if time.minutes is None:
            return f"{recipe.train.epochs} epochs of the data, {where}"
        if recipe.train.minutes is not None:
            return f"{time.minutes:g}, for about {time.steps:,} steps {where}"
        return f"about {_few(time.minutes)}, for {time.steps:,} steps {where}"
    if time.minutes is None:
        return f"{_few(time.spent)} so far, at {each} a step"
    if time.minutes > time.spent:
        return f"{_few(time.spent)} of about {_few(time.minutes)}, for {time.steps or 0:,} steps at {each}"
    return f"{_few(time.spent)}, with steps of {each}"


def _few(minutes: float) -> str:
    """At most two digits of what is small."""
    return f"{minutes:,.0f}" if minutes >= 10 else f"{minutes:.1f}"
