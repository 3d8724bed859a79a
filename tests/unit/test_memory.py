"""Available memory: the least of what the machine, the container and the user's limits allow."""

import resource

import pytest

from jumok import memory
from jumok.memory import available_memory, gibibytes


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with a mebibyte left, in a container without a limit."""
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable:    1024 kB\n", "ascii")
    (tmp_path / "max").write_text("max\n", "ascii")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER", (tmp_path / "max", tmp_path / "none"))
    return tmp_path


def test_the_machine(machine):
    assert available_memory() == 1 << 20


def test_the_container(machine):
    (machine / "max").write_text("4096\n", "ascii")
    assert available_memory() == 4096


def test_the_user(machine, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (512, 512))
    assert available_memory() == 512


def test_a_system_that_tells_only_its_size(machine):
    (machine / "meminfo").unlink()
    assert available_memory() > 1 << 20


def test_it_is_said_in_gibibytes():
    assert gibibytes(3 << 29) == "1.5 GiB"
