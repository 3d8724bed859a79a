"""jumok import and jumok export: exchange models with other libraries."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from jumok.cli.arguments import RunArgument

OtherFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A Hugging Face folder: BERT, RoBERTa, ELECTRA, GPT-2 …")
]
OtherLayout = Annotated[Literal["huggingface", "ctranslate2"], typer.Option("--to", help="Target format.")]
NewFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.")]


def import_model(folder: OtherFolder, run: RunArgument) -> None:
    """Import a model as a run. Weights are checked name by name, and no code is executed."""
    from jumok.exchange import import_folder

    typer.echo(import_folder(folder, run))


def export_model(run: RunArgument, folder: NewFolder, to: OtherLayout = "huggingface") -> None:
    """Export a run's model for other libraries."""
    from jumok.exchange import export_folder

    typer.echo(export_folder(run, folder, to))
