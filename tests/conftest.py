import os

import pytest
import torch

# Read when `transformers` is imported: model folders of the tests are local, nothing is fetched.
os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tiny tensors are fastest on one thread, and sums then have one order."""
    torch.set_num_threads(1)
