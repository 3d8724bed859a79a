"""Who may ask: hosts, origins, the API key, and the token of acts that change something."""

from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from jumok.errors import InputError
from jumok.serve.access import Access, read_key
from jumok.serve.api import ROUTES
from jumok.serve.app import Route, Server
from jumok.serve.models import Models
from jumok.serve.queue import Queue

KEY = "a-key-of-some-length"


async def change(server: Server, request: Request) -> Response:
    server.changing(request)
    return JSONResponse({"changed": True})


@pytest.fixture(scope="module")
def serve():
    queue = Queue()

    def client(**access: Any) -> TestClient:
        routes = (*ROUTES, Route("POST", "/api/change", change, "Changes something", answer={"type": "object"}))
        server = Server(Models([], None, queue), routes, access=Access(**access))
        return TestClient(server, base_url="http://localhost:8000", raise_server_exceptions=False)

    yield client
    queue.close()


def code_of(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    code: str = answer.json()["error"]["code"]
    return code


def test_a_server_answers_to_the_names_it_was_given(serve) -> None:
    client = serve(hosts=["Models.example"])
    for host in ("localhost", "models.example", "MODELS.example:443"):
        assert client.get("/health", headers={"host": host}).status_code == 200
    assert code_of(client.get("/health", headers={"host": "other.example"}), 421) == "serve.host"


def test_without_a_key_nobody_is_asked_for_one(serve) -> None:
    assert serve().get("/api/runs").status_code == 200


@pytest.mark.parametrize(
    "sent", ["", KEY, f"Basic {KEY}", "Bearer", "Bearer x", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", "Bearer \xe9\xff"]
)
def test_a_wrong_key_or_none_is_refused(serve, sent: str) -> None:
    answer = serve(key=KEY).get("/api/runs", headers=[(b"authorization", sent.encode("latin-1"))])
    assert code_of(answer, 401) == "serve.key"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_with_the_key_everything_is_answered_and_health_without(serve) -> None:
    client = serve(key=KEY)
    for path in ("/api/runs", "/metrics", "/openapi.json", "/api/session"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"authorization": f"Bearer {KEY}"}).status_code == 200
    assert client.get("/health").status_code == 200
    assert client.get("/ready").status_code == 200


OWN = "http://localhost:8000"


def test_the_page_may_change_something(serve) -> None:
    client = serve()
    token = client.get("/api/session", headers={"sec-fetch-site": "same-origin"}).json()["token"]
    sent = {"x-jumok-token": token, "origin": OWN, "sec-fetch-site": "same-origin"}
    assert client.post("/api/change", headers=sent).json() == {"changed": True}
    assert client.get("/api/change", headers=sent).status_code == 405


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://localhost:8001", "https://localhost", "null", "", "["]
)
def test_another_origin_changes_nothing(serve, origin: str) -> None:
    client = serve()
    sent = {"x-jumok-token": client.get("/api/session").json()["token"], "origin": origin}
    assert code_of(client.post("/api/change", headers=sent), 403) == "serve.origin"


@pytest.mark.parametrize("token", [{}, {"x-jumok-token": ""}, {"x-jumok-token": "x" * 43}])
def test_without_the_token_nothing_changes(serve, token: dict[str, str]) -> None:
    assert code_of(serve().post("/api/change", headers={"origin": OWN, **token}), 403) == "serve.token"


@pytest.mark.parametrize("sent", [{"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}])
def test_other_sites_cannot_read_the_token(serve, sent: dict[str, str]) -> None:
    assert code_of(serve().get("/api/session", headers=sent), 403) == "serve.origin"


def test_each_process_has_its_own_token(serve) -> None:
    tokens = {serve().get("/api/session").json()["token"] for _ in range(3)}
    assert len(tokens) == 3
    assert min(map(len, tokens)) >= 32


def test_pages_of_other_sites_make_no_work(serve) -> None:
    client = serve()
    answer = client.post("/api/runs/x/predict", json={"examples": []}, headers={"origin": "https://evil.example"})
    assert code_of(answer, 403) == "serve.origin"
    extension = client.post("/api/runs/x/predict", json={"examples": []}, headers={"origin": "moz-extension://1"})
    assert code_of(extension, 404) == "serve.run"


def test_a_key_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUMOK_API_KEY", raising=False)
    assert read_key(None) is None
    monkeypatch.setenv("JUMOK_API_KEY", KEY)
    assert read_key(None) == KEY
    (tmp_path / "key").write_text("another-key-of-mine\n")
    assert read_key(tmp_path / "key") == "another-key-of-mine"


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"short", b"with a space in the key", "가나다라마바사아자차카타파하가나다라".encode(), b"\xff" * 20],
)
def test_a_key_that_cannot_be_sent_or_guessed_easily_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(InputError) as error:
        read_key(tmp_path / "key")
    assert error.value.code == "input.api_key"
    assert error.value.where == str(tmp_path / "key")


def test_a_key_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_key(tmp_path / "none")
    assert error.value.code == "input.api_key"
