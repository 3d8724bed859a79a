"""Watching runs: status, events by offset, recipes, findings, and stopping."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from jumok.serve.app import Server
from jumok.serve.events import new_events, thinned, told_once
from jumok.serve.models import Models
from jumok.serve.queue import Queue
from jumok.serve.routes import ROUTES
from jumok.serve.runs import Run
from jumok.serve.training import differing, trains


def step(n: int, loss: float | None = 1.0) -> dict[str, Any]:
    facts = {"epoch": 0, "learning_rate": 0.1, "grad_norm": 1.0, "tokens": 100, "seconds": 0.1, "parts": {}}
    return {"event": "step", "time": 1000.0 + n, "step": n, "loss": loss, **facts}


def written(path: Path, *events: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


@pytest.fixture
def folder(runs, tmp_path: Path) -> Path:
    """A run that has begun and whose process has gone."""
    run = tmp_path / "begun"
    run.mkdir()
    stored = json.loads((runs("translation").folder / "recipe.json").read_text())
    (run / "recipe.json").write_text(json.dumps(stored))
    written(run / "events.jsonl", step(1, 3.0), step(2, 2.0))
    return tmp_path


@pytest.fixture
def client(folder: Path):
    queue = Queue()
    server = Server(Models([], folder, queue), ROUTES)
    yield TestClient(server, base_url="http://localhost", raise_server_exceptions=False)
    queue.close()


def test_status_from_lock_and_last_event(folder: Path, client: TestClient) -> None:
    def status() -> str:
        (found,) = client.get("/api/runs").json()["runs"]
        assert (found["name"], found["task"], found["usable"]) == ("begun", "translation", False)
        return str(found["status"])

    run = folder / "begun"
    assert status() == "died"
    with (run / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"process {os.getpid()}")
        lock.flush()
        assert status() == "running"
    assert status() == "died"
    written(run / "events.jsonl", {"event": "finished", "step": 2, "reason": "interrupted"})
    assert status() == "stopped"
    with (run / "events.jsonl").open("a") as file:
        file.write('{"event": "st')
    assert status() == "stopped"


def test_texts_to_try_are_those_of_the_last_samples(folder: Path) -> None:
    run = Run("begun", folder / "begun")
    assert run.examples() == []
    old = {"event": "sampled", "step": 1, "samples": [{"source": "old", "gold": "", "output": ""}]}
    texts = ["one", "x" * 200, "one", "", "둘", None, "three", "four"]
    new = {"event": "sampled", "step": 2, "samples": [{"source": text} for text in texts] + ["no sample"]}
    written(folder / "begun" / "events.jsonl", old, new, step(3, 1.0))
    assert run.examples() == ["one", "둘", "three"]
    written(folder / "begun" / "events.jsonl", {"event": "sampled", "step": 2, "samples": "broken"})
    assert run.examples() == []


def test_a_run_without_a_model_can_be_watched_but_not_used(client: TestClient) -> None:
    answer = client.post("/api/runs/begun/predict", json={"examples": ["a"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "serve.no_model")
    assert client.get("/api/runs/begun").json()["usable"] is False
    assert client.get("/api/runs/begun/recipe").json()["recipe"]["task"]["kind"] == "translation"


def test_events_by_offset(folder: Path, client: TestClient) -> None:
    file = folder / "begun" / "events.jsonl"
    first = client.get("/api/runs/begun/events").json()
    assert [event["step"] for event in first["events"]] == [1, 2]
    assert first["next"] == file.stat().st_size
    with file.open("a") as opened:
        opened.write(json.dumps(step(3))[:40])
    torn = client.get(f"/api/runs/begun/events?from={first['next']}").json()
    assert (torn["events"], torn["next"]) == ([], first["next"])
    with file.open("a") as opened:
        opened.write(json.dumps(step(3))[40:] + "\n")
    more = client.get(f"/api/runs/begun/events?from={first['next']}").json()
    assert [event["step"] for event in more["events"]] == [3]
    file.write_text(json.dumps(step(1)) + "\n")
    anew = client.get(f"/api/runs/begun/events?from={more['next']}").json()
    assert anew["restarted"]
    assert [event["step"] for event in anew["events"]] == [1]


@pytest.mark.parametrize("query", ["from=-1", "from=x", "points=1.5", "from=99999999999999999999", "from=%C2%B2"])
def test_offsets_that_are_none(client: TestClient, query: str) -> None:
    assert client.get(f"/api/runs/begun/events?{query}").status_code == 422


def test_long_logs_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.serve.events.MOST_BYTES", 1000)
    file = tmp_path / "events.jsonl"
    written(file, *(step(n) for n in range(1, 41)))
    found, at = [], 0
    for _ in range(100):
        part = new_events(file, at)
        found += [event["step"] for event in part["events"]]
        if part["next"] == at:
            break
        at = part["next"]
    assert found == list(range(1, 41))


def test_the_later_word_counts_after_a_resume() -> None:
    told = [step(1, 5.0), step(2, 4.0), step(3, 9.0), {"event": "resumed", "step": 1}, step(2, 3.0), step(3, 2.0)]
    kept = told_once(told)
    assert [(event["step"], event.get("loss")) for event in kept] == [(1, 5.0), (1, None), (2, 3.0), (3, 2.0)]


def test_thinning_keeps_every_extreme() -> None:
    events = [step(n, 1.0 + (n % 7) / 100) for n in range(1, 2001)]
    events[777]["loss"], events[1500]["loss"], events[300]["loss"] = 50.0, -3.0, None
    events.insert(1000, {"event": "evaluated", "step": 1000, "scores": {}, "best": True})
    kept = thinned(events, 100)
    losses = [event["loss"] for event in kept if event["event"] == "step"]
    assert len(losses) <= 103
    assert {50.0, -3.0, None} <= set(losses)
    assert sum(event["event"] == "evaluated" for event in kept) == 1


def test_differences_of_recipes(client: TestClient, folder: Path) -> None:
    stored = json.loads((folder / "begun" / "recipe.json").read_text())
    stored["recipe"]["train"]["optimizer"]["learning_rate"] = 0.5
    (folder / "other").mkdir()
    (folder / "other" / "recipe.json").write_text(json.dumps(stored))
    found = client.get("/api/recipes?run=begun&run=other").json()["differences"]
    assert found == [{"key": "train.optimizer.learning_rate", "values": [0.01, 0.5]}]
    assert client.get("/api/recipes?run=begun").status_code == 422
    assert differing([{"a": {"b": 1}}, {"a": {}}]) == [{"key": "a.b", "values": [1, None]}]


def test_findings_of_a_curve(client: TestClient, folder: Path) -> None:
    written(folder / "begun" / "events.jsonl", *(step(n, 9.0 if n == 150 else 1.0 + n % 2 / 50) for n in range(3, 201)))
    found = client.get("/api/runs/begun/findings").json()
    assert "curve.spikes" in {one["code"] for one in found["findings"]}
    assert {"step": 150, "code": "curve.spikes"} in found["marks"]


def test_stopping_needs_the_token_and_a_trainer(client: TestClient, folder: Path) -> None:
    assert client.post("/api/runs/begun/stop").status_code == 403
    token = client.get("/api/session").json()["token"]
    answer = client.post("/api/runs/begun/stop", headers={"x-jumok-token": token})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "serve.not_running")
    # this process holds the lock, but is no trainer
    with (folder / "begun" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"process {os.getpid()}")
        lock.flush()
        answer = client.post("/api/runs/begun/stop", headers={"x-jumok-token": token})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "serve.stop")


def test_a_trainer_is_asked_to_stop(client: TestClient, folder: Path) -> None:
    lock = folder / "begun" / "lock"
    program = (
        "import fcntl, os, sys, time\n"
        "file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX)\n"
        "file.write(f'process {os.getpid()}'); file.flush(); print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(lock), "jumok", "train"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert Run("begun", folder / "begun").trainer() == process.pid
        assert not trains(process.pid, folder / "begun" / "recipe.json")
        token = client.get("/api/session").json()["token"]
        assert client.post("/api/runs/begun/stop", headers={"x-jumok-token": token}).status_code == 200
        assert process.wait(20) == -signal.SIGTERM


def test_results(runs) -> None:
    queue = Queue()
    server = Server(Models([runs("translation").folder], None, queue), ROUTES)
    found = TestClient(server, base_url="http://localhost").get("/api/runs/translation/results").json()
    assert found["splits"] == json.loads((runs("translation").folder / "scores.json").read_text())
    size = re.search(r" of ([\d,]+) parameters", found["card"])
    assert found["model"] == {"kind": "transformer", "parameters": int(size[1].replace(",", ""))}
    queue.close()


def test_a_run_in_training_is_used_with_its_best_checkpoint(tree, train, tmp_path: Path) -> None:
    """It is loaded again once there is a better one, and when the run has its model."""
    told: list[dict[str, Any]] = []
    queue = Queue()
    models = Models([], tmp_path, queue)
    client = TestClient(Server(models, ROUTES), base_url="http://localhost", raise_server_exceptions=False)

    def ask(event: Any) -> None:
        if type(event).__name__ == "Saved":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outputs = client.post("/api/runs/begun/predict", json={"examples": ["the dog"]}).json()["outputs"]
            (listed,) = client.get("/api/runs").json()["runs"]
            told.append({**listed, "outputs": outputs, "predictor": models.loaded()[0].predictor})

    train(tree("translation", train={"steps": 6, "evaluate_every": 2, "save_every": 2}), tmp_path / "begun", at=ask)
    assert [(one["status"], one["usable"], one["task"]) for one in told] == [("running", True, "translation")] * 3
    scores = {
        e["step"]: e["scores"]["exact_match"]
        for e in new_events(tmp_path / "begun/events.jsonl", 0)["events"]
        if e["event"] == "evaluated"
    }
    for one, saved in zip(told, (2, 4, 6), strict=True):
        best = max((step for step in scores if step <= saved), key=lambda step: (scores[step], -step))
        assert one["checkpoint"] == {"step": best, "steps": 6, "metric": "exact_match", "score": scores[best]}
    assert len({id(one["predictor"]) for one in told}) == len({one["checkpoint"]["step"] for one in told})
    assert all(one["outputs"] for one in told)
    (listed,) = client.get("/api/runs").json()["runs"]
    assert ("checkpoint" in listed, listed["status"]) == (False, "finished")
    assert client.post("/api/runs/begun/predict", json={"examples": ["the dog"]}).status_code == 200
    assert models.loaded()[0].predictor is not told[-1]["predictor"]
    queue.close()


def test_the_steps_of_a_run_are_those_that_were_planned_last(folder: Path, client: TestClient) -> None:
    file = folder / "begun" / "recipe.json"
    stored = json.loads(file.read_text())
    stored.pop("plan", None)

    def steps(plan: object, **train: object) -> object:
        tree = {**stored["recipe"], "train": {**stored["recipe"]["train"], **train}}
        file.write_text(json.dumps({**stored, "recipe": tree, "plan": plan}))
        return client.get("/api/runs/begun/events").json()["steps"]

    assert steps([{"since": 0, "steps": 70}, {"since": 50, "steps": 90}]) == 90
    assert steps([], steps=80) == 80
    assert steps([], minutes=5) is None
    assert steps([], epochs=2) is None
    assert steps([{"since": 0}], steps=80) is None
    assert steps("edited") is None


def test_a_plan_and_an_extension_are_told_with_the_events(folder: Path) -> None:
    planned = {"event": "planned", "step": 0, "steps": 2}
    longer = {"event": "extended", "step": 2, "before": 2, "steps": 9}
    resumed = {"event": "resumed", "step": 2}
    told = told_once([planned, step(1), step(2), {"event": "finished", "step": 2}, longer, resumed, step(3)])
    assert [event["event"] for event in told] == ["planned", "step", "step", "extended", "resumed", "step"]
