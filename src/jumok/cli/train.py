"""jumok train: events to the terminal, signals to the training loop."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from jumok.cli import completion
from jumok.cli.arguments import Overrides, talk
from jumok.cli.new import MINUTES, From, is_data, recipe_of_data
from jumok.errors import InputError
from jumok.shipped import find_recipe

RECIPE_OR_DATA = "A recipe (a TOML file, or a name that `jumok recipes` lists), or data files."


def train(
    what: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECIPE|FILE...",
            help="A recipe (TOML, or a name that `jumok recipes` lists), or data files.",
            autocompletion=completion.recipes,
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Run folder; default: runs/FOLDER-RECIPE, or runs/DATA.")] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.05, metavar="N", help="For data: minutes that training may take; default: 30.")
    ] = None,
    weights: From = None,
    overrides: Overrides = None,
) -> None:
    """Train a recipe, or data: a recipe is written for it first, as by `jumok new --yes`.

    Run the same command again to resume where it stopped.
    """
    if is_data(what):
        recipe, out = recipe_of_data(what, out, minutes=minutes or MINUTES, weights=weights)
    elif minutes or weights:
        hint = "use --set train.minutes=N, or --set init=FOLDER"
        raise InputError("--minutes and --from are for data", where=what[0], hint=hint, code="input.options")
    else:
        recipe = find_recipe(what[0])
        out = out or Path("runs") / run_name(recipe)
    train_into(recipe, out, overrides)


def run_name(recipe: Path) -> str:
    """The recipe's name, prefixed by its folder's: recipes/ddtp/ko-en.toml trains into ddtp-ko-en."""
    folder = recipe.absolute().parent.name
    return recipe.stem if folder == "recipes" else f"{folder}-{recipe.stem}"


def train_into(recipe: Path, out: Path, overrides: list[str] | None = None) -> None:
    from jumok import training
    from jumok.cli.report import TrainingReport
    from jumok.cli.scores import print_short_scores
    from jumok.recipe import load_recipe
    from jumok.train.loop import Finished

    last = None
    with interruptible() as asked:
        loaded = load_recipe(recipe, overrides or [])
        with TrainingReport(loaded, out, talk, asked) as report:
            for event in training.train(loaded, out, stop=lambda: bool(asked), done=report.scored):
                report.watch(event)
                last = event
    if isinstance(last, Finished):
        if last.reason == "interrupted":
            raise typer.Exit(exit_code(asked))
        print_short_scores(talk, out)


def exit_code(asked: Sequence[int]) -> int:
    """That of a process which these signals asked to stop."""
    return 128 + (asked[0] if asked else signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Let signals ask the run to save and stop, by filling the list. A second Ctrl-C stops it at once."""
    asked: list[int] = []

    def ask(number: int, _: FrameType | None) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(number)

    # Schedulers send SIGUSR1 before they kill; under nohup, SIGHUP is ignored and stays so.
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    old = {number: signal.signal(number, ask) for number in heard}
    try:
        yield asked
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
