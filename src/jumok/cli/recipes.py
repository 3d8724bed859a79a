"""jumok recipes: those that come with jumok."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from jumok.cli.arguments import AsJson, print_json
from jumok.cli.completion import shipped

if TYPE_CHECKING:
    from jumok.shipped import Shipped


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Print this one.", autocompletion=shipped)] = None,
    as_json: AsJson = False,
) -> None:
    """List the recipes that come with jumok, or print one. `jumok train NAME` trains it."""
    from jumok.shipped import described, shipped_names

    if name is not None:
        found = described(name.removesuffix(".toml"))
        text = found.path.read_text("utf-8")
        if as_json:
            print_json({**_plain(found), "text": text})
        else:
            typer.echo(text, nl=False)
        return
    listed = [described(one) for one in shipped_names()]
    if as_json:
        print_json({"recipes": [_plain(one) for one in listed]})
        return
    table = Table(box=SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("task", no_wrap=True)
    table.add_column("description")
    for one in listed:
        table.add_row(one.name, one.task, one.description)
    Console(highlight=False, markup=False).print(table)


def _plain(recipe: "Shipped") -> dict[str, str]:
    return {**asdict(recipe), "path": str(recipe.path)}
