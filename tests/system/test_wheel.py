"""The wheel: what `pip install 'jumok[serve]'` puts on a machine serves the page and all that it refers to."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from posixpath import dirname, join, normpath

import pytest
from served import Served

ROOT = Path(__file__).parents[2]
REFERENCES = re.compile(r"""(?:(?:src|href)=|\bfrom |\bimport |\bimport\()["']([./][^"'#]+)["']""")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (found,) = out.glob("*.whl")
    return found


def test_it_has_all_of_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        metadata = archive.read(next(name for name in inside if name.endswith("METADATA"))).decode()
    source = {path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert {path.relative_to(ROOT / "src").as_posix() for path in source} <= inside
    recipes = {path.relative_to(ROOT).as_posix() for path in (ROOT / "recipes").rglob("*.toml")}
    assert {f"jumok/{recipe}" for recipe in recipes} <= inside
    assert all(name.startswith("jumok") for name in inside)
    for package in ("starlette", "uvicorn", "httptools"):
        assert re.search(rf"^Requires-Dist: {package}.*extra == 'serve'", metadata, re.MULTILINE)


def test_what_is_installed_from_it_serves_the_page(wheel, jumok, runs, tmp_path, monkeypatch):
    """Unpacked is what pip does to a pure wheel; the dependencies are those of this environment."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    monkeypatch.setitem(jumok.environment, "PYTHONPATH", str(tmp_path / "installed"))
    where = subprocess.run(
        [sys.executable, "-c", "import jumok.serve; print(jumok.serve.__file__)"],
        env={**os.environ, **jumok.environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert where.stdout.startswith(str(tmp_path / "installed"))
    served = Served(jumok, runs("translation").folder)
    asked, waiting = set(), ["/"]
    while waiting:
        path = waiting.pop()
        if path in asked:
            continue
        asked.add(path)
        status, headers, content = served.fetch("GET", path)
        assert status == 200, path
        if headers["content-type"].startswith(("text/html", "text/javascript")):
            found = REFERENCES.findall(content.decode())
            waiting += [normpath(join("/" if path == "/" else dirname(path), reference)) for reference in found]
    scripts = {f"/page/{path.relative_to(ROOT / 'src/jumok/serve/page').as_posix()}" for path in PAGE.rglob("*.js")}
    assert scripts <= asked
    for words in (PAGE / "words").glob("*.json"):
        status, _, content = served.fetch("GET", f"/page/words/{words.name}")
        assert (status, json.loads(content)) == (200, json.loads(words.read_text("utf-8")))
    assert served.ask("POST", "/api/runs/translation/predict", {"examples": ["the dog"]})[0] == 200
    assert served.stop() == 0


def test_recipes_of_an_installed_package_are_used_by_name(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    (tmp_path / "here").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "jumok", *arguments]
        done = subprocess.run(command, env=environment, cwd=tmp_path / "here", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = {one["name"]: one for one in json.loads(said("recipes", "--json"))["recipes"]}
    assert listed["toy/lstm"]["path"] == str(tmp_path / "installed/jumok/recipes/toy/lstm.toml")
    assert json.loads(said("show", "toy/lstm", "--json"))["recipe"]["model"]["cell"] == "lstm"


PAGE = ROOT / "src/jumok/serve/page"
