"""docs/server.md: its examples run, in order, against a served quickstart; its limits are those of the code."""

import re
import subprocess
from pathlib import Path

import pytest
from served import Served

from jumok.serve import http, libretranslate, models, process, queue
from jumok.serve.limits import Limits

PAGE = (Path(__file__).parents[2] / "docs/server.md").read_text("utf-8")
SHORT = {"train.steps": 12, "train.evaluate_every": 12, "train.save_every": 12, "data.n_train": 3000, "data.n_dev": 20}
SMALL = {"data.n_test": 30, "model.d_model": 32, "model.d_ff": 64}


@pytest.fixture(scope="module")
def served(here, jumok, recipes):
    out = here.folder / "docs" / "quickstart"
    changed = [part for key, value in (SHORT | SMALL).items() for part in ("--set", f"{key}={value}")]
    here("train", recipes / "quickstart.toml", "--out", out, *changed)
    found = Served(jumok, out)
    yield found
    assert found.stop() == 0


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
    html = said.splitlines()[-1]
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
