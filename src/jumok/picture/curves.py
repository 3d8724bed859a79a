"""Training curves, and BLEU by length."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import InputError
from jumok.picture.surface import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = {"bleu": "BLEU", "chrf": "chrF"}
ACCURACY, MAJORITY = "_accuracy", "_majority"


def draw_curves(events: Iterable[Mapping[str, Any]], path: Path, *, floor: float | None = None) -> "Figure":
    """Plot the training loss and every dev metric by step, from the events of a run (its events.jsonl).

    For pre-training it is the masked loss; `floor` is the unigram floor, below which the model uses context.
    """
    losses: dict[int, float] = {}
    scores: dict[str, dict[int, float]] = {}
    best: int | None = None
    name_of_loss = "loss"
    for event in events:  # a resumed run may repeat steps: the later event counts
        if event["event"] == "step":
            parts = event.get("parts") or {}
            losses[event["step"]] = parts.get("masked", event["loss"])
            name_of_loss = "masked loss" if "masked" in parts or floor is not None else "loss"
        elif event["event"] == "evaluated":
            best = event["step"] if event["best"] else best
            for name, value in event["scores"].items():
                scores.setdefault(name, {})[event["step"]] = value
    if not losses:
        raise InputError(
            "no training steps to draw", where=path, hint="pass the events of a started run", code="input.empty"
        )
    majorities = {name: scores.pop(name) for name in [*scores] if name.endswith(MAJORITY)}
    with drawing(path, list(scores)) as figure:
        panels = 1 + len(scores)
        columns = 2 if panels == 4 else min(panels, 3)
        rows = -(-panels // columns)
        figure.set_size_inches(3.6 * columns, 2.8 * rows)
        figure.set_layout_engine("constrained")
        first, *others = figure.subplots(rows, columns, squeeze=False, sharex=True).flat
        steps = sorted(losses)
        window = max(len(steps) // 100, 1)
        first.plot(steps, [losses[step] for step in steps], color="C0", alpha=0.25, linewidth=0.8)
        first.plot(*_means(steps, losses, window), color="C0", label=f"mean of {window} steps" if window > 1 else None)
        if floor is not None:
            first.axhline(floor, color="0.4", linestyle="--", linewidth=1, label=f"unigram floor {floor:.2f}")
        if window > 1 or floor is not None:
            first.legend()
        first.set_title(f"training {name_of_loss}", loc="left", size=10)
        for axes, (name, values) in zip(others, scores.items(), strict=False):
            at = sorted(values)
            if best is not None:
                axes.axvline(best, color="0.8", linewidth=1)
            axes.plot(at, [values[step] for step in at], color="C1", marker="o", markersize=3)
            axes.set_title(f"dev {METRICS.get(name, name.replace('_', ' '))}", loc="left", size=10)
            if name == "masked_loss" and floor is not None:
                axes.axhline(floor, color="0.4", linestyle="--", linewidth=1)
            if majority := majorities.get(name.removesuffix(ACCURACY) + MAJORITY):
                at = sorted(majority)
                line = {"color": "0.4", "linestyle": "--", "linewidth": 1}
                axes.plot(at, [majority[step] for step in at], label="majority", **line)
                axes.legend()
            if name == "perplexity":
                _scale_logarithmically(axes)
        for empty in range(panels, rows * columns):
            others[empty - 1].remove()
            [first, *others][empty - columns].tick_params(labelbottom=True)  # it is at the bottom now
        note = "" if best is None else f" (grey line: best on dev, {best:,})"
        figure.supxlabel(f"step{note}", size=10)
    return figure


def draw_bleu_by_length(runs: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> "Figure":
    """Plot BLEU with its 95 % interval by source length, from each run's `bleu_by_source_words` in scores.json."""
    buckets = sorted({_bucket(score["name"], path) for scores in runs.values() for score in scores})
    if not buckets:
        raise InputError(
            "no BLEU by source length to draw", where=path, hint="pass scores of translation runs", code="input.empty"
        )
    sizes: dict[tuple[int, float], set[int]] = {bucket: set() for bucket in buckets}
    with drawing(path, list(runs)) as figure:
        figure.set_size_inches(max(5.0, 1.3 * len(buckets) + 1.5), 3.8)
        figure.set_layout_engine("constrained")
        axes = figure.subplots()
        for run, (name, unsorted) in enumerate(runs.items()):
            scores = sorted(unsorted, key=lambda score: _bucket(score["name"], path))
            shift = 0.12 * (run - (len(runs) - 1) / 2)  # side by side, so that the bars do not overlap
            at = [buckets.index(_bucket(score["name"], path)) + shift for score in scores]
            lows, highs = ([score[end] for score in scores] for end in ("low", "high"))
            colour, marker = f"C{run % 10}", "osD^vP*X"[run % 8]
            # A bootstrap interval need not contain the value, so `errorbar` around the values could fail.
            middles = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
            halves = [(high - low) / 2 for low, high in zip(lows, highs, strict=True)]
            axes.errorbar(at, middles, yerr=halves, fmt="none", ecolor=colour, elinewidth=1, capsize=3)
            values = [score["value"] for score in scores]
            axes.plot(at, values, color=colour, marker=marker, markersize=5, linewidth=1, label=f" {name}")
            for score in scores:
                sizes[_bucket(score["name"], path)].add(score["n"])
        labels = []
        for (low, high), n in sizes.items():
            words = f"{low}+" if high == float("inf") else f"{low}–{high:.0f}"
            labels.append(f"{words}\nn = {n.pop():,}" if len(n) == 1 else words)
        axes.set_xticks(range(len(buckets)), labels)
        axes.set_xlabel("words in the source")
        axes.set_ylabel("BLEU, 95 % interval")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="0.9", linewidth=0.6)
        figure.legend(loc="outside upper left", ncols=min(len(runs), 4))
    return figure


def _means(steps: Sequence[int], values: Mapping[int, float], window: int) -> tuple[list[float], list[float]]:
    """Mean step and mean value of each window."""
    cut = [steps[i : i + window] for i in range(0, len(steps), window)]
    return [sum(part) / len(part) for part in cut], [sum(values[s] for s in part) / len(part) for part in cut]


def _scale_logarithmically(axes: "Axes") -> None:
    """Log scale for perplexity, which falls from thousands to tens; plain tick labels at 1, 2 and 5."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _bucket(name: str, path: Path) -> tuple[int, float]:
    """The range of words in `bleu_11_to_20_words` or `bleu_51_or_more_words`."""
    found = re.fullmatch(r"bleu_(\d+)_(?:to_(\d+)|or_more)_words", name)
    if not found:
        raise InputError(
            f"not a BLEU score by source length: {name}",
            where=path,
            hint="use a name like bleu_11_to_20_words",
            code="input.unknown_score",
        )
    return int(found[1]), float(found[2] or "inf")
