"""BERT's heads in NumPy compute what the torch engine does."""

import subprocess
import sys
from math import erf

import numpy as np
import pytest
import torch

from jumok.engines import heads
from jumok.engines.torch import TorchEngine
from jumok.models.head import Head
from jumok.nn.linear import activate
from tiny_berts import bert_folder, frames

SIZES = [7, 4, 12, 7, 40, 5, 12, 9]


class Together:
    """A model in torch, and the states and tensors that the heads get."""

    def __init__(self, head, **sizes):
        self.model, self.folder = bert_folder(head, **sizes)
        self.engine = TorchEngine([self.model], self.folder.tokenizers)
        self.tensors = {name: tensor.numpy() for name, tensor in self.folder.tensors.items()}

    def states(self, rows):
        found = TorchEngine([self.model.bert], self.folder.tokenizers).states(rows)
        return [each.astype(np.float32) for each in found]


def assert_same(a, b):
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("n_labels", [1, 3])  # choice and numbers have one
def test_a_label_for_a_text(n_labels):
    both = Together(Head(asks="text", n_labels=n_labels))
    rows = frames(both.folder, SIZES)
    firsts = np.stack([states[0] for states in both.states(rows)])
    assert_same(heads.of_text(both.tensors, firsts), np.concatenate(both.engine.logits(rows)))


@pytest.mark.parametrize("n_labels", [2, 5])  # answers have two
def test_a_label_for_every_piece(n_labels):
    both = Together(Head(asks="pieces", n_labels=n_labels))
    rows = frames(both.folder, SIZES)
    for states, theirs in zip(both.states(rows), both.engine.logits(rows), strict=True):
        assert_same(heads.of_pieces(both.tensors, states), theirs[0])


def test_a_relation_of_two_entities():
    both = Together(Head(asks="entities", n_labels=4))
    rows = frames(both.folder, SIZES)
    entities = [((1, 2), (2, len(row) - 1)) for row in rows]
    theirs = both.engine.logits(rows, entities=entities)
    for states, (head, tail), logits in zip(both.states(rows), entities, theirs, strict=True):
        assert_same(heads.of_entities(both.tensors, states, head, tail), logits[0])


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "silu"])
def test_masked_words(activation):
    both = Together(Head(asks="masked"), activation=activation)
    rows = frames(both.folder, SIZES, masks=True)
    c, mask_id = both.folder.config, both.folder.tokenizers.source.mask_id
    for row, states, theirs in zip(rows, both.states(rows), both.engine.masked(rows), strict=True):
        here = states[[i for i, token in enumerate(row) if token == mask_id]]
        logits = heads.of_masked(both.tensors, here, activation=c.activation, norm_eps=c.norm_eps)
        assert_same(logits, both.model.logits(torch.from_numpy(here)).detach().numpy())
        assert_same(heads.softmax(logits), theirs)


def test_the_next_sentence():
    both = Together(Head(asks="masked"))
    rows = frames(both.folder, SIZES)
    firsts = np.stack([states[0] for states in both.states(rows)])
    assert_same(heads.softmax(heads.of_next_sentence(both.tensors, firsts))[:, 0], both.engine.follows(rows))


@pytest.mark.parametrize("crf", [False, True])
def test_tags(crf):
    both = Together(Head(asks="pieces", n_labels=5, crf=crf))
    rng = np.random.default_rng(0)
    emissions = [rng.normal(size=(n, 5)) for n in [4, 1, 7, 4, 0, 12]]
    theirs = both.engine.tag([each[None] for each in emissions])
    for (best, probabilities), wanted in zip(heads.tags_of(both.tensors, emissions), theirs, strict=True):
        np.testing.assert_array_equal(best, wanted.best)
        assert_same(probabilities, wanted.probabilities)


def test_gauss_error_function():
    x = np.concatenate([np.linspace(-7, 7, 20_001), [0.0, 1e-12, -1e-300, np.inf, -np.inf]])
    assert np.abs(heads.gauss_error(x) - np.array([erf(each) for each in x])).max() < 1e-9


@pytest.mark.parametrize("activation", heads.ACTIVATIONS)
def test_activations(activation):
    x = np.linspace(-90, 90, 10_001, dtype=np.float32)
    np.testing.assert_allclose(
        heads.activate(x, activation), activate(torch.from_numpy(x.copy()), activation).numpy(), rtol=1e-6, atol=2e-6
    )


@pytest.mark.parametrize("module", ["jumok.engines.heads", "jumok.engines.onnx"])
def test_torch_is_not_imported(module):
    if module.endswith("onnx"):
        pytest.importorskip("onnxruntime", reason="the extra `fast` is not installed")
    subprocess.run([sys.executable, "-c", f"import sys, {module}; assert 'torch' not in sys.modules"], check=True)
