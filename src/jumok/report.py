"""What a person sees: a progress bar or plain lines while training, tables of scores, findings and costs."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from jumok.assemble import Run
from jumok.doctor import Finding
from jumok.errors import InputError
from jumok.recipe import Recipe, recipe_tree
from jumok.score.significance import Comparison
from jumok.series import parts_of
from jumok.show import Cost
from jumok.text.formats import Pair
from jumok.train.folder import RunFolder
from jumok.train.loop import Evaluated, Event, Finished, Resumed, Saved, Step

PLAIN_LINE_SECONDS = 10.0


class TrainingReport:
    """Reads events; knows nothing of how they come about."""

    def __init__(self, recipe: Recipe, out: Path, console: Console) -> None:
        self.recipe = recipe
        self.out = out
        self.console = console
        self.rank = 0
        self.tokens, self.seconds = 0, 0.0  # of the steps since `since`, evaluations aside
        self.since = perf_counter()
        self.speed = 0.0
        self.bar: Progress | None = None
        self.bar_task: TaskID | None = None
        self.board: Any = None

    def __enter__(self) -> "TrainingReport":
        if os.environ.get("RANK", "0") == "0":
            self.console.print(f"{self.out}: reading the data")
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self.bar:
            self.bar.stop()
        if self.board:
            self.board.close()

    def began(self, run: Run) -> None:
        self.rank = run.group.rank
        self.recipe = run.recipe  # where epochs have become steps
        if self.rank:
            return
        parameters = sum(p.numel() for p in run.model.parameters())
        self.console.print(
            f"{self.out}: {parameters:,} parameters, {len(run.task.train):,} training examples,"
            f" {len(run.task.dev):,} dev examples, vocabulary {run.task.tokenizers.target.vocab_size:,}"
        )
        for warning in run.warnings:
            self.console.print(f"note: {warning}", markup=False)
        if self.recipe.train.tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise InputError("TensorBoard is not installed", right="pip install 'jumok[tensorboard]'") from error
            self.board = SummaryWriter(str(self.out / "tensorboard"))
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

    def stopping(self) -> None:
        self.console.print("stopping: this step is saved (Ctrl-C once more stops at once, without)")

    def scoring(self, split: str, sentences: int) -> AbstractContextManager[Callable[[int], None]]:
        return progress_bar(self.console, f"scoring {split}", sentences)

    def _step(self, event: Step) -> None:
        self.tokens += event.tokens
        self.seconds += event.seconds
        if perf_counter() - self.since > (1.0 if self.bar else PLAIN_LINE_SECONDS):
            self.speed, self.tokens, self.seconds, self.since = self.tokens / self.seconds, 0, 0.0, perf_counter()
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
        return f"loss {event.loss:.3f}  rate {event.learning_rate:.2e}  epoch {event.epoch}  {self.speed:,.0f} tokens/s"

    def finish(self, finished: Finished) -> None:
        if self.rank:
            return
        if finished.reason == "interrupted":
            self.console.print(f"saved at step {finished.step}; the same command goes on from there")
            return
        reason = "patience has run out" if finished.reason == "patience" else "done"
        self.console.print(f"{reason}: the model is in {self.out / 'model'}, its scores in {self.out / 'scores.json'}")


@contextmanager
def progress_bar(console: Console, what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, a line anywhere else; its value is told how many more sentences are done."""
    if quiet or not console.is_terminal:
        if not quiet:
            console.print(f"{what}: {total:,} sentences")
        yield lambda n: None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda n: bar.advance(task, n)


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
    """A line for each split: the score that chose the model, or the first one; of what it is the mean, and what it is
    to be held against."""
    path = out / "scores.json"
    stored = RunFolder(out).stored()
    chosen_by = stored["recipe"]["train"]["metric"] if stored else None
    for split, result in json.loads(path.read_text("utf-8")).items() if path.exists() else ():
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
    """The scores of a series are means, but its model is one of many: whoever has it scored should know."""
    if parts := parts_of(run):
        said = f"{run} has the model of one of {len(parts)} trainings, the best on dev, and it alone is scored here"
        console.print(
            f"note: {said}; the means of {parts[0]} to {parts[-1]} are in {run / 'scores.json'}", markup=False
        )


def _value(score: dict[str, Any]) -> str:
    """The mean of several trainings goes with their standard deviation."""
    return f"{score['value']:.2f}" + (f" ± {score['deviation']:.2f}" if "deviation" in score else "")


def _mean_of(score: dict[str, Any]) -> str:
    """Such as "mean of 3 folds", which the signature begins with; of one training it is nothing."""
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
        console.print("  the vocabulary has grown: before and after are scores of different pieces")


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
        console.print(f"{finding.severity}: {finding.kind}", style=styles[finding.severity])
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


def print_parameters(console: Console, tree: Mapping[str, Any], parameters: Mapping[str, float]) -> None:
    """What a model is, and how many parameters each of its parts has."""
    console.print_json(json.dumps(tree, ensure_ascii=False))
    table = Table(title="parameters", title_justify="left", box=SIMPLE, show_header=False)
    for name, count in parameters.items():
        table.add_row(name, f"{count:,.0f}")
    console.print(table)


def print_cost(console: Console, recipe: Recipe, cost: Cost, scores: dict[str, Any]) -> None:
    published = recipe.published
    theirs = {f"published ({published.source})": published.parameters} if published and published.parameters else {}
    print_parameters(console, recipe_tree(recipe), {**cost.parameters, **theirs})
    token = "a source and a target token" if recipe.task.kind == "translation" else "a token"
    console.print(f"arithmetic: {cost.flops_per_pair_of_tokens / 1e6:,.1f} MFLOP for {token},")
    if cost.training_flops is None:
        console.print(f"  for every token of the data {recipe.train.epochs} times")
    else:
        console.print(f"  {cost.training_flops:.2e} FLOP at most for {recipe.train.steps:,} steps")
    console.print(f"memory: {cost.training_bytes / 2**20:,.0f} MiB for weights, gradients and moments")
    if published and published.bleu:
        console.print(f"published BLEU: {published.bleu} ({published.source})")
    for split, result in scores.items():
        print_scores(console, split, result)
