"""BERT bodies in ONNX Runtime compute what the torch engine does."""

import threading

import numpy as np
import pytest

from jumok.engines.torch import TorchEngine
from jumok.models.head import Head
from tiny_berts import bert_folder, frames

pytest.importorskip("onnxruntime", reason="the extra `fast` is not installed")
pytest.importorskip("onnx", reason="the extra `fast` is not installed")

from jumok.engines.fast_work import saturates
from jumok.engines.onnx import OnnxBody, batches_of_equals
from jumok.engines.onnx_graph import write_graph

SIZES = [7, 3, 12, 7, 40, 5, 12, 7, 9, 31, 4, 12]


def body(folder, tmp_path, *, threads=1, **options):
    path = tmp_path / "bert.onnx"
    write_graph(folder, path, **options)
    return OnnxBody(path, threads=threads)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "silu"])
@pytest.mark.parametrize("n_segments", [1, 2, 3])
def test_float32_states_are_those_of_torch(tmp_path, activation, n_segments):
    model, folder = bert_folder(Head(asks="nothing"), activation=activation, n_segments=n_segments)
    rows = frames(folder, SIZES)
    ours, theirs = body(folder, tmp_path, int8=False).states(rows), TorchEngine([model], folder.tokenizers).states(rows)
    for row, a, b in zip(rows, ours, theirs, strict=True):
        assert a.shape == (len(row), 24)
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


SUCCESSORS = {
    "RoBERTa": {"family": "roberta", "first_position": 1, "n_segments": 1},
    "ELECTRA": {"family": "electra", "d_embedding": 16},
    "DistilBERT": {"family": "distilbert", "n_segments": 0},
}


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("options", SUCCESSORS.values(), ids=SUCCESSORS)
def test_the_options_of_berts_successors(tmp_path, options, int8):
    model, folder = bert_folder(Head(asks="nothing"), **options)
    rows = frames(folder, SIZES)
    ours, theirs = body(folder, tmp_path, int8=int8).states(rows), TorchEngine([model], folder.tokenizers).states(rows)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=0.5 if int8 else 1e-5)
        assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("head", [Head(asks="masked"), Head(asks="text", n_labels=3), Head(asks="pieces", n_labels=3)])
def test_the_body_is_found_under_every_head(tmp_path, head):
    model, folder = bert_folder(head)
    rows = frames(folder, SIZES)
    theirs = TorchEngine([model.bert], folder.tokenizers).states(rows)
    for a, b in zip(body(folder, tmp_path, int8=False).states(rows), theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("int8", [False, True])
def test_neighbours_order_budget_and_threads_change_nothing(tmp_path, int8):
    _, folder = bert_folder(Head(asks="nothing"))
    rows = frames(folder, SIZES * 3)
    alike = body(folder, tmp_path, int8=int8)
    together = alike.states(rows)
    alone = [alike.states([row])[0] for row in rows]
    backwards = alike.states(rows[::-1])[::-1]
    small = alike.states(rows, tokens=8)
    alike.threads = 3
    for found in (alone, backwards, small, alike.states(rows)):
        for a, b in zip(together, found, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("int8", [False, True])
def test_the_first_position_alone_is_the_first_of_all(tmp_path, int8):
    _, folder = bert_folder(Head(asks="text", n_labels=2))
    rows = frames(folder, SIZES)
    whole = body(folder, tmp_path, int8=int8).states(rows)
    for a, b in zip(whole, body(folder, tmp_path, int8=int8, first_only=True).states(rows), strict=True):
        assert b.shape == (1, 24)
        np.testing.assert_allclose(a[:1], b, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("narrow", "most"), [(False, 0.012), (True, 0.02)])
def test_int8_is_near(tmp_path, narrow, most):
    model, folder = bert_folder(Head(asks="nothing"), d_model=64, d_ff=128)
    rows = frames(folder, SIZES)
    theirs = TorchEngine([model], folder.tokenizers).states(rows)
    ours = body(folder, tmp_path, int8=True, narrow=narrow).states(rows)
    off = sum(np.abs(a - b).sum() for a, b in zip(ours, theirs, strict=True)) / sum(np.abs(b).sum() for b in theirs)
    assert 0 < off < most


def test_a_graph_says_what_it_is(tmp_path):
    _, folder = bert_folder(Head(asks="text"))
    found = body(folder, tmp_path, int8=True, first_only=True)
    assert (found.int8, found.first_only, found.longest) == (True, True, 40)


def test_no_rows_and_empty_rows(tmp_path):
    _, folder = bert_folder(Head(asks="nothing"))
    found = body(folder, tmp_path, int8=False)
    assert found.states([]) == []
    empty, full = found.states([[], *frames(folder, [5])])
    assert empty.shape == (0, 24)
    assert full.shape == (5, 24)


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_is_told_and_work_can_be_stopped(tmp_path, threads):
    _, folder = bert_folder(Head(asks="nothing"))
    found, rows = body(folder, tmp_path, int8=False, threads=threads), frames(folder, SIZES)
    counted = []
    found.states(rows, done=counted.append, tokens=16)
    assert sum(counted) == len(rows)
    assert len(counted) > 3
    before = threading.active_count()

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found.states(rows, between=stop, tokens=16)
    assert threading.active_count() == before


def test_batches_are_of_one_length_longest_first_and_within_the_budget():
    assert batches_of_equals([3, 5, 3, 0, 3, 9], tokens=6) == [[5], [1], [0, 2], [4]]


@pytest.mark.parametrize(
    ("machine", "flags", "narrow"),
    [("x86_64", "avx2 fma", True), ("x86_64", "avx2 avx512_vnni", False), ("AMD64", "avx_vnni", False)],
)
def test_processors_without_vnni_get_narrow_weights(monkeypatch, machine, flags, narrow):
    monkeypatch.setattr("jumok.engines.fast_work.machine", lambda: machine)
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: f"flags : {flags}\n")
    assert saturates() is narrow


def test_other_processors_do_not_need_them(monkeypatch):
    monkeypatch.setattr("jumok.engines.fast_work.machine", lambda: "aarch64")
    assert saturates() is False
