"""What the Use room asks: other words at a place, words with probabilities, relations of found entities."""

from math import log
from typing import Any

import pytest
from starlette.testclient import TestClient

from jumok.serve.app import Server
from jumok.serve.models import Models
from jumok.serve.queue import Queue
from jumok.serve.routes import ROUTES


@pytest.fixture(scope="module")
def client(runs):
    queue = Queue()
    names = ("translation", "relation", "tagging", "classification", "labels", "number", "pair", "pretraining")
    models = Models([runs(name).folder for name in names], None, queue)
    yield TestClient(Server(models, ROUTES), base_url="http://localhost", raise_server_exceptions=False)
    queue.close()


def code_of(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    code: str = answer.json()["error"]["code"]
    return code


def test_the_words_of_a_translation_have_the_probability_of_the_whole(client, runs) -> None:
    asked = {"examples": ["the dog runs"], "options": {"words": True, "method": "greedy"}}
    (output,) = client.post("/api/runs/translation/predict", json=asked).json()["outputs"]
    words = output["words"]
    assert [word["text"] for word in words] == output["text"].split()
    assert all(output["text"][word["start"] : word["end"]] == word["text"] for word in words)
    predictor = runs("translation").predictor
    (found,) = predictor.predict(["the dog runs"], method="greedy")
    source = predictor.tokenizers.encode_source("the dog runs")
    end = predictor.engine.after(source, [found.ids])[0][-1, predictor.tokenizers.target.end_id]
    # Greedy search scores by the log-probability of all tokens, the end included.
    assert sum(log(word["probability"]) for word in words) + end == pytest.approx(found.score, abs=1e-3)


def test_alternatives_start_with_the_prefix_and_differ_in_the_next_word(client) -> None:
    asked = {"source": "the dog runs", "prefix": "runs ", "n": 4}
    outputs = client.post("/api/runs/translation/alternatives", json=asked).json()["outputs"]
    words = [output["text"].split() for output in outputs]
    assert len(outputs) > 1
    assert all(found[0] == "runs" for found in words)
    assert len({found[1] for found in words}) == len(words)
    chances = [output["words"][1]["probability"] for output in outputs]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) <= 1 + 1e-6


def test_a_half_typed_word_is_completed(client) -> None:
    asked = {"source": "the dog runs", "prefix": "runs do", "n": 3}
    outputs = client.post("/api/runs/translation/alternatives", json=asked).json()["outputs"]
    assert outputs
    assert all(output["text"].startswith("runs do") for output in outputs)


def test_an_empty_source_has_no_alternatives(client) -> None:
    assert client.post("/api/runs/translation/alternatives", json={"source": " "}).json() == {"outputs": []}


@pytest.mark.parametrize(
    ("run", "body", "code"),
    [
        ("translation", {"prefix": "a"}, "serve.request"),
        ("translation", {"source": 1}, "serve.request"),
        ("translation", {"source": "a", "n": 0}, "serve.request"),
        ("translation", {"source": "a", "n": True}, "serve.request"),
        ("translation", {"source": "a" * 20_001}, "text.too_long"),
        ("tagging", {"source": "a"}, "serve.task"),
    ],
)
def test_wrong_requests_are_refused_by_name(client, run: str, body: Any, code: str) -> None:
    assert code_of(client.post(f"/api/runs/{run}/alternatives", json=body), 422) == code


def test_relations_of_entities_that_a_tagger_finds(client, runs) -> None:
    text = "Ad beats Bo"
    found = client.post("/api/runs/relation/relations", json={"text": text, "taggers": ["tagging"]}).json()["outputs"]
    (expected,) = runs("relation").predictor.relate_texts([text], [runs("tagging").predictor])
    assert [entity["text"] for entity in found[0]["entities"]] == [entity.text for entity in expected.entities]
    for taggers in ([], ["classification"], [1]):
        answer = client.post("/api/runs/relation/relations", json={"text": text, "taggers": taggers})
        assert answer.status_code == 422


def test_facts_say_what_to_ask(client) -> None:
    def facts(run: str) -> dict[str, Any]:
        found: dict[str, Any] = client.get(f"/api/runs/{run}").json()
        return found

    assert facts("classification")["predicts"] == "class"
    assert facts("labels")["predicts"] == "labels"
    assert facts("number")["predicts"] == "number"
    assert facts("pair")["pair"] is True
    assert facts("pretraining")["mask"] == "[MASK]"
    assert facts("relation")["types"] == ["p"]
    assert facts("translation")["max_characters"] == 20_000


def test_texts_come_as_their_sentences(client) -> None:
    texts = ["Dr. Lee runs. The dog sits!", "no stop", "", "나는 간다. 비가 온다."]
    found = client.post("/api/sentences", json={"texts": texts}).json()["sentences"]
    assert found == [["Dr. Lee runs.", "The dog sits!"], ["no stop"], [], ["나는 간다.", "비가 온다."]]
    answer = client.post("/api/sentences", content=b'{"texts": ["a \\ud800 b"]}')
    assert answer.json()["sentences"] == [["a \ud800 b"]]
    assert code_of(client.post("/api/sentences", json={"texts": ["a"] * 257}), 422) == "serve.request"
    assert code_of(client.post("/api/sentences", json={"texts": [1]}), 422) == "serve.request"
