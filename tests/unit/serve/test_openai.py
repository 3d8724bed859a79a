"""OpenAI's API: its shapes and errors, answers equal to the predictors', streams equal to whole answers."""

import base64
import json
import threading
import time

import anyio
import numpy as np
import pytest
from starlette.testclient import TestClient

from jumok.serve.access import Access
from jumok.serve.app import Server
from jumok.serve.models import Models
from jumok.serve.queue import Job, Queue
from jumok.serve.routes import ROUTES

KEY = "a-key-of-some-length"
WRITTEN = {"model": "korean", "prompt": "나는", "temperature": 1.5, "seed": 3, "max_tokens": 40}
ASKED = {"model": "chat", "messages": [{"role": "user", "content": "the dog runs"}]}
RUNS = ("korean", "chat", "pretraining", "translation")


@pytest.fixture(scope="module")
def queue():
    queue = Queue()
    yield queue
    queue.close()


@pytest.fixture(scope="module")
def serve(runs, queue):
    models = Models([runs(name).folder for name in RUNS], None, queue)

    def client(key: str | None = None) -> TestClient:
        server = Server(models, ROUTES, access=Access(key=key))
        return TestClient(server, base_url="http://localhost", raise_server_exceptions=False)

    return client


def streamed(client: TestClient, path: str, body: object) -> list[dict]:
    """The events of a stream, which has to end as they do."""
    answer = client.post(path, json=body)
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    events = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


def test_a_continuation_is_what_the_predictor_writes(serve, runs) -> None:
    found = serve().post("/v1/completions", json=WRITTEN).json()
    (whole,) = runs("korean").predictor.predict(["나는"], method="sample", temperature=1.5, seed=3, max_extra=40)
    assert "나는" + found["choices"][0]["text"] == whole.text
    assert found["object"] == "text_completion"
    ids = runs("korean").predictor.tokenizer.encode("나는")
    assert found["usage"]["prompt_tokens"] == len(ids)
    assert found["usage"]["completion_tokens"] <= 40
    as_always = serve().post("/v1/completions", json={"model": "korean", "prompt": "비가"}).json()
    assert "비가" + as_always["choices"][0]["text"] == runs("korean").predictor(["비가"])[0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("stop", [[], ["다\n", " "]])
def test_a_stream_says_the_same_and_splits_no_syllable(serve, seed, stop) -> None:
    asked = {**WRITTEN, "seed": seed, "stop": stop, "n": 2, "echo": True}
    whole = serve().post("/v1/completions", json=asked).json()
    events = streamed(serve(), "/v1/completions", {**asked, "stream": True, "stream_options": {"include_usage": True}})
    for choice in whole["choices"]:
        mine = [one for event in events for one in event["choices"] if one["index"] == choice["index"]]
        assert "".join(one["text"] for one in mine) == choice["text"]
        assert [one["finish_reason"] for one in mine if one["finish_reason"]] == [choice["finish_reason"]]
        assert not any("\ufffd" in one["text"] for one in mine[:-2] if "\ufffd" not in choice["text"])
        assert not any(text in choice["text"].removeprefix("나는") for text in stop)
    assert whole["choices"][0]["text"] != whole["choices"][1]["text"] or stop
    assert (events[-1]["choices"], events[-1]["usage"]) == ([], whole["usage"])


def test_syllables_of_several_tokens_come_whole(serve, runs) -> None:
    tokenizer = runs("korean").predictor.tokenizer
    assert len(tokenizer.encode("뷁")) > 1
    asked = {**WRITTEN, "temperature": 0.1, "max_tokens": 60}
    texts = [event["choices"][0]["text"] for event in streamed(serve(), "/v1/completions", {**asked, "stream": True})]
    assert len(texts) > 5
    assert "".join(texts) == serve().post("/v1/completions", json=asked).json()["choices"][0]["text"]


def test_max_tokens_are_counted(serve) -> None:
    found = serve().post("/v1/completions", json={**WRITTEN, "max_tokens": 2, "temperature": 0}).json()
    assert found["choices"][0]["finish_reason"] == "length"
    assert found["usage"]["completion_tokens"] == 2
    prompts = ["나는", "비가 오는"]
    found = serve().post("/v1/completions", json={**WRITTEN, "prompt": prompts, "n": 2, "max_tokens": 3}).json()
    assert [choice["index"] for choice in found["choices"]] == [0, 1, 2, 3]


def test_beams_are_streamed_when_they_are_known(serve) -> None:
    """The chat's [decode] is a beam search: without a wish it answers as `jumok chat` does."""
    whole = serve().post("/v1/chat/completions", json=ASKED).json()
    events = streamed(serve(), "/v1/chat/completions", {**ASKED, "stream": True})
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    said = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
    assert said == whole["choices"][0]["message"]["content"]
    assert whole["choices"][0]["finish_reason"] == "stop"


def test_a_chat_replies_to_the_last_message(serve, runs) -> None:
    earlier = [{"role": "user", "content": "a cat"}, {"role": "assistant", "content": "cat a"}]
    content = [{"type": "text", "text": "the dog runs"}]
    found = serve().post(
        "/v1/chat/completions", json={**ASKED, "messages": [*earlier, {"role": "user", "content": content}]}
    )
    expected = runs("chat").predictor(["the dog runs"])[0]
    assert found.json()["choices"][0]["message"] == {"role": "assistant", "content": expected}
    sampled = {**ASKED, "temperature": 1.0, "seed": 4, "max_completion_tokens": 3}
    assert serve().post("/v1/chat/completions", json=sampled).json()["usage"]["completion_tokens"] <= 3


def test_embeddings_as_numbers_and_as_bytes(serve, runs) -> None:
    texts = ["the dog runs", "a cat\tsits"]
    asked = {"model": "pretraining", "input": texts, "dimensions": 16}
    numbers = serve().post("/v1/embeddings", json=asked).json()
    coded = serve().post("/v1/embeddings", json={**asked, "encoding_format": "base64"}).json()
    expected = runs("pretraining").predictor.predict([{"text": text} for text in texts], ask="embedding")
    for i, output in enumerate(expected):
        found = np.frombuffer(base64.b64decode(coded["data"][i]["embedding"]), dtype="<f4")
        np.testing.assert_allclose(numbers["data"][i]["embedding"], output.vector, atol=1e-5)
        np.testing.assert_allclose(found, output.vector, atol=1e-5)
    tokens = sum(map(len, runs("pretraining").predictor.tokenizer.encode_batch(texts)))
    assert numbers["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}


@pytest.mark.parametrize(
    ("path", "change", "field"),
    [
        ("completions", {"frequency_penalty": 1}, "frequency_penalty"),
        ("completions", {"logprobs": 2}, "logprobs"),
        ("completions", {"best_of": 3}, "best_of"),
        ("completions", {"unheard_of": 1}, "unheard_of"),
        ("completions", {"prompt": [1, 2]}, "prompt"),
        ("completions", {"max_tokens": 0}, "max_tokens"),
        ("completions", {"n": 33}, "n"),
        ("completions", {"temperature": 3}, "temperature"),
        ("completions", {"top_p": 0}, "top_p"),
        ("completions", {"stop": ["a"] * 5}, "stop"),
        ("completions", {"stream_options": {"other": 1}}, "other"),
        ("completions", {"model": 1}, "model"),
        ("completions", {"model": "pretraining"}, None),
        ("completions", {"prompt": "\ud800"}, None),
        ("completions", {"prompt": "가" * 2000}, None),
        ("chat/completions", {"model": "translation"}, None),
        ("chat/completions", {"messages": []}, "messages"),
        ("chat/completions", {"messages": [{"role": "system", "content": "be brief"}]}, "messages"),
        ("chat/completions", {"messages": [{"role": "user", "content": " "}]}, "messages"),
        ("chat/completions", {"tools": [{}]}, "tools"),
        ("embeddings", {"dimensions": 8}, "dimensions"),
        ("embeddings", {"encoding_format": "text"}, "encoding_format"),
        ("embeddings", {"input": [[1, 2]]}, "input"),
        ("embeddings", {"model": "korean"}, None),
    ],
)
def test_what_cannot_be_done_is_refused_in_its_shape(serve, path, change, field) -> None:
    body = {"completions": WRITTEN, "chat/completions": ASKED, "embeddings": {"model": "pretraining", "input": "a"}}[
        path
    ]
    answer = serve().post(f"/v1/{path}", content=json.dumps({**body, **change}))
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert (error["type"], error["param"]) == ("invalid_request_error", field)


def test_harmless_fields_are_taken(serve) -> None:
    body = {**WRITTEN, "user": "me", "frequency_penalty": 0.0, "logit_bias": {}, "suffix": None, "best_of": 1}
    assert serve().post("/v1/completions", json=body).status_code == 200


def test_models_and_keys(serve) -> None:
    known = serve().get("/v1/models").json()
    assert {one["id"] for one in known["data"]} == set(RUNS)
    assert serve().get("/v1/models/chat").json()["object"] == "model"
    missing = serve().post("/v1/completions", json={**WRITTEN, "model": "nothing"})
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"
    assert all(name in missing.json()["error"]["message"] for name in RUNS)
    client = serve(KEY)
    refused = client.get("/v1/models")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    assert client.get("/v1/models", headers={"authorization": f"Bearer {KEY}"}).status_code == 200


def test_too_much_waiting_is_told(serve, queue, monkeypatch) -> None:
    """The compute thread is held; one request waits; there is no room for another."""
    monkeypatch.setattr(queue, "most_inputs", 1)
    held, go = threading.Event(), threading.Event()

    def hold(batch, wanted):
        held.set()
        go.wait(30)
        return batch

    queue.submit([Job(("hold",), hold, None, 1, True)])
    assert held.wait(30)
    waiting = Job(("wait",), lambda batch, wanted: batch, None, 1, True)
    queue.submit([waiting])
    try:
        refused = serve().post("/v1/completions", json={**WRITTEN, "stream": True})
    finally:
        go.set()
        waiting.output.result(30)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error"]["type"] == "rate_limit_error"


def test_a_client_that_leaves_ends_the_writing(serve, runs, queue, monkeypatch) -> None:
    """An engine that would write for ever."""
    steps = []

    def search(sources, requests, config, *, done):
        while True:
            done(0)
            steps.append(requests[0].watch(requests[0].prefix[0], -1.0))
            time.sleep(0.005)

    client = serve()
    served = client.app.models.get("korean")
    monkeypatch.setattr(served.predictor.engine, "search", search)
    before = queue.counts.abandoned
    body = json.dumps({**WRITTEN, "prompt": "a", "max_tokens": 1024, "stream": True}).encode()
    heard = leave_after(client.app, "/v1/completions", body, chunks=3)
    assert len(heard) >= 3
    after = Job(("after",), lambda batch, wanted: batch, None, 1, True)
    queue.submit([after])
    after.output.result(30)  # the thread is free again
    assert queue.counts.abandoned == before + 1
    assert len(steps) < 900


def leave_after(app, path: str, body: bytes, *, chunks: int) -> list[bytes]:
    """Ask an ASGI application, and be gone after so many parts of the answer."""

    async def ask() -> list[bytes]:
        heard: list[bytes] = []
        enough, sent = anyio.Event(), []

        async def receive():
            if not sent:
                sent.append(True)
                return {"type": "http.request", "body": body, "more_body": False}
            await enough.wait()
            return {"type": "http.disconnect"}

        async def send(message) -> None:
            if message["type"] == "http.response.body" and message.get("body"):
                heard.append(message["body"])
                if len(heard) >= chunks:
                    enough.set()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        with anyio.fail_after(60):
            await app(scope, receive, send)
        return heard

    return anyio.run(ask)
