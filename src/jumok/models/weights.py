"""Reading and loading a model's tensors by name."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from jumok.errors import CheckpointError


def unique_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Named parameters and buffers; tied ones once, under their first name."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in _own_tensors(module).items()}


def _own_tensors(module: nn.Module) -> dict[str, Tensor]:
    persistent = module.state_dict().keys()
    buffers = {name: buffer for name, buffer in module.named_buffers() if name in persistent}
    return {**dict(module.named_parameters()), **buffers}


def load_tensors(module: nn.Module, tensors: Mapping[str, Tensor], *, where: Path) -> None:
    """Copy tensors in by name; report missing, unknown and misshapen ones."""
    own = _own_tensors(module)
    wrong = [f"{name} is missing" for name in own if name not in tensors]
    wrong += [f"{name} is unknown" for name in tensors if name not in own]
    wrong += [
        f"{name} has shape {list(tensors[name].shape)}, not {list(tensor.shape)}"
        for name, tensor in own.items()
        if name in tensors and tensors[name].shape != tensor.shape
    ]
    if wrong:
        raise CheckpointError(
            "weights do not fit the model: " + "; ".join(wrong[:5]) + (" ..." if len(wrong) > 5 else ""),
            where=where,
            hint="use the recipe and tokenizer that these weights were trained with",
            code="checkpoint.tensors",
        )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])
