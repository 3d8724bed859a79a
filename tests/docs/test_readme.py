"""The README's commands, run as they stand; only trainings are made short."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jumok.errors import InputError
from jumok.picture import find_families

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
SHORT = "--set train.steps=12 --set train.evaluate_every=12 --set train.save_every=6 --set data.n_train=3000"
SHORT += " --set data.n_dev=20 --set data.n_test=30"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


def commands() -> list[str]:
    lines = [line.partition("    #")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if "jumok" in line]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A folder that looks like a checkout after `make demo`, its quickstart trained for a moment."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "recipes", folder / "recipes")
    run("jumok train recipes/quickstart.toml --out runs/quickstart " + SHORT, folder)
    return folder


def run(command: str, folder: Path) -> str:
    beside = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": beside + os.pathsep + os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    environment["JUMOK_CACHE"] = str(folder / "cache")
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("command", commands())
def test_command_runs(checkout, command):
    if " train " in command:
        command += " " + SHORT
    if " attention " in command:
        try:
            find_families("한글")
        except InputError as error:
            pytest.skip(str(error))
    out = run(command.replace(".venv/bin/", ""), checkout)
    if " predict " in command:
        assert out.count("\n") == 1  # a line in, a line out; after twelve steps it may be an empty one
    else:
        assert " train " in command or out.strip()


def test_python_example_runs(checkout):
    (example,) = [block for block in blocks("python") if "jumok" in block]  # those of clients: test_server_page.py
    out = run(f"{sys.executable} - <<'END'\n{example}\nEND", checkout)
    assert out.startswith("[")


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("sh")), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
