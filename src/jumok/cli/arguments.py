"""Options that several commands share, and what they stand for: runs, splits, options of a prediction."""

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
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of \\[decode], or what the task can be asked."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Ensemble = Annotated[list[Path] | None, typer.Option("--with", metavar="RUN", help="More runs, as an ensemble.")]
OtherData = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="SPLIT=FILE[,FILE]", help="Other data than the recipe's, e.g. test=a.en,a.de."),
]


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def options(overrides: list[str] | None) -> dict[str, Any]:
    """`beam=8` or `decode.beam=8` for a command that predicts; the predictor checks names and values."""
    from jumok.recipe import key_and_value

    return {key.removeprefix("decode."): value for key, value in map(key_and_value, overrides or [])}


def run_recipe(run: Path) -> "Recipe":
    from jumok.recipe import parse_recipe
    from jumok.train.folder import RunFolder

    stored = RunFolder(run).stored()
    if stored is None:
        imported = (run / "model" / "config.json").exists()
        what = "an imported model has no recipe" if imported else "not a run folder: there is no recipe.json"
        raise CheckpointError(what, where=run, hint="a folder that `jumok train` made", code="checkpoint.not_a_run")
    return parse_recipe(stored["recipe"], where=str(run / "recipe.json"))


def splits(run: Path, data: list[str] | None) -> dict[str, list[Any]]:
    """The examples to evaluate on: the recipe's dev and test, or what --data says."""
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
            hint = "--data test=a.en,a.de, each split once"
            raise InputError(problem, where=f"--data {entry}", hint=hint, code="input.data")
        found[split] = list(recipe.data.for_files(files.split(",")).read("test", seed=recipe.seed))
        if not found[split]:
            raise DataError("there is nothing to evaluate on", where=files, code="data.empty")
    return found


def _refuse_other_parts(run: Path, recipe: "Recipe", corpora: "list[Corpus[Any]]") -> None:
    """What was held out of the training files has to be what is taken out of them now: else some was learned."""
    from jumok.train.folder import RunFolder

    held_out = [c for c in corpora if not recipe.data.is_made and recipe.data.share(c.split)]
    known = (RunFolder(run).stored() or {"data": {}})["data"]
    if changed := [c.split for c in held_out if known.get(c.split) != c.fingerprint()]:
        raise CheckpointError(
            f"the training files, or how {' and '.join(changed)} are taken out of them, changed since the run began",
            where=run,
            hint="the files and the version of jumok that it began with, or --data test=FILE",
            code="checkpoint.data_changed",
        )


def stored_beside(run: Path, split: str) -> dict[str, Any]:
    """What the baselines scored when the run was trained, and the weights that it began with, if it has any."""
    from jumok.series import parts_of
    from jumok.train.folder import RunFolder

    if any("fold-" in part for part in parts_of(run)):
        return {}  # means of several test sets, of which the model that is scored has one
    path = RunFolder(run).scores
    scores = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {key: found for key, found in scores.get(split, {}).items() if key in ("baselines", "before")}
