"""The command line as a user calls it: a process of its own, an exit code, stdout and stderr."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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


@pytest.fixture(scope="session")
def recipes() -> Path:
    return ROOT / "recipes"


@pytest.fixture(scope="session")
def jumok(tmp_path_factory) -> Jumok:
    return Jumok(tmp_path_factory.mktemp("system"))


@pytest.fixture(scope="session")
def reversed_run(jumok, recipes) -> Path:
    """One trained toy that several tests look at."""
    out = jumok.folder / "reverse"
    jumok("train", recipes / "toy/reverse.toml", "--out", out)
    return out
