"""What is imported when: predictors need neither torch nor anything that trains."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

OLD_RUNS = Path(__file__).parents[1] / "data" / "old_runs"
TRAINING = ("jumok.train", "jumok.training", "jumok.assemble")


def imported(code: str) -> set[str]:
    """The modules that a new process has imported after this code."""
    says = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", f"{code}\n{says}"], capture_output=True, check=True, text=True)
    return set(json.loads(found.stdout.splitlines()[-1]))


def within(modules: set[str], *packages: str) -> list[str]:
    return sorted(name for name in modules for package in packages if name == package or name.startswith(f"{package}."))


@pytest.mark.parametrize(
    "code",
    [
        "import jumok; jumok.load; jumok.Predictor; jumok.JumokError",
        "import jumok.tasks",
        "import jumok.cli",
        "import jumok; [getattr(jumok, name) for name in jumok.__all__ if name != 'train']",
        "import importlib, pkgutil, jumok.tasks\n"
        "rooms = [each.name for each in pkgutil.iter_modules(jumok.tasks.__path__) if each.ispkg]\n"
        "assert len(rooms) >= 8\n"
        "for room in rooms: importlib.import_module(f'jumok.tasks.{room}.predictor')",
    ],
    ids=["load", "tasks", "command line", "public names", "predictors"],
)
def test_nothing_but_a_model_needs_torch(code: str) -> None:
    modules = imported(code)
    assert within(modules, "torch", *TRAINING) == []
    assert within(modules, "jumok")


@pytest.mark.parametrize("name", ["copy", "josa"])
def test_a_model_that_is_loaded_and_asked_needs_nothing_that_trains(name: str) -> None:
    modules = imported(f"import jumok; jumok.load({str(OLD_RUNS / name)!r}, device='cpu')(['1 2'])")
    assert within(modules, *TRAINING) == []
    assert within(modules, "torch")


def test_training_is_imported_when_it_is_asked_for() -> None:
    assert within(imported("import jumok; jumok.train"), *TRAINING)
