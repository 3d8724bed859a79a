"""Requests that schemathesis makes up from the OpenAPI document: no answer is a failure of the server."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from jumok.serve.access import Access
from jumok.serve.app import Server, document
from jumok.serve.models import Models
from jumok.serve.queue import Queue
from jumok.serve.routes import ROUTES

RUNS = ("translation", "classification", "language_model", "pretraining", "chat")
MODELS = {"completions": "language_model", "chat": "chat", "embeddings": "pretraining"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]


@pytest.fixture(scope="module")
def server(runs):
    queue = Queue()
    models = Models([runs(name).folder for name in RUNS], None, queue)
    yield Server(models, ROUTES, access=Access(hosts=["testserver"]))
    queue.close()


def test_made_up_requests_are_answered_or_refused(server) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", server)
    statuses: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=12,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case) -> None:
            if "run" in case.path_parameters:
                case.path_parameters["run"] = "chat" if "chat" in case.path else "translation"
            if case.path.startswith("/v1/") and isinstance(case.body, dict) and "model" in case.body:
                case.body["model"] = MODELS[case.path.split("/")[2]]
            answer = case.call_and_validate(checks=CHECKS)
            statuses.setdefault(case.operation.label, set()).add(answer.status_code)

        ask()
    described = {
        f"{method.upper()} {path}" for path, methods in document(ROUTES)["paths"].items() for method in methods
    }
    assert described - statuses.keys() <= {"GET /openapi.json"}
    for label in (
        "POST /api/runs/{run}/predict",
        "POST /models/{run}",
        *(f"POST /v1/{path}" for path in ("completions", "embeddings")),
    ):
        assert 200 in statuses[label], label
