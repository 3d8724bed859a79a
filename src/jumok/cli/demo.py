"""jumok demo: the quickstart, with the page open on it."""

import json
import os
import re
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Annotated
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import typer
from rich.console import Console

from jumok.cli.arguments import splits, talk
from jumok.cli.train import train_into
from jumok.errors import RunError

TEXT = "two hundred thirty-four thousand five hundred six"


def demo(
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("runs/quickstart"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 for any free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
    leave: Annotated[bool, typer.Option("--exit", help="Exit when the model is trained and the page answers.")] = False,
) -> None:
    """Run the quickstart: watch it learn on a page, see its scores, then use it and look inside until Ctrl-C."""
    stays = sys.stdout.isatty() and not leave
    out.parent.mkdir(parents=True, exist_ok=True)
    with _page(out.parent, port) as address:
        if address:
            _show(f"{address}/#room=training&run={out.name}", browser=browser and stays)
        _train(out)
        if not address:
            return
        _check(address, out)
        _show(f"{address}/#room=use&run={out.name}", browser=False)
        looking = urlencode({"room": "inside", "run": out.name, "text": TEXT})
        _show(f"{address}/#{looking}", browser=browser and stays)
        if stays:
            talk.print("Ctrl-C ends the demo.")
            _until_interrupted()
    talk.print(f"Serve it again:\n  {sys.argv[0]} serve {out}", markup=False)


def _train(out: Path) -> None:
    from jumok.cli.report import print_samples, print_scores
    from jumok.predictor import load
    from jumok.shipped import shipped_recipe
    from jumok.train.folder import RunFolder

    train_into(shipped_recipe("quickstart"), out)
    console = Console(soft_wrap=True)
    for split, result in RunFolder(out).results().items():
        print_scores(console, split, result)
    samples = splits(out, None)["test"].examples[:12]
    print_samples(console, samples, load(out)([pair.source for pair in samples]))
    console.print(f'\nTry it:\n  echo "{TEXT}" | {sys.argv[0]} predict {out}', markup=False)


@contextmanager
def _page(folder: Path, port: int) -> Iterator[str]:
    """Serve a folder of runs from a process of its own, so that the page answers while this one trains; yields its
    address, or "" if the server is not installed."""
    command = [sys.executable, "-m", "jumok", "serve", "--runs", str(folder), "--port", str(port)]
    # In a session of its own: a Ctrl-C that stops the training must not end the page first.
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as server:
        assert server.stderr is not None
        said: list[str] = []
        for line in server.stderr:
            said.append(line)
            if " at http://" in line:
                break
        found = re.search(r"at (http://\S+)", said[-1]) if said else None
        if found is None:
            talk.print("".join(["no page: ", *said]).rstrip(), markup=False)
        # Nobody reads its log, but a full pipe would stop it.
        Thread(target=_drain, args=(server.stderr,), daemon=True).start()
        try:
            yield found[1] if found else ""
        finally:
            server.terminate()


def _drain(stream: IO[str]) -> None:
    for _ in stream:
        pass


def _show(address: str, *, browser: bool) -> None:
    talk.print(f"page: {address}", markup=False)
    # Without a screen, webbrowser starts one for terminals, which would take this one over.
    screen = sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if browser and screen:
        webbrowser.open(address)


def _check(address: str, out: Path) -> None:
    """The page is there, and the model answers."""
    with urlopen(address, timeout=30) as answer:
        page = answer.read().decode()
    body = json.dumps({"examples": [TEXT]}).encode()
    request = Request(f"{address}/api/runs/{out.name}/predict", body, {"content-type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        text = json.load(answer)["outputs"][0]["text"]
    if "jumok" not in page or not text:
        raise RunError("the page does not answer", where=address, hint=f"try jumok serve {out}", code="serve.failed")
    talk.print(f"the page answers: {TEXT} → {text}", markup=False)


def _until_interrupted() -> None:
    from time import sleep

    try:
        while True:
            sleep(3600)
    except KeyboardInterrupt:
        talk.print()
