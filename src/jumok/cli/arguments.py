"""Options shared by several commands, and how they are parsed: runs, splits, prediction options."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from jumok.cli import completion
from jumok.errors import CheckpointError, DataError, InputError

if TYPE_CHECKING:
    from jumok.data.corpus import Corpus
    from jumok.recipe import Recipe

talk = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)

Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe; KEY= unsets it.")
]
Asked = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of \\[decode], or an option of the task."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", autocompletion=completion.runs)]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option("--with", metavar="RUN", help="More runs to ensemble with.", autocompletion=completion.runs),
]
MaxCharacters = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Refuse texts of more characters; default: 20,000 for translation and language models, else 1,000,000.",
    ),
]
Engine = Annotated[
    Literal["torch", "fast"] | None,
    typer.Option(help="torch: the reference; fast: CTranslate2. Default: fast if the model has it."),
]
OtherData = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="SPLIT=FILE[,FILE]", help="Replace the recipe's data, e.g. test=a.en,a.de."),
]


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def options(overrides: list[str] | None) -> dict[str, Any]:
    """Parse prediction options like `beam=8` or `decode.beam=8`; the predictor checks names and values."""
    from jumok.toml import UNSET, key_and_value

    given = [key_and_value(override) for override in overrides or []]
    if unset := next((key for key, value in given if value is UNSET), None):
        what, hint = f"{unset} has no value", f"leave it out, or write --set {unset}=VALUE"
        raise InputError(what, where=f"--set {unset}=", hint=hint, code="input.options")
    return {key.removeprefix("decode."): value for key, value in given}


def run_recipe(run: Path) -> "Recipe":
    from jumok.recipe import parse_recipe
    from jumok.train.folder import RunFolder

    stored = RunFolder(run).stored()
    if stored is None:
        imported = (run / "model" / "config.json").exists()
        what = "an imported model has no recipe" if imported else "not a run folder: recipe.json is missing"
        raise CheckpointError(what, where=run, hint="pass a folder made by `jumok train`", code="checkpoint.not_a_run")
    return parse_recipe(stored["recipe"], where=str(run / "recipe.json"))


def run_data(run: Path) -> Any:
    """The [data] that a run was trained on; None if it has no recipe. Unlike `run_recipe`, does not import torch."""
    from jumok.config import read_config
    from jumok.files import stored_recipe
    from jumok.tasks import task_named

    if (stored := stored_recipe(run)) is None:
        return None
    where, tree = run / "recipe.json", stored["recipe"]
    for kind in task_named(tree.get("task", {}).get("kind", "translation"), where=where).data:
        if kind.__dataclass_fields__["kind"].default == tree.get("data", {}).get("kind"):
            return read_config(kind, tree["data"], what="the recipe", where=where, path="data")
    return run_recipe(run).data  # which says what is wrong


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Examples to evaluate on, and which data they are."""

    examples: list[Any]
    sha256: str
    as_trained: bool
    """whether the data is what the run was trained and scored with"""

    def facts(self) -> dict[str, Any]:
        return {"data": {"sha256": self.sha256, "as_trained": self.as_trained}}


def splits(run: Path, data: list[str] | None) -> dict[str, HeldOut]:
    """The examples to evaluate on: the recipe's dev and test splits, or those of --data."""
    from jumok.data.corpus import Corpus
    from jumok.examples import SPLITS
    from jumok.tasks.prepare import read_split

    recipe = run_recipe(run)
    if not data:
        corpora: list[Corpus[Any]] = [Corpus(recipe.data, split, seed=recipe.seed) for split in SPLITS[1:]]
        corpora = [corpus for corpus in corpora if corpus.exists()]
        _refuse_other_parts(run, recipe, corpora)
        return {corpus.split: _held_out(run, corpus, read_split(corpus)) for corpus in corpora}
    found: dict[str, HeldOut] = {}
    for entry in data:
        split, _, files = entry.partition("=")
        if not split or not files or split in found:
            problem = f"{split} is given twice" if split in found else f"not a split: {entry}"
            hint = "write --data test=a.en,a.de, each split once"
            raise InputError(problem, where=f"--data {entry}", hint=hint, code="input.data")
        corpus = Corpus[Any](recipe.data.for_files(files.split(",")), "test", seed=recipe.seed)
        found[split] = HeldOut(list(corpus), corpus.fingerprint(), as_trained=False)
        if not found[split].examples:
            raise DataError("no examples to evaluate on", where=files, code="data.empty")
    return found


def _held_out(run: Path, corpus: "Corpus[Any]", examples: list[Any]) -> HeldOut:
    """A split of the recipe; files that changed since training are noted, and their scores say so."""
    known, sha256 = _known_data(run).get(corpus.split), corpus.fingerprint()
    if known not in (None, sha256):
        talk.print(
            f"note: {corpus.name} changed since the run was trained (sha256 was {known[:12]}, is {sha256[:12]}):"
            " the scores are not those of the run's own data"
        )
    return HeldOut(examples, sha256, as_trained=known == sha256)


def _known_data(run: Path) -> dict[str, str]:
    from jumok.train.folder import RunFolder

    found: dict[str, str] = (RunFolder(run).stored() or {"data": {}})["data"]
    return found


def _refuse_other_parts(run: Path, recipe: "Recipe", corpora: "list[Corpus[Any]]") -> None:
    """Reject held-out splits that differ from those of training: they may contain training examples."""
    held_out = [c for c in corpora if not recipe.data.is_made and recipe.data.share(c.split)]
    known = _known_data(run)
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
    return {
        key: found for key, found in RunFolder(run).results().get(split, {}).items() if key in ("baselines", "before")
    }
