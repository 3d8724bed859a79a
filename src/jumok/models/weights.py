"""Reading and loading a model's tensors by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from jumok.errors import CheckpointError

SHOWN = 5  # mistakes listed in a message


def unique_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Named parameters and buffers; tied ones once, under their first name."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in _own_tensors(module).items()}


def _own_tensors(module: nn.Module) -> dict[str, Tensor]:
    persistent = module.state_dict().keys()
    buffers = {name: buffer for name, buffer in module.named_buffers() if name in persistent}
    return {**dict(module.named_parameters()), **buffers}


def load_tensors(module: nn.Module, tensors: Mapping[str, Tensor], *, where: Path) -> None:
    """Copy tensors in by name; report missing, unknown and misshapen ones."""
    refuse_unfitting(module, tensors, where=where)
    with torch.no_grad():
        for name, tensor in _own_tensors(module).items():
            tensor.copy_(tensors[name])


def refuse_unfitting(module: nn.Module, tensors: Mapping[str, Tensor], *, where: Path) -> None:
    """Refuse tensors whose names, shapes or dtypes are not the module's, which may be on the meta device."""
    compare_tensors(
        tensors,
        {name: tuple(tensor.shape) for name, tensor in _own_tensors(module).items()},
        where=where,
        hint="use the recipe and tokenizer that these weights were trained with",
    )


def compare_tensors(
    tensors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], *, where: Path, hint: str
) -> None:
    """Report tensors that are missing, unknown, of another shape than the model needs, or not of real numbers."""
    wrong = [f"{name} is missing" for name in shapes if name not in tensors]
    wrong += [f"{name} is unknown" for name in tensors if name not in shapes]
    wrong += [
        f"{name} has shape {list(tensors[name].shape)}, not {list(shape)}"
        for name, shape in shapes.items()
        if name in tensors and tuple(tensors[name].shape) != shape
    ]
    if wrong:
        what = f"the weights do not fit the model: {_shortened(wrong)}"
        raise CheckpointError(what, where=where, hint=hint, code="checkpoint.tensors")
    wrong = [
        f"{name} has dtype {str(tensors[name].dtype).removeprefix('torch.')}"
        for name in shapes
        if not tensors[name].is_floating_point()
    ]
    if wrong:
        what, hint = f"the weights are not floating-point numbers: {_shortened(wrong)}", "use weights in float32"
        raise CheckpointError(what, where=where, hint=hint, code="checkpoint.dtype")


def _shortened(wrong: Sequence[str]) -> str:
    more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return "; ".join(wrong[:SHOWN]) + more
