"""Tensor names in `transformers` and jumok; every tensor of a file must be accounted for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from jumok.errors import CheckpointError
from jumok.models.weights import compare_tensors
from jumok.nn.linear import Activation

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


@dataclass(frozen=True, slots=True)
class Name:
    """A tensor's name in our module and in their file, with its shape there."""

    ours: str
    theirs: str
    shape: tuple[int, ...]


def linear(ours: str, theirs: str, n_out: int, n_in: int, *, transposed: bool = False) -> list[Name]:
    shape = (n_in, n_out) if transposed else (n_out, n_in)
    return [Name(f"{ours}.weight", f"{theirs}.weight", shape), Name(f"{ours}.bias", f"{theirs}.bias", (n_out,))]


def layer_norm(ours: str, theirs: str, d: int) -> list[Name]:
    return [Name(f"{ours}.{part}", f"{theirs}.{part}", (d,)) for part in ("weight", "bias")]


def to_ours(tensors: Mapping[str, Tensor], names: Iterable[Name], *, where: Path) -> dict[str, Tensor]:
    """Rename tensors; report missing, unknown and misshapen ones under the file's names."""
    expected = {name.theirs: name for name in names}
    shapes = {theirs: name.shape for theirs, name in expected.items()}
    compare_tensors(tensors, shapes, where=where, hint="use weights and config.json of the same model")
    return {name.ours: tensors[name.theirs] for name in expected.values()}


def to_theirs(tensors: Mapping[str, Tensor], names: Sequence[Name]) -> dict[str, Tensor]:
    assert tensors.keys() == {name.ours for name in names}, "the names belong to another model"
    return {name.theirs: tensors[name.ours].contiguous() for name in names}


def without_copies(tensors: Mapping[str, Tensor], copies: Mapping[str, str], *, where: Path) -> dict[str, Tensor]:
    """Keep tied tensors once; copies in the file, also ones that replace the original, must be equal."""
    kept = dict(tensors)
    for copy, original in copies.items():
        if copy not in kept:
            continue
        tensor = kept.pop(copy)
        if not torch.equal(kept.setdefault(original, tensor), tensor):
            raise CheckpointError(
                f"{copy} differs from {original}: jumok has one tensor for both",
                where=where,
                hint="use a model with tied embeddings",
                code="checkpoint.not_tied",
            )
    return kept
