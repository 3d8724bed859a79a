"""The command line: data on stdout, messages on stderr. One module per command.

Exit codes: 0 done, 1 the run failed, 2 the input was wrong; interrupted training saves and exits with 130 (Ctrl-C) or
143 (SIGTERM); a command whose output nobody reads any more (`| head -1`) exits with 141, as from SIGPIPE.
Hyper-parameters live in recipes; `--set` is the only override. Modules that need torch are imported when their command
runs, so that help is instant.
"""

import os
import signal
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from jumok.cli import (
    attention,
    chat,
    compare,
    demo,
    doctor,
    evaluate,
    exchange,
    finish,
    new,
    predict,
    recipes,
    serve,
    show,
    train,
)
from jumok.cli.arguments import talk
from jumok.errors import JumokError
from jumok.version import __version__


class Commands(TyperGroup):
    """Ends a command quietly when nobody reads its output any more, or on Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is left in the buffer is flushed at the end of the process, and would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(128 + signal.SIGPIPE) from None
        except KeyboardInterrupt:
            raise typer.Exit(128 + signal.SIGINT) from None
        return result


app = typer.Typer(
    cls=Commands,
    help="From raw text to a working, inspectable sequence model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    warnings.showwarning = lambda message, *_: talk.print(f"note: {message}", markup=False)
    try:
        app()
    except JumokError as error:
        talk.print("error:", style="bold red", end=" ")
        talk.print(str(error), markup=False)
        sys.exit(error.exit_code)
    except OSError as error:  # e.g. a read-only folder or a full disk
        talk.print(f"error: {error}", style="bold red", markup=False)
        sys.exit(1)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jumok {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    """From raw text to a working, inspectable sequence model."""


app.command()(new.new)
app.command()(train.train)
app.command()(finish.finish)
app.command()(evaluate.evaluate)
app.command()(predict.predict)
app.command()(attention.attention)
app.command()(chat.chat)
app.command()(compare.compare)
app.command()(show.show)
app.command()(recipes.recipes)
app.command()(doctor.doctor)
app.command("import")(exchange.import_model)
app.command("export")(exchange.export_model)
app.command()(serve.serve)
app.command()(demo.demo)
