"""jumok chat: a talk with a model, line by line."""

from typing import Annotated

import typer

from jumok.cli.arguments import Asked, RunArgument, options


def chat(
    run: RunArgument,
    history: Annotated[int, typer.Option(min=0, metavar="N", help="Exchanges that are put before each input.")] = 0,
    overrides: Asked = None,
) -> None:
    """Talk with a run: a line in, a reply out; /help says what else there is."""
    from jumok.chat import chat_in_terminal
    from jumok.predictor import load

    chat_in_terminal(load(run), history=history, options=options(overrides))
