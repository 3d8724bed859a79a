"""One recipe, several trainings: one per seed, per fold, or both; scores are means over the trainings.

Each training has its own run folder below the recipe's, so that each resumes by itself. The final model is the one
with the best dev score; the reported scores are the means, not the best.
"""

import shutil
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from jumok.errors import InputError
from jumok.files import MANIFEST, parse_json, refuse_links, write_folder
from jumok.recipe import Recipe
from jumok.train.folder import RunFolder
from jumok.train.loop import LOWER_IS_BETTER

# Student's t, two-sided 95 %, for 1 to 30 degrees of freedom; beyond, the normal distribution is close enough.
# fmt: off
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)
# fmt: on
_CORRELATIONS = {"mcc", "pearson", "spearman"}
_UNBOUNDED = {*LOWER_IS_BETTER, "masked_loss"}
"""every other score is a percentage"""
_SHARES = ("folds", "fold", "dev_share", "test_share")
_DECIDING = ("kind", "source", "columns", "text", "column", "format", "split_sentences")
"""data keys: those that split examples by a hash, and those that determine what is hashed"""
_MADE = ("toy_", "synthetic")
"""prefixes of the kinds of data that have no files"""


def series(recipe: Recipe) -> dict[str, Recipe]:
    """The recipes of the single trainings, by folder name; empty without several seeds or folds."""
    data = recipe.data
    n_folds = 0 if data.is_made or data.fold is not None else data.folds
    if not recipe.seeds and not n_folds:
        return {}
    parts = {}
    for seed in recipe.seeds or [recipe.seed]:
        for fold in range(1, n_folds + 1) or [None]:
            name = "-".join(
                [*([f"seed-{seed}"] if recipe.seeds else []), *([f"fold-{fold}"] if fold is not None else [])]
            )
            one = data if fold is None else replace(data, fold=fold)
            parts[name] = replace(recipe, seed=seed, seeds=[], data=one)
    return parts


def gather(recipe: Recipe, out: Path, parts: list[str]) -> None:
    """Write the mean scores of all parts, and the best model, into the folder above them."""
    found = {part: RunFolder(out / part).results() for part in parts}
    n_folds = len(parts) // max(len(recipe.seeds), 1)
    kind = "seeds" if n_folds == 1 else f"folds of {len(recipe.seeds)} seeds" if len(recipe.seeds) > 1 else "folds"
    scores: dict[str, Any] = {}
    for split in found[parts[0]]:
        results = [found[part][split] for part in parts]
        names = [name for name in results[0]["scores"] if all(name in result["scores"] for result in results)]
        # Folds differ in their test texts, but may share dev; seeds share both.
        sentences = sum(result["sentences"] for result in results[: n_folds if split == "test" else 1])
        scores[split] = {"sentences": sentences, "parts": parts, "scores": results[0]["scores"]}
        if len(parts) > 1:  # a single training keeps the interval of its test set
            values = {name: [result["scores"][name]["value"] for result in results] for name in names}
            # Seeds of one fold share its texts, so they are not independent: their mean is one value.
            of_folds = {name: [fmean(values[name][fold::n_folds]) for fold in range(n_folds)] for name in names}
            means = of_folds if n_folds > 1 else values
            scores[split]["scores"] = {name: mean_of(name, means[name], kind) for name in names}
        for key in ("baselines", "calibration_error", "calibration_error_before"):
            if key in results[0]:
                scores[split][key] = _mean_tree([result[key] for result in results])
    chosen = max(parts, key=lambda part: _goodness(out / part, found[part], recipe.train.metric))
    source, folder = RunFolder(out / chosen), RunFolder(out)
    write_folder(folder.model, lambda building: _copy(source.model, building))
    folder.finish(parse_json(source.recipe.read_bytes()), scores)


def parts_of(run: Path) -> list[str]:
    """Folders of the trainings whose mean scores a run folder holds; empty for a single training."""
    parts: list[str] = next((result.get("parts", []) for result in RunFolder(run).results().values()), [])
    return parts if len(parts) > 1 else []


def refuse_other_test_data(first: Path, second: Path) -> None:
    """Refuse to compare runs that hold out different examples: one may have been trained on the other's."""
    for run in (first, second):
        if parts := [part for part in parts_of(run) if "fold-" in part]:
            raise InputError(
                f"a cross-validation has a model and a test set for each part: {', '.join(parts)}",
                where=run,
                hint=f"compare the same part of both, e.g. {run / parts[0]}, or pass --data test=FILE",
                code="input.cross_validation",
            )
    one, other = ({"data": {}, **(RunFolder(run).stored() or {})} for run in (first, second))
    if "recipe" not in one or "recipe" not in other:
        return  # an imported model does not record its training data
    a, b = one["recipe"]["data"], other["recipe"]["data"]
    keys = [*_SHARES, *(_DECIDING if any(a.get(key) for key in _SHARES) else [])]
    differing = [key for key in keys if (a.get(key) or None) != (b.get(key) or None)]
    kinds = [str(data.get("kind", "")) for data in (a, b)]
    if kinds[0] != kinds[1] and any(kind.startswith(_MADE) for kind in kinds):
        differing.append("kind")
    for split in ("dev", "test"):
        if a.get(split) != b.get(split) and one["data"].get(split) != other["data"].get(split):
            differing.append(split)
    if differing:
        differences = "; ".join(f"data.{key} is {a.get(key)!r} and {b.get(key)!r}" for key in differing)
        raise InputError(
            f"the runs hold out different examples, so one may have been trained on the other's: {differences}",
            where=f"{first} and {second}",
            hint="compare runs with the same dev and test data, or pass --data test=FILE with data new to both",
            code="input.other_test_data",
        )


def _copy(model: Path, building: Path) -> None:
    refuse_links(model)
    for path in model.iterdir():
        if path.name != MANIFEST:
            shutil.copyfile(path, building / path.name)


def mean_of(name: str, values: list[float], kind: str) -> dict[str, Any]:
    """The mean of several trainings, with its confidence interval by Student's t."""
    mean, n = fmean(values), len(values)
    deviation = stdev(values)
    t = _STUDENT[n - 2] if n - 2 < len(_STUDENT) else 1.96
    half = t * deviation / n**0.5
    lowest, highest = _scale(name)
    return {
        "name": name,
        "value": round(mean, 4),
        "low": round(max(mean - half, lowest), 4),
        "high": round(min(mean + half, highest), 4),
        "n": n,
        "deviation": round(deviation, 4),
        "values": values,
        "signature": f"mean of {n} {kind}, Student's t 95%",
    }


def _scale(name: str) -> tuple[float, float]:
    """The bounds of a score, which Student's t does not know."""
    if name in _CORRELATIONS:
        return -100.0, 100.0
    if name in _UNBOUNDED:
        return float(name == "perplexity"), inf
    return 0.0, 100.0


def _goodness(run: Path, scores: dict[str, Any], metric: str) -> float:
    """A training's dev score by the metric that chose its checkpoint, negated if lower is better; for a metric computed
    only during training, the score of its best checkpoint."""
    sign = -1 if metric in LOWER_IS_BETTER else 1
    if found := scores.get("dev", {}).get("scores", {}).get(metric):
        return sign * float(found["value"])
    best = [event["scores"][metric] for event in RunFolder(run).history() if event.get("best")]
    return sign * float(best[-1]) if best else -inf


def _mean_tree(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return {key: _mean_tree([value[key] for value in values]) for key in values[0]}
    return round(fmean(values), 4)
