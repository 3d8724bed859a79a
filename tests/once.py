"""What takes long to make is made by the first process of the tests that needs it; the others copy it."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def shelf(factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes of this session."""
    base = factory.getbasetemp()
    (found := (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shelf").mkdir(exist_ok=True)
    return found


def once(factory: pytest.TempPathFactory, folder: Path, make: Callable[[Path], object]) -> Path:
    """This folder, as `make` fills it; folders of one name are alike."""
    kept = shelf(factory) / folder.name
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kept.exists():
            shutil.copytree(kept, folder)
        else:
            make(folder)
            shutil.copytree(folder, kept.with_suffix(".part"))
            kept.with_suffix(".part").rename(kept)
    return folder
