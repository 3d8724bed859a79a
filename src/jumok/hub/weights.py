"""safetensors of any model folder: one file or several, checked before they are read into memory."""

import warnings
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from jumok.errors import CheckpointError
from jumok.hub.files import WEIGHTS, read_json
from jumok.memory import available_memory, gibibytes

INDEX = "model.safetensors.index.json"
UNSAFE = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


class ConvertedWarning(UserWarning):
    """Weights are converted from the precision they were stored in."""


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors, from one file or several; floating-point ones as float32."""
    tensors: dict[str, Tensor] = {}
    for name in _weight_files(folder):
        try:
            _refuse_too_large(folder / name)
            tensors |= load_file(folder / name)
        except (SafetensorError, OSError) as error:
            what = f"cannot read the weights: {error}"
            raise CheckpointError(what, where=folder / name, code="checkpoint.unreadable") from error
    others = {t.dtype for t in tensors.values() if t.is_floating_point() and t.dtype != torch.float32}
    if others:
        names = " and ".join(sorted(str(dtype).removeprefix("torch.") for dtype in others))
        warnings.warn(f"{folder}: weights in {names} are converted to float32", ConvertedWarning, stacklevel=2)
    tensors = {name: t.float() if t.is_floating_point() else t for name, t in tensors.items()}
    for name, tensor in tensors.items():
        if not tensor.sum().isfinite():  # one NaN or infinity is enough, and no other check is as fast
            what = f"{name} contains NaN or infinity"
            hint = "use weights from a training run that did not diverge"
            raise CheckpointError(what, where=folder, hint=hint, code="checkpoint.not_finite")
    return tensors


def _refuse_too_large(path: Path) -> None:
    """A file with holes in it takes no room on a disk, and all of its size in memory."""
    needed = path.stat().st_size
    if needed > (there := available_memory()):
        what = f"the weights need {gibibytes(needed)} of memory, and {gibibytes(there)} are available"
        hint = "use a smaller model, or a machine with more memory"
        raise CheckpointError(what, where=path, hint=hint, code="checkpoint.too_large")


def _weight_files(folder: Path) -> list[str]:
    if (folder / WEIGHTS).exists():
        return [WEIGHTS]
    if (folder / INDEX).exists():
        places = read_json(folder / INDEX).get("weight_map")
        names = sorted(set(map(str, places.values()))) if isinstance(places, dict) else []
        for name in names:
            # A foreign index could name any file on this computer.
            if Path(name).name != name or not name.endswith(".safetensors"):
                what = f'the index names a file that is not a .safetensors file in this folder: "{name}"'
                hint = "use file names without a path"
                raise CheckpointError(what, where=folder / INDEX, hint=hint, code="checkpoint.index")
        if names:
            return names
        hint = 'add "weight_map": {tensor: file}'
        raise CheckpointError("the index names no files", where=folder / INDEX, hint=hint, code="checkpoint.index")
    unsafe = sorted(path.name for pattern in UNSAFE for path in folder.glob(pattern))
    if unsafe:
        raise CheckpointError(
            f"the weights are in {', '.join(unsafe[:3])}: opening such a file can execute code",
            where=folder,
            hint=f"use {WEIGHTS}; if you trust the folder, convert it with its transformers class:"
            " from_pretrained(folder).save_pretrained(folder, safe_serialization=True)",
            code="checkpoint.unsafe",
        )
    hint = f"use a folder with {WEIGHTS}"
    raise CheckpointError("the folder has no weights", where=folder, hint=hint, code="checkpoint.no_weights")
