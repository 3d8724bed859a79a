import gc
import os

import pytest
import torch
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tiny_runs import held_out, runs, train, tree  # noqa: F401 - fixtures

# Read when `transformers` is imported: model folders of the tests are local, nothing is fetched.
os.environ["HF_HUB_OFFLINE"] = "1"
# A busy machine is slow, and that is no failure: speed is never a timed test.
# Continuous integration tries the same examples every time: what fails there is the change. Elsewhere chance looks on.
settings.register_profile("patient", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("patient")


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tiny tensors are fastest on one thread, and sums then have one order, however busy the other test process is."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Thousands of tests are collected and stay; to look through them again and again took a third of the time."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


SPREAD = ("tests/docs/test_contributing.py", "tests/system/test_faults.py", "tests/system/test_toys.py")
"""files of long tests that share little"""


class FileByFile(LoadScopeScheduling):
    """Deals out files, so that what their tests share is made once; the tests of long files one by one.

    They go in their order. Most of tests/unit comes last, in small portions, so that all processes end together.
    """

    def __init__(self, config, log):
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return nodeid if file in SPREAD else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return FileByFile(config, log)
