"""Results as the page reads them, and the paired test of two runs: as `jumok compare`, refused, stopped."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sklearn.metrics import confusion_matrix
from starlette.testclient import TestClient

from jumok.serve import comparing
from jumok.serve.app import Server
from jumok.serve.comparisons import Comparing, Comparisons, Stopped
from jumok.serve.models import Models
from jumok.serve.queue import Queue
from jumok.serve.routes import ROUTES
from jumok.serve.runs import Run

RUNS = ("classification", "tagging", "relation", "labels")


@pytest.fixture(scope="module")
def folder(runs, tree, train, tmp_path_factory) -> Path:
    """Runs of several tasks, a shorter training of one of them, and copies in which something is amiss."""
    found: Path = tmp_path_factory.mktemp("scored")
    for name in RUNS:
        shutil.copytree(runs(name).folder, found / name)
    train(tree("classification", train={"steps": 6}), found / "short")
    for name, change in {"other-data": ("data", "test", "0" * 64), "moved": ("recipe", "seed", 1)}.items():
        shutil.copytree(found / "short", found / name)
        stored = json.loads((found / name / "recipe.json").read_text())
        section, key, value = change
        stored[section][key] = value
        if name == "moved":
            stored["recipe"]["data"]["dev"] = [str(found / "nowhere.tsv")]
        (found / name / "recipe.json").write_text(json.dumps(stored))
    begun = found / "begun"
    begun.mkdir()
    shutil.copy(found / "short/recipe.json", begun)
    return found


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    queue = Queue()
    server = Server(Models([], folder, queue), ROUTES)
    yield TestClient(server, base_url="http://localhost", raise_server_exceptions=False)
    queue.close()


def told(client: TestClient, run: str, other: str, split: str = "test") -> list[dict[str, Any]]:
    answer = client.post(f"/api/runs/{run}/compare", json={"with": other, "split": split})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def test_results_have_confusion_and_reliability(client, runs, held_out) -> None:
    found = client.get("/api/runs/classification/results").json()
    assert (found["metric"], found["status"], found["edited"]) == ("accuracy", "finished", False)
    result = found["splits"]["test"]
    examples, predictor = held_out("classification"), runs("classification").predictor
    labels = result["confusion"]["labels"]
    gold, predicted = [example.label for example in examples], predictor(examples)
    assert result["confusion"]["counts"] == confusion_matrix(gold, predicted, labels=labels).tolist()
    bins = result["reliability"]
    assert sum(one["n"] for one in bins) == len(examples)
    error = sum(abs(one["confidence"] - one["accuracy"]) * one["n"] for one in bins) / len(examples)
    assert 100 * error == pytest.approx(result["calibration_error"], abs=0.02)


@pytest.mark.parametrize("run", ["tagging", "relation"])
def test_the_diagonal_is_what_is_right(client, run) -> None:
    result = client.get(f"/api/runs/{run}/results").json()["splits"]["test"]
    counts = result["confusion"]["counts"]
    right = sum(counts[i][i] for i in range(len(counts)))
    if run == "relation":
        assert 100 * right / result["sentences"] == pytest.approx(result["scores"]["accuracy"]["value"], abs=1e-3)
    else:
        gold = sum(map(sum, counts[:-1]))
        assert 100 * right / gold == pytest.approx(result["scores"]["recall"]["value"], abs=1e-3)


def test_several_labels_have_no_matrix(client) -> None:
    result = client.get("/api/runs/labels/results").json()["splits"]["test"]
    assert "confusion" not in result
    assert sum(one["n"] for one in result["reliability"]) == 3 * result["sentences"]


def test_changed_scores_are_told(client, folder: Path) -> None:
    copied = folder / "edited"
    shutil.copytree(folder / "short", copied)
    (copied / "scores.json").write_text((copied / "scores.json").read_text() + " ")
    assert client.get("/api/runs/edited/results").json()["edited"]
    assert client.get("/api/runs/begun/results").json()["splits"] == {}
    shutil.rmtree(copied)


def test_the_paired_test_is_that_of_the_command(client, runs, held_out, folder: Path) -> None:
    from jumok.predictor import load

    *progress, last = told(client, "classification", "short")
    assert all(one["total"] == 120 and 0 <= one["done"] <= 120 for one in progress)
    short, own = load(folder / "short", device="cpu"), runs("classification").predictor
    expected = [asdict(one) for one in short.compare(own, held_out("classification"))]
    assert last["comparisons"] == expected
    assert told(client, "classification", "short") == [last]  # known by now


@pytest.mark.parametrize(
    ("run", "other", "split", "status", "code"),
    [
        ("classification", "classification", "test", 422, "serve.request"),
        ("classification", "nobody", "test", 404, "serve.run"),
        ("classification", "short", "train", 422, "serve.request"),
        ("classification", "begun", "test", 409, "serve.no_model"),
        ("classification", "tagging", "test", 409, "input.other_test_data"),
        ("classification", "other-data", "test", 409, "serve.other_data"),
        ("moved", "short", "dev", 409, "data.unreadable"),
    ],
)
def test_what_cannot_be_compared_is_refused(client, run, other, split, status, code) -> None:
    answer = client.post(f"/api/runs/{run}/compare", json={"with": other, "split": split})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    if status == 409 and code != "serve.no_model":
        assert f"jumok compare {other} {run}" in error["hint"]


@pytest.mark.parametrize(
    "body", [{}, {"with": "short"}, {"with": 1, "split": "test"}, {"with": "short", "split": "test", "data": "/etc"}]
)
def test_nothing_else_can_be_asked(client, body) -> None:
    answer = client.post("/api/runs/classification/compare", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "serve.request")


def test_another_site_cannot_ask(client) -> None:
    headers = {"origin": "http://evil.example"}
    answer = client.post("/api/runs/classification/compare", json={"with": "short", "split": "test"}, headers=headers)
    assert answer.status_code == 403


def test_changed_data_is_refused(client, folder: Path) -> None:
    for name in ("first", "second"):
        shutil.copytree(folder / "short", folder / name)
        stored = json.loads((folder / name / "recipe.json").read_text())
        path = folder / "copied.tsv"
        shutil.copy(stored["recipe"]["data"]["test"][0], path)
        stored["recipe"]["data"]["test"] = [str(path)]
        (folder / name / "recipe.json").write_text(json.dumps(stored))
    path.write_text(path.read_text() + "one more\tgood\n")
    answer = client.post("/api/runs/first/compare", json={"with": "second", "split": "test"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "serve.other_data")
    path.unlink()
    for name in ("first", "second"):
        shutil.rmtree(folder / name)


def test_one_at_a_time(client) -> None:
    with client.app.comparisons.turn:
        answer = client.post("/api/runs/classification/compare", json={"with": "short", "split": "dev"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "serve.busy")
        assert answer.headers["retry-after"]


def test_it_stops_when_its_reader_leaves(folder: Path, held_out) -> None:
    queue = Queue()
    server: Any = SimpleNamespace(draining=False, comparisons=Comparisons())
    work = Comparing(
        Run("short", folder / "short"), Run("c", folder / "classification"), held_out("classification"), queue
    )

    async def left() -> None:
        lines = comparing._lines(server, work, ("left",))
        assert json.loads(await anext(lines))["total"] == 120
        await lines.aclose()

    asyncio.run(left())
    assert work.stopped.is_set()
    with pytest.raises(Stopped):
        work.tick(1)
    assert server.comparisons.turn.acquire(timeout=60)  # its thread has ended
    assert not server.comparisons.known
    queue.close()


def test_requests_go_first() -> None:
    asked = []

    class Emptying:
        @property
        def inputs(self) -> int:
            asked.append(1)
            return 5 - len(asked)

    queue: Any = Emptying()
    nobody: Any = None
    work = Comparing(nobody, nobody, [], queue)
    work.tick(2)
    assert (work.done, len(asked)) == (2, 5)
