"""What takes long to make is made by the first process of the tests that needs it; the others copy it."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def once(factory: pytest.TempPathFactory, folder: Path, make: Callable[[Path], object]) -> Path:
    """This folder, as `make` fills it; folders of one name are alike."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        make(folder)
        return folder
    (shelf := factory.getbasetemp().parent / "once").mkdir(exist_ok=True)  # of all processes of this session
    with (shelf / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (shelf / folder.name).exists():
            shutil.copytree(shelf / folder.name, folder)
        else:
            make(folder)
            shutil.copytree(folder, shelf / f"{folder.name}.part")
            (shelf / f"{folder.name}.part").rename(shelf / folder.name)
    return folder
