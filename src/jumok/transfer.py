"""Initialise a model from pre-trained weights or an earlier run: what fits is copied, the rest is new."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import RecipeError
from jumok.hub.folder import ModelFolder
from jumok.text.tokenizer import Tokenizer

BODY = "bert."
BODIES = (BODY, "reader.")
"""name prefixes of parameters outside the head, if there is one"""
FEATURES = "reader.features.body."
PIECES = ("embedding.weight", "bias")
"""tensors with a row for every token of the vocabulary; the bias belongs to the masked-token head"""


def begin_with(
    model: nn.Module,
    start: ModelFolder,
    tokenizer: Tokenizer,
    task: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
) -> list[str]:
    """Copy the weights of `start` into a model with this vocabulary; returns notes on unmatched tensors.

    The body is copied whatever the heads. A head is copied only if it is for the same `task` and `labels` and has the
    same tensors; otherwise it is newly initialised. Tokens that the old vocabulary lacks start as the mean of the
    tokens that it splits them into.
    """
    own = dict(model.named_parameters())
    given = _named_as(start.tensors, own)
    old = start.tokenizers.source
    given = {name: _grown(name, tensor, old, tokenizer) for name, tensor in given.items()}
    unfit = [name for name in given if name in own and given[name].shape != own[name].shape]
    body = next((prefix for prefix in BODIES if any(name.startswith(prefix) for name in own)), "")
    if task is not None and not _judge_the_same(start.facts, {"task": task, "labels": list(labels)}):
        unfit += [name for name in given if name not in unfit and not name.startswith(body)]
    for name in unfit:
        if name.startswith(body):
            raise RecipeError(
                f"{name} has shape {list(given[name].shape)}, but the recipe's model has {list(own[name].shape)}",
                where="init",
                hint="leave out [model] to use the model of the weights",
                code="recipe.init_shape",
            )
        del given[name]
    with torch.no_grad():
        for name in given.keys() & own.keys():
            own[name].copy_(given[name])
    notes = []
    if anew := sorted(own.keys() - given.keys()):
        notes.append(f"not in the initial weights, newly initialised: {', '.join(anew)}")
    if unused := sorted(given.keys() - own.keys()):
        notes.append(f"in the initial weights, but not in this model: {', '.join(unused)}")
    return notes


def _judge_the_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a head for one fits the other. Heads for numbers never do: each dataset has its own scale."""
    tasks = [facts.get("task", {}) for facts in (one, other)]
    kinds = {(task.get("kind"), task.get("predicts", "class")) for task in tasks}
    same_labels = one.get("labels", other["labels"]) == other["labels"]
    return len(kinds) == 1 and same_labels and tasks[1].get("predicts") != "number"


def give_features(model: nn.Module, start: ModelFolder) -> None:
    """Copy a trained ELMo, or the layers of a BERT, into the model that uses its features."""
    own = {name.removeprefix(FEATURES): p for name, p in model.named_parameters() if name.startswith(FEATURES)}
    given = {name.removeprefix(BODY): tensor for name, tensor in start.tensors.items()}
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(given[name])


def _named_as(tensors: dict[str, Tensor], own: dict[str, nn.Parameter]) -> dict[str, Tensor]:
    """Add or drop the body's prefix: a bare encoder's tensors have none, those of a model with a head do."""
    here, there = (any(name.startswith(BODY) for name in names) for names in (own, tensors))
    if here and not there:
        return {BODY + name: tensor for name, tensor in tensors.items()}
    if there and not here:
        return {name.removeprefix(BODY): tensor for name, tensor in tensors.items()}
    return tensors


def _grown(name: str, tensor: Tensor, old: Tokenizer, new: Tokenizer) -> Tensor:
    if name.removeprefix(BODY) not in PIECES or new.vocab_size == old.vocab_size:
        return tensor
    added = new.pieces(range(old.vocab_size, new.vocab_size))
    rows = [tensor[old.encode(piece)].mean(dim=0) for piece in added]
    return torch.cat([tensor, torch.stack(rows)])
