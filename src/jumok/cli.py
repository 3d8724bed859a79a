"""The command line: data on stdout, talk on stderr; exit codes 0 done, 1 the run failed, 2 the input was wrong."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console

from jumok import __version__
from jumok.errors import InputError, JumokError

app = typer.Typer(
    help="From raw text to a working, inspectable, servable sequence model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
talk = Console(stderr=True, highlight=False)

Overrides = Annotated[
    Optional[list[str]], typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")]


def main() -> None:
    try:
        app(standalone_mode=True)
    except JumokError as error:
        talk.print(f"[bold red]error:[/] {_escape(str(error))}", soft_wrap=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        talk.print("stopped")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jumok {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    """From raw text to a working, inspectable, servable sequence model."""


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe (TOML).")],
    out: Annotated[Optional[Path], typer.Option(help="Run folder; runs/RECIPE if not given.")] = None,
    overrides: Overrides = None,
) -> None:
    """Train a recipe. The same command again goes on where it stopped."""
    from jumok.recipe import load_recipe
    from jumok.report import TrainingReport
    from jumok.training import run_training

    loaded = load_recipe(recipe, overrides or [])
    out = out or Path("runs") / recipe.stem
    with TrainingReport(loaded, out, talk) as report:
        finished = run_training(loaded, out, began=report.began, watch=report.watch)
    report.finish(finished)


if __name__ == "__main__":
    main()
