"""The command line as a user calls it: an exit code, stdout and stderr, and a process of its own where that matters."""

import io
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from page import Visits, chromium
from served import Served

from jumok.cli import main
from once import once

ROOT = Path(__file__).parents[2]


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.system)


class Jumok:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "JUMOK_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}

    def start(self, *arguments: object, launcher: tuple[str, ...] = (), **options) -> subprocess.Popen:
        command = [sys.executable, *launcher, "-m", "jumok", *map(str, arguments)]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def __call__(
        self, *arguments: object, code: int = 0, stdin: str | bytes = "", launcher: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess:
        process = self.start(*arguments, launcher=launcher)
        out, err = process.communicate(stdin.encode() if isinstance(stdin, str) else stdin, timeout=420)
        done = subprocess.CompletedProcess(arguments, process.returncode, out.decode(), err.decode())
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done


class Here(Jumok):
    """The same in this process, which has read torch already: for the toys, a third of whose time that would take."""

    def __call__(self, *arguments: object, code: int = 0, stdin: str | bytes = "") -> subprocess.CompletedProcess:
        given = io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)
        streams = [
            io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in (given, io.BytesIO(), io.BytesIO())
        ]
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("default")
            patch.setenv("JUMOK_CACHE", self.environment["JUMOK_CACHE"])
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["jumok", *map(str, arguments)])
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            torch.set_num_threads(1)
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])
        assert (ended.value.code or 0) == code, f"{arguments}: exit {ended.value.code}\n{out}\n{err}"
        return subprocess.CompletedProcess(arguments, code, out, err)


@pytest.fixture(scope="session")
def recipes() -> Path:
    return ROOT / "recipes"


@pytest.fixture(scope="session")
def jumok(tmp_path_factory) -> Jumok:
    return Jumok(tmp_path_factory.mktemp("system"))


@pytest.fixture(scope="session")
def here(tmp_path_factory) -> Here:
    return Here(tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="session")
def reversed_run(here, recipes, tmp_path_factory) -> Path:
    """One trained toy that several tests look at."""
    toy = recipes / "toy/reverse.toml"
    return once(tmp_path_factory, here.folder / "reverse", lambda out: here("train", toy, "--out", out))


@pytest.fixture(scope="module")
def browser():
    """One Chromium for the tests of a file; as long as Playwright is on, nothing else can run an event loop."""
    from playwright.sync_api import sync_playwright

    executable = chromium()
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def site(jumok, runs, reversed_run, tmp_path_factory):
    """One server for all tests of the page in this process: a trained toy, and tiny runs of other tasks."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(reversed_run, folder / "reverse")
    for task in SITE:
        shutil.copytree(runs(task).folder, folder / task)
    found = Served(jumok, "--runs", folder)
    found.folder = folder
    yield found
    assert found.stop() == 0


SITE = ("translation", "classification", "tagging", "relation", "answering", "pretraining", "language_model")


@pytest.fixture
def visit(browser, site):
    """Opens the page; the test fails if the browser reports an error on it."""
    visits = Visits(browser, site.address)
    yield visits
    visits.close()
