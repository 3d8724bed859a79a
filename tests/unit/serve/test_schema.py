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

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]


@pytest.fixture(scope="module")
def server(runs):
    queue = Queue()
    models = Models([runs("translation").folder, runs("classification").folder], None, queue)
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
                case.path_parameters["run"] = "translation"
            answer = case.call_and_validate(checks=CHECKS)
            statuses.setdefault(case.operation.label, set()).add(answer.status_code)

        ask()
    described = {
        f"{method.upper()} {path}" for path, methods in document(ROUTES)["paths"].items() for method in methods
    }
    assert described - statuses.keys() <= {"GET /openapi.json"}
    assert 200 in statuses["POST /api/runs/{run}/predict"]
