"""Scores, classes and comparisons on the terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jumok.score.confusion import Confusion, by_label, confused
from jumok.score.significance import Comparison
from jumok.series import parts_of
from jumok.tasks.baseline import told_against
from jumok.train.folder import RunFolder

PLAIN_LINE_SECONDS = 10.0
SHORT_SECONDS = 2.0
"""anything shorter needs no estimate of the time left"""
WIDE = 8
"""labels; a matrix of more does not fit a terminal"""


def print_all_scores(console: Console, results: Mapping[str, dict[str, Any]]) -> None:
    """Print the scores of several splits, and how they were computed once, for all metrics that share a signature."""
    metrics: dict[str, dict[str, None]] = {}
    for split, result in results.items():
        print_scores(console, split, result, signatures=False)
        print_classes(console, split, result)
        for score in result["scores"].values():
            metrics.setdefault(score["signature"], {})[score["name"]] = None
    for signature, names in metrics.items():
        console.print(f"  {', '.join(names)}: {signature}", markup=False, style="dim")
    console.print()


def print_classes(console: Console, split: str, result: Mapping[str, Any]) -> None:
    """Print the confusion matrix, if it has few labels, and precision and recall of each."""
    if "confusion" not in result:
        return
    found = Confusion(**result["confusion"])
    wide = len(found.labels) > WIDE
    columns = [] if wide else found.labels
    table = Table(title=f"{split}: each class", title_justify="left", box=SIMPLE)
    for name in ("gold", "n", "precision", "recall", "F1", *(f"as {label}" for label in columns)):
        table.add_column(Text(name), justify="left" if name == "gold" else "right")
    of_label = {one.label: one for one in by_label(found)}
    for label, row in zip(found.labels, found.counts, strict=True):
        cells = [str(n) for n in row] if not wide else []
        one = of_label.get(label)
        shares = [f"{value:.2f}" for value in (one.precision, one.recall, one.f1)] if one else ["", "", ""]
        if one or not wide:
            table.add_row(Text(label), str(sum(row)), *shares, *cells)
    console.print(table)
    if wide and (often := confused(found)):
        said = ", ".join(f"{gold} as {said} {n:,}" for gold, said, n in often)
        console.print(f"  most often confused: {said}", markup=False, style="dim")


def print_scores(console: Console, split: str, result: dict[str, Any], *, signatures: bool = True) -> None:
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
    if against := result.get("against_baseline"):
        console.print(f"  {told_against(against)}", markup=False, style="dim")
    if "calibration_error" in result:
        said = f"{result['calibration_error']:.2f} %"
        if "calibration_error_before" in result:
            said += f", before calibration on dev {result['calibration_error_before']:.2f} %"
        console.print(f"  calibration error: {said}", style="dim")
    for score in result["scores"].values() if signatures else ():
        console.print(f"  {score['name']}: {score['signature']}", markup=False, style="dim")
    if signatures:
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
