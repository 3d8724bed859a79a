"""jumok show: parameters, time and memory of a recipe or a run, and the effective recipe."""

import json
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
    with_recipe: Annotated[bool, typer.Option("--recipe", help="Print the effective recipe, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how large a model is, how long its training takes, and its scores."""
    from jumok.cli.report import print_cost, print_parameters
    from jumok.recipe import load_recipe, recipe_tree
    from jumok.show import cost, imported, time
    from jumok.train.folder import RunFolder

    scores: dict[str, Any] = {}
    folder = RunFolder(what) if what.is_dir() else None
    vocabulary: dict[str, int] = {}
    engine = ""
    if folder is not None:
        if overrides:
            hint = "use --set with a recipe, not with a run"
            raise InputError("the recipe of a run cannot be changed", where="--set", hint=hint, code="input.options")
        from jumok.building import engine_of

        if (what / "model" / "config.json").exists() and not (what / "recipe.json").exists():
            found = {**imported(what), "engine": engine_of(what)}
            if as_json:
                print_json(found)
            else:
                parameters = found.pop("parameters")
                console = Console(soft_wrap=True)
                console.print_json(json.dumps(found, ensure_ascii=False))
                print_parameters(console, parameters)
                typer.echo(f"engine: {found['engine']}")
            return
        recipe = run_recipe(what)
        if (what / "scores.json").exists():
            from jumok.predictor import load

            scores, engine = folder.results(), engine_of(what)
            vocabulary = load(what, engine="torch").tokenizers.sizes
    else:
        recipe = load_recipe(what, overrides or [], find_data=False)
    counted = cost(recipe, **vocabulary)
    takes = time(recipe, counted, folder)
    if as_json:
        found = {"recipe": recipe_tree(recipe), "cost": asdict(counted), "time": asdict(takes)}
        print_json({**found, "scores": scores, "engine": engine})
        return
    print_cost(Console(soft_wrap=True), recipe, counted, takes, scores)
    if engine:
        typer.echo(f"engine: {engine}")
    if with_recipe:
        print_json(recipe_tree(recipe))
