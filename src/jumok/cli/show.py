"""jumok show: the effective recipe, its parameters and its cost."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from jumok.cli import completion
from jumok.cli.arguments import AsJson, Overrides, print_json, run_recipe
from jumok.errors import InputError


def show(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="RECIPE|RUN",
            help="A recipe, by its file or its name, or a run folder.",
            autocompletion=completion.recipes_and_runs,
        ),
    ],
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Show the effective recipe, its parameter counts and its cost."""
    from jumok.cli.report import print_cost, print_parameters
    from jumok.recipe import load_recipe, recipe_tree
    from jumok.show import cost, imported

    scores: dict[str, Any] = {}
    vocabulary: dict[str, int] = {}
    engine = ""
    if what.is_dir():
        if overrides:
            hint = "use --set with a recipe, not with a run"
            raise InputError("the recipe of a run cannot be changed", where="--set", hint=hint, code="input.options")
        from jumok.building import engine_of

        if (what / "model" / "config.json").exists() and not (what / "recipe.json").exists():
            found = {**imported(what), "engine": engine_of(what)}
            if as_json:
                print_json(found)
            else:
                print_parameters(Console(soft_wrap=True), found, found.pop("parameters"))
                typer.echo(f"engine: {found['engine']}")
            return
        recipe = run_recipe(what)
        if (what / "scores.json").exists():
            from jumok.predictor import load
            from jumok.train.folder import RunFolder

            scores, engine = RunFolder(what).results(), engine_of(what)
            vocabulary = load(what, engine="torch").tokenizers.sizes
    else:
        recipe = load_recipe(what, overrides or [], find_data=False)
    counted = cost(recipe, **vocabulary)
    if as_json:
        print_json({"recipe": recipe_tree(recipe), "cost": asdict(counted), "scores": scores, "engine": engine})
        return
    print_cost(Console(soft_wrap=True), recipe, counted, scores)
    if engine:
        typer.echo(f"engine: {engine}")
