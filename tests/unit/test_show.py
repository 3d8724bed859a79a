"""What a recipe amounts to, counted by hand for a small one."""

import json

import pytest

from jumok.recipe import parse_recipe
from jumok.show import cost

D, F, L, V, STEPS, TOKENS = 8, 16, 2, 50, 10, 64
BERT = {"kind": "bert", "d_model": D, "d_ff": F, "n_heads": 2, "n_layers": L, "max_len": 32}
WEIGHTS = L * (4 * D * D + 2 * D * F) + 2 * 30 * D * L  # of the layers, and what attending to 30 tokens costs


def recipe(task, **train):
    data = {"kind": "toy_topics" if task == "classification" else "toy_stories", "max_len": 32}
    predicts = {"predicts": "labels"} if task == "classification" else {}
    tree = {
        "task": {"kind": task, **predicts},
        "data": data,
        "tokenizer": {"kind": "wordpiece", "vocab_size": V},
        "model": BERT,
        "train": {"batch_tokens": TOKENS, **train},
    }
    return parse_recipe(json.loads(json.dumps(tree)), where="test")


def test_pretraining_predicts_what_is_masked():
    found = cost(recipe("pretraining", steps=STEPS))
    assert found.flops_per_pair_of_tokens == pytest.approx(6 * (WEIGHTS + int(0.15 * D * V)))
    assert found.training_flops == found.flops_per_pair_of_tokens * STEPS * TOKENS
    assert found.training_bytes == 16 * found.parameters["total"]


@pytest.mark.parametrize("task", ["pretraining", "classification"])
def test_the_parts_are_the_whole(task):
    found = dict(cost(recipe(task)).parameters)
    assert found.pop("total") == sum(found.values())


def test_a_head_does_not_predict_pieces_and_epochs_have_no_known_steps():
    found = cost(recipe("classification", epochs=3))
    assert found.flops_per_pair_of_tokens == pytest.approx(6 * WEIGHTS)
    assert found.training_flops is None


def test_what_is_frozen_has_neither_gradients_nor_moments():
    full = cost(recipe("classification"))
    frozen = cost(recipe("classification", transfer={"mode": "frozen"}))
    learning = frozen.parameters["output"] + D * (D + 1)  # BERT's pooler learns with the head
    assert frozen.parameters == full.parameters
    assert frozen.training_bytes == 4 * frozen.parameters["total"] + 12 * learning
