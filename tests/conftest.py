import os

import pytest
import torch
from hypothesis import settings

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
