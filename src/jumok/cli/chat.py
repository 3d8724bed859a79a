"""jumok chat: chat with a model, line by line."""

from typing import Annotated

import typer

from jumok.cli.arguments import Asked, MaxCharacters, RunArgument, options


def chat(
    run: RunArgument,
    history: Annotated[int, typer.Option(min=0, metavar="N", help="Earlier exchanges to prepend to each input.")] = 0,
    max_characters: MaxCharacters = None,
    overrides: Asked = None,
) -> None:
    """Chat with a run, line by line; /help lists the commands."""
    from jumok.chat import chat_in_terminal
    from jumok.predictor import load

    chat_in_terminal(load(run, max_characters=max_characters), history=history, options=options(overrides))
