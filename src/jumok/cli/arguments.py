"""Options shared by several commands, and how they are parsed: runs, splits, prediction options."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from jumok.errors import CheckpointError, DataError, InputError

if TYPE_CHECKING:
    from jumok.data.corpus import Corpus
    from jumok.recipe import Recipe

talk = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)

Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe.")
]
Asked = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of \\[decode], or an option of the task."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Ensemble = Annotated[list[Path] | None, typer.Option("--with", metavar="RUN", help="More runs to ensemble with.")]
OtherData = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="SPLIT=FILE[,FILE]", help="Replace the recipe's data, e.g. test=a.en,a.de."),
]


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def options(overrides: list[str] | None) -> dict[str, Any]:
    """Parse prediction options like `beam=8` or `decode.beam=8`; the predictor checks names and values."""
    from jumok.recipe import key_and_value

    return {key.removeprefix("decode."): value for key, value in map(key_and_value, overrides or [])}


def run_recipe(run: Path) -> "Recipe":
    from jumok.recipe import parse_recipe
    from jumok.train.folder import RunFolder

    stored = RunFolder(run).stored()
    if stored is None:
        imported = (run / "model" / "config.json").exists()
        what = "an imported model has no recipe" if imported else "not a run folder: recipe.json is missing"
        raise CheckpointError(what, where=run, hint="pass a folder made by `jumok train`", code="checkpoint.not_a_run")
    return parse_recipe(stored["recipe"], where=str(run / "recipe.json"))


def splits(run: Path, data: list[str] | None) -> dict[str, list[Any]]:
    """The examples to evaluate on: the recipe's dev and test splits, or those of --data."""
    from jumok.data.corpus import Corpus
    from jumok.examples import SPLITS
    from jumok.tasks.prepare import read_split

    recipe = run_recipe(run)
    if not data:
        corpora: list[Corpus[Any]] = [Corpus(recipe.data, split, seed=recipe.seed) for split in SPLITS[1:]]
        corpora = [corpus for corpus in corpora if corpus.exists()]
        _refuse_other_parts(run, recipe, corpora)
        return {corpus.split: read_split(corpus) for corpus in corpora}
    found: dict[str, list[Any]] = {}
    for entry in data:
        split, _, files = entry.partition("=")
        if not split or not files or split in found:
            problem = f"{split} is given twice" if split in found else f"not a split: {entry}"
            hint = "write --data test=a.en,a.de, each split once"
            raise InputError(problem, where=f"--data {entry}", hint=hint, code="input.data")
        found[split] = list(recipe.data.for_files(files.split(",")).read("test", seed=recipe.seed))
        if not found[split]:
            raise DataError("no examples to evaluate on", where=files, code="data.empty")
    return found


def _refuse_other_parts(run: Path, recipe: "Recipe", corpora: "list[Corpus[Any]]") -> None:
    """Reject held-out splits that differ from those of training: they may contain training examples."""
    from jumok.train.folder import RunFolder

    held_out = [c for c in corpora if not recipe.data.is_made and recipe.data.share(c.split)]
    known = (RunFolder(run).stored() or {"data": {}})["data"]
    if changed := [c.split for c in held_out if known.get(c.split) != c.fingerprint()]:
        raise CheckpointError(
            f"the training files, or how {' and '.join(changed)} are split off, changed since the run began",
            where=run,
            hint="restore the files and the version of jumok it began with, or use --data test=FILE",
            code="checkpoint.data_changed",
        )


def stored_beside(run: Path, split: str) -> dict[str, Any]:
    """The stored scores of the baselines, and of the initial weights if the run started from any."""
    from jumok.series import parts_of
    from jumok.train.folder import RunFolder

    if any("fold-" in part for part in parts_of(run)):
        return {}  # means over several test sets, but the scored model has only one
    path = RunFolder(run).scores
    scores = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {key: found for key, found in scores.get(split, {}).items() if key in ("baselines", "before")}
