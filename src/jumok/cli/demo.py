"""jumok demo: the quickstart."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jumok.cli.arguments import splits
from jumok.cli.train import train_into


def demo(out: Annotated[Path, typer.Option(help="Run folder.")] = Path("runs/quickstart")) -> None:
    """Run the quickstart: train, score, show a dozen held-out samples, and leave a model to try."""
    from jumok.cli.report import print_samples, print_scores
    from jumok.predictor import load
    from jumok.recipe import shipped_recipe
    from jumok.train.folder import RunFolder

    train_into(shipped_recipe("quickstart.toml"), out)
    console = Console(soft_wrap=True)
    for split, result in RunFolder(out).results().items():
        print_scores(console, split, result)
    samples = splits(out, None)["test"].examples[:12]
    print_samples(console, samples, load(out)([pair.source for pair in samples]))
    text = "two hundred thirty-four thousand five hundred six"
    console.print(f'\nTry it:\n  echo "{text}" | {sys.argv[0]} predict {out}', markup=False)
