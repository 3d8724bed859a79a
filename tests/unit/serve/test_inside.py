"""Looking inside: what the server shows is what the model computes."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from jumok.engines import Asked
from jumok.serve.app import Server
from jumok.serve.maps import LastMaps, Quantised
from jumok.serve.models import Models
from jumok.serve.queue import Queue
from jumok.serve.routes import ROUTES

TEXTS = {
    "translation": "the dog sits here",
    "classification": "the sun runs",
    "pretraining": "the [MASK] runs here.",
    "verbal": "the sun runs",
}


@pytest.fixture(scope="module")
def others(tree, train, tmp_path_factory):
    """Recurrent translators with additive attention, and a GPT."""
    folder = tmp_path_factory.mktemp("others")
    seq2seq = {"kind": "seq2seq", "cell": "lstm", "d_embedding": 12, "d_hidden": 12, "attention": "bahdanau"}
    seq2seq |= {"bidirectional": True, "n_heads": None, "d_model": None, "d_ff": None, "n_layers": None}
    gpt = {"kind": "gpt", "d_model": 16, "d_ff": 24, "n_heads": 2, "n_layers": 2, "max_len": 40}
    for name, task, model in (("bahdanau", "translation", seq2seq), ("gpt", "language_model", gpt)):
        recipe = tree(task)
        recipe["model"] = {"dropout": 0.0, **{key: value for key, value in model.items() if value is not None}}
        recipe["train"] = {**recipe["train"], "steps": 20}
        if name == "gpt":
            recipe["tokenizer"] = {"kind": "byte_bpe", "vocab_size": 300}
            recipe["data"]["max_len"] = 40
        train(recipe, folder / name)
    return folder


@pytest.fixture(scope="module")
def client(runs, others):
    queue = Queue()
    folders = [runs(task).folder for task in TEXTS] + [runs("tagging").folder, runs("language_model").folder]
    models = Models([*folders, others / "bahdanau", others / "gpt"], None, queue)
    server = Server(models, ROUTES)
    yield TestClient(server, base_url="http://localhost", raise_server_exceptions=False)
    queue.close()


def opened(answer: Any) -> tuple[dict[str, Any], bytes]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    size = int.from_bytes(answer.content[:4], "little")
    return json.loads(answer.content[4 : 4 + size]), answer.content[4 + size :]


def predictor_of(client, name):
    return client.app.models.get(name).predictor


@pytest.mark.parametrize("task", TEXTS)
def test_attention_is_the_predictors(client, runs, task: str) -> None:
    head, thumbnails = opened(client.post(f"/api/runs/{task}/attention", json={"example": TEXTS[task]}))
    expected = runs(task).predictor.attention(TEXTS[task])
    assert [each["name"] for each in head["maps"]] == list(expected)
    for each in head["maps"]:
        own = expected[each["name"]]
        assert head["sides"][each["columns"]]["tokens"] == own.columns
        assert (each["layers"], each["heads"]) == own.weights.shape[:2]
        for wanted in (0, each["heads"] - 1, "mean", "max"):
            asked = {"example": TEXTS[task], "map": each["name"], "layer": each["layers"] - 1, "head": wanted}
            one, content = opened(client.post(f"/api/runs/{task}/attention/head", json=asked))
            found = np.frombuffer(content, np.uint8).reshape(one["size"]) * (one["peak"] / 255)
            layer = own.weights[-1]
            weights = getattr(layer, wanted)(axis=0) if isinstance(wanted, str) else layer[wanted]
            np.testing.assert_allclose(found, weights, atol=one["peak"] / 500)
    sizes = [each["layers"] * (each["heads"] + 2) * int(np.prod(each["thumbnail"])) for each in head["maps"]]
    assert len(thumbnails) == sum(sizes)


def test_long_maps_shrink_and_keep_their_peaks() -> None:
    rng = np.random.default_rng(0)
    layer = rng.random((3, 200, 130), dtype=np.float32) / 10
    layer[1, 150, 77] = 1.0
    found = Quantised.of([layer, layer])
    small = found.thumbnails()
    assert small.shape == (2, 5, 64, 64)
    assert small[0, 1].max() == 255
    assert (small[0, 1] == 255).sum() == 1


def test_only_the_last_maps_are_kept() -> None:
    made: list[str] = []
    maps = LastMaps(most=100)

    def make(name: str, size: int) -> Any:
        return lambda: (made.append(name) or name, size)

    for name, size in (("a", 60), ("b", 30), ("a", 60), ("c", 50), ("a", 60), ("big", 101), ("big", 101)):
        assert maps.get(name, make(name, size)) == name
    assert made == ["a", "b", "c", "a", "big", "big"]


def test_the_best_of_the_tree_is_the_prediction(client, runs) -> None:
    answer = client.post("/api/runs/translation/choices", json={"example": "the dog sits here", "beam": 4}).json()
    (output,) = runs("translation").predictor.predict(["the dog sits here"], beam=4, n_best=4)
    assert [one["text"] for one in answer["outputs"]] == [output.text, *(o.text for o in output.alternatives)]
    tree, steps = answer["tree"], answer["steps"]
    ends = [node for node in tree if node["fate"] == "finished"]

    def path(node: dict[str, Any]) -> list[int]:
        found = []
        while True:
            found.append(node["id"])
            if node["parent"] < 0:
                return found[::-1]
            node = tree[node["parent"]]

    best = [step["id"] for step in steps]
    (leaf,) = [node for node in ends if path(node) == best]
    assert sum(np.log(step["probability"]) for step in steps) == pytest.approx(leaf["log_prob"], abs=1e-4)
    for step in steps:
        assert sum(each["probability"] for each in step["top"]) <= 1 + 1e-5
        assert step["top"][step["rank"]]["id"] == step["id"] if step["rank"] < len(step["top"]) else True
    # going on from another branch
    other = next(node for node in tree if node["parent"] < 0 and node["id"] != best[0])
    asked = {"example": "the dog sits here", "prefix": [other["id"]]}
    again = client.post("/api/runs/translation/choices", json=asked).json()
    assert again["steps"][0]["id"] == other["id"]
    assert again["steps"][0]["forced"]


def test_a_language_models_choices(client) -> None:
    for name in ("language_model", "gpt"):
        answer = client.post(f"/api/runs/{name}/choices", json={"example": "the cat", "words": 4}).json()
        assert answer["outputs"][0]["text"].startswith("the cat")
        assert answer["tree"]


def logit_of(predictor: Any, row: list[int], target: list[int], wanted: int):
    """The straightforward computation: embeddings as a leaf, the model's embedding replaced by it."""
    model = predictor.engine.models[0]
    source = torch.tensor([row])
    table = model.source_embedding.weight.detach()
    x = table[source].clone().requires_grad_()
    read = torch.tensor([[model.start_id, *target]])
    own = model.source_embedding

    class Leaf(torch.nn.Module):
        weight = own.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return x

    kept, model.source_embedding = model.source_embedding, Leaf()
    target_table = model.target_embedding
    try:
        memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    finally:
        model.source_embedding = kept
    assert target_table is model.target_embedding
    hidden = model.decode(memory, torch.ones_like(source, dtype=torch.bool), read)
    value = model.logits(hidden[:, -1]).log_softmax(dim=-1)[0, wanted]
    (slope,) = torch.autograd.grad(value, x)
    return float(value.detach()), (slope * x).sum(dim=-1)[0].detach().numpy()


def test_gradient_times_input_is_autograds(client) -> None:
    predictor = predictor_of(client, "translation")
    answer = client.post(
        "/api/runs/translation/attribution", json={"example": "the dog sits", "method": "gradient", "step": 1}
    ).json()
    ids, written = answer["sides"]["source"]["ids"], answer["sides"]["target"]["ids"]
    value, shares = logit_of(predictor, ids, written[:1], written[1])
    assert answer["value"] == pytest.approx(value, abs=1e-5)
    np.testing.assert_allclose(answer["tokens"]["source"], shares, atol=1e-5)


@pytest.mark.parametrize("run", ["translation", "bahdanau", "classification", "tagging", "language_model", "gpt"])
def test_integrated_gradients_account_for_all(client, run: str) -> None:
    answer = client.post(
        f"/api/runs/{run}/attribution", json={"example": "the dog runs", "method": "integrated", "steps": 300}
    ).json()
    total = sum(sum(values) for values in answer["tokens"].values())
    assert total - (answer["value"] - answer["baseline"]) == pytest.approx(answer["gap"], abs=1e-4)
    assert abs(answer["gap"]) < 0.05 * max(1.0, abs(answer["value"] - answer["baseline"]))


@pytest.mark.parametrize("run", ["translation", "bahdanau", "classification", "tagging", "language_model", "gpt"])
def test_occlusion_is_the_difference_without_the_word(client, run: str) -> None:
    step = 2 if run in ("language_model", "gpt") else 0
    answer = client.post(f"/api/runs/{run}/attribution", json={"example": "the dog runs", "step": step}).json()
    assert len(answer["words"]["source"]) == len(answer["sides"]["source"]["words"])
    assert any(answer["words"]["source"])


def test_occlusion_of_a_label(client) -> None:
    predictor = predictor_of(client, "classification")
    answer = client.post(
        "/api/runs/classification/attribution", json={"example": "the sun runs", "label": "good"}
    ).json()
    row = answer["sides"]["source"]["ids"]
    without = [predictor.tokenizer.unk_id if i == 1 else one for i, one in enumerate(row)]
    asked = Asked(answer["labels"].index("good"))
    a, b = predictor.engine.values([row, without], asked)
    logits = predictor.engine.logits([row])[0][0]
    assert a == pytest.approx(logits[asked.wanted] - np.logaddexp.reduce(logits), abs=1e-5)
    assert answer["words"]["source"][1] == pytest.approx(a - b, abs=1e-5)


@pytest.mark.parametrize(
    ("run", "names"),
    [
        ("translation", ["encoder", "decoder", "cross"]),
        ("pretraining", ["self"]),
        ("gpt", ["self"]),
        ("verbal", ["self"]),
    ],
)
def test_the_steps_of_a_head_are_the_models(client, run: str, names: list[str]) -> None:
    text = TEXTS.get(run, "the dog sits here")
    own = predictor_of(client, run).attention(text)
    for name in names:
        layers, heads = own[name].weights.shape[:2]
        asked = {"example": text, "part": name, "layer": layers - 1, "head": heads - 1, "row": 1, "full": True}
        found = client.post(f"/api/runs/{run}/steps", json=asked).json()
        np.testing.assert_allclose(found["weights"], own[name].weights[-1, -1, 1], atol=1e-5)
        q, k, v = np.array(found["q"]["first"]), *(np.array([row["first"] for row in found[x]]) for x in "kv")
        np.testing.assert_allclose(found["scores"], k @ q, atol=1e-4)
        np.testing.assert_allclose(found["scaled"], k @ q / len(q) ** 0.5, atol=1e-4)
        np.testing.assert_allclose(found["context"]["first"], np.array(found["weights"]) @ v, atol=1e-4)


def test_the_steps_of_additive_attention_are_the_models(client) -> None:
    for run, text, name in (("bahdanau", "the dog sits", "cross"), ("classification", "the sun runs", "pool")):
        own = predictor_of(client, run).attention(text)[name].weights[0, 0]
        for row in range(len(own)):
            asked = {"example": text, "part": "additive", "row": row}
            found = client.post(f"/api/runs/{run}/steps", json=asked).json()
            np.testing.assert_allclose(found["weights"], own[row], atol=1e-5)
            whole = client.post(f"/api/runs/{run}/steps", json={**asked, "full": True}).json()
            assert found["s"]["size"] == len(whole["s"]["first"]) > len(found["s"]["first"])


@pytest.mark.parametrize("way", [0, 1])
def test_the_steps_of_a_cell_are_torchs(client, way: int) -> None:
    predictor = predictor_of(client, "bahdanau")
    asked = {"example": "the dog sits", "part": "encoder_cells", "head": way, "full": True}
    found = client.post("/api/runs/bahdanau/steps", json=asked).json()
    ids = torch.tensor(found["sides"]["source"]["ids"])
    model = predictor.engine.models[0]
    cell = model.encoder.layers[0][way]
    peer = torch.nn.LSTM(cell.w_x.in_features, cell.d_hidden)
    with torch.no_grad():
        peer.weight_ih_l0.copy_(cell.w_x.weight)
        peer.weight_hh_l0.copy_(cell.w_h.weight)
        peer.bias_ih_l0.copy_(cell.w_x.bias)
        peer.bias_hh_l0.zero_()
        order = torch.tensor(found["order"])
        out, (_, c) = peer(model.source_embedding(ids[order]))
    h = np.array([row["first"] for row in found["parts"]["h"]])
    np.testing.assert_allclose(h, out.numpy(), atol=1e-5)
    np.testing.assert_allclose(found["parts"]["c"][-1]["first"], c[0].numpy(), atol=1e-5)


def test_the_decoders_cells_follow_the_model(client) -> None:
    predictor = predictor_of(client, "bahdanau")
    asked = {"example": "the dog sits", "part": "decoder_cells", "full": True}
    found = client.post("/api/runs/bahdanau/steps", json=asked).json()
    model = predictor.engine.models[0]
    source = torch.tensor([found["sides"]["source"]["ids"]])
    state = model.start(source, torch.ones_like(source, dtype=torch.bool))
    with torch.no_grad():
        for t, token in enumerate(found["sides"]["read"]["ids"]):
            _, state = model.step(torch.tensor([token]), state)
            np.testing.assert_allclose(found["parts"]["h"][t]["first"], state.layers[0][0][0].numpy(), atol=1e-5)


def test_positions_as_a_picture(client, runs) -> None:
    head, content = opened(client.get("/api/runs/translation/positions"))
    table = (np.frombuffer(content, np.uint8).reshape(head["size"]).astype(float) - 128) * (head["peak"] / 127)
    assert head["kind"] == "sinusoidal"
    np.testing.assert_allclose(table[3, :2], [np.sin(3), np.cos(3)], atol=0.01)
    assert client.get("/api/runs/classification/positions").status_code == 422


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("attention", {}, "serve.request"),
        ("attention", {"example": "a", "output": 3}, "serve.request"),
        ("attention/head", {"example": "a", "map": "cross", "layer": 9}, "input.no_such_part"),
        ("attention/head", {"example": "a", "map": "cross", "head": "min"}, "input.no_such_part"),
        ("attention/head", {"example": "a", "map": "cross", "head": True}, "serve.request"),
        ("attention/head", {"example": "a", "map": "nothing"}, "input.no_such_part"),
        ("choices", {"example": "a", "prefix": [10**9]}, "input.no_such_part"),
        ("choices", {"example": "a", "prefix": ["a"]}, "input.no_such_part"),
        ("attribution", {"example": "a", "method": "magic"}, "input.no_such_part"),
        ("attribution", {"example": "a", "step": 99}, "input.no_such_part"),
        ("steps", {"example": "a", "part": "cross", "row": 99}, "input.no_such_part"),
        ("steps", {"example": "a", "part": "cells"}, "input.no_such_part"),
    ],
)
def test_what_is_not_there_is_refused_by_name(client, path: str, body: Any, code: str) -> None:
    answer = client.post(f"/api/runs/translation/{path}", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["code"] == code
