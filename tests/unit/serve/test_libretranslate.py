"""LibreTranslate's API: JSON and forms, its error shape, answers equal to the predictor's."""

import json

import pytest
from starlette.testclient import TestClient

from jumok.serve.access import Access
from jumok.serve.app import Server
from jumok.serve.models import Models
from jumok.serve.queue import Queue
from jumok.serve.routes import ROUTES

KEY = "a-key-of-some-length"
ASKED = {"q": "the dog", "source": "en", "target": "xx"}


@pytest.fixture(scope="module")
def serve(runs):
    queue = Queue()

    def client(key: str | None = None) -> TestClient:
        server = Server(Models([runs("translation").folder], None, queue), ROUTES, access=Access(key=key))
        return TestClient(server, base_url="http://localhost", raise_server_exceptions=False)

    yield client
    queue.close()


def test_forms_json_lists_and_auto_give_what_the_predictor_gives(serve, runs) -> None:
    client, texts = serve(), ["the dog", "a cat sits"]
    expected = runs("translation").predictor(texts)
    assert client.post("/translate", data=ASKED).json() == {"translatedText": expected[0]}
    assert client.post("/translate", json=ASKED).json() == {"translatedText": expected[0]}
    found = client.post("/translate", json={**ASKED, "q": texts, "source": "auto", "alternatives": 2}).json()
    assert found["translatedText"] == expected
    assert [one["language"] for one in found["detectedLanguage"]] == ["en", "en"]
    assert [len(others) for others in found["alternatives"]] == [2, 2]


def test_languages_and_detection(serve) -> None:
    client = serve()
    assert {"code": "en", "name": "en", "targets": ["xx"]} in client.get("/languages").json()
    assert client.post("/detect", data={"q": "the dog is here"}).json()[0]["language"] == "en"


@pytest.mark.parametrize(
    "change",
    [
        {"q": ["a"] * 300},
        {"source": "\ud800"},
        {"q": 1},
        {"q": []},
        {"target": "ko"},
        {"source": []},
        {"format": "xml"},
        {"alternatives": 99},
    ],
)
def test_wrong_requests_are_told_in_its_shape(serve, change) -> None:
    answer = serve().post("/translate", content=json.dumps({**ASKED, **change}))
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)


def test_the_key_is_a_parameter(serve) -> None:
    client = serve(KEY)
    assert client.post("/translate", data=ASKED).status_code == 403
    assert client.post("/translate", data={**ASKED, "api_key": KEY}).status_code == 200
    assert client.get("/languages", headers={"authorization": f"Bearer {KEY}"}).status_code == 200
