"""jumok import and jumok export: models from elsewhere and for elsewhere."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from jumok.cli.arguments import RunArgument

OtherFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A Hugging Face folder: BERT, GPT-2 or Marian.")]
OtherLayout = Annotated[Literal["huggingface"], typer.Option("--to", help="Who is to open it.")]


def import_model(folder: OtherFolder, run: RunArgument) -> None:
    """Make a run of a model from elsewhere. Weights are checked name by name, and nothing is executed."""
    from jumok.exchange import import_folder

    typer.echo(import_folder(folder, run))


def export_model(run: RunArgument, folder: OtherFolder, to: OtherLayout = "huggingface") -> None:
    """Write a run's model where others open it."""
    from jumok.exchange import export_folder

    typer.echo(export_folder(run, folder))
