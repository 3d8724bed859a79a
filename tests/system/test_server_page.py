"""docs/server.md and the README: their examples run against a served quickstart; the limits are those of the code."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from served import Served

from jumok.serve import http, libretranslate, models, process, queue
from jumok.serve.limits import Limits

ROOT = Path(__file__).parents[2]
PAGE, README = ((ROOT / name).read_text("utf-8") for name in ("docs/server.md", "README.md"))
SHORT = {"train.steps": 12, "train.evaluate_every": 12, "train.save_every": 12, "data.n_train": 3000, "data.n_dev": 20}
SMALL = {"data.n_test": 30, "model.d_model": 32, "model.d_ff": 64}


@pytest.fixture(scope="module")
def served(here, jumok, recipes, runs):
    out = here.folder / "docs" / "quickstart"
    changed = [part for key, value in (SHORT | SMALL).items() for part in ("--set", f"{key}={value}")]
    here("train", recipes / "quickstart.toml", "--out", out, *changed)
    shutil.copytree(runs("korean").folder, out.parent / "gpt")
    found = Served(jumok, out, out.parent / "gpt")
    yield found
    assert found.stop() == 0


@pytest.fixture(autouse=True)
def this_machine(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # which it would refuse to ask, too


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # clients that a reader's script ends with open connections
def test_the_readmes_clients(served, capsys):
    blocks = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "127.0.0.1" in block]
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block.replace("http://127.0.0.1:8000", served.address), "README.md", "exec"), {})
        assert capsys.readouterr().out.strip(), block


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_its_examples_run(served, capsys):
    page = PAGE.replace("http://127.0.0.1:8000", served.address)
    for line in re.findall(r"^curl .*$", page, re.MULTILINE):
        done = subprocess.run(["sh", "-c", line.replace("curl -s", "curl -sS --fail")], capture_output=True, text=True)
        assert (done.returncode, "quickstart" in done.stdout) == (0, True), done.stderr
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "docs/server.md", "exec"), names)
    said = capsys.readouterr().out
    assert "'code': 'en'" in said
    assert "['gpt', 'quickstart']" in said
    (html,) = [line for line in said.splitlines() if line.startswith("<p>")]
    assert [html.count(tag) for tag in ("<p>", "<b>", "</b>", "<br>", "<i>", "</i>", "</p>")] == [1] * 7


def test_its_limits_are_those_of_the_code():
    limits = Limits()
    known = [http.HEAD_BYTES, http.URL_BYTES, limits.body, queue.MOST_INPUTS, queue.MOST_TOKENS, queue.BUDGET]
    known += [libretranslate.MOST_CHARACTERS, http.READING_BYTES]
    assert [n for n in known if f"{n:,}" not in PAGE] == []
    for text in (
        f"{http.HEADERS} headers",
        f"{http.HEAD:.0f} s",
        f"{http.BODY:.0f} s",
        f"{limits.depth} levels",
        f"texts of a request | {limits.inputs}",
        f"{limits.seconds:.0f} s, the wait",
        f"{http.READING:.0f} s | cut off",
        f"{process.CONNECTIONS}, from one address {http.PER_ADDRESS}; idle for {http.IDLE:.0f} s",
        f"at most {models.INTERACTIVE} inputs",
        f"waited for {queue.PATIENCE:.0f} s",
        f"within {process.DRAIN} seconds",
    ):
        assert text in PAGE, text
