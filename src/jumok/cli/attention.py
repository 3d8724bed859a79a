"""jumok attention: what a model looks at, drawn."""

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import AsJson, RunArgument, print_json
from jumok.errors import InputError


def attention(
    run: RunArgument,
    text: Annotated[str, typer.Argument(help="What the model reads.")],
    output: Annotated[str | None, typer.Option(metavar="TEXT", help="Align this, not the model's own output.")] = None,
    out: Annotated[Path | None, typer.Option(help="A .png or .svg; RUN/attention.png if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw what the model looks at: piece by piece while it writes, or the words by which it judges."""
    from jumok.picture import refuse_undrawable
    from jumok.predictor import load

    picture = out or run / "attention.png"
    refuse_undrawable(picture)
    if not text.strip():
        hint = 'a text: jumok attention RUN "two hundred six"'
        raise InputError("there is no text to look at", hint=hint, code="input.empty")
    predictor = load(run)
    result = predictor.draw_attention(text, picture, output=output)
    if as_json:
        print_json({"run": str(run), "picture": str(picture), **result})
    else:
        typer.echo(str(picture))
