"""Programs of others: the clients `openai` and `huggingface_hub` against a running server."""

import shutil
import threading
import time

import httpx2
import numpy as np
import openai
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError, ValidationError
from served import Served

KEY = "a-key-of-some-length"


@pytest.fixture(scope="module")
def server(site, runs):
    """The shared server, with two runs more while these tests are on."""
    for task in ("korean", "chat"):
        shutil.copytree(runs(task).folder, site.folder / task)
    yield site
    for task in ("korean", "chat"):
        shutil.rmtree(site.folder / task)


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0) as found:
        yield found


@pytest.fixture
def hugging_face(server, monkeypatch):
    """A client for a run."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # it is about this machine only
    return lambda run: InferenceClient(f"{server.address}/models/{run}")


def metric(server, name: str) -> float:
    _, _, content = server.fetch("GET", "/metrics")
    lines = dict(line.split() for line in content.decode().splitlines() if not line.startswith("#"))
    return float(lines[f"jumok_{name}"])


def test_openai_lists_models_and_completes(client, runs) -> None:
    assert {model.id for model in client.models.list()} >= {"korean", "chat", "pretraining"}
    assert client.models.retrieve("korean").owned_by == "jumok"
    asked = {"model": "korean", "prompt": "나는", "temperature": 1.2, "seed": 5, "max_tokens": 24}
    whole = client.completions.create(**asked)
    (expected,) = runs("korean").predictor.predict(["나는"], method="sample", temperature=1.2, seed=5, max_extra=24)
    assert "나는" + whole.choices[0].text == expected.text
    *parts, last = client.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    assert "".join(part.choices[0].text for part in parts) == whole.choices[0].text
    assert parts[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    assert last.usage == whole.usage
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens


def test_openai_chats(client, runs) -> None:
    messages = [{"role": "user", "content": "the dog runs"}]
    whole = client.chat.completions.create(model="chat", messages=messages)
    assert whole.choices[0].message.content == runs("chat").predictor(["the dog runs"])[0]
    for wish in ({}, {"temperature": 0.8, "seed": 2}):
        whole = client.chat.completions.create(model="chat", messages=messages, **wish)
        parts = client.chat.completions.create(model="chat", messages=messages, stream=True, **wish)
        said = "".join(part.choices[0].delta.content or "" for part in parts)
        assert said == whole.choices[0].message.content


def test_openai_embeds(client, runs) -> None:
    found = client.embeddings.create(model="pretraining", input=["the dog runs here."])  # as base64
    numbers = client.embeddings.create(model="pretraining", input="the dog runs here.", encoding_format="float")
    (expected,) = runs("pretraining").predictor.predict(["the dog runs here."], ask="embedding")
    for each in (found, numbers):
        np.testing.assert_allclose(each.data[0].embedding, expected.vector, atol=1e-5)
    assert found.usage.prompt_tokens > 0


def test_openai_knows_the_errors(client) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.completions.create(model="nothing", prompt="a")
    assert missing.value.code == "model_not_found"
    assert "korean" in missing.value.message
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model="korean", prompt="a", frequency_penalty=1)
    assert refused.value.param == "frequency_penalty"


def test_hugging_face_asks_every_task(hugging_face, runs) -> None:
    found = hugging_face("translation").translation("the dog", src_lang="en", tgt_lang="xx")
    assert found.translation_text == runs("translation").predictor(["the dog"])[0]
    best, *_ = hugging_face("classification").text_classification("the sun")
    assert best.label == runs("classification").predictor(["the sun"])[0]
    entities = hugging_face("tagging").token_classification("ab Ca Fb ed")
    assert [(one.entity_group, one.start, one.end) for one in entities] == [
        (span.label, span.start, span.end) for span in runs("tagging").predictor.predict(["ab Ca Fb ed"])[0].entities
    ]
    asked = {"question": "what shines ?", "context": "the dog red sun here"}
    answer = hugging_face("answering").question_answering(**asked)
    assert answer.answer == runs("answering").predictor.predict([asked])[0].text
    assert len(hugging_face("answering").question_answering(**asked, top_k=2)) == 2
    words = hugging_face("pretraining").fill_mask("the [MASK] runs here.", top_k=3)
    assert words[0].sequence == runs("pretraining").predictor(["the [MASK] runs here."])[0]
    vectors = hugging_face("pretraining").feature_extraction("the dog runs here.")
    (expected,) = runs("pretraining").predictor.predict(["the dog runs here."], ask="embedding")
    np.testing.assert_allclose(vectors, [expected.vector], atol=1e-5)
    messages = [{"role": "user", "content": "the dog runs"}]
    reply = hugging_face("chat").chat_completion(messages)
    assert reply.choices[0].message.content == runs("chat").predictor(["the dog runs"])[0]
    with hugging_face("chat") as chat:
        parts = chat.chat_completion(messages, stream=True)
        assert "".join(part.choices[0].delta.content or "" for part in parts) == reply.choices[0].message.content
    assert InferenceClient(hugging_face("chat").model, provider="hf-inference").health_check()


def test_hugging_face_generates_and_streams(hugging_face) -> None:
    asked = {"prompt": "비가", "temperature": 1.2, "seed": 5, "max_new_tokens": 24}
    whole = hugging_face("korean").text_generation(**asked, details=True)
    assert hugging_face("korean").text_generation(**asked) == whole.generated_text
    with hugging_face("korean") as client:
        parts = list(client.text_generation(**asked, stream=True, details=True))
        assert "".join(client.text_generation(**asked, stream=True)) == whole.generated_text
    assert parts[-1].generated_text == "".join(part.token.text for part in parts) == whole.generated_text
    assert parts[-1].details.finish_reason == whole.details.finish_reason
    assert parts[-1].details.generated_tokens == whole.details.generated_tokens


def test_hugging_face_knows_the_errors(hugging_face) -> None:
    with pytest.raises(HfHubHTTPError, match="translation"):
        hugging_face("nothing").translation("a")
    with pytest.raises(ValidationError, match="repetition_penalty"):
        hugging_face("korean").text_generation("a", repetition_penalty=1.5)


def test_a_client_that_leaves_ends_the_decoding(client, server) -> None:
    """Texts of a thousand tokens: the compute thread is soon free for others."""
    before = metric(server, "abandoned_total")
    asked = {"model": "korean", "prompt": ["나"] * 32, "temperature": 2, "seed": 1, "max_tokens": 1024}
    with client.completions.create(**asked, stream=True) as stream:
        assert next(iter(stream)).choices[0].finish_reason is None
    deadline = time.monotonic() + 60
    while metric(server, "abandoned_total") == before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert metric(server, "abandoned_total") == before + 32
    assert client.completions.create(model="korean", prompt="나", max_tokens=1).usage.completion_tokens <= 1


def test_keys_and_a_server_that_is_asked_to_stop(jumok, runs, tmp_path, monkeypatch) -> None:
    """Both clients send the key as Bearer; and a stream that is on ends before the server does."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    (tmp_path / "key").write_text(KEY)
    server, ended = Served(jumok, runs("korean").folder, "--api-key-file", tmp_path / "key"), []
    for key in (KEY, "wrong"):
        with openai.OpenAI(base_url=f"{server.address}/v1", api_key=key, max_retries=0) as client:
            writer = InferenceClient(f"{server.address}/models/korean", token=key)
            if key == KEY:
                assert [model.id for model in client.models.list()] == ["korean"]
                assert isinstance(writer.text_generation("나", max_new_tokens=2), str)
                continue
            with pytest.raises(openai.AuthenticationError):
                client.models.list()
            with pytest.raises(HfHubHTTPError) as refused:
                writer.text_generation("나")
            assert refused.value.response.status_code == 401
    body = {"model": "korean", "prompt": ["나"] * 32, "temperature": 2, "max_tokens": 1024, "stream": True}
    asked = {"json": body, "headers": {"authorization": f"Bearer {KEY}"}, "timeout": 60}
    with httpx2.stream("POST", f"{server.address}/v1/completions", **asked) as answer:
        lines = answer.iter_lines()
        next(lines)
        stopping = threading.Thread(target=lambda: ended.append(server.stop()))
        stopping.start()
        rest = [line for line in lines if line]
    stopping.join(60)
    assert ended == [0]
    assert rest[-1] == "data: [DONE]" or "shutting down" in rest[-1]
