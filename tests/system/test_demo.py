"""The demo without a terminal: it trains, checks that page and model answer, and ends."""

import json
import sys
from urllib.request import urlopen

import pytest

from jumok.cli import demo


@pytest.fixture
def trained(monkeypatch, reversed_run):
    """The toy in place of the quickstart, which takes minutes; pages that were told of, and what they had."""
    told = []

    def train(out):
        assert out == reversed_run
        (address,) = told
        with urlopen(f"{address.split('/#')[0]}/api/runs", timeout=30) as answer:
            told.append(json.load(answer)["runs"])

    monkeypatch.setattr(demo, "_train", train)
    monkeypatch.setattr(demo, "TEXT", "1 2 3 4")
    monkeypatch.setattr(demo, "_show", lambda address, *, browser: told.append(address))
    monkeypatch.setattr(sys, "argv", ["jumok", "demo"])
    return told


def test_the_page_is_there_while_it_trains_and_gone_after(trained, reversed_run, capfd):
    demo.demo(out=reversed_run, port=0, browser=True, leave=True)
    learning, runs, using, looking = trained
    assert learning.endswith(f"/#room=training&run={reversed_run.name}")
    assert using.endswith(f"/#room=use&run={reversed_run.name}")
    assert looking.endswith(f"/#room=inside&run={reversed_run.name}&text=1+2+3+4")
    assert reversed_run.name in json.dumps(runs)
    said = capfd.readouterr().err
    assert "1 2 3 4 → 4 3 2 1" in said
    assert f"serve {reversed_run}" in " ".join(said.split())
    with pytest.raises(OSError, match="refused"):
        urlopen(using.split("/#")[0], timeout=5)


def test_a_page_that_cannot_be_served_does_not_keep_it_from_training(trained, reversed_run, monkeypatch, capfd):
    done = []
    monkeypatch.setattr(demo, "_train", done.append)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    demo.demo(out=reversed_run, port=0, browser=True, leave=True)
    assert done == [reversed_run]
    assert trained == []
    assert "no page" in capfd.readouterr().err
