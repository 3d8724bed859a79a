"""jumok attention: draw a model's attention."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import AsJson, MaxCharacters, RunArgument, print_json
from jumok.errors import InputError


def attention(
    run: RunArgument,
    text: Annotated[str, typer.Argument(help="Input text.")],
    output: Annotated[str | None, typer.Option(metavar="TEXT", help="Align this, not the model's output.")] = None,
    layer: Annotated[
        int | None, typer.Option(metavar="N", help="Draw this layer, counted from 1; default: the last.")
    ] = None,
    head: Annotated[
        str | None, typer.Option(metavar="N|mean|max", help="Draw this head, counted from 1; default: mean.")
    ] = None,
    part: Annotated[
        str | None,
        typer.Option("--map", metavar="NAME", help="Draw this map: encoder, decoder or cross; self; pool."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A .png or .svg file; default: RUN/attention.png.")] = None,
    max_characters: MaxCharacters = None,
    as_json: AsJson = False,
) -> None:
    """Draw the model's attention: for each output token, or over the words that decide a label.

    With --layer, --head or --map, draw that part of it, whatever the task.
    """
    from jumok.picture import draw_alignment, refuse_undrawable
    from jumok.predictor import load
    from jumok.tasks.attention import one_head

    picture = out or run / "attention.png"
    refuse_undrawable(picture)
    if not text.strip():
        hint = 'pass a text: jumok attention RUN "two hundred six"'
        raise InputError("the text is empty", hint=hint, code="input.empty")
    predictor = load(run, max_characters=max_characters, engine="torch")
    if part is None and layer is None and head is None:
        result = predictor.draw_attention(text, picture, output=output)
    else:
        found = one_head(predictor.attention(text, output), name=part, layer=layer, head=head)
        rows = "output" if found.map in ("decoder", "cross") else "token"
        draw_alignment(found, picture, title=found.title, rows=rows)
        result = {"input": text, **asdict(found)}
    if as_json:
        print_json({"run": str(run), "picture": str(picture), **result})
    else:
        typer.echo(str(picture))
