"""jumok serve: models behind HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli import completion
from jumok.cli.arguments import talk
from jumok.cli.engine import ensure_engine
from jumok.errors import InputError


def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN...", help="Runs to serve.", autocompletion=completion.runs),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--runs", metavar="DIR", help="Serve every run in this folder, loaded on first use.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; beyond this machine, put a proxy in front.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free one.")] = 8000,
    allowed: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another name that clients reach the server by; repeatable."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--api-key-file",
            metavar="FILE",
            help="Ask every client for the key in this file, or in the environment variable JUMOK_API_KEY.",
        ),
    ] = None,
) -> None:
    """Serve runs over HTTP until Ctrl-C or SIGTERM; requests that were accepted are answered first."""
    try:
        from jumok.serve.access import read_key
        from jumok.serve.process import serve_until_asked
    except ImportError as error:
        what, hint = "the server is not installed", "pip install 'jumok[serve]'"
        raise InputError(what, hint=hint, code="input.extra") from error
    if not runs and folder is None:
        raise InputError("nothing to serve", hint="name a run, or --runs DIR", code="input.no_run")
    for run in runs or []:
        ensure_engine(run, talk.print)
    serve_until_asked(
        runs or [],
        folder,
        host=host,
        port=port,
        say=lambda line: talk.print(line),
        hosts=allowed or [],
        key=read_key(key_file),
    )
