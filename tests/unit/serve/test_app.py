"""The server's own API: answers equal to the predictor's, and every abuse a clear refusal."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from jumok.predictor import load
from jumok.serve.app import Server, document
from jumok.serve.limits import Limits
from jumok.serve.models import Models
from jumok.serve.queue import Queue
from jumok.serve.routes import ROUTES
from jumok.tasks.protocol import plain

TEXTS: dict[str, list[Any]] = {
    "translation": ["the dog", "a cat sits", ""],
    "classification": ["the sun", {"text": "the cat"}],
    "tagging": ["Ab cd Ef", "a"],
    "relation": [{"text": "Ada beats Bo", "head": {"start": 0, "end": 3}, "tail": {"start": 10, "end": 12}}],
    "answering": [{"question": "what shines ?", "context": "the red sun here"}],
    "choice": [{"context": "the dog", "endings": ["runs", "sun", "cat"]}],
    "language_model": ["the cat sat"],
    "pretraining": ["the [MASK] runs here."],
}


@pytest.fixture(scope="module")
def serve(runs):
    queue = Queue()

    def client(*tasks: str, limits: Limits | None = None, folder: Path | None = None) -> TestClient:
        models = Models([runs(task).folder for task in tasks], folder, queue)
        return TestClient(
            Server(models, ROUTES, limits=limits), base_url="http://localhost", raise_server_exceptions=False
        )

    yield client
    queue.close()


def error_of(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    code: str = answer.json()["error"]["code"]
    return code


@pytest.mark.parametrize("task", TEXTS)
def test_answers_are_those_of_the_predictor(serve, runs, task: str) -> None:
    found = serve(task).post(f"/api/runs/{task}/predict", json={"examples": TEXTS[task]})
    assert found.status_code == 200, found.text
    expected = [plain(output) for output in load(runs(task).folder).predict(TEXTS[task])]
    assert found.json() == {"run": task, "task": task, "outputs": json.loads(json.dumps(expected))}


def test_one_example_options_and_several_runs(serve) -> None:
    client = serve("translation", "classification")
    found = client.get("/api/runs").json()["runs"]
    assert [(run["name"], run["task"], run["status"], run["usable"]) for run in found] == [
        ("classification", "classification", "finished", True),
        ("translation", "translation", "finished", True),
    ]
    assert (found[1]["source"], found[1]["target"]) == ("en", "xx")
    asked = {"examples": "the dog", "options": {"n_best": 2, "beam": 3}}
    (output,) = client.post("/api/runs/translation/predict", json=asked).json()["outputs"]
    assert len(output["alternatives"]) == 1
    facts = client.get("/api/runs/classification").json()
    assert (facts["task"], facts["labels"]) == ("classification", ["bad", "good"])


def test_a_bad_example_fails_alone(serve) -> None:
    found = serve("classification").post("/api/runs/classification/predict", json={"examples": ["the sun", {"x": 1}]})
    good, bad = found.json()["outputs"]
    assert good["text"] == "good"
    assert bad["error"]["code"]
    assert bad["error"]["where"] == "examples[1]"


def test_runs_of_a_folder_are_loaded_when_they_are_asked_for(serve, runs, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(runs("classification").folder)
    (tmp_path / "unfinished").mkdir()
    client = serve(folder=tmp_path)
    assert [run["name"] for run in client.get("/api/runs").json()["runs"]] == ["mine"]
    assert client.post("/api/runs/mine/predict", json={"examples": ["the sun"]}).status_code == 200


@pytest.mark.parametrize("name", ["nobody", "..", "%2e%2e", "a%2fb", "%00", "x" * 3000])
def test_no_other_name_opens_anything(serve, name: str, tmp_path: Path) -> None:
    answer = serve("classification", folder=tmp_path).post(f"/api/runs/{name}/predict", json={"examples": ["a"]})
    assert error_of(answer, 404) in ("serve.run", "serve.not_found")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "serve.json"),
        (b"{", 400, "serve.json"),
        (b"\xff\xfe", 400, "serve.json"),
        (b"[" * 100_000, 400, "serve.json"),
        (b'{"examples": ' + b"[" * 40 + b"]" * 40 + b"}", 422, "serve.depth"),
        (b'{"examples": [1e999]}', 200, ""),
        (b"[]", 422, "serve.request"),
        (b"{}", 422, "serve.request"),
        (b'{"examples": ["a"], "more": 1}', 422, "serve.request"),
        (b'{"examples": ["a"], "options": 1}', 422, "serve.request"),
        (b'{"examples": ["a"], "options": {"beams": 1}}', 422, "input.unknown_option"),
        (b'{"examples": ["a", "b", "c", "d", "e"]}', 422, "serve.inputs"),
        (b'{"examples": ["' + b"a" * 3000 + b'"]}', 413, "serve.body"),
        (b'{"examples": ["\\ud800"]}', 200, ""),
    ],
)
def test_wrong_bodies_are_refused_by_name(serve, body: bytes, status: int, code: str) -> None:
    limits = Limits(body=2000 if len(body) < 50_000 else 1 << 20, inputs=4)
    answer = serve("classification", limits=limits).post("/api/runs/classification/predict", content=body)
    if status == 200:
        assert "error" in answer.json()["outputs"][0]
    else:
        assert error_of(answer, status) == code


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.nip.io:80", "[::1", "[x]"])
def test_other_hosts_are_refused(serve, host: str) -> None:
    assert error_of(serve("classification").get("/health", headers={"host": host}), 421) == "serve.host"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]", "[::1]:8000"])
def test_this_machine_has_several_names(serve, host: str) -> None:
    assert serve("classification").get("/health", headers={"host": host}).status_code == 200


def test_a_run_that_is_loading_does_not_hold_up_the_others(serve, runs, tmp_path: Path) -> None:
    queue = Queue()
    models = Models([runs("classification").folder], tmp_path, queue)
    with models._lock:  # as while another run is loaded
        found = models.get("classification")
    assert found is not None
    assert found.name == "classification"
    queue.close()


def test_every_answer_has_security_headers(serve) -> None:
    for path in ("/health", "/nothing", "/api/runs/nobody"):
        headers = serve("classification").get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"


def test_a_full_queue_says_when_to_come_back(serve, runs) -> None:
    queue = Queue(most_inputs=1)
    queue.close()
    client = TestClient(
        Server(Models([runs("classification").folder], None, queue), ROUTES), base_url="http://localhost"
    )
    answer = client.post("/api/runs/classification/predict", json={"examples": ["a"]})
    assert error_of(answer, 429) == "serve.busy"
    assert int(answer.headers["retry-after"]) >= 1


def test_draining_is_not_ready_and_takes_no_work(runs) -> None:
    queue = Queue()
    server = Server(Models([runs("classification").folder], None, queue), ROUTES)
    server.draining = True
    client = TestClient(server, base_url="http://localhost")
    assert client.get("/health").status_code == 200
    assert client.get("/ready").status_code == 503
    assert error_of(client.post("/api/runs/classification/predict", json={"examples": ["a"]}), 503) == "serve.draining"
    queue.close()


def test_metrics_count_what_was_done(serve) -> None:
    client = serve("classification")

    def value(name: str) -> float:
        return float(
            next(line for line in client.get("/metrics").text.splitlines() if line.startswith(name)).split()[1]
        )

    before = value("jumok_inputs_total")
    client.post("/api/runs/classification/predict", json={"examples": ["a", "b", "c"]})
    assert value("jumok_inputs_total") == before + 3
    assert value("jumok_queue_inputs") == 0


def test_the_document_has_the_routes(serve) -> None:
    found = serve("classification").get("/openapi.json").json()
    assert found == document(ROUTES)
    told = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert told == {(route.method, route.path.replace(":path", "")) for route in ROUTES}


def test_a_method_that_is_not_served(serve) -> None:
    assert error_of(serve("classification").get("/api/runs/classification/predict"), 405) == "serve.method"


def test_metrics_are_in_prometheus_format_with_each_part_of_the_time(serve) -> None:
    client = serve("translation")
    assert client.post("/api/runs/translation/predict", json={"examples": ["the dog"]}).status_code == 200
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    *lines, last = answer.text.split("\n")
    assert last == ""
    values = {}
    for kind, sample in zip(lines[::2], lines[1::2], strict=True):
        name, value = re.fullmatch(r"(jumok_[a-z_]+) (\S+)", sample).groups()
        assert kind in {f"# TYPE {name} counter", f"# TYPE {name} gauge"}
        values[name] = float(value)
    parts = [f"jumok_{part}_seconds_total" for part in ("tokenising", "waited", "busy")]
    assert all(values[part] > 0 for part in parts)
