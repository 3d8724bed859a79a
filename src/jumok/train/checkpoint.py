"""Checkpoints that are whole or not there: safetensors and JSON, hashed, written aside, synced, renamed."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from jumok.errors import CheckpointError, RunError

MANIFEST = "manifest.json"
MOMENTS = ("exp_avg", "exp_avg_sq")
UPDATES = "updates"


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a folder; it appears complete under its name, with a manifest, or not at all."""
    building = folder.with_name(f"{folder.name}.tmp-{os.getpid()}")
    try:
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        write(building)
        manifest = {path.name: _describe(path) for path in sorted(building.iterdir())}
        (building / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")
        for path in building.iterdir():
            path.chmod((building / MANIFEST).stat().st_mode)  # safetensors makes its files the owner's alone
            _sync(path)
        _sync(building)
        old = folder.with_name(f"{folder.name}.old-{os.getpid()}")
        if folder.exists():
            folder.rename(old)
        try:
            building.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
        _sync(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError) as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def cannot_write(folder: Path, error: Exception) -> RunError:
    # safetensors reports a full disk as its own error, with the system's words in it.
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    return RunError(
        f"{'disk full' if full else 'cannot write'} while saving: {error}",
        where=folder,
        right="what was saved before is untouched; make room and run the same command again to go on",
    )


def verify_folder(folder: Path) -> None:
    """Refuse a folder in which a file is missing or not byte for byte what was written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if not isinstance(manifest, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"torn: its manifest cannot be read ({error})", where=folder) from error
    for name, entry in manifest.items():
        path = folder / name
        if not path.is_file() or path.is_symlink():
            raise CheckpointError("torn: a file is missing", where=path)
        if _describe(path) != entry:
            raise CheckpointError("altered: its bytes are not the ones that were written", where=path)


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str) -> None:
    building = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    try:
        building.write_text(text, "utf-8")
        _sync(building)
        building.replace(path)
    except OSError as error:
        building.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def unique_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Named parameters and buffers, tied ones once, under their first name."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in _own_tensors(module).items()}


def _own_tensors(module: nn.Module) -> dict[str, Tensor]:
    persistent = module.state_dict().keys()
    buffers = {name: buffer for name, buffer in module.named_buffers() if name in persistent}
    return {**dict(module.named_parameters()), **buffers}


def load_tensors(module: nn.Module, tensors: Mapping[str, Tensor], *, where: Path) -> None:
    """Copy tensors in by name; a missing, unknown or misshapen one is named."""
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
            right="the recipe and tokenizer that these weights were trained with",
        )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


class Checkpoints:
    """The folder RUN/checkpoints."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        matches = (re.fullmatch(r"step-(\d+)", path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step}"

    def save(self, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, progress: dict[str, Any]) -> Path:
        def write(folder: Path) -> None:
            save_file(unique_tensors(model), folder / "weights.safetensors", metadata={"format": "pt"})
            save_file(_moments(model, optimizer, step), folder / "optimizer.safetensors")
            (folder / "progress.json").write_text(json.dumps(progress), "utf-8")

        write_folder(self.path(step), write)
        return self.path(step)

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any] | None:
        """Load the newest checkpoint; None if there is none yet."""
        self._sweep()
        steps = self.steps()
        if not steps:
            return None
        folder = self.path(steps[-1])
        try:
            verify_folder(folder)
        except CheckpointError as error:
            good = next((s for s in reversed(steps[:-1]) if self._is_good(s)), None)
            bad = " ".join(str(self.path(s)) for s in steps if good is None or s > good)
            previous = f"step {good}" if good is not None else "the beginning"
            raise CheckpointError(
                f"checkpoint step-{steps[-1]} is {error.what}",
                where=error.where,
                right=f"rm -r {bad}  # then the same command goes on from {previous}, which is good",
            ) from error
        load_tensors(model, load_file(folder / "weights.safetensors"), where=folder)
        _restore_moments(model, optimizer, load_file(folder / "optimizer.safetensors"), steps[-1])
        progress: dict[str, Any] = json.loads((folder / "progress.json").read_text("utf-8"))
        return progress

    def weights(self, step: int) -> dict[str, Tensor]:
        verify_folder(self.path(step))
        tensors: dict[str, Tensor] = load_file(self.path(step) / "weights.safetensors")
        return tensors

    def average(self, steps: list[int]) -> dict[str, Tensor]:
        """The mean of several checkpoints' weights (Vaswani et al. 2017, section 6.1)."""
        mean: dict[str, Tensor] = {}
        for step in steps:
            try:
                weights = self.weights(step)
            except CheckpointError as error:
                raise CheckpointError(
                    f"checkpoint step-{step}, one of {len(steps)} that are averaged, is {error.what}",
                    where=error.where,
                    right=f"rm -r {self.path(step)}  # then the same command takes the mean of the others",
                ) from error
            for name, tensor in weights.items():
                mean[name] = mean.get(name, torch.zeros_like(tensor, dtype=torch.float64)) + tensor
        return {name: (tensor / len(steps)).float() for name, tensor in mean.items()}

    def prune(self, *, keep: set[int]) -> None:
        for step in self.steps():
            if step not in keep:
                shutil.rmtree(self.path(step), ignore_errors=True)

    def _is_good(self, step: int) -> bool:
        try:
            verify_folder(self.path(step))
        except CheckpointError:
            return False
        return True

    def _sweep(self) -> None:
        """Remove what a killed process left half-written."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if ".tmp-" in path.name or ".old-" in path.name:
                    shutil.rmtree(path, ignore_errors=True)


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict[str, Tensor]:
    """Adam's moments; also how often each parameter was updated, of one that did not learn from the first step on."""
    moments = {}
    for name, parameter in model.named_parameters():
        if parameter not in optimizer.state:
            continue
        state = optimizer.state[parameter]
        for moment in MOMENTS:
            moments[f"{name}.{moment}"] = state[moment].cpu().contiguous()
        if int(state["step"]) != step:
            moments[f"{name}.{UPDATES}"] = state["step"].cpu().clone()
    return moments


def _restore_moments(
    model: nn.Module, optimizer: torch.optim.Optimizer, moments: Mapping[str, Tensor], step: int
) -> None:
    for name, parameter in model.named_parameters():
        if f"{name}.{MOMENTS[0]}" not in moments:
            continue
        state = {moment: moments[f"{name}.{moment}"].to(parameter.device) for moment in MOMENTS}
        updates = moments.get(f"{name}.{UPDATES}", torch.tensor(float(step)))
        optimizer.state[parameter] = {"step": updates.to(parameter.device), **state}
