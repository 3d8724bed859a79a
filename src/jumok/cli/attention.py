"""jumok attention: draw a model's attention."""

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import AsJson, MaxCharacters, RunArgument, print_json
from jumok.errors import InputError


def attention(
    run: RunArgument,
    text: Annotated[str, typer.Argument(help="Input text.")],
    output: Annotated[str | None, typer.Option(metavar="TEXT", help="Align this, not the model's output.")] = None,
    out: Annotated[Path | None, typer.Option(help="A .png or .svg file; default: RUN/attention.png.")] = None,
    max_characters: MaxCharacters = None,
    as_json: AsJson = False,
) -> None:
    """Draw the model's attention: for each output token, or over the words that decide a label."""
    from jumok.picture import refuse_undrawable
    from jumok.predictor import load

    picture = out or run / "attention.png"
    refuse_undrawable(picture)
    if not text.strip():
        hint = 'pass a text: jumok attention RUN "two hundred six"'
        raise InputError("the text is empty", hint=hint, code="input.empty")
    predictor = load(run, max_characters=max_characters, engine="torch")
    result = predictor.draw_attention(text, picture, output=output)
    if as_json:
        print_json({"run": str(run), "picture": str(picture), **result})
    else:
        typer.echo(str(picture))
