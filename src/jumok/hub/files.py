"""JSON and safetensors of any model folder, read strictly and never executed."""

import json
import warnings
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from jumok.config import read_config
from jumok.errors import CheckpointError
from jumok.files import parse_json
from jumok.memory import available_memory, gibibytes

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
UNSAFE = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")

Theirs = TypeVar("Theirs")


class ConvertedWarning(UserWarning):
    """Weights are converted from the precision they were stored in."""


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), "utf-8")


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        what = f"cannot read the model folder: {error}"
        raise CheckpointError(what, where=path, code="checkpoint.unreadable") from error
    if not isinstance(value, dict):
        raise CheckpointError("not a JSON object", where=path, code="checkpoint.unreadable")
    return value


def read_known(kind: type[Theirs], tree: dict[str, Any], *, where: Path) -> Theirs:
    """Read the keys of a foreign config that affect the computation; ignore all others."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    known = {name: value for name, value in tree.items() if name in names}
    return read_config(kind, known, what="the model's config", where=where, error=CheckpointError)


def known_architecture(tree: dict[str, Any], known: Collection[str], silent: str, *, where: Path) -> str:
    """The `transformers` class that the weights were saved from; `silent` if config.json names none."""
    named = tree.get("architectures") or [silent]
    name = str(named[0] if isinstance(named, list) else named)
    if name not in known:
        what = f'jumok has no model for the architecture "{name}"'
        hint = f"use one of {', '.join(known)}"
        raise CheckpointError(what, where=where, hint=hint, code="checkpoint.unknown_architecture")
    return name


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
