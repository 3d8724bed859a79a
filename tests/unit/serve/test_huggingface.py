"""Hugging Face's inference shapes: what the predictors say, told as its clients read it."""

import json

import numpy as np
import pytest
from starlette.testclient import TestClient

from jumok.serve.access import Access
from jumok.serve.app import Server
from jumok.serve.models import Models
from jumok.serve.queue import Queue
from jumok.serve.routes import ROUTES

KEY = "a-key-of-some-length"
RUNS = (
    "translation",
    "classification",
    "labels",
    "number",
    "pair",
    "tagging",
    "answering",
    "pretraining",
    "korean",
    "chat",
    "choice",
)
QUESTION = {"question": "what shines ?", "context": "the dog red sun here"}


@pytest.fixture(scope="module")
def serve(runs):
    queue = Queue()
    models = Models([runs(name).folder for name in RUNS], None, queue)

    def client(key: str | None = None) -> TestClient:
        server = Server(models, ROUTES, access=Access(key=key))
        return TestClient(server, base_url="http://localhost", raise_server_exceptions=False)

    yield client
    queue.close()


@pytest.fixture(scope="module")
def ask(serve):
    def asked(run: str, inputs: object, task: str = "", **parameters: object):
        path = f"/models/{run}/pipeline/{task}" if task else f"/models/{run}"
        answer = serve().post(path, json={"inputs": inputs, "parameters": parameters})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return asked


def test_translation(ask, runs) -> None:
    texts = ["the dog", "a cat sits"]
    expected = [{"translation_text": text} for text in runs("translation").predictor(texts)]
    assert ask("translation", texts) == expected
    assert ask("translation", texts[0], src_lang="en", tgt_lang="xx", truncation="only_first") == expected[:1]
    greedy = runs("translation").predictor([texts[0]], method="greedy")
    assert ask("translation", texts[0], generate_parameters={"do_sample": False}) == [{"translation_text": greedy[0]}]
    assert ask("translation", texts[0], generate_parameters={"num_beams": 2}) == [
        {"translation_text": runs("translation").predictor([texts[0]], beam=2)[0]}
    ]


def test_classes_labels_numbers_and_pairs(ask, runs) -> None:
    (output,) = runs("classification").predictor.predict(["the sun"])
    ((best, other),) = ask("classification", "the sun")
    assert best["label"] == output.text
    assert best["score"] == pytest.approx(output.probability, abs=1e-5)
    assert best["score"] > other["score"]
    assert ask("classification", ["the sun", "a dog"], top_k=1)[0] == [best]
    assert {one["label"] for one in ask("labels", "sun and rain")[0]} == {"sun", "rain", "snow"}
    assert ask("number", "sun sun")[0][0]["score"] == pytest.approx(
        runs("number").predictor.predict(["sun sun"])[0].value, abs=1e-4
    )
    assert len(ask("pair", {"text": "the sun", "text_pair": "a dog"})[0]) == 2


def test_entities_and_tokens_stand_where_they_say(ask, runs) -> None:
    text = "ab Ca  Fb ed Da"
    (output,) = runs("tagging").predictor.predict([text])
    groups = ask("tagging", text)
    assert [(one["entity_group"], one["start"], one["end"]) for one in groups] == [
        (span.label, span.start, span.end) for span in output.entities
    ]
    tokens = ask("tagging", [text], aggregation_strategy="none", ignore_labels=[])[0]
    assert [one["entity"] for one in tokens] == output.tags
    assert all(text[one["start"] : one["end"]] == one["word"] for one in [*groups, *tokens])
    assert all(one["entity"] != "O" for one in ask("tagging", text, aggregation_strategy="none"))


def test_answers(ask, runs) -> None:
    best = ask("answering", QUESTION)
    assert best.keys() == {"answer", "score", "start", "end"}
    assert best["answer"] == runs("answering").predictor.predict([QUESTION])[0].text
    several = ask("answering", QUESTION, top_k=3)
    assert [one["answer"] for one in several][0] == best["answer"]
    assert 1 < len(several) <= 3
    assert 0 < best["score"] < 1
    there = ask("answering", QUESTION, top_k=3, handle_impossible_answer=False)
    assert all(one["answer"] == QUESTION["context"][one["start"] : one["end"]] != "" for one in there)


def test_masks(ask, runs) -> None:
    encoder = runs("pretraining").predictor
    found = ask("pretraining", "the [MASK] runs here.", top_k=3)
    (output,) = encoder.predict(["the [MASK] runs here."], top_k=3)
    assert [one["token_str"] for one in found] == [candidate.piece for candidate in output.candidates[0]]
    assert found[0]["sequence"] == output.text
    assert encoder.tokenizer.pieces([one["token"] for one in found]) == [one["token_str"] for one in found]
    two = ask("pretraining", "the [MASK] [MASK] here.", top_k=2)
    assert [len(one) for one in two] == [2, 2]
    assert two[1][0]["sequence"].startswith("the [MASK] ")
    animals = ask("pretraining", "the [MASK] runs here.", targets=["cat", "dog"])
    assert {one["token_str"] for one in animals} == {"cat", "dog"}


def test_vectors(serve, ask, runs) -> None:
    texts = ["the dog runs here.", "the cat\tsits"]
    expected = [
        one.vector for one in runs("pretraining").predictor.predict([{"text": t} for t in texts], ask="embedding")
    ]
    np.testing.assert_allclose(ask("pretraining", texts, "feature-extraction"), expected, atol=1e-5)
    plain = serve().post("/models/pretraining", json={"inputs": texts[0], "normalize": True}).json()
    assert np.linalg.norm(plain) == pytest.approx(1.0)
    np.testing.assert_allclose(plain[0], expected[0] / np.linalg.norm(expected[0]), atol=1e-5)


def events_of(answer) -> list[dict]:
    return [json.loads(line.removeprefix("data: ")) for line in answer.text.split("\n\n") if line]


@pytest.mark.parametrize("stop", [[], [" "]])
@pytest.mark.parametrize("seed", range(4))
def test_generated_text_is_that_of_its_stream(serve, seed, stop) -> None:
    parameters = {
        "do_sample": True,
        "temperature": 1.3,
        "seed": seed,
        "max_new_tokens": 20,
        "details": True,
        "stop": stop,
    }
    body = {"inputs": "나는", "parameters": parameters}
    (whole,) = serve().post("/models/korean", json=body).json()
    events = events_of(serve().post("/models/korean", json={**body, "stream": True}))
    assert (
        "".join(event["token"]["text"] for event in events) == whole["generated_text"] == events[-1]["generated_text"]
    )
    tokens = whole["details"]["tokens"]
    assert [event["token"]["id"] for event in events] == [token["id"] for token in tokens]
    assert [event["token"]["logprob"] for event in events] == pytest.approx([token["logprob"] for token in tokens])
    assert events[-1]["details"]["finish_reason"] == whole["details"]["finish_reason"]
    assert whole["details"]["generated_tokens"] == sum(not one["special"] for one in whole["details"]["tokens"])
    assert all(event["generated_text"] is None for event in events[:-1])
    assert all(one["logprob"] < 0 for one in whole["details"]["tokens"])


def test_generation_as_the_run_decodes(ask, runs) -> None:
    (whole,) = runs("korean").predictor.predict(["비가 오는"])
    assert ask("korean", "비가 오는", return_full_text=True) == [{"generated_text": whole.text}]
    greedy = ask("korean", ["비가", "나는"], do_sample=False, max_new_tokens=9, return_full_text=True)
    expected = runs("korean").predictor(["비가", "나는"], method="greedy", max_extra=9)
    assert [one["generated_text"] for one in greedy] == expected


def test_conversation(serve, runs) -> None:
    body = {"model": "dummy", "messages": [{"role": "user", "content": "the dog"}]}
    found = serve().post("/models/chat/v1/chat/completions", json=body).json()
    assert found["choices"][0]["message"]["content"] == runs("chat").predictor(["the dog"])[0]


@pytest.mark.parametrize(
    ("run", "body"),
    [
        ("translation", {"inputs": "a", "parameters": {"tgt_lang": "ko"}}),
        ("translation", {"inputs": "a", "parameters": {"generate_parameters": {"length_penalty": 2}}}),
        ("translation", {"inputs": 1}),
        ("translation", {"inputs": []}),
        ("translation", {"parameters": {}}),
        ("translation", {"inputs": "a", "stream": True}),
        ("translation", {"inputs": ["a"] * 300}),
        ("translation", {"inputs": "\ud800"}),
        ("translation", []),
        ("classification", {"inputs": "a", "parameters": {"function_to_apply": "sigmoid"}}),
        ("classification", {"inputs": {"text": "a", "text_pair": "b"}}),
        ("tagging", {"inputs": "a", "parameters": {"stride": 3}}),
        ("answering", {"inputs": "a"}),
        ("answering", {"inputs": QUESTION, "parameters": {"doc_stride": 3}}),
        ("pretraining", {"inputs": "the dog", "parameters": {}}),
        ("pretraining", {"inputs": "the [MASK]", "parameters": {"targets": ["no such word"]}}),
        ("pretraining", {"inputs": "the dog", "dimensions": 3}),
        ("pretraining/pipeline/translation", {"inputs": "the dog"}),
        ("korean", {"inputs": "a", "parameters": {"repetition_penalty": 1.2}}),
        ("korean", {"inputs": "a", "parameters": {"max_new_tokens": 5000}}),
        ("korean", {"inputs": ["a", "b"], "stream": True}),
        ("choice", {"inputs": "a"}),
    ],
)
def test_what_cannot_be_done_is_refused_in_its_shape(serve, run, body) -> None:
    answer = serve().post(f"/models/{run}", content=json.dumps(body))
    assert answer.status_code == 400, answer.text
    assert isinstance(answer.json()["error"], str)
    assert answer.json()["error_type"] == "validation"


def test_unknown_runs_health_and_keys(serve) -> None:
    missing = serve().post("/models/nothing", json={"inputs": "a"})
    assert missing.status_code == 404
    assert all(name in missing.json()["error"] for name in RUNS)
    assert serve().get("/models/chat/health").status_code == 200
    assert serve().get("/models/nothing/health").status_code == 404
    client = serve(KEY)
    assert client.post("/models/translation", json={"inputs": "a"}).status_code == 401
    allowed = client.post("/models/translation", json={"inputs": "a"}, headers={"authorization": f"Bearer {KEY}"})
    assert allowed.status_code == 200
